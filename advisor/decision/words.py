"""The verdict in words, as an operator says them; its numbers are those of the actions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from advisor.decision.comparison import MET, MISSED, SURVIVE, GoalOutcome, SettingChoice
from advisor.decision.rule import MINUTES_PER_YEAR
from advisor.decision.settings import Setting, TopicQuestion, copies_in_one_rack
from advisor.decision.verdict import Action, LossSize
from advisor.formatting import (
    RAREST_YEARS,
    capital,
    counted,
    is_rare,
    percent,
    significant,
    span,
    time_per_year,
    years,
)
from advisor.reliability.failures import mechanisms

MOST_HEADLINE_WORDS, MOST_WORDS = 25, 60
MOST_PRICE_MINUTES = 100.0 * MINUTES_PER_YEAR
"""No loss is as bad as a hundred years without writes: a higher price is called any price."""
_MOST_NAMES = 2
_UNPREVENTED = "no setting prevents it"
SECONDS_PER_MINUTE = 60.0
_RARE = f"less often than every {RAREST_YEARS:,.0f} years"
# A loss or an outage is called unavoidable if at most that many times the floor.
_HARDLY_ABOVE = 1.1
_MOSTLY = 0.5


def headline(actions: Sequence[Action], now: Sequence[str]) -> str:
    """Return what to do, in at most 25 words."""
    text = what_to_do(actions)
    if not now:
        return text
    broken_too = f"Broken now: {now[0]}. {text}"
    if len(now) == 1 and len(broken_too.split()) <= MOST_HEADLINE_WORDS:
        return broken_too
    return f"Broken now, repair first: {counted(len(now), 'topic')}. {text}"


def what_to_do(actions: Sequence[Action]) -> str:
    """Return the headline without what is broken now."""
    changed = [action for action in actions if action.set_to is not None]
    if not actions:
        return "There is no topic to decide about."
    if not changed:
        return _keep(actions)
    whose = _whose(changed, len(actions))
    if all(action.moves and action.after.key == action.today.key for action in changed):
        settings = "its settings" if len(changed) == 1 else "their settings"
        return f"Spread the replicas of {whose} over the racks; keep {settings}."
    targets: dict[str, int] = {}
    for action in changed:
        targets[str(action.after)] = targets.get(str(action.after), 0) + 1
    common, number = max(targets.items(), key=lambda target: target[1])
    if len(targets) == 1 and not changed[0].topic:
        return f"Set {common}."
    if 2 * number <= len(changed):
        return f"Change {whose}, {counted(number, 'topic')} of them to {common}."
    return f"Change {whose} to {common}{' in most cases' if number < len(changed) else ''}."


def _whose(changed: Sequence[Action], topics: int) -> str:
    if topics == 1:
        return changed[0].topic or "the topic"
    if len(changed) == topics:
        return "both topics" if topics == 2 else f"all {topics:,} topics"
    return f"{len(changed):,} of {topics:,} topics"


def _keep(actions: Sequence[Action]) -> str:
    settings = {str(action.today) for action in actions}
    if len(settings) == 1:
        return f"Keep {settings.pop()}."
    topics = "both" if len(actions) == 2 else f"all {len(actions):,}"
    return f"Keep the settings of {topics} topics."


def text(actions: Sequence[Action], head: str, site: str = "") -> str:
    """Return why; headline and text have at most 60 words. `site`: what racks and brokers limit."""
    if not actions:
        return ""
    changed = [action for action in actions if action.set_to is not None]
    end = _after(actions, bool(changed))
    groups = _groups(changed) if len(actions) > 1 else []
    for reason in (site, ""):
        for shown in range(len(groups), -1, -1):
            start = _troubles(groups[:shown], len(changed))
            sentences = " ".join(filter(None, (start, end, reason)))
            if len(head.split()) + len(sentences.split()) <= MOST_WORDS:
                return sentences
    return end


def often(losses_per_year: float) -> str:
    """Return how often records are lost.

    >>> often(1 / 270), often(1e-9), often(0.0), often(1.0)
    ('every 270 years', 'less often than every 2,000 years', 'never', 'every year')
    """
    if losses_per_year == 0.0:
        return "never"
    between = 1.0 / losses_per_year
    if is_rare(between):
        return _RARE
    words = years(between)
    return f"every {words.removeprefix('1 ') if words.startswith('1 ') else words}"


def stopped(minutes: float) -> str:
    """Return how long writes stop in a year.

    >>> stopped(33.8), stopped(462.5)
    ('34 minutes a year', '7.7 hours a year')
    """
    return time_per_year(minutes / MINUTES_PER_YEAR)


def duration(minutes: float) -> str:
    """Return minutes without writes as a length of time.

    >>> duration(281.0), duration(5e6)
    ('4.7 hours', '9.5 years')
    """
    if minutes >= MINUTES_PER_YEAR:
        return years(minutes / MINUTES_PER_YEAR)
    return stopped(minutes).removesuffix(" a year")


def _loses(losses_per_year: float) -> str:
    if losses_per_year == 0.0:
        return "loses no record"
    return f"loses records {often(losses_per_year)}"


def _stops(minutes: float) -> str:
    return f"stops writes {stopped(minutes)}" if minutes > 0.0 else "never stops writes"


def _after(actions: Sequence[Action], changed: bool) -> str:
    """The worst topic after the change, or the only one before and after."""
    losing, stopping = worst_after(actions)
    if len(actions) == 1 and changed:
        return (
            f"Today it {_loses(losing.loss_today)} and {_stops(losing.refused_today)}; after the "
            f"change it {_loses(losing.loss_after)}{_cause(losing)} and "
            f"{_stops(losing.refused_after)}."
        )
    subject, other = "It" if len(actions) == 1 else f"The worst topic, {losing.topic},", ""
    if losing is not stopping:
        subject, other = losing.topic, f"{stopping.topic} "
    if changed:
        subject = "After the change the worst topic"
        other = "" if losing is stopping else "another one "
    cause = "" if changed else _cause(losing)
    stops = _stops(stopping.refused_after)
    return f"{subject} {_loses(losing.loss_after)}{cause} and {other}{stops}."


def worst_after(actions: Sequence[Action]) -> tuple[Action, Action]:
    """Return who loses most often and who stops writes longest; the most costly if alike."""
    costly = max(actions, key=lambda action: action.cost_after)
    losing = max(actions, key=lambda action: action.loss_after)
    stopping = max(actions, key=lambda action: action.refused_after)
    if often(losing.loss_after) == often(costly.loss_after):
        losing = costly
    if stopped(stopping.refused_after) == stopped(costly.refused_after):
        stopping = costly
    return losing, stopping


def _cause(action: Action) -> str:
    """The main cause of the losses, and whether a setting prevents them."""
    if not action.cause or not action.loss_after:
        return ""
    prevents = action.loss_after <= _HARDLY_ABOVE * action.floor.losses_per_year
    tail = f"; {_UNPREVENTED}" if prevents else ""
    return f" ({mechanisms.words(action.cause)}{tail})"


def _groups(changed: Sequence[Action]) -> list[list[Action]]:
    """Topics with the same trouble for the same reason, losses first, in the order of the worst."""
    places: dict[tuple[bool, str], list[Action]] = {}
    for action in changed:
        places.setdefault((not _is_about_losses(action), _wrong(action)), []).append(action)
    return [places[key] for key in sorted(places, key=lambda key: key[0])]


def _is_about_losses(action: Action) -> bool:
    gained = action.choice.minutes_per_loss * (action.loss_today - action.loss_after)
    return gained >= action.refused_today - action.refused_after


def _wrong(action: Action) -> str:
    """What is wrong with today's setting, in two words."""
    today, after = action.today, action.after
    if today.replication_factor == 1:
        return "RF 1"
    if today.config.acks != "all":
        return f"acks={today.config.acks}"
    if today.config.unclean_leader_election_enable:
        return "unclean election"
    if today.min_insync_replicas != after.min_insync_replicas or today.never_writes:
        return f"min ISR {today.config.min_insync_replicas}"
    if today.replication_factor != after.replication_factor:
        return f"RF {today.replication_factor}"
    if today.patience != after.patience:
        return "impatient producers"
    return "copies share a rack"


