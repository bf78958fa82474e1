"""Assumptions behind a result: where the model is simpler than the cluster.

Each sentence says what is assumed, how that biases the numbers, and what to do about it.
"""

from __future__ import annotations

from advisor.formatting import significant
from advisor.protocol.rules.config import Config, outlasts_default
from advisor.reliability.common_cause.placement import Brokers, voters_at_risk
from advisor.reliability.failures.distributions import LARGEST_SHAPE, two_stages
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import BrokerEvent, Mechanism, Scope, table, words
from advisor.reliability.failures.times.card_times import DURATION, LIFETIME
from advisor.reliability.failures.transition_rates import (
    DECISION_HOURS,
    offered_rate,
    racks_at_once,
    shares_of_destruction,
)

OUTSIDE_EVERY_CARD = (
    "software bugs and deleted topics are in no card, and no replication setting changes them. "
    "About one bug a year that lost records written with acks=all was fixed in Kafka from 2014 to "
    "2024, by its commit log (data/known_bugs.csv). Against both only a copy outside the cluster "
    "helps"
)
"""Causes of loss that no failure model covers, with evidence."""

# Less than this is the rounding of a sum.
_ALL = 1.0 - 1e-9
# A smaller part of a number needs no sentence.
_SEEN = 0.01


def assumptions(
    cluster: Brokers, config: Config, model: FailureModel, sampled: bool = False
) -> tuple[str, ...]:
    """Return the assumptions that affect these inputs, each without capital and full stop."""
    mechanisms = table()
    texts = (
        _racks_of_their_own(cluster, model),
        _racks_of_voters(cluster, config, model),
        _elections_by_operators(config, model),
        *(
            _leaders_that_go_on(cluster, config, model, entry)
            for entry in mechanisms.with_effect(BrokerEvent.ISOLATE)
        ),
        *(
            _early_replacements(config, model, entry, sampled)
            for entry in mechanisms.entries
            if entry.turns_into
        ),
        *(
            _restarts_left_out(cluster, model, entry)
            for entry in mechanisms.entries
            if entry.exclusive and not (sampled and model.calendar)
        ),
        *_answers(model),
        _memory_of_producers(config),
        _clocks_of_their_own(model),
        "" if sampled else _without_calendar(model),
        OUTSIDE_EVERY_CARD,
    )
    return tuple(filter(None, texts))


def _answers(model: FailureModel) -> tuple[str, ...]:
    """Facts about a user's tooling that the card takes for granted."""
    asked = [
        (f"{name}.{number.key}", number.question)
        for name in model.mechanisms
        for number in table()[name].numbers
        if number.question
    ]
    return tuple(
        f"the answer is yes ({path} is 0; 1 is never): {question}"
        for path, question in asked
        if path in model.quantities and model[path] == 0.0 and model.calendar is None
    )


def _memory_of_producers(config: Config) -> str:
    """Records that wait longer than usual, in a producer's memory."""
    if not outlasts_default(config):
        return ""
    return (
        "a delivery.timeout.ms above the default helps only as long as the producer's memory "
        "lasts: buffer.memory (32 MiB by default) over the bytes a second of one producer, and "
        "then max.block.ms (60 s by default), after which send() fails. Producers are taken to "
        "have enough; with less, more records are refused than shown"
    )


def _clocks_of_their_own(model: FailureModel) -> str:
    """Times between failures that are not exponential."""
    named = [path for path in model.times if path.endswith(f".{LIFETIME}")]
    if not named:
        return ""
    return (
        f"the times of {', '.join(named)} begin anew when an outage of that mechanism ends, and "
        "not when another mechanism replaces or restarts the broker; where that renews it, too, "
        "ages are younger than assumed"
    )


def _racks_of_their_own(cluster: Brokers, model: FailureModel) -> str:
    """Brokers with an unknown rack."""
    uses_racks = any(table()[name].scope is Scope.RACK for name in model.mechanisms)
    if None not in cluster.brokers.values() or not uses_racks:
        return ""
    unknown = sorted(broker for broker, rack in cluster.brokers.items() if rack is None)
    if len(unknown) == len(cluster.brokers):
        who = "the rack of no broker is known; each is"
    else:
        named = ", ".join(map(str, unknown))
        who = f"the racks of brokers {named} are not known; each is"
        if len(unknown) == 1:
            who = f"the rack of broker {named} is not known; it is"
    hides = "which hides what brokers share: name the racks to be sure"
    return f"{who} counted as a rack of its own, {hides}"


def _racks_of_voters(cluster: Brokers, config: Config, model: FailureModel) -> str:
    """Voters of the controller quorum whose racks are not known, where outages strike racks."""
    if getattr(cluster, "voters_by_rack", None) is not None:
        return ""
    at_once = racks_at_once(model)
    if not at_once or _count_of_racks(cluster) == 1:
        return ""
    who = "controllers" if config.mode == "kraft" else "ZooKeeper servers"
    unknown, name_them = f"the racks of the {who} are not known", f"name the racks of the {who}"
    if voters_at_risk(cluster, at_once):
        first = min(rack for rack in cluster.brokers.values() if rack is not None)
        return (
            f"{unknown}; there are three, two of them in rack {first}. While that rack is out, no "
            f"leader is elected and no ISR changes: {name_them} to be sure"
        )
    return (
        f"{unknown}, so they are taken to keep a majority whichever racks are out, which is the "
        f"best case: {name_them} to be sure"
    )


