"""The verdict of an audit: how many topics miss the goals, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.advice.audits.topic_audit import TopicAudit
from advisor.advice.choice import judged
from advisor.advice.goals import Goals
from advisor.advice.phrases import first_of, listed
from advisor.formatting import brief_time_per_year, is_rare, once_in
from advisor.reliability.results.explanation import LOSSES, MOST_WORDS, STOPS, times_words


def audit_verdict(topics: Sequence[TopicAudit], goals: Goals) -> str:
    """Return yes or no, and the worst data loss, downtime and its main cause, by settings.

    At most 25 words. The cause is that of the losses, or of refused writes where losses are too
    rare to matter. An audit counts no random draws, so "yes" is of the card's middle values.
    """
    if not topics:
        return "Yes: there is no topic."
    failing = {topic.topic.name for topic in topics if not topic.ok}
    total = len({topic.topic.name for topic in topics})
    every = f"{total:,} topic{'s' * (total != 1)}"
    head = f"Yes, {f'all {every} meet' if total > 1 else 'the only topic meets'} your goals"
    if topics[0].choice.reliability.model.uncertain:
        head += " at the card's middle values"
    if failing:
        miss = "misses" if len(failing) == 1 else "miss"
        head = f"No, {len(failing):,} of {every} {miss} your goals"
    soonest = min(topics, key=_years)
    longest = max(topics, key=_stopped)
    loss, stops = _loss_words(soonest, goals), _stops_words(_stopped(longest))
    outlook = soonest.choice.reliability.outlook
    cause = outlook.main[LOSSES]
    if is_rare(_years(soonest)) or not cause:
        cause, loss = "", f"{loss}, {stops}"
        stops = ""
        cause = longest.choice.reliability.outlook.main[STOPS]
    parts = [f"{loss} (main cause: {cause})" if cause else loss, *filter(None, [stops])]
    text = f"{head}; worst: {', '.join(parts)}."
    if len(text.split()) > MOST_WORDS:
        text = text.replace("main cause: ", "")
    if len(text.split()) > MOST_WORDS:
        text = text.replace("data loss", "loss")
    return text


def _years(topic: TopicAudit) -> float:
    """Return the mean years between losses that settings decide; infinite with acks=0."""
    result = topic.choice.reliability
    return math.inf if result.config.acks == 0 else result.mean_years_to_loss


def _stopped(topic: TopicAudit) -> float:
    return topic.choice.reliability.write_unavailability


def _loss_words(topic: TopicAudit, goals: Goals) -> str:
    if topic.choice.reliability.config.acks == 0:
        return "nothing acknowledged"
    years = _years(topic)
    if math.isinf(years):
        return "no modelled data loss"
    if not is_rare(years):
        return f"data loss {once_in(years)}"
    times = judged(topic.choice, goals).times_over.get(LOSSES)
    return f"data loss {times_words(times)} your goal" if times else "negligible data loss"


def _stops_words(stopped: float) -> str:
    return f"writes refused {brief_time_per_year(stopped)}" if stopped else "writes never refused"


def failing_lines(topics: Sequence[TopicAudit]) -> tuple[str, ...]:
    """Return which topics did not work when described, and which miss a goal; a line each."""
    broken = dict.fromkeys(f"{t.topic.name} ({listed(t.broken)})" for t in topics if t.broken)
    missing = dict.fromkeys(t.topic.name for t in topics if t.choice.unmet)
    lines = []
    if broken:
        lines.append(f"In trouble when this was described: {first_of(list(broken))}.")
    if missing:
        lines.append(f"Goals missed by: {first_of(list(missing))}.")
    return tuple(lines)
