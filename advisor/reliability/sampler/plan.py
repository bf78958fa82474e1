"""The input of a sampling run, as plain data that can be sent to any worker.

A plan holds the whole cluster: every broker, its rack, and every ordered replica set of the topic
with its number of partitions. Blocks are numbered stretches of simulated years. Both depend on
the inputs alone, never on the engine, so that the same inputs give the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from advisor.errors import InputError, shown
from advisor.protocol.rules.config import Config
from advisor.reliability.calendar import Calendar
from advisor.reliability.common_cause.placement import Brokers, place
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import BrokerEvent, Mechanism, Scope, Table, table
from advisor.reliability.failures.setting import Replicas
from advisor.reliability.failures.times.card_times import CREWS_PATH, DURATION, LIFETIME
from advisor.reliability.failures.times.time_distribution import TimeDistribution
from advisor.reliability.failures.transition_rates import DECISION_HOURS, racks_at_once
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.workload import Workload

# Measured on one core of a small machine, and only ever used to cut the work into blocks.
_SECONDS_PER_EVENT = 70e-9
_SECONDS_PER_EVENT_AND_SET = 15e-9
_EVENTS_PER_CYCLE = 8.0
# Measured with every mechanism, from 6 to 10,000 brokers; the cut of blocks cannot follow, since
# it decides which random numbers are drawn.
_EXPECTED_PER_EVENT = 100e-9
_EXPECTED_PER_EVENT_AND_SET = 55e-9
_SECONDS_TO_BEGIN = 2e-3
_SECONDS_TO_BEGIN_A_SLOT = 3e-6
SECONDS_PER_BLOCK = 1.0
FEWEST_BLOCKS = 32


@dataclass(frozen=True)
class Occurrence:
    """How often a course of a mechanism strikes one broker, rack or cluster; how long it lasts.

    Attributes
    ----------
    per_hour : float
    hours : float
        Mean duration; 0 where another mechanism's duration counts.
    shape : float
        Of the gamma distribution of the duration; 1 is the exponential.
    share, spreads, overlaps, dies : float
        The mechanism's probabilities, those that it has; see `Mechanism`.
    duration : TimeDistribution, optional
        In place of the gamma distribution.
    """

    per_hour: float = 0.0
    hours: float = 0.0
    shape: float = 1.0
    share: float = 0.0
    spreads: float = 0.0
    overlaps: float = 0.0
    dies: float = 0.0
    duration: TimeDistribution | None = None


@dataclass(frozen=True)
class Lifetime:
    """The time between events of a mechanism, of one broker, rack or cluster.

    Attributes
    ----------
    hours : float
        Its mean, from the end of the last outage.
    distribution : TimeDistribution
    """

    hours: float
    distribution: TimeDistribution


@dataclass(frozen=True)
class RollingRestarts:
    """Rolling restarts by a calendar.

    Attributes
    ----------
    batches : tuple of tuple of int
        Brokers that restart together, in the order of the rolling restart.
    waits : bool
        Whether the next batch waits until every broker is up and every replica in sync.
    period_hours, hour_of_week : float
        From the begin of one to that of the next; when they begin, from Monday 0:00.
    mean_hours, up_hours : float
        Mean duration of a restart; without waiting: from when a batch stops until its brokers run.
    pause_hours : float
        From when the next batch may restart until it does.
    unclean : float
        Probability that a shutdown ends hard.
    alone : bool
        Each "year" of a block is one rolling restart.
    run_up_hours : float
        Of those: from a healthy cluster until one begins.
    hurry, hurry_hours : float
        Of those: how many times as fast the first failure comes, for so long from the begin.
    """

    batches: tuple[tuple[int, ...], ...]
    waits: bool
    period_hours: float
    hour_of_week: float
    mean_hours: float
    up_hours: float
    pause_hours: float
    unclean: float
    alone: bool = False
    run_up_hours: float = 0.0
    hurry: float = 1.0
    hurry_hours: float = 0.0


@dataclass(frozen=True)
class Bias:
    """How cycles are drawn where losses are rare; see :mod:`advisor.reliability.cycles`.

    Attributes
    ----------
    beginning : tuple of float
        Share of the cycles that each course of a mechanism begins.
    following : tuple of tuple of float
        Probability of each course for the second failure of a cycle, the third, and so on.
    boost : tuple of float
        Probability that this failure comes before the outages end.
    plain : float
        Share of the cycles that are drawn without bias.
    """

    beginning: tuple[float, ...]
    following: tuple[tuple[float, ...], ...]
    boost: tuple[float, ...]
    plain: float


@dataclass(frozen=True)
class Plan:
    """A cluster, a topic on it, and the failures that strike them.

    Attributes
    ----------
    setup : ChainConstants
        The rules of the partition, as the CTMC has them.
    racks : tuple of int
        Rack number of each broker; brokers are numbered from 0.
    sets : tuple of tuple of int
        The distinct ordered replica sets: broker numbers, preferred leader first.
    partitions : tuple of int
        How many partitions each set holds.
    mechanisms : dict of str to Occurrence
        By course, such as "broker.crash" or "broker.restart unclean"; one that is left out does
        not happen.
    table : Table
        What each mechanism does.
    copies_per_hour : float
        1 / mean time to copy the log of a replaced replica.
    records_per_hour : float
        Written to one partition.
    retained_records : float
        Most records of one partition that exist.
    unflushed_hours : float
        Age at which a written record is on disk.
    tail_hours : float
        How long the leader alone holds a record with acks=1 or 0.
    failovers : Failovers
        Hours without a leader.
    budget_hours : float
        How long a producer retries in an outage before it gives up a record; may be infinite.
    waiting_budget_hours, delivery_hours : float
        How long it waits while the leader does not answer, and in total; may be infinite.
    stall_hours : (float, float)
        Mean time that an acknowledgement waits for a dead follower, and for one that hangs.
    lag_hours : float
        The shortest wait for one that hangs; the longest is 1.5 times as long.
    voters : tuple of int
        Voters of the controller quorum by rack number, racks without brokers last; () if unknown,
        or if outages of racks cannot take the majority.
    decisions_per_hour : float
        1 / mean time until an operator elects what is left; 0 if none ever does.
    lifetimes : dict of str to Lifetime
        Of the mechanisms whose events are no Poisson process, by name.
    crews : int
        How many repairs of ``needed_for`` progress at a time; 0 for all.
    needed_for : tuple of str
        Mechanisms.
    rolling : RollingRestarts or None
        Restarts by a calendar; None if brokers restart at random, or never.
    traffic : tuple of float
        Traffic of each hour of the day in units of the mean; () if it is even.
    bias : Bias, optional
        How cycles are drawn; None for years as they come.
    """

    setup: ChainConstants
    racks: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    partitions: tuple[int, ...]
    mechanisms: dict[str, Occurrence]
    table: Table = field(default_factory=table)
    copies_per_hour: float = 0.0
    records_per_hour: float = 0.0
    retained_records: float = 0.0
    unflushed_hours: float = 0.0
    tail_hours: float = 0.0
    failovers: transition_rates.Failovers = field(default_factory=transition_rates.Failovers)
    budget_hours: float = math.inf
    waiting_budget_hours: float = math.inf
    delivery_hours: float = math.inf
    stall_hours: tuple[float, float] = (0.0, 0.0)
    lag_hours: float = 0.0
    voters: tuple[int, ...] = ()
    decisions_per_hour: float = 0.0
    lifetimes: dict[str, Lifetime] = field(default_factory=dict)
    crews: int = 0
    needed_for: tuple[str, ...] = ()
    rolling: RollingRestarts | None = field(default=None, repr=False)
    traffic: tuple[float, ...] = field(default=(), repr=False)
    bias: Bias | None = field(default=None, repr=False)

    def __hash__(self) -> int:
        return hash(self._fingerprint)

    @property
    def replicas(self) -> int:
        """Replicas of each partition."""
        return len(self.sets[0])

    @property
    def rack_count(self) -> int:
        """Racks, known or assumed."""
        return max(max(self.racks) + 1, len(self.voters))

    @property
    def strikes_per_year(self) -> float:
        """How often anything happens anywhere in the cluster."""
        by_chance = self.strikes_per_year_by_chance
        if self.rolling is None:
            return by_chance
        return by_chance + HOURS_PER_YEAR / self.rolling.period_hours * len(self.racks)

    @property
    def strikes_per_year_by_chance(self) -> float:
        """How often anything happens anywhere, what a calendar does left out."""
        return HOURS_PER_YEAR * math.fsum(
            self.mechanisms[course.course].per_hour * self.targets(course.scope)
            for course in self.table.courses
            if course.course in self.mechanisms
        )

    @property
    def clumping(self) -> float | None:
        """Up to how many events come together, on average; None where years are independent.

        The number of events of a renewal process varies, over a long time, by the variance of its
        lifetimes in units of their squared mean: so many times more than that of a Poisson process.
        """
        if not self.lifetimes:
            return None
        return max(1.0, *(each.distribution.variation for each in self.lifetimes.values()))

    def targets(self, scope: Scope) -> int:
        """How many brokers, racks or clusters there are."""
        return {Scope.BROKER: len(self.racks), Scope.RACK: self.rack_count, Scope.CLUSTER: 1}[scope]

    @property
    def largest_weight(self) -> float:
        """Most that one cycle can weigh; 1 for years as they come."""
        if self.bias is None:
            return 1.0
        begun = zip(self.table.courses, self.bias.beginning, strict=True)
        shares = (
            self.mechanisms[course.course].per_hour * self.targets(course.scope) / share
            for course, share in begun
            if share > 0.0
        )
        return max(shares) * HOURS_PER_YEAR / self.strikes_per_year / self.bias.plain

    def fingerprint(self) -> str:
        """Sixteen hex digits that differ if the plans do."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        # Each block asks; of 100,000 replica sets it takes a part of a second. A plan without
        # calendar, hours and bias has the digits that it had before there were any.
        some = self.rolling or self.traffic or self.bias
        more = repr((self.rolling, self.traffic, self.bias)) if some else ""
        return hashlib.sha256(f"{self!r}{more}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Block:
    """One stretch of simulated time.

    Attributes
    ----------
    seed, index : int
        Key of its random numbers.
    years : int
        Years that begin with every broker and replica healthy; the time between them is extra.
    """

    seed: int
    index: int
    years: int


def plan_for(
    cluster: Brokers,
    config: Config,
    model: FailureModel,
    load: Workload,
    placement: tuple[Replicas, ...] | None = None,
) -> Plan:
    """Make a plan of the arguments of `evaluate`.

    Raises
    ------
    InputError
        If Kafka could not place the topic.
    """
    # Workers read plans and make none; they need not import scipy.
    from advisor.reliability.case import IsrStalls, ProducerTimeouts, chain_constants

    where = place(cluster, config, load.partitions, placement, racks_at_once(model))
    if placement is not None:
        load = replace(load, partitions=where.partitions)
    brokers = list(where.rack_of)
    racks = list(dict.fromkeys((*where.rack_of.values(), *where.voters)))
    copy_hours = transition_rates.copy_hours(config, model, load, where.brokers)
    patience, waits = ProducerTimeouts.of(config), IsrStalls.of(config, model)
    return Plan(
        setup=chain_constants(config, model, load, where.brokers),
        racks=tuple(racks.index(where.rack_of[broker]) for broker in brokers),
        sets=tuple(tuple(map(brokers.index, replicas)) for replicas, _ in where.sets),
        partitions=tuple(count for _, count in where.sets),
        mechanisms=_mechanisms(model, where.brokers),
        rolling=None if model.calendar is None else _rolling(model.calendar, model, cluster),
        traffic=load.hourly_traffic,
        copies_per_hour=1.0 / copy_hours if copy_hours else 0.0,
        records_per_hour=load.records_per_hour_per_partition,
        retained_records=load.retained_records_per_partition,
        unflushed_hours=model.get("flush.seconds", 0.0) / 3600.0,
        tail_hours=load.replication_delay_ms / 3_600_000.0,
        failovers=transition_rates.failovers(
            config, model, load, where.brokers, where.brokers_per_rack
        ),
        budget_hours=patience.outage_hours,
        waiting_budget_hours=patience.waiting_hours,
        delivery_hours=patience.delivery_hours,
        stall_hours=(waits.dead_hours, waits.hung_hours),
        lag_hours=waits.lag_hours,
        voters=tuple(where.voters.get(rack, 0) for rack in racks) if where.voters else (),
        decisions_per_hour=1.0 / hours if (hours := model.get(DECISION_HOURS, 0.0)) else 0.0,
        lifetimes=_lifetimes(model, where.brokers),
        crews=int(model.get(CREWS_PATH, 0.0)),
        needed_for=model.needed_for,
    )


def _lifetimes(model: FailureModel, brokers: int) -> dict[str, Lifetime]:
    found = {}
    for name in model.mechanisms:
        distribution, entry = model.times.get(f"{name}.{LIFETIME}"), table()[name]
        if distribution is not None and model.rate_per_hour(name) > 0.0:
            hours = 1.0 / model.rate_per_hour(name)
            if entry.exclusive:
                hours = transition_rates.hours_between_turns(entry, model, brokers)
            found[name] = Lifetime(hours, distribution)
    return found


def _mechanisms(model: FailureModel, brokers: int) -> dict[str, Occurrence]:
    found = {}
    for course in table().courses:
        rate, happens = 0.0, course.name in model.mechanisms
        by_calendar = model.calendar is not None and course.name == _planned().name
        if happens:
            rate = (
                0.0
                if by_calendar
                else transition_rates.strikes_per_hour(course, model, brokers, brokers)
            )
        elif not _lasts(course, model):
            continue
        chances = (course.share, course.spreads, course.overlaps, course.dies)
        share, spreads, overlaps, dies = (model.get(course.path(each), 0.0) for each in chances)
        # Where another mechanism's duration counts, it has none of its own.
        hours = model.outage_hours(course) if course.condition else 0.0
        shape = model.shape(course.name)
        duration = model.times.get(f"{course.name}.{DURATION}")
        found[course.course] = Occurrence(
            rate, hours, shape, share, spreads, overlaps, dies, duration
        )
    return found


def _planned() -> Mechanism:
    """The mechanism of planned restarts."""
    (found,) = table().with_effect(BrokerEvent.STOP)
    return found


def _rolling(calendar: Calendar, model: FailureModel, cluster: Brokers) -> RollingRestarts:
    entry = _planned()
    (hard,) = entry.variants
    hours = model.repair_hours(entry.name)
    return RollingRestarts(
        batches=_batches(calendar, cluster),
        waits=calendar.wait_for_isr,
        period_hours=calendar.period_hours,
        hour_of_week=calendar.hour_of_week,
        mean_hours=hours,
        up_hours=hours * (1.0 - calendar.catch_up_share(60.0 * hours)),
        pause_hours=calendar.pause_minutes / 60.0,
        unclean=model.get(entry.path(hard.chance), 0.0),
    )


def _batches(calendar: Calendar, cluster: Brokers) -> tuple[tuple[int, ...], ...]:
    """Brokers by their place in the cluster: rack by rack, as `rolling-restart.sh` goes, or by id.

    Brokers whose rack is not known form one group, and come first.
    """
    place = {broker: number for number, broker in enumerate(cluster.brokers)}
    by_rack = calendar.order == "rack"
    rack_of = {broker: (rack or "") if by_rack else "" for broker, rack in cluster.brokers.items()}
    groups: dict[str, list[int]] = {}
    for broker in sorted(place, key=lambda each: (rack_of[each], each)):
        groups.setdefault(rack_of[broker], []).append(place[broker])
    size = calendar.at_once
    return tuple(
        tuple(group[start : start + size])
        for group in groups.values()
        for start in range(0, len(group), size)
    )


def _lasts(course: Mechanism, model: FailureModel) -> bool:
    """Whether other mechanisms may leave brokers in its condition.

    The brokers of a destroyed rack take the hours of one that is destroyed alone, even if none
    ever is.
    """
    ending = (e for e in table().entries if course.name == e.ends_in and not course.variant)
    dying = any(model.get(e.path(e.dies), 0.0) > 0.0 for e in ending)
    return dying or course.duration[0] in model.quantities


def cut_into_blocks(plan: Plan, years: float, seed: int) -> tuple[Block, ...]:
    """Cut years into blocks of about a second's work.

    Raises
    ------
    InputError
        If the years are not a whole number from 1, or the seed not one from 0 below 2**64.
    """
    whole = isinstance(years, int | float) and not isinstance(years, bool)
    if not whole or not math.isfinite(years) or years < 1 or years != int(years):
        raise InputError(f"years={shown(years)} must be a whole number of simulated years from 1")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InputError(f"seed={shown(seed)} must be a whole number from 0 below 2**64")
    count = max(math.ceil(int(years) / years_per_block(plan)), min(FEWEST_BLOCKS, int(years)))
    least, more = divmod(int(years), count)
    return tuple(Block(seed, index, least + (index < more)) for index in range(count))


def years_per_block(plan: Plan) -> int:
    """Years whose work takes one core about ``SECONDS_PER_BLOCK``; one significant digit.

    Returns
    -------
    int
        From 1.
    """
    years = SECONDS_PER_BLOCK / _seconds_per_year(plan)
    digits = 10 ** max(0, math.floor(math.log10(max(years, 1.0))))
    return int(max(1, math.floor(years / digits) * digits))


def _seconds_per_year(plan: Plan) -> float:
    seconds_per_event = _SECONDS_PER_EVENT + _sets_per_event(plan) * _SECONDS_PER_EVENT_AND_SET
    return _events_per_year(plan) * seconds_per_event


def _sets_per_event(plan: Plan) -> float:
    return plan.replicas * len(plan.sets) / len(plan.racks)


def _events_per_year(plan: Plan) -> float:
    if plan.bias is not None:
        # A cycle is as much work however many years pass between two.
        return _EVENTS_PER_CYCLE * plan.strikes_per_year
    # Each failure is repaired; a year without events is a step, too.
    return max(2.0 * plan.strikes_per_year, 1.0)


def seconds_per_block(plan: Plan, years: int) -> float:
    """Seconds that a block of these years takes one core, about.

    Its memory is laid out first, which is most of a short block.
    """
    slots = plan.replicas * len(plan.sets)
    seconds_per_event = _EXPECTED_PER_EVENT + _sets_per_event(plan) * _EXPECTED_PER_EVENT_AND_SET
    per_year = _events_per_year(plan) * seconds_per_event
    return years * per_year + _SECONDS_TO_BEGIN + slots * _SECONDS_TO_BEGIN_A_SLOT
