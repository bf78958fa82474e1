"""One question to the model, read once: settings, failure model, workload and placement as numbers.

Everything below asks a `Case` and no longer the configuration or the card.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from advisor.protocol.rules.config import Config
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.retry_budget import retry_budget_ms, waiting_budget_ms
from advisor.reliability.common_cause.placement import Brokers, Placement, ReplicaSetClass, place
from advisor.reliability.failures import fault_processes, transition_rates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import Exchangeable, Replicas
from advisor.reliability.failures.mechanisms import (
    COPY,
    BrokerEvent,
    Table,
    death_of,
    table,
    transition,
)
from advisor.reliability.failures.times.exactness import check_exact
from advisor.reliability.failures.transition_rates import (
    MEAN_LAG_TIMES,
    Failovers,
    death_chance,
)
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.solver.generator import EXACT, ROUGH
from advisor.reliability.workload import Workload

_MS_PER_HOUR = 3_600_000.0
# From this many sets on, partitions per set are rounded to 1 / _STEPS: such topics share a chain.
_MANY_SETS, _STEPS = 20, 20

Rates = tuple[tuple[str, float], ...]


class ProducerTimeouts(NamedTuple):
    """How long a producer keeps a record before it fails the send; each may be infinite.

    outage_hours: while every attempt fails at once; waiting_hours: while the leader does not
    answer.
    """

    outage_hours: float
    waiting_hours: float
    delivery_hours: float

    @classmethod
    def of(cls, config: Config) -> ProducerTimeouts:
        """The timeouts of a configuration's producers."""
        delivery = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
        return ProducerTimeouts(
            retry_budget_ms(config) / _MS_PER_HOUR,
            waiting_budget_ms(config) / _MS_PER_HOUR,
            delivery / _MS_PER_HOUR,
        )


class IsrStalls(NamedTuple):
    """How long acks=all waits for an ISR member that stopped fetching; 0 with other acks.

    dead_hours: until the controller notices that it is dead.
    lag_hours: ``replica.lag.time.max.ms``: a hung follower leaves the ISR after 1 to 1.5 times
        that, uniformly.
    """

    dead_hours: float
    lag_hours: float

    @classmethod
    def of(cls, config: Config, model: FailureModel) -> IsrStalls:
        """The stalls of a configuration's leaders."""
        dead, hung = transition_rates.stall_hours(config, model)
        return IsrStalls(dead, hung / MEAN_LAG_TIMES)

    @property
    def hung_hours(self) -> float:
        """Mean wait for a hung follower."""
        return MEAN_LAG_TIMES * self.lag_hours