def _troubles(groups: Sequence[list[Action]], changed: int) -> str:
    """What the topics that change do today: first those that lose records, then the others."""
    sentences = []
    for about_losses, members in groupby(groups, key=lambda group: _is_about_losses(group[0])):
        parts = []
        for place, group in enumerate(members):
            verb, lost = ("lose", "records") if about_losses else ("stop", "writes")
            does = "" if place else f"{verb}{'s' if len(group) == 1 else ''} {lost} "
            topics = f"{_names(group)} ({_wrong(group[0])})"
            parts.append(f"{topics} {does}{_range(group, about_losses)}")
        sentences.append(f"{'; '.join(parts)}.")
    more_topics = changed - sum(map(len, groups))
    if groups and more_topics:
        change = "changes" if more_topics == 1 else "change"
        sentences.append(f"{counted(more_topics, 'more topic')} {change}, too.")
    return " ".join(sentences)


def _names(group: Sequence[Action]) -> str:
    names = [action.topic for action in group]
    if len(names) <= _MOST_NAMES:
        return " and ".join(names)
    return f"{names[0]} and {len(names) - 1:,} more"


def _range(group: Sequence[Action], about_losses: bool) -> str:
    if not about_losses:
        shortest, longest = (stopped(pick(a.refused_today for a in group)) for pick in (min, max))
        return longest if shortest == longest else span(shortest, longest)
    rarest, most_often = (pick(action.loss_today for action in group) for pick in (min, max))
    if often(rarest) == often(most_often) or is_rare(1.0 / most_often):
        return often(most_often)
    if rarest == 0.0 or is_rare(1.0 / rarest):
        return f"{often(most_often)} or less often"
    return f"every {span(years(1.0 / most_often), years(1.0 / rarest))}"


