"""The sentences of a recommendation: verdict, missed goals, comparison with other settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from advisor.advice.beyond_settings import has_beyond
from advisor.advice.choice import GOAL_WORDS, Choice, certainty, draws_kept, goals_for, judged
from advisor.advice.goals import SURVIVE_WITHOUT_LOSS, SURVIVE_WRITABLE, Goals, limit_words
from advisor.advice.phrases import count_in_words, dominant, listed
from advisor.advice.recommendations.cost_words import more_stored
from advisor.advice.recommendations.ranking import better_draws
from advisor.advice.tolerance import largest_share
from advisor.formatting import is_rare, once_in, significant, time_per_year
from advisor.reliability.results import explanation
from advisor.reliability.results.reliability import Reliability

IN_WORDS: Mapping[str, Callable[[float], str]] = {
    "loss_probability_per_year": limit_words,
    "write_unavailability": time_per_year,
    "read_unavailability": time_per_year,
    "records_refused_per_year": lambda records: f"{significant(records)} a year",
    "acked_records_lost_per_year": lambda records: f"{significant(records)} a year",
}


def verdict(choice: Choice, goals: Goals, met: bool | None = None) -> str:
    """Return the verdict on a setting, with yes, no or doubtful; `met` as for `judged`."""
    draws = draws_kept(choice) if choice.meets_all else (0, 0)
    return explanation.verdict(choice.reliability.outlook, judged(choice, goals, met, draws))


def numbers(choice: Choice) -> list[str]:
    """Return the numbers with their intervals, and how many draws of the card meet the goals."""
    return [
        *filter(None, [certainty(choice)]),
        *explanation.measured_lines(choice.reliability, intervals=True),
    ]


def tolerances(choice: Choice) -> str:
    """Return how many brokers may fail, for data, writes and reads, in one sentence."""
    t = choice.reliability.tolerates
    if t.while_writable < 0:
        writing = "no write ever succeeds"
    else:
        writing = f"{t.while_writable} with writes going on"
    return (
        f"Brokers you can lose at once: {t.without_loss} without data loss, {writing}, "
        f"{t.while_readable} with reads going on."
    )


def shortfall(choice: Choice, goals: Goals, rack_rule: str, choices: Sequence[Choice]) -> str:
    """Return which goals are missed and by how much; "" if none is.

    Some of `choices` may meet them all by numbers that are not surely better, or with fewer
    replicas than may be recommended.
    """
    if choice.meets_all:
        return ""
    missed = [f"{GOAL_WORDS[goal]}{_how_far(choice, goals, goal)}" for goal in choice.unmet]
    plural = "s" if len(missed) > 1 else ""
    sufficient = [c for c in choices if c.meets_all]
    fewer = [c for c in sufficient if _is_cheaper(c, choice)]
    which = f" with {choice.config.replication_factor} replicas or more" if fewer else ""
    none = "is sure to meet" if len(sufficient) > len(fewer) else "meets"
    text = f"No setting{which} {none} every goal; "
    text += f"this one misses the goal{plural} for {listed(missed)}."
    if goals.survive == "rack" and {SURVIVE_WITHOUT_LOSS, SURVIVE_WRITABLE} & set(choice.unmet):
        text += f" {rack_rule}"
    return text


def _how_far(choice: Choice, goals: Goals, goal: str) -> str:
    """Return a measure and its limit in brackets; "" for a goal without a limit."""
    if goal not in goals.limits:
        return ""
    value, limit = float(getattr(choice.reliability, goal)), goals.limits[goal]
    # Where both read the same in words, show digits.
    for say in (IN_WORDS[goal], significant):
        actual, target = say(value), say(limit) if limit else "none"
        if actual != target:
            return f" ({actual}; the goal is {target})"
    return f" ({actual}, just beyond the goal)"


def reasons(
    best: Choice, choices: Sequence[Choice], brokers: Mapping[int, str | None]
) -> tuple[str, ...]:
    """Return the reasons for `best`: its main cause of loss, and what similar settings would do.

    Parameters
    ----------
    best : Choice
    choices : sequence of Choice
        The settings compared, best first.
    brokers : mapping of int to (str or None)
        Broker id to rack.
    """
    sentences = []
    most = dominant(best.reliability.causes["loss_events_per_year"])
    split = has_beyond(best.reliability)
    if most:
        by = " that settings decide" if split else ""
        sentences.append(f"Main cause of loss{by}: {most}.")
    if split:
        sentences.append(
            "The comparisons below leave out losses and downtime by causes beyond settings."
        )
    factor = best.config.replication_factor or 1
    around = (_against_factor(other, best, choices, brokers) for other in (factor - 1, factor + 1))
    sentences += [sentence for sentence in around if sentence]
    cheaper = next((c for c in choices if _is_cheaper(c, best) and c.meets_all), None)
    if cheaper is not None:
        sentences.append(_meets_too(cheaper, best))
    for other in _other_min_isr(best, choices):
        # Where a risk is taken, `risk_words` says the trade above.
        if not (best.risks and _trade(other, best)):
            sentences.append(_against_min_isr(other, best))
    leader_only = _same(best, choices, acks=1, min_insync_replicas=1)
    if best.config.acks == "all" and leader_only is not None:
        often = once_in(_years(leader_only.reliability))
        sentences.append(f"With acks=1: data loss {often}.")
    return tuple(dict.fromkeys(sentences))


def _is_cheaper(choice: Choice, best: Choice) -> bool:
    return (choice.config.replication_factor or 1) < (best.config.replication_factor or 1)


def _years(result: Reliability) -> float:
    """Return the mean years to a loss that settings decide, the part in which settings differ."""
    return result.mean_years_to_loss


def _same(best: Choice, choices: Sequence[Choice], **changes: object) -> Choice | None:
    wanted = best.config.changed(**changes)
    return next((c for c in choices if c.config == wanted), None)


def _other_min_isr(best: Choice, choices: Sequence[Choice]) -> list[Choice]:
    least = best.config.min_insync_replicas or 1
    around = [_same(best, choices, min_insync_replicas=m) for m in (least - 1, least + 1) if m > 0]
    return [choice for choice in around if choice is not None]


def _against_factor(
    factor: int, best: Choice, choices: Sequence[Choice], brokers: Mapping[int, str | None]
) -> str:
    """Return what another replication factor would do; "" if there is nothing to say."""
    if not 1 <= factor <= len(brokers):
        return ""
    share = largest_share(brokers, factor, str(best.config.mode))
    kept = best.survival is not None and best.survival.without_loss and best.survival.writable
    if kept and share is not None and factor < 2 * share + 1:
        more = factor > (best.config.replication_factor or 1)
        judged = "would be worse for losing a rack" if more else "is too few for losing a rack"
        return (
            f"RF {factor} {judged}: one rack then holds {share} of the {factor} replicas, and no "
            "min.insync.replicas keeps both the records and the writes."
        )
    same = (c for c in choices if c.config.replication_factor == factor)
    other = next((c for c in same if c.config.acks == best.config.acks), None)
    if other is None:
        return ""
    if other.meets_all and best.meets_all:
        return _meets_too(other, best)
    if factor > (best.config.replication_factor or 1) and set(other.unmet) < set(best.unmet):
        return _within_uncertainty(other, best)
    if other.meets_all:
        return ""
    least = other.config.min_insync_replicas
    if not best.meets_all and set(other.unmet) == set(best.unmet):
        return _no_better(other, best)
    return f"RF {factor}, at its best with min.insync.replicas {least}, misses {goals_for(other)}."


def _meets_too(other: Choice, best: Choice) -> str:
    """Return why another replication factor that meets the goals too is not recommended."""
    too = " too" if best.meets_all else ""
    words = f"{other.name} meets the goals{too}, with {more_stored(other, best)}"
    if _is_cheaper(other, best) and not (best.meets_all and len(other.risks) > len(best.risks)):
        return f"{words}; but no plan takes replicas away, or leaves one where two brokers are."
    if len(other.risks) <= len(best.risks):
        return f"{words}."
    lost = [significant(choice.reliability.acked_records_lost_per_year) for choice in (other, best)]
    return (
        f"{words}, but it loses {lost[0]} instead of {lost[1]} acknowledged records a year, and an "
        f"audit calls it a risk that {_named(other)}."
    )


def _within_uncertainty(other: Choice, best: Choice) -> str:
    """Return why replicas that would meet a goal by the numbers are not bought."""
    goal = next(goal for goal in best.unmet if goal not in other.unmet)
    better, draws = better_draws(other, best, goal)
    where = f"in {better} of {draws} draws of the card" if better else "by less than 5 %"
    return (
        f"{other.name} would meet the goal for {GOAL_WORDS[goal]} by its numbers, with "
        f"{more_stored(other, best)}; but it is better only {where}, so the difference is not "
        "certain."
    )


def _named(choice: Choice) -> str:
    """The risks of a setting with their codes."""
    titles = ((risk.rule.title, risk.code) for risk in choice.risks)
    return listed([f"{title[:1].lower()}{title[1:]} ({code})" for title, code in titles])


def risk_words(best: Choice, choices: Sequence[Choice]) -> str:
    """Return what an audit calls a risk of the recommended setting, and why it is taken."""
    if not best.risks:
        return ""
    why = "no setting without this risk is sure to do better on your goals"
    if best.meets_all and not any(c.meets_all and not c.risks for c in choices):
        why = "no setting without risks meets the goals"
    trades = (_trade(other, best) for other in _other_min_isr(best, choices))
    return " ".join(
        [f"An audit calls it a risk that {_named(best)}; {why}.", *filter(None, trades)]
    )


def _trade(other: Choice, best: Choice) -> str:
    """Return what another min ISR would lose less often and refuse more; "" for no such trade.

    No trade either if losses are as frequent, within a factor of two, or too rare to observe.
    """
    theirs, ours = _years(other.reliability), _years(best.reliability)
    name = "write_unavailability"
    refused = [float(getattr(each.reliability, name)) for each in (other, best)]
    if theirs < 2.0 * ours or is_rare(ours) or refused[0] <= refused[1]:
        return ""
    less = (
        "no data" if math.isinf(theirs) else f"data {significant(theirs / ours)} times less often"
    )
    decided = "By what settings decide, " if has_beyond(best.reliability) else ""
    return (
        f"{decided}min.insync.replicas {other.config.min_insync_replicas} would lose {less}, but "
        f"refuse writes {time_per_year(refused[0])} instead of {time_per_year(refused[1])}."
    )


def _no_better(other: Choice, best: Choice) -> str:
    """Return how another replication factor misses the same goals."""
    c, t, ours = other.config, other.reliability.tolerates, best.reliability.tolerates
    theirs, own = (once_in(_years(choice.reliability)) for choice in (other, best))
    how = "as often" if theirs == own else f"{theirs} instead of {own}"
    text = (
        f"RF {c.replication_factor} with min.insync.replicas {c.min_insync_replicas} misses the "
        f"same goals: data loss {how}"
    )
    if t.without_loss == ours.without_loss:
        return f"{text}."
    theirs, own = (
        count_in_words(t.without_loss, "broker"),
        count_in_words(ours.without_loss, "broker"),
    )
    return f"{text}; it tolerates losing {theirs} instead of {own}."


def _against_min_isr(other: Choice, best: Choice) -> str:
    r, ours = other.reliability, best.reliability
    theirs, own = once_in(_years(r)), once_in(_years(ours))
    least = other.config.min_insync_replicas
    if is_rare(min(_years(r), _years(ours))):
        lost = f"With min.insync.replicas {least}: data loss {_both_rare(r, ours)}"
    elif theirs == own:
        lost = f"With min.insync.replicas {least}: data loss as often"
    else:
        lost = f"With min.insync.replicas {least}: data loss {theirs} instead of {own}"
    refused, now = (time_per_year(each.write_unavailability) for each in (r, ours))
    return f"{lost}; writes refused {refused} instead of {now}."


def _both_rare(theirs: Reliability, ours: Reliability) -> str:
    """Return how two loss rates compare that are both too rare to be observed."""
    times = _years(ours) / _years(theirs)
    if not math.isfinite(times) or 0.5 < times < 2.0:
        return "equally rare"
    more = f"{significant(times)} times as often" if times > 1 else "less often"
    return f"{more}, but too rare to observe either way"
