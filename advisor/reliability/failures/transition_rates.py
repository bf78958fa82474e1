"""Transition rates by name: failures, repairs, copies; and the times of failovers and stalls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.detection import detection_seconds
from advisor.reliability.failures.distributions import LARGEST_SHAPE, two_stages
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import (
    COPY,
    DECISION,
    Death,
    Mechanism,
    Scope,
    Table,
    Transition,
    death_of,
    pair_of,
    picks_by_chance,
    prolonging,
    repair_of,
    striking,
    table,
    transition,
    transitions,
)
from advisor.reliability.workload import Workload

DECISION_HOURS = "operator.hours"
"""Number of a card: time until an operator elects a remaining replica; never if left out."""
# A copy that takes less counts as instant.
_INSTANT_HOURS = 1.0 / 3600.0
# Mean wait for a follower that stops fetching, in units of replica.lag.time.max.ms.
MEAN_LAG_TIMES = 1.25
# Largest share of the year that planned restarts, one after the other, may take.
_FULLEST = 0.9


def copy_hours(config: Config, model: FailureModel, load: Workload, brokers: int) -> float:
    """Mean hours until a replaced, empty broker has copied its share: bytes over throttle."""
    speed = model.get("copy.bytes_per_second", 0.0)
    if speed <= 0:
        return 0.0
    assert config.replication_factor is not None
    share = load.bytes_per_broker
    if share is None:
        share = load.retained_bytes * config.replication_factor / brokers
    hours = share / speed / 3600.0
    return hours if hours >= _INSTANT_HOURS else 0.0


def racks_at_once(model: FailureModel) -> int:
    """How many racks one failure of the card can put out: 0, 1, or 2 for any more."""
    mechanism_table = table()
    entries = [mechanism_table.outages[condition] for condition in mechanism_table.of_racks]
    entries = [entry for entry in entries if model.rate_per_hour(entry.name) > 0]
    spreads = any(model.get(entry.path(entry.spreads), 0.0) > 0 for entry in entries)
    return 2 if spreads else len(entries[:1])


def names(
    mechanisms: frozenset[str],
    replicas: int,
    copying: bool,
    operator: bool = False,
    voter_racks: int = 0,
) -> tuple[str, ...]:
    """Names of all rates that the chain of a replica set can hold.

    mechanisms: those that can happen, and paths of probabilities that are not 0 and shapes that are
        not 1, and names of the rates of deaths.
    voter_racks: racks with voters of the controller quorum that may hold no replica.
    """
    return _names(mechanisms, replicas, copying, operator, voter_racks, table())


@lru_cache(maxsize=64)
def _names(
    mechanisms: frozenset[str],
    replicas: int,
    copying: bool,
    operator: bool,
    voter_racks: int,
    mechanism_table: Table,
) -> tuple[str, ...]:
    """Draws of a card have the same names; those of the table that holds now."""
    entries = [entry for entry in mechanism_table.entries if entry.name in mechanisms]
    kinds = [
        kind
        for entry in entries
        for kind in entry.kinds
        if not kind.variant or f"{kind.name}.{kind.variant}" in mechanisms
    ]
    names = sorted(
        name for kind in kinds for name in _strikes(kind, mechanisms, replicas, voter_racks)
    )
    ending = {entry.ends_as: mechanism_table[entry.ends_as] for entry in entries if entry.ends_as}
    ending |= {kind.full_name: kind for kind in kinds if kind.condition}
    for entry in entries:
        if entry.turns_into and entry.share_path in mechanisms:
            ending[entry.turns_into] = mechanism_table[entry.turns_into]
        for death in entry.deaths:
            if death_of(entry, death) in mechanisms:
                ending[death.outage] = mechanism_table[death.outage]
                names.append(death_of(entry, death))
    names += [repair_of(ending[name]) for name in sorted(ending)]
    for kind in (ending[name] for name in sorted(ending)):
        if kind.shape_path in mechanisms:
            second = mechanism_table.outages[mechanism_table.prolonged[kind.condition]]
            names += [prolonging(kind), repair_of(second)]
    return (*names, *([COPY] if copying else []), *([DECISION] if operator else []))


def _strikes(
    kind: Mechanism, mechanisms: frozenset[str], replicas: int, voter_racks: int
) -> Iterator[str]:
    """Names of the rates at which a kind of failure strikes."""
    by_chance = picks_by_chance(kind, mechanisms)
    if kind.share is not None and not kind.turns_into and not by_chance:
        return
    spreads = kind.path(kind.spreads) in mechanisms
    racks_at_most = replicas + voter_racks
    racks = (
        [(k, m) for m in range(1, racks_at_most + 1) for k in range(1, m + 1)]
        if spreads
        else [None]
    )
    picks = [(k, m) for m in range(replicas + 1) for k in range(m + 1)] if by_chance else [None]
    if by_chance and voter_racks:
        # A rack without replicas has no broker that could be picked.
        yield from (striking(kind, reach) for reach in racks)
    for reach in racks:
        yield from (striking(kind, reach, picked) for picked in picks)
    if kind.path(kind.overlaps) in mechanisms and replicas > 1:
        yield pair_of(kind)


class Sizes(NamedTuple):
    """How large the cluster is."""

    brokers: int
    racks: int = 1


def rate_per_hour(name: str, replicas: int, model: FailureModel, sizes: Sizes) -> float:
    """The rate of one kind of transition, except the end of a copy; see `copy_hours`."""
    meaning = transition(name)
    entry = meaning.mechanism
    if meaning.decides:
        return 1.0 / model[DECISION_HOURS]
    if meaning.ends:
        return _ends_per_hour(meaning, model)
    rate = strikes_per_hour(entry, model, sizes.brokers, replicas)
    if meaning.racks > 0:
        rate *= spreading_factor(entry, model, meaning.racks, meaning.racks_among, sizes.racks)
    if meaning.chosen >= 0:
        rate *= Pick.of(entry, model).chance_of(meaning.chosen, meaning.among)
    if entry.path(entry.overlaps) and sizes.brokers > 1:
        overlap = model.get(entry.path(entry.overlaps), 0.0)
        others, partners = sizes.brokers - 1, replicas - 1
        if meaning.pair:
            return rate * 2.0 * overlap / others
        # A restart with its partner elsewhere, and being the partner of one elsewhere.
        rate *= 1.0 + overlap * (1.0 - 2.0 * partners / others)
    return rate


def _ends_per_hour(meaning: Transition, model: FailureModel) -> float:
    entry = meaning.mechanism
    hours = model.outage_hours(entry)
    if model.has_stages(entry):
        shape = model[entry.shape_path]
        if shape > LARGEST_SHAPE:
            raise NotComputedError(
                f"{entry.shape_path}={shape:g}: evaluate() solves repairs of a shape up to "
                f"{LARGEST_SHAPE:g}; simulate() samples any"
            )
        stages = two_stages(shape)
        if entry.prolonged:
            return 1.0 / (stages.second * hours)
        goes_on = stages.goes_on
        return (goes_on if meaning.prolongs else 1.0 - goes_on) / (stages.first * hours)
    if meaning.death is not None:
        return death_chance(entry, meaning.death, model) / hours
    return (1.0 - model.get(entry.path(entry.dies), 0.0)) / hours


def death_chance(entry: Mechanism, death: Death, model: FailureModel) -> float:
    """Probability that an outage ends in this death."""
    hard = model.get(entry.path(entry.hard), 1.0)
    return model.get(entry.path(entry.dies), 0.0) * (hard if death.takes_host else 1.0 - hard)


class Pick(NamedTuple):
    """How the events of a mechanism pick brokers by chance.

    share: of each broker, independently; every: that an event picks all brokers instead.
    """

    share: float
    every: float = 0.0

    @classmethod
    def of(cls, entry: Mechanism, model: FailureModel) -> Pick:
        """Read the chances of a mechanism from a card."""
        return cls(model.get(entry.share_path, 0.0), model.get(entry.path(entry.every), 0.0))

    @property
    def ways(self) -> list[tuple[float, float]]:
        """The probability that each broker is picked with a share of its own, and the share."""
        ways = [(1.0 - self.every, self.share), (self.every, 1.0)]
        return [(chance, share) for chance, share in ways if chance > 0.0]

    @property
    def mean_share(self) -> float:
        """Probability of a broker to be picked, in one way or the other."""
        return self.every + (1.0 - self.every) * self.share

    def chance_of(self, chosen: int, among: int) -> float:
        """Probability that of some brokers exactly these ``chosen`` ones are picked."""
        alone = self.share**chosen * (1.0 - self.share) ** (among - chosen)
        return (1.0 - self.every) * alone + self.every * (chosen == among)


def spreading_factor(
    entry: Mechanism, model: FailureModel, struck: int, among: int, racks: int
) -> float:
    """How often some racks of some are struck at once, in units of how often one rack fails.

    One of ``racks`` racks fails first, and takes each other along with probability s. Of ``among``
    racks exactly a given k are struck if one of them, or a rack elsewhere, was the first:
    ``s^(k-1) (1-s)^(among-k) (k + (racks - among) s)``.
    """
    spreads = model.get(entry.path(entry.spreads), 0.0)
    elsewhere = max(racks - among, 0)
    alone = (1.0 - spreads) ** (among - struck)
    return alone * spreads ** (struck - 1) * (struck + elsewhere * spreads)


def strikes_per_hour(entry: Mechanism, model: FailureModel, brokers: int, together: int) -> float:
    """How often an entry or its variant strikes one broker, rack or cluster, per hour."""
    whole = table()[entry.name]
    if entry.variant:
        share = model.get(f"{entry.name}.{entry.variant}", 0.0)
    else:
        share = 1.0 - sum(model.get(whole.path(v.chance), 0.0) for v in whole.variants)
    if entry.exclusive:
        return share * offered_rate(whole, model, brokers, together)
    return share * model.rate_per_hour(entry.name)


def events_per_year(name: str, model: FailureModel, brokers: int, together: int) -> float:
    """Rate at which a mechanism strikes one broker, rack or cluster, all variants together."""
    kinds = table()[name].kinds
    per_hour = (strikes_per_hour(kind, model, brokers, together) for kind in kinds)
    return sum(per_hour) * HOURS_PER_YEAR


def offered_rate(entry: Mechanism, model: FailureModel, brokers: int, together: int) -> float:
    """Rate per hour and broker at which exclusive outages are tried, for the card's rate.

    An attempt during another restart is dropped. Of ``together`` brokers with a load of a each one
    is restarting for a share n a of the time, so that attempts at ``rate / (1 - n a)`` make up for
    it. What does not fit into nine tenths of a year is left undone. Neglected: a calendar's even
    spread.
    """
    hours = model.repair_hours(entry.name)
    load = min(model.rate_per_hour(entry.name) * hours, _FULLEST / max(brokers, together))
    return load / hours / (1.0 - together * load)


def hours_between_turns(entry: Mechanism, model: FailureModel, brokers: int) -> float:
    """Mean hours from the end of a broker's exclusive outage until its next is due."""
    hours = model.repair_hours(entry.name)
    return hours / min(model.rate_per_hour(entry.name) * hours, _FULLEST / brokers) - hours