def why(action: Action) -> str:
    """Return in a sentence why a topic changes, or why not."""
    today = action.today
    if today.never_writes:
        return (
            f"Kafka {today.config.kafka_version} refuses every write: min ISR "
            f"{today.config.min_insync_replicas} is more than its replicas."
        )
    if action.set_to is None:
        return f"{action.choice.setting} costs least, or hardly more."
    reasons = []
    if today.replication_factor == 1 or not today.survives_restart:
        reasons.append(reason(action))
    if action.loss_after < action.loss_today:
        reasons.append(
            f"it loses records {often(action.loss_today)}, after the change "
            f"{often(action.loss_after)}"
        )
    if action.refused_after < action.refused_today:
        reasons.append(
            f"it stops writes {stopped(action.refused_today)}, after the change "
            f"{stopped(action.refused_after)}"
        )
    return f"{capital('; '.join(reasons) or 'a goal asks for it')}."


def reason(action: Action) -> str:
    """Return in a few words what is wrong with the setting of a topic that changes."""
    today, after = action.today, action.after
    if today.never_writes:
        return "Kafka refuses every write"
    if today.replication_factor == 1:
        return "its only copy goes with its broker"
    if not today.survives_restart:
        return "the restart of one broker stops its writes"
    if today.config.acks != "all":
        return "a leader that dies takes acknowledged records with it"
    if today.config.unclean_leader_election_enable:
        return "a replica without the newest records may become leader"
    if today.min_insync_replicas == 1 < after.min_insync_replicas:
        return "one copy alone may acknowledge"
    if today.min_insync_replicas != after.min_insync_replicas:
        fewer = today.min_insync_replicas < after.min_insync_replicas
        return f"too {'few' if fewer else 'many'} copies must acknowledge"
    if today.replication_factor < after.replication_factor:
        return "too few copies"
    if today.patience != after.patience:
        return "producers stop trying too soon"
    return "copies share a rack"


def held_back(action: Action) -> str:
    """Return what the change lowers."""
    before, after = action.today.min_insync_replicas, action.after.min_insync_replicas
    return f"lowers min ISR from {before} to {after}"


def site(question: TopicQuestion, setting: Setting) -> str:
    """Return what brokers and racks limit, whatever the settings; "" where nothing."""
    racks = set(question.brokers.values())
    if len(question.brokers) == 1:
        return "There is only one broker, and every failure of it stops writes."
    if None in racks:
        return ""
    if len(racks) == 1:
        return "All brokers stand in one rack: what strikes it reaches every copy."
    share = copies_in_one_rack(setting, question.brokers)
    if len(racks) == 2 and share:
        writes = setting.replication_factor - share < setting.min_insync_replicas
        return f"With two racks, losing one can {'stop writes' if writes else 'lose records'}."
    return ""


def floor_sentence(actions: Sequence[Action]) -> str:
    """Return what no setting prevents of the worst losses and minutes after the change."""
    losing, stopping = worst_after(actions)
    parts = []
    losses, minutes = losing.floor.losses_per_year, stopping.floor.minutes_without_writes_per_year
    changed = any(action.set_to is not None for action in actions)
    cause_is_said = _cause(losing).endswith(f"{_UNPREVENTED})") and (
        len(actions) == 1 or not changed
    )
    if losses > 0.0 and not is_rare(1.0 / losses) and not cause_is_said:
        cause = f" ({mechanisms.words(losing.floor.cause)})" if losing.floor.cause else ""
        parts.append(f"a loss {often(losses)}{cause}")
    if minutes * SECONDS_PER_MINUTE >= 1.0:
        floor_time, total_time = stopped(minutes), stopped(stopping.refused_after)
        number, _, unit = floor_time.partition(" ")
        total_parts = total_time.partition(" ")
        same_unit = unit == total_parts[2] and number != total_parts[0]
        parts.append(
            f"{number} of the {total_time}" if same_unit else f"{floor_time} without writes"
        )
    return f"No setting prevents {' and '.join(parts)}." if parts else ""


