"""What helps beyond settings: the cheapest change that meets the goals, and what is left by cause.

Remedies evaluate the recommended setting again on a changed cluster or card. What settings leave
has causes of its own (people, power, a site): ``data/remedies.csv`` has what reduces them where the
brokers stand; a tenant of a cloud is not told to buy a power feed.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import cycle

from advisor import catalog
from advisor.advice.candidate import Candidate, choose, measures_of
from advisor.advice.goals import MOST, Goals, decades_short, goal_words, limit_words
from advisor.advice.phrases import listed
from advisor.advice.tolerance import largest_share
from advisor.cluster import Cluster
from advisor.formatting import percent
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.kraft_quorum import fatal_zones
from advisor.reliability import measure_table
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import PER_YEAR, BrokerEvent, Scope, table, words
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

Evaluate = Callable[[Cluster, Config, FailureModel, Workload], Reliability]
_FLUSH, _FLUSHED_SECONDS = "flush.seconds", 1.0
# `flush.ms` of a topic does nothing by itself: the task that looks at it never runs by default.
_FLUSH_EVERY_SECOND = (
    "flush every second (log.flush.scheduler.interval.ms=1000 in server.properties of every "
    "broker, which needs a restart and costs throughput)"
)
_ENOUGH_RACKS = 3
# Flushing shortens only losses of what was not on disk yet; others must not be larger than these.
_LEAST_TAILS = 0.5
# Power in a cloud is its provider's.
_OWN_POWER = ("own", "")
IN_WORDS: Mapping[str, Callable[[float], str]] = {
    **{name: measure_table.measure(name).say for name in measure_table.goals()},
    "loss_probability_per_year": limit_words,
}
_FILE = "remedies.csv"
_UNKNOWN = "unknown"
# What makes less than that of a measure needs no sentence.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Remedy:
    """A change with which the recommended setting meets every goal, or comes nearer to them."""

    what: str
    before: Candidate
    after: Candidate

    @property
    def flushes(self) -> bool:
        """Whether the change is to flush every second."""
        before, after = (choice.reliability.model for choice in (self.before, self.after))
        return after.get(_FLUSH, 0.0) < before.get(_FLUSH, 0.0)

    @property
    def said(self) -> str:
        """The change, with what it makes of the goals that were missed."""
        effects = []
        for goal in self.before.unmet:
            if goal not in IN_WORDS:
                verdict = "met" if self.after.meets.get(goal, True) else "still missed"
                effects.append(f"the goal for {goal_words(goal)} is {verdict}")
                continue
            before, after = (
                IN_WORDS[goal](float(getattr(choice.reliability, goal)))
                for choice in (self.after, self.before)
            )
            effects.append(f"{goal_words(goal)}: {before} instead of {after}")
        head = f"To meet every goal, {self.what}"
        if not self.after.meets_all:
            head = f"Nothing tried meets every goal; it helps most to {self.what}"
        return f"{head} ({listed(effects)})."


def cheapest(
    best: Candidate,
    evaluated: Evaluate,
    cluster: Cluster,
    model: FailureModel,
    load: Workload,
    goals: Goals,
) -> Remedy | None:
    """Return the cheapest change that meets all goals, else the one that helps most.

    From cheap to dear: place the controllers elsewhere, flush every second, feed racks twice, add a
    rack. At most five evaluations. None if the goals are met, or if no change helps.
    """
    if best.meets_all:
        return None
    nearest, remedy = _distance(best, goals), None
    for change, changed_cluster, card in _changes(cluster, model, best.reliability):
        config = best.config
        if len(changed_cluster.racks) > len(cluster.racks):
            config = config.changed(replication_factor=3, min_insync_replicas=2)
            change = f"{change}, with RF 3 and min ISR 2"
        share = largest_share(
            changed_cluster.brokers, config.replication_factor or 1, str(config.mode)
        )
        changed = choose(config, evaluated(changed_cluster, config, card, load), goals, share)
        if changed.meets_all:
            return Remedy(change, best, changed)
        if _distance(changed, goals) < nearest:
            nearest, remedy = _distance(changed, goals), Remedy(change, best, changed)
    return remedy


def _distance(choice: Candidate, goals: Goals) -> tuple[int, float]:
    """Return the number of missed goals, and by how many decades, to a tenth."""
    short = decades_short(goals, measures_of(choice.reliability))
    return len(choice.unmet), round(short, 1)


def _changes(
    cluster: Cluster, model: FailureModel, result: Reliability
) -> Iterator[tuple[str, Cluster, FailureModel]]:
    """Each change in words, with the cluster and the card that it makes; cheap ones first."""
    racks = cluster.racks
    if _one_rack_stops_elections(cluster) and len(racks) >= _ENOUGH_RACKS:
        spread = f"place the controllers in {_ENOUGH_RACKS} racks, as evenly as they go"
        yield spread, replace(cluster, controllers=_spread(cluster.controllers or {}, racks)), model
    if model.get(_FLUSH, 0.0) > _FLUSHED_SECONDS and _tails(result) >= _LEAST_TAILS:
        flushed = model.with_values({_FLUSH: _FLUSHED_SECONDS})
        yield _FLUSH_EVERY_SECOND, cluster, flushed
    rates = _power_failures(model, one_rack=len(racks) <= 1)
    if rates and model.hosting in _OWN_POWER:
        measure = "give racks a second power feed" if len(racks) > 1 else "give the rack a UPS"
        halved = model.with_values({path: rate / 2.0 for path, rate in rates.items()})
        yield f"{measure} that halves power failures", cluster, halved
        never = model.with_values(dict.fromkeys(rates, 0.0))
        yield f"{measure} that prevents power failures", cluster, never
    if racks and len(racks) < _ENOUGH_RACKS <= len(cluster.brokers):
        names = [*racks, *(f"new rack {n}" for n in range(len(racks) + 1, _ENOUGH_RACKS + 1))]
        voters = cluster.controllers
        spread_cluster = replace(
            cluster,
            brokers=_spread(cluster.brokers, names),
            controllers=None if voters is None else _spread(voters, names),
        )
        yield "spread brokers and controllers over three racks", spread_cluster, model


def _one_rack_stops_elections(cluster: Cluster) -> bool:
    racks = {voter: rack for voter, rack in (cluster.controllers or {}).items() if rack is not None}
    return len(racks) > 1 and bool(list(fatal_zones(racks)))


def _spread(nodes: Iterable[int], racks: Sequence[str]) -> dict[int, str | None]:
    """Nodes in turn over racks."""
    return dict(zip(sorted(nodes), cycle(racks), strict=False))


def _tails(result: Reliability) -> float:
    """Share of the lost records that were not on disk yet when power failed."""
    causes = result.causes["acked_records_lost_per_year"]
    cut = {entry.name for entry in table().entries if entry.effect is BrokerEvent.POWER}
    total = sum(causes.values())
    return sum(amount for cause, amount in causes.items() if cause in cut) / total if total else 0.0


def _power_failures(model: FailureModel, one_rack: bool) -> dict[str, float]:
    """Rates of power failures of racks, of one rack with its site, by their path in the card."""
    scopes = (Scope.RACK, Scope.CLUSTER) if one_rack else (Scope.RACK,)
    paths = [
        entry.path(PER_YEAR)
        for entry in table().entries
        if entry.scope in scopes and entry.effect is BrokerEvent.POWER
    ]
    return {path: rate for path in paths if (rate := model.get(path, 0.0)) > 0.0}


def softer_goals(best: Candidate, goals: Goals) -> str:
    """Return which limits the setting meets in place of those that it misses; "" for none."""
    limits = {
        goal: float(f"{1.05 * getattr(best.reliability, goal):.1e}")
        for goal in best.unmet
        if goal in goals.limits
    }
    softer = {goal: limit for goal, limit in limits.items() if limit <= MOST}
    if not softer or len(softer) < len(best.unmet):
        return ""
    words = [
        f"{Decimal(repr(limit)).normalize():f} for {goal_words(goal)} ({IN_WORDS[goal](limit)})"
        for goal, limit in softer.items()
    ]
    return f"A softer goal that it meets: {listed(words)}."


@dataclass(frozen=True)
class Way:
    """Something to do about a cause, and where it can be done.

    hostings: kinds of cards that it is for; "unknown" stands for cards that do not say. Empty: any.
    """

    what: str
    hostings: tuple[str, ...]
    fewest_racks: float
    most_racks: float

    def fits(self, hosting: str, racks: int) -> bool:
        """Whether it can be done there."""
        suits = not self.hostings or (hosting or _UNKNOWN) in self.hostings
        return suits and self.fewest_racks <= racks <= self.most_racks


@cache
def ways() -> Mapping[str, Mapping[str, tuple[Way, ...]]]:
    """Measure to mechanism to what reduces it, in the order of ``data/remedies.csv``."""
    table: dict[str, dict[str, tuple[Way, ...]]] = {
        entry.name: {} for entry in measure_table.weighed()
    }
    with catalog.data_path(_FILE).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            way = Way(
                row["what"],
                tuple(row["hostings"].split()),
                float(row["fewest_racks"] or 0),
                float(row["most_racks"] or math.inf),
            )
            causes = table[row["measure"]]
            causes[row["mechanism"]] = (*causes.get(row["mechanism"], ()), way)
    return table


@dataclass(frozen=True)
class Help:
    """What reduces the largest part of a measure that something can be done about.

    causes: mechanisms that it reduces, the largest first.
    share: their part of the measure, 0 to 1.
    """

    measure: str
    what: str
    causes: tuple[str, ...]
    share: float

    def __str__(self) -> str:
        weighed = measure_table.measure(self.measure).weighed
        return (
            f"{percent(self.share)} of the remaining {weighed} come from "
            f"{words(self.causes[0])}; what helps: {self.what}."
        )


def what_helps(result: Reliability) -> tuple[Help, ...]:
    """Return what reduces most of the losses and of the time without writes that are left."""
    racks = len(set(result.cluster.brokers.values()) - {None})
    return tuple(_helps(result.causes, result.model.hosting, racks))


def _helps(causes: Mapping[str, Mapping[str, float]], hosting: str, racks: int) -> Iterator[Help]:
    for measure, ways_by_cause in ways().items():
        total = sum(causes[measure].values())
        reduced: dict[str, dict[str, float]] = {}
        for cause, amount in causes[measure].items():
            fitting = (way for way in ways_by_cause.get(cause, ()) if way.fits(hosting, racks))
            way = next(fitting, None)
            if way is not None and amount > 0.0:
                reduced.setdefault(way.what, {})[cause] = amount / total
        best_way = max(reduced, key=lambda order: sum(reduced[order].values()), default=None)
        if best_way is None:
            continue
        shares = reduced[best_way]
        if sum(shares.values()) >= _LEAST_SHARE:
            ordered = tuple(sorted(shares, key=lambda cause: -shares[cause]))
            yield Help(measure, best_way, ordered, sum(shares.values()))