def shares_of_destruction(model: FailureModel) -> dict[str, float]:
    """Share of each mechanism in the destruction of brokers, from their rates."""
    return dict(_shares_of_destruction(model, table()))


@lru_cache(maxsize=256)
def _shares_of_destruction(model: FailureModel, mechanism_table: Table) -> Mapping[str, float]:
    rates = {}
    for entry in mechanism_table.destroying:
        chance = Pick.of(entry, model).mean_share if entry.share else 1.0
        rates[entry.name] = model.rate_per_hour(entry.name) * chance
    total = sum(rates.values())
    return {name: rate / total for name, rate in rates.items() if rate > 0} if total else {}


def causes_of(name: str, destruction: Mapping[str, Any]) -> Mapping[str, Any]:
    """Mechanisms behind a transition, with shares: of a replacement, what destroyed disks."""
    meaning = transition(name)
    if meaning.ends and meaning.mechanism.name == table().replacement.name:
        return destruction
    return {meaning.mechanism.name: 1.0}


def sum_by_mechanism(
    names: Sequence[str], amounts: Sequence[float], destruction: Mapping[str, float]
) -> dict[str, float]:
    """Sum amounts, one for each rate's name, by the mechanisms behind them; see `causes_of`."""
    totals: dict[str, float] = defaultdict(float)
    for name, amount in zip(names, amounts, strict=True):
        if amount > 0:
            for mechanism, share in causes_of(name, destruction).items():
                totals[mechanism] += amount * share
    return dict(totals)