def price_sentence(choice: SettingChoice) -> str:
    """Return the prices of a loss at which the choice is right, at the card's middle values."""
    lower, higher = choice.pays_from_minutes, choice.pays_to_minutes
    if lower is not None and 0.0 < lower < math.inf:
        min_isr = choice.setting.min_insync_replicas
        return f"Min ISR {min_isr} pays if a loss outweighs {duration(lower)} without writes."
    if lower == 0.0:
        return "A lower min ISR is no better, whatever a loss costs."
    if higher is not None and higher < MOST_PRICE_MINUTES:
        return f"A higher min ISR pays if a loss outweighs {duration(higher)} without writes."
    return "A higher min ISR is no better, whatever a loss costs." if higher else ""


def sure_sentence(choice: SettingChoice, actions: Sequence[Action] = ()) -> str:
    """Return how sure the least sure choice is, for which topics, and the price of a loss."""
    if not choice.draws or choice.runner_up is None:
        return price_sentence(choice)
    word = choice.confidence
    if word == "depends":
        word = f"it depends on {_numbers(choice)}"
    sure = f"How sure: {word}{whose_doubt(choice, actions)}."
    return " ".join(filter(None, (sure, price_sentence(choice))))


def whose_doubt(choice: SettingChoice, actions: Sequence[Action]) -> str:
    """Return for which topics the choice is as unsure, where it is surer for others; else ""."""
    drawn = [action for action in actions if action.choice.draws]
    least_sure = [a.topic for a in drawn if a.choice.confidence == choice.confidence]
    other_words = {a.choice.confidence for a in drawn} - {choice.confidence}
    if not other_words:
        return ""
    are_few = len(least_sure) <= _MOST_NAMES
    names = " and ".join(least_sure) if are_few else f"{len(least_sure)} topics"
    surer = other_words.pop() if len(other_words) == 1 else "likely or sure"
    return f" ({names}), else {surer}"


def _numbers(choice: SettingChoice) -> str:
    """The numbers of the card that the choice depends on, in words where there are many or none."""
    paths = choice.depends_on or ()
    if 0 < len(paths) <= _MOST_NAMES:
        return " and ".join(paths)
    return "numbers of the card that differ between clusters"


def measure_sentence(choice: SettingChoice) -> str:
    """Return which numbers to measure, and what they may change."""
    numbers = choice.measure_next
    if not numbers:
        return ""
    if not choice.measuring_changes_choice:
        names = ", ".join(number.path for number in numbers)
        return f"No number that you can measure changes the choice; these narrow it most: {names}."
    parts = []
    for number in numbers:
        assert number.changes_at is not None
        side = "above" if number.changes_at > number.value else "below"
        parts.append(f"{number.path} ({side} {significant(number.changes_at)}: {number.then})")
    return f"Measure next: {'; '.join(parts)}."


def goal_sentence(goal: GoalOutcome) -> str:
    """Return what becomes of a goal."""
    goal_words = "surviving the failure" if goal.goal == SURVIVE else f"goal {goal.goal}"
    if goal.state == MET:
        sure = f" in {goal.met_in} of {goal.draws} random cases" if goal.draws else ""
        return f"{capital(goal_words)}: met{sure}."
    if goal.state == MISSED:
        return f"{capital(goal_words)}: missed, and {goal.by} would meet it."
    best = "" if goal.goal == SURVIVE else f"; the best is {significant(goal.best)}"
    return f"{capital(goal_words)}: out of reach{best}."


def goal_sentences(actions: Sequence[Action]) -> tuple[str, ...]:
    """Return what becomes of each goal, of the first topic that has it."""
    goals = {goal.goal: goal for action in reversed(actions) for goal in action.goals}
    return tuple(map(goal_sentence, goals.values()))


def undrawn_sentence(topics: int) -> str:
    """Return for how many topics no draws say how sure the choice is; "" for none."""
    if not topics:
        return ""
    return f"How sure was not computed for {topics:,} topics, which come after the others."


def loss_size_sentence(size: LossSize) -> str:
    """Return how much a loss takes."""
    share = size.share_of_whole_logs
    if not (size.records_per_loss or share):
        return ""
    usual = "whole logs" if share >= _MOSTLY else "a few seconds of one broker's records"
    mostly = "" if share in (0.0, 1.0) else f"mostly {usual}; {percent(share)} take whole logs"
    if size.records_per_loss is None:
        rest = ", the others a few seconds of one broker's records" if mostly else ""
        return f"{percent(share)} of losses take whole logs{rest}."
    return (
        f"A loss takes {significant(size.records_per_loss)} records on average: {mostly or usual}."
    )


def more_replica_sentence(action: Action) -> str:
    """Return what one more replica would buy."""
    alternative = action.one_more_replica
    if alternative is None:
        return ""
    losses = significant(alternative.losses_factor)
    minutes = significant(alternative.minutes_factor)
    return (
        f"One more replica ({alternative.setting}) would change losses by a factor of {losses} "
        f"and time without writes by {minutes}."
    )
