"""The input of a sampling run, as plain data that can be sent to any worker; blocks of its years.

Both depend on the inputs alone, never on the engine, so that the same inputs give the same bytes
everywhere.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property

from advisor.errors import InputError, shown
from advisor.reliability import measure_table
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import Death, Mechanism, Scope, Table, table
from advisor.reliability.failures.times.time_distribution import TimeDistribution
from advisor.reliability.measure_table import Measure, States
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.reduced_state import healthy
from advisor.reliability.results.units import CRUDE, IMPORTANCE, SPLITTING

# Sets for each broker from which on groups are followed in their place.
_FEWEST_BY_GROUP = 4


@dataclass(frozen=True)
class FailureParameters:
    """How often a kind of failure strikes one broker, rack or cluster; how long it lasts.

    hours: mean duration; 0 where another mechanism's duration counts.
    shape: of the gamma distribution of the duration; 1 is the exponential.
    duration: in place of the gamma distribution.
    Others: the mechanism's probabilities, those that it has; see `Mechanism`.
    """

    per_hour: float = 0.0
    hours: float = 0.0
    shape: float = 1.0
    share: float = 0.0
    spreads: float = 0.0
    overlaps: float = 0.0
    dies: float = 0.0
    duration: TimeDistribution | None = None
    hard: float = 1.0
    every: float = 0.0

    def death_chance(self, death: Death) -> float:
        """Probability that an outage ends in this death."""
        return self.dies * (self.hard if death.takes_host else 1.0 - self.hard)


@dataclass(frozen=True)
class Lifetime:
    """The time between events of a mechanism, of one broker, rack or cluster.

    hours: its mean, from the end of the last outage.
    """

    hours: float
    distribution: TimeDistribution


@dataclass(frozen=True)
class RollingRestarts:
    """Rolling restarts by a calendar.

    batches: brokers that restart together, in the order of the rolling restart.
    waits: whether the next batch waits until every broker is up and every replica in sync.
    period_hours, hour_of_week: from the beginning of one to that of the next; when they begin, from
        Monday 0:00.
    mean_hours, up_hours: mean duration of a restart; without waiting: from when a batch stops until
        its brokers run.
    pause_hours: from when the next batch may restart until it does.
    unclean: probability that a shutdown ends hard.
    alone: each "year" of a block is one rolling restart.
    run_up_hours: of those: from a healthy cluster until one begins.
    hurry, hurry_hours: of those: factor of the rate of the first failure, and for how long from the
        beginning.
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
    """How cycles are drawn where losses are rare; see :mod:`advisor.reliability.sampler.cycles`.

    beginning: share of the cycles that each kind of failure begins.
    following: probability of each kind for a forced failure, by the rarest one before.
    plain: share of the cycles that are drawn without bias.
    overlaps: in how many of the cycles of the cluster as it is a failure follows the first. As many
        are drawn: one outage alone is known from few.
    finds_losses: whether the pilot saw enough losses to know how most of them happen.
    steps: events of a cycle that is drawn so.
    outages: outages of writes of equal weight that say as much as a cycle.
    """

    beginning: tuple[float, ...]
    following: tuple[tuple[float, ...], ...]
    plain: float
    overlaps: float
    finds_losses: bool
    steps: float
    outages: float


@dataclass(frozen=True)
class Splitting:
    """How paths split where losses are rare; see :mod:`advisor.reliability.sampler.splitting`.

    retrials: how many begin, on average, for each failure expected while the outages last, where as
        many replicas of a set are out as its place says.
    work: of years and retrials together, in units of the years alone.
    """

    retrials: tuple[float, ...]
    work: float