def _elections_by_operators(config: Config, model: FailureModel) -> str:
    """State who leads where no electable replica can return with its log."""
    assert config.replication_factor is not None
    unclean = config.unclean_leader_election_enable
    if unclean or config.replication_factor == 1 or not shares_of_destruction(model):
        return ""
    where = "where no replica that Kafka may elect can return with its log,"
    hours = model.get(DECISION_HOURS, 0.0)
    if hours > 0:
        return (
            f"{where} an operator elects the most complete log that is left after "
            f"{significant(hours)} hours on average ({DECISION_HOURS})"
        )
    return (
        f"{where} writes stop until a replaced, empty broker leads, and the whole log is lost. "
        f"Set {DECISION_HOURS} if your operators elect another replica sooner"
    )


def _count_of_racks(cluster: Brokers) -> int:
    """A broker whose rack is unknown has one of its own."""
    racks = list(cluster.brokers.values())
    return len(set(racks) - {None}) + racks.count(None)


def _restarts_left_out(cluster: Brokers, model: FailureModel, entry: Mechanism) -> str:
    """Planned restarts that do not fit into a year, one broker at a time."""
    rate = model.rate_per_hour(entry.name)
    if rate <= 0:
        return ""
    brokers, hours = len(cluster.brokers), model.repair_hours(entry.name)
    # Load of one broker, over the time that it leaves for attempts.
    tried = offered_rate(entry, model, brokers, 1) * hours
    counted = tried / (1.0 + tried) / (rate * hours)
    if counted >= _ALL:
        return ""
    year = significant(rate * hours * brokers * HOURS_PER_YEAR)
    counted_percent = significant(100.0 * counted)
    return (
        f"the planned restarts of {brokers} brokers, one at a time, would take {year} hours of a "
        f"year of {HOURS_PER_YEAR:,.0f}. Only {counted_percent} % of them are counted, so what "
        f"{entry.name} causes reads too low: correct the card, or divide that part by "
        f"{significant(counted)}"
    )


def _without_calendar(model: FailureModel) -> str:
    """A calendar of restarts, of which the exact answer holds the number alone."""
    if model.calendar is None:
        return ""
    return (
        f"each broker restarts {significant(model.calendar.per_year)} times a year, as often as by "
        "the card's calendar, but at random moments, one broker at a time, whatever else is out. "
        "Rolling restarts that wait for the ISR refuse fewer writes than shown: "
        "simulate() follows the calendar"
    )


def _leaders_that_go_on(
    cluster: Brokers, config: Config, model: FailureModel, entry: Mechanism
) -> str:
    """Records that a leader accepts from nearby clients while its rack is cut off."""
    assert config.replication_factor is not None
    # With one rack or one replica there is no new leader, and nothing is dropped.
    replaced = _count_of_racks(cluster) > 1 and config.replication_factor > 1
    if config.acks == "all" or not replaced or model.rate_per_hour(entry.name) <= 0:
        return ""
    lasts = significant(60.0 * model.repair_hours(entry.name))
    gone = "records are dropped" if config.acks == 0 else "acknowledged records are lost"
    return (
        f"a leader whose rack is cut off takes no more records with acks={config.acks} here. A "
        "real one goes on serving the clients in its rack, and drops those records when the "
        f"network is back, after {lasts} minutes on average. If producers run in the racks of the "
        f"brokers, more {gone} than shown; acks=all prevents it"
    )


def _early_replacements(
    config: Config, model: FailureModel, entry: Mechanism, sampled: bool
) -> str:
    """Replaced brokers that return before brokers that only lost power."""
    assert config.replication_factor is not None
    gone = model.rate_per_hour(entry.name) * model.get(entry.share_path, 0.0)
    shape = model.shape(entry.turns_into)
    # Without them the last leader alone is waited for, whichever broker is back before.
    others_lead = config.unclean_leader_election_enable or model.get(DECISION_HOURS, 0.0) > 0
    if f"{entry.turns_into}.{DURATION}" in model.times:
        # The card says itself how rarely a replacement is fast.
        return ""
    if gone <= 0 or shape > LARGEST_SHAPE or config.replication_factor == 1 or not others_lead:
        return ""
    hours, minutes = model.repair_hours(entry.turns_into), 60.0 * model.repair_hours(entry.name)
    kind = "an exponential time" if shape == 1.0 else f"a time of shape {significant(shape)}"
    times = 1.0 if sampled else _by_stages(shape, hours / (minutes / 60.0))
    stages = ""
    if abs(times - 1.0) >= _SEEN:
        stages = (
            ". The exact answer approximates that time by two exponential stages: up to about "
            f"{significant(times)} times as many records as shown may be lost this way"
        )
    return (
        f"replacing a broker takes {kind}, {significant(hours)} hours on average. Of those that "
        f"{words(entry.name)} take for good, some are then replaced, empty, before "
        f"the others are back (after {significant(minutes)} minutes on average), and may lead. "
        "Where replacement is rarely that fast, fewer records are lost than shown; give "
        f"{entry.turns_into}.shape, such as 4, and ask simulate(){stages}"
    )


def _by_stages(shape: float, times_longer: float) -> float:
    """How many times more losses a gamma distributed replacement would cause than two stages do.

    A replacement ends before an exponential outage with probability (1 + s / a)^-a for shape a and
    a mean of s times that of the outage; a loss takes one or two of them.
    """
    stages = two_stages(shape)
    gamma = (1.0 + times_longer / shape) ** -shape
    second = 1.0 - stages.goes_on + stages.goes_on / (1.0 + times_longer * stages.second)
    return float((gamma * (1.0 + times_longer * stages.first) / second) ** 2)