class Failovers(NamedTuple):
    """Mean hours without a leader, with the move back; move: before a controlled stop."""

    broker: float = 0.0
    rack: float = 0.0
    move: float = 0.0

    def by_name(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Hours of failovers and of controlled moves, shape (names of rates, 2)."""
        meanings = transitions(tuple(names))
        failing = [
            self.rack if change.mechanism.scope is Scope.RACK and not change.ends else self.broker
            for change in meanings
        ]
        return np.stack([failing, np.full(len(names), self.move)], axis=1)


def failovers(
    config: Config, model: FailureModel, load: Workload, brokers: int, brokers_per_rack: float
) -> Failovers:
    """How long a partition waits for a leader.

    The controller moves all leaders of the brokers that fail together, one after the other; a
    partition waits for half of them on average.
    """

    def election(at_once: float) -> float:
        leaders = max(load.partitions / brokers * at_once, 1.0)
        return model.get("election.ms_per_leader", 0.0) * (leaders + 1.0) / 2.0 / 3_600_000.0

    detected = detection_seconds(config, model) / 3600.0
    one, rack = 2.0 * election(1.0), 2.0 * election(brokers_per_rack)
    return Failovers(detected + one, detected + rack, one)


def stall_hours(config: Config, model: FailureModel) -> tuple[float, float]:
    """Mean hours for which acks=all waits for a follower that is dead, and for one that hangs.

    The leader looks every half ``replica.lag.time.max.ms`` for followers that lacked records for
    that long, so that a hung one leaves the ISR after 1 to 1.5 times that
    (``Partition.maybeShrinkIsr``).
    """
    if config.acks != "all":
        return 0.0, 0.0
    assert config.replica_lag_time_max_ms is not None
    hung = MEAN_LAG_TIMES * config.replica_lag_time_max_ms / 3_600_000.0
    return detection_seconds(config, model) / 3600.0, hung