@dataclass(frozen=True)
class Plan:
    """A cluster, a topic on it, and the failures that strike them.

    racks: rack number of each broker; brokers are numbered from 0.
    sets: the distinct ordered replica sets: broker numbers, preferred leader first.
    partitions: how many partitions each set holds.
    mechanisms: by kind, such as "broker.crash" or "broker.restart unclean"; one that is left out
        does not happen.
    copies_per_hour: 1 / mean time to copy the log of a replaced replica.
    records_per_hour, retained_records: of one partition.
    unflushed_hours: age at which a written record is on disk.
    tail_hours: how long the leader alone holds a record with acks=1 or 0.
    budget_hours: how long a producer retries in an outage before it gives up a record.
    waiting_budget_hours, delivery_hours: how long it waits while the leader does not answer, and in
        total.
    stall_hours: mean time that an acknowledgement waits for a dead follower, and for one that
        hangs.
    lag_hours: the shortest wait for one that hangs; the longest is 1.5 times as long.
    voters: voters of the controller quorum by rack number, racks without brokers last; () if
        unknown, or if outages of racks cannot take the majority.
    decisions_per_hour: 1 / mean time until an operator elects what is left; 0 if none ever does.
    lifetimes: of the mechanisms whose events do not follow a Poisson process, by name.
    crews: how many repairs of ``needed_for`` progress at a time; 0 for all.
    rolling: restarts by a calendar; None if brokers restart at random, or never.
    traffic: traffic of each hour of the day in units of the mean; () if it is even.
    shares: names of the measures that are shares of time in certain states.
    """

    constants: ChainConstants
    racks: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    partitions: tuple[int, ...]
    mechanisms: dict[str, FailureParameters]
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
    splitting: Splitting | None = field(default=None, repr=False)
    shares: tuple[str, ...] = field(
        default_factory=lambda: tuple(entry.name for entry in measure_table.of_states())
    )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def replicas(self) -> int:
        """Replicas of each partition."""
        return len(self.sets[0])

    @property
    def rack_count(self) -> int:
        """Racks, known or assumed."""
        return max(max(self.racks) + 1, len(self.voters))

    @property
    def measures_of_states(self) -> tuple[Measure, ...]:
        """The measures named by ``shares``, in their order."""
        return tuple(map(measure_table.measure, self.shares))

    @property
    def states(self) -> tuple[States, ...]:
        """The states of each of them."""
        return tuple([entry.holds for entry in self.measures_of_states])

    @property
    def always_measured(self) -> tuple[str, ...]:
        """The measures whose time passes even while every replica is healthy."""
        start = healthy(self.replicas)
        return tuple(
            entry.name for entry in self.measures_of_states if entry.holds(start, self.constants)
        )

    @property
    def by_groups(self) -> bool:
        """Whether groups stand for sets in the same state: there are many sets for each broker.

        What cannot be written even when healthy is counted for each set, all the time.
        """
        if self.splitting is not None or self.constants.policy.min_isr > self.replicas:
            return False
        if self.always_measured:
            return False
        return len(self.sets) >= _FEWEST_BY_GROUP * len(self.racks)

    @property
    def counts_isolated(self) -> bool:
        """Whether isolated outages of years as they come are counted, and not replayed.

        They can be where they add the same whenever they come.
        """
        rolling_alone = self.rolling is not None and self.rolling.alone
        return not (rolling_alone or self.traffic or self.lifetimes or self.crews)

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
            self.mechanisms[kind.full_name].per_hour * self.targets(kind.scope)
            for kind in self.table.kinds
            if kind.full_name in self.mechanisms
        )

    @property
    def unforced_failures_per_year(self) -> tuple[float, ...]:
        """Failures a year of each kind that splitting does not force, cluster-wide.

        Strikes, and what comes with one of their probabilities: a leader that limps and dies, an
        outage that spreads. Empty for the other two methods: importance sampling makes these
        failures likelier, and crude sampling widens its intervals for unseen events.
        """
        if self.splitting is None:
            return ()
        per_year = []
        for kind in self.table.kinds:
            numbers = self.parameters_of(kind)
            strikes = HOURS_PER_YEAR * numbers.per_hour * self.targets(kind.scope)
            died = (numbers.death_chance(death) for death in kind.deaths)
            chances = (
                *(1.0, numbers.share, numbers.every, numbers.spreads, numbers.overlaps),
                *died,
            )
            per_year += [strikes * chance for chance in chances if strikes * chance > 0.0]
        return tuple(per_year)

    @property
    def clumping(self) -> float | None:
        """Upper bound on the index of dispersion of event counts; None if years are independent.

        Over a long time the variance of the number of events of a renewal process, over its mean,
        is the squared coefficient of variation of its lifetimes.
        """
        if not self.lifetimes:
            # Retrials of a path depend on each other; blocks do not.
            return None if self.splitting is None else 1.0
        return max(1.0, *(lifetime.distribution.variation for lifetime in self.lifetimes.values()))

    @property
    def method(self) -> str:
        """How it is sampled."""
        if self.splitting is not None:
            return SPLITTING
        return CRUDE if self.bias is None else IMPORTANCE

    def parameters_of(self, kind: Mechanism) -> FailureParameters:
        """Rates and durations of a kind of failure; of one that does not happen, zeros."""
        return self.mechanisms.get(kind.full_name, FailureParameters())

    def targets(self, scope: Scope) -> int:
        """How many brokers, racks or clusters there are."""
        return {Scope.BROKER: len(self.racks), Scope.RACK: self.rack_count, Scope.CLUSTER: 1}[scope]

    @property
    def largest_weight(self) -> float | None:
        """Most that one cycle or path can weigh; None for years as they come."""
        if self.splitting is not None:
            return 1.0
        if self.bias is None:
            return None
        beginning = zip(self.table.kinds, self.bias.beginning, strict=True)
        shares = (
            self.mechanisms[kind.full_name].per_hour * self.targets(kind.scope) / share
            for kind, share in beginning
            if share > 0.0
        )
        return max(shares) * HOURS_PER_YEAR / self.strikes_per_year / self.bias.plain

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits that differ if the plans do."""
        # Each block asks; of 100,000 replica sets it takes a part of a second. A plan without
        # calendar, hours, bias and splitting has the digits that it had before there were any.
        extras = self.rolling or self.traffic or self.bias
        further = repr((self.rolling, self.traffic, self.bias)) if extras else ""
        further += repr(self.splitting) if self.splitting else ""
        return hashlib.sha256(f"{self!r}{further}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Block:
    """One stretch of simulated years, each of which begins with every broker and replica healthy.

    seed, index: key of its random numbers.
    """

    seed: int
    index: int
    years: int


# Measured on one core of a small machine, and only ever used to cut the work into blocks.
_SECONDS_PER_EVENT = 70e-9
_SECONDS_PER_EVENT_AND_SET = 15e-9
# Those of cycles are mostly of sets that lack several replicas.
_DEARER_IN_CYCLES = 4.0
# Measured with every mechanism, from 6 to 10,000 brokers. The cut of blocks follows only where
# isolated outages are counted: it decides which random numbers are drawn.
_EXPECTED_PER_EVENT = 100e-9
_EXPECTED_PER_EVENT_AND_SET = 55e-9
_EXPECTED_PER_EVENT_COUNTED = 35e-9
# Work of an event of years where groups stand for sets, in units of that without groups.
_WORK_OF_A_GROUP = 0.15
_SECONDS_TO_BEGIN = 2e-3
_SECONDS_TO_BEGIN_A_SLOT = 3e-6
SECONDS_PER_BLOCK = 1.0
_MOST_YEARS = 10**15
FEWEST_BLOCKS = 32


def check_run(years: object, seed: object) -> None:
    """Raise InputError unless the years are a whole number from 1, and the seed one from 0."""
    if (
        isinstance(years, bool)
        or not isinstance(years, int | float)
        or not (math.isfinite(years) and years >= 1 and years == int(years))
    ):
        raise InputError(f"years={shown(years)} must be a whole number of simulated years from 1")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InputError(f"seed={shown(seed)} must be a whole number from 0 below 2**64")


def cut_into_blocks(plan: Plan, years: float, seed: int) -> tuple[Block, ...]:
    """Cut years into blocks of about a second's work; raise InputError as `check_run` does."""
    check_run(years, seed)
    count = max(math.ceil(int(years) / years_per_block(plan)), min(FEWEST_BLOCKS, int(years)))
    years_each, longer_blocks = divmod(int(years), count)
    return tuple(Block(seed, index, years_each + (index < longer_blocks)) for index in range(count))