@dataclass(frozen=True)
class ChainParameters:
    """What the chain of any replica set of a case depends on, as plain numbers.

    constants: the protocol's rules.
    mechanisms: failures that count.
    rates_per_hour: rate of every named transition.
    nominal_rates_per_hour: the same rounded to powers of two, failures up and repairs down. They
        choose the states, so that cards of one order of magnitude share a chain.
    nominal_failover_hours: without a leader after it failed, rounded likewise.
    hung_follower_hours: mean wait of acks=all for a hung follower.
    unflushed_hours: age at which a record is surely on disk, at most the retention.
    records_per_hour: written to one partition.
    tail_records: mean number of records that only the leader has.
    destruction_shares: share of each mechanism in what destroys brokers.
    joint_outages: outages that begin on several brokers together but end for each by itself can
        happen.
    precision: relative accuracy asked of the solver.
    """

    constants: ChainConstants
    mechanisms: frozenset[str]
    rates_per_hour: Rates
    nominal_rates_per_hour: Rates
    nominal_failover_hours: float
    failovers: Failovers
    hung_follower_hours: float
    unflushed_hours: float
    records_per_hour: float
    tail_records: float
    retention_hours: float
    retained_records: float
    destruction_shares: Rates
    joint_outages: bool
    precision: float = EXACT

    @staticmethod
    @lru_cache(maxsize=256)
    def read(
        config: Config,
        model: FailureModel,
        load: Workload,
        brokers: int,
        brokers_per_rack: float = 1.0,
        racks: int = 1,
        voter_racks: int = 0,
        mechanisms: frozenset[str] = frozenset(),
    ) -> ChainParameters:
        """Read settings, card and workload.

        brokers_per_rack: brokers whose leaders move together when a rack fails.
        voter_racks: racks with voters of the controller quorum whose outages can take the majority.
        mechanisms: to be counted with the card's, even if their rates are 0.
        """
        constants = chain_constants(config, model, load, brokers).shared_by_versions
        mechanisms |= possible_mechanisms(model)
        assert config.replication_factor is not None
        names = transition_rates.names(
            mechanisms,
            config.replication_factor,
            constants.copying,
            constants.operator,
            voter_racks,
        )
        sizes = transition_rates.Sizes(brokers, racks)
        rates, nominal = map(dict, _rates(names, config.replication_factor, model, sizes))
        if constants.copying:
            rates[COPY] = 1.0 / transition_rates.copy_hours(config, model, load, brokers)
            nominal[COPY] = _nominal(COPY, rates[COPY])
        failovers = transition_rates.failovers(config, model, load, brokers, brokers_per_rack)
        per_second = load.records_per_hour_per_partition / 3600.0
        flush_hours = model.get("flush.seconds", 0.0) / 3600.0
        return ChainParameters(
            constants=constants,
            mechanisms=mechanisms,
            rates_per_hour=tuple(rates.items()),
            nominal_rates_per_hour=tuple(nominal.items()),
            nominal_failover_hours=_power_of_two(max(failovers), up=False),
            failovers=failovers,
            hung_follower_hours=transition_rates.stall_hours(config, model)[1],
            unflushed_hours=min(flush_hours, load.retention_hours),
            records_per_hour=load.records_per_hour_per_partition,
            tail_records=per_second * load.replication_delay_ms / 1000.0,
            retention_hours=load.retention_hours,
            retained_records=load.retained_records_per_partition,
            destruction_shares=tuple(transition_rates.shares_of_destruction(model).items()),
            joint_outages=any(model.rate_per_hour(name) > 0 for name in table().begin_together),
        )

    def environment(self, pattern: tuple[int, ...]) -> fault_processes.FaultEnvironment:
        """The fault processes below a replica set of a pattern of racks."""
        voters = getattr(pattern, "voters", ())
        return fault_processes.FaultEnvironment(tuple(pattern), self.mechanisms, voters)

    def roughly_like(self, nominal: ChainParameters) -> ChainParameters:
        """The same to a few digits, on the states of ``nominal`` if both have the same."""
        same = (self.constants, self.mechanisms) == (nominal.constants, nominal.mechanisms)
        chosen = nominal if same else self
        return replace(
            self,
            nominal_rates_per_hour=chosen.nominal_rates_per_hour,
            nominal_failover_hours=chosen.nominal_failover_hours,
            precision=ROUGH,
        )


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of `evaluate`, read once."""

    cluster: Any
    config: Config
    model: FailureModel
    load: Workload
    placement: Placement
    chain: ChainParameters
    timeouts: ProducerTimeouts
    stalls: IsrStalls
    events_per_year: Rates

    @classmethod
    def read(
        cls,
        cluster: Brokers,
        config: Config,
        model: FailureModel,
        load: Workload | None = None,
        replicas: tuple[Replicas, ...] | None = None,
    ) -> Case:
        """Place the topic, by default as Kafka does, and read every number."""
        check_exact(model)
        load = Workload() if load is None else load
        at_once = transition_rates.racks_at_once(model)
        placement = place(cluster, config, load.partitions, replicas, at_once)
        if replicas is not None and placement.partitions != load.partitions:
            load = replace(load, partitions=placement.partitions)
        return cls._read(cluster, config, model, load, placement)

    @classmethod
    def _read(
        cls,
        cluster: Any,
        config: Config,
        model: FailureModel,
        load: Workload,
        placement: Placement,
        mechanisms: frozenset[str] = frozenset(),
    ) -> Case:
        assert config.mode is not None
        model, brokers = model.under(config.mode), placement.brokers
        of_racks = placement.brokers_per_rack, placement.racks, placement.voter_racks
        chain = ChainParameters.read(config, model, load, brokers, *of_racks, mechanisms)
        events = _events_per_year(model, brokers, config.replication_factor or 1)
        timeouts, stalls = ProducerTimeouts.of(config), IsrStalls.of(config, model)
        return Case(cluster, config, model, load, placement, chain, timeouts, stalls, events)

    @property
    def exchangeable(self) -> Exchangeable:
        """Which replicas of a set are exchangeable: unclean elections follow the assignment."""
        unclean = self.chain.constants.policy.unclean
        return Exchangeable.NONE if unclean else Exchangeable.FOLLOWERS

    @property
    def patterns(self) -> Mapping[tuple[int, ...], ReplicaSetClass]:
        """Replica sets by their rack numbers; sets of one pattern share a chain."""
        return self.placement.replica_set_classes(self.exchangeable)

    def with_card(self, model: FailureModel, mechanisms: frozenset[str] = frozenset()) -> Case:
        """The same question about another card; these ``mechanisms`` count even at rate 0."""
        check_exact(model)
        asked = self.cluster, self.config, model, self.load, self.placement
        return self._read(*asked, mechanisms)

    @property
    def partitions_together(self) -> float:
        """Mean number of partitions that lose as one."""
        return self.losing_together(self.exchangeable, self.chain.constants.acks != "all")

    def losing_together(self, exchangeable: Exchangeable, tails: bool) -> float:
        """Mean number of partitions that lose as one, under any replication scheme.

        A tail belongs to its partition, no broker lags for what it leads, and the order of
        assignment may decide elections; else those on the same replicas lose at the same moments.
        """
        if tails:
            return 1.0
        lags = {entry.name for entry in table().with_effect(BrokerEvent.LAG)}
        by_leader = exchangeable is Exchangeable.NONE or lags & self.chain.mechanisms
        classes = self.placement.replica_set_classes(exchangeable).values()
        apart = sum(set_class.lists if by_leader else set_class.sets for set_class in classes)
        mean = sum(set_class.partitions for set_class in classes) / apart
        return mean if apart < _MANY_SETS else round(mean * _STEPS) / _STEPS

    def roughly(self, model: FailureModel, own_states: bool = False) -> Case:
        """The same question about another card, solved to a few digits on the same states."""
        other = self.with_card(model, self.chain.mechanisms)
        like = other if own_states else self
        return replace(other, chain=other.chain.roughly_like(like.chain))


@lru_cache(maxsize=512)
def _rates(
    names: tuple[str, ...], replicas: int, model: FailureModel, sizes: transition_rates.Sizes
) -> tuple[Rates, Rates]:
    """The rates, and the same rounded, that settings with as many replicas share."""
    per_hour = transition_rates.rate_per_hour
    rates = tuple(
        (name, 0.0 if name == COPY else per_hour(name, replicas, model, sizes)) for name in names
    )
    return rates, tuple((name, _nominal(name, rate)) for name, rate in rates)


def _nominal(name: str, rate: float) -> float:
    """A rate rounded to a power of two: failures up, repairs down."""
    return _power_of_two(rate, up=not transition(name).ends)


@lru_cache(maxsize=256)
def _events_per_year(model: FailureModel, brokers: int, together: int) -> Rates:
    per_year = transition_rates.events_per_year
    return tuple((name, per_year(name, model, brokers, together)) for name in model.mechanisms)


def chain_constants(
    config: Config, model: FailureModel, load: Workload, brokers: int
) -> ChainConstants:
    """The protocol's constants for a configuration and card."""
    # Elsewhere no rule reads the min ISR, so that these configurations share a chain.
    reads_min_isr = config.acks == "all" or config.rules.eligible_leader_replicas
    # Above the replication factor, every value refuses every write.
    most = (config.replication_factor or 1) + 1
    policy = Policy(
        min_isr=min(config.effective_min_insync_replicas, most) if reads_min_isr else 1,
        unclean=bool(config.unclean_leader_election_enable),
        rules=config.rules,
    )
    assert config.acks is not None
    return ChainConstants(
        policy=policy,
        acks=config.acks,
        copying=transition_rates.copy_hours(config, model, load, brokers) > 0,
        page_cache=model.get("flush.seconds", 0.0) > 0,
        operator=transition_rates.DECISION_HOURS in model.quantities,
    )


def possible_mechanisms(model: FailureModel) -> frozenset[str]:
    """Dotted names of the failures that can happen, of their probabilities and shapes."""
    return _possible(model, table())


@lru_cache(maxsize=256)
def _possible(model: FailureModel, mechanism_table: Table) -> frozenset[str]:
    mechanisms = frozenset(name for name in model.mechanisms if model.rate_per_hour(name) > 0)
    chances = (path for entry in mechanism_table.entries for path in entry.chances)
    shaped = {entry.shape_path for entry in mechanism_table.entries if model.has_stages(entry)}
    deaths = {
        death_of(entry, death)
        for entry in mechanism_table.entries
        for death in entry.deaths
        if death_chance(entry, death, model) > 0
    }
    return mechanisms | {path for path in chances if model.get(path, 0.0) > 0} | shaped | deaths


def _power_of_two(value: float, up: bool) -> float:
    if value <= 0:
        return 0.0
    exponent = math.log2(value)
    return 2.0 ** (math.ceil(exponent) if up else math.floor(exponent))