def years_per_block(plan: Plan) -> int:
    """Years whose work takes one core about ``SECONDS_PER_BLOCK``; one significant digit."""
    per_event = _SECONDS_PER_EVENT + _sets_per_event(plan) * _SECONDS_PER_EVENT_AND_SET
    if _counted_share(plan) > 0.0:
        per_event = _expected_per_event(plan)
    per_year = max(_events_per_year(plan) * per_event, SECONDS_PER_BLOCK / _MOST_YEARS)
    years = SECONDS_PER_BLOCK / per_year
    digits = 10 ** max(0, math.floor(math.log10(max(years, 1.0))))
    return int(max(1, math.floor(years / digits) * digits))


def _sets_per_event(plan: Plan) -> float:
    """How many sets an event is as much work as."""
    sets = plan.replicas * len(plan.sets) / len(plan.racks)
    return sets * _WORK_OF_A_GROUP if plan.by_groups and plan.bias is None else sets


def _events_per_year(plan: Plan) -> float:
    if plan.bias is not None:
        # A cycle is as much work however many years pass between two.
        cycles = plan.strikes_per_year * plan.bias.overlaps
        return _DEARER_IN_CYCLES * plan.bias.steps * cycles
    # Each failure is repaired; a year without events is a step, too.
    events = max(2.0 * plan.strikes_per_year, 1.0)
    return events if plan.splitting is None else events * plan.splitting.work


def seconds_per_block(plan: Plan, years: int) -> float:
    """Seconds that a block of these years takes one core, about.

    Its memory is laid out first, which is most of a short block.
    """
    slots = plan.replicas * len(plan.sets)
    per_year = _events_per_year(plan) * _expected_per_event(plan)
    return years * per_year + _SECONDS_TO_BEGIN + slots * _SECONDS_TO_BEGIN_A_SLOT


def _expected_per_event(plan: Plan) -> float:
    replayed = _EXPECTED_PER_EVENT + _sets_per_event(plan) * _EXPECTED_PER_EVENT_AND_SET
    counted_share = _counted_share(plan)
    return counted_share * _EXPECTED_PER_EVENT_COUNTED + (1.0 - counted_share) * replayed


def _counted_share(plan: Plan) -> float:
    """Share of the events of years as they come that belong to isolated outages, about."""
    as_they_come = plan.bias is None and plan.splitting is None and plan.counts_isolated
    rules = plan.constants
    if not as_they_come or rules.acks != "all" or rules.policy.min_isr >= plan.replicas:
        # What refuses writes or loses records is replayed.
        return 0.0
    of_brokers = [entry for entry in plan.table.kinds if entry.scope is Scope.BROKER]
    mechanisms = [plan.parameters_of(entry) for entry in of_brokers]
    brokers_out = len(plan.racks) * sum(
        isolated.per_hour * isolated.hours for isolated in mechanisms
    )
    # Nothing is out when it begins, and nothing fails before it ends.
    return math.exp(-2.0 * brokers_out)
