"""The kernel's memory at the start of a block: a healthy cluster, and what can happen to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import WELL, BrokerEvent, Scope
from advisor.reliability.failures.times.time_distribution import TimeDistribution
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.compiled import memory_layout as layout
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.plan import Plan, RollingRestarts
from advisor.reliability.statespace.successors import PARTITION_EVENT

# Of what stands in no rack.
_NO_RACK = -1
# In a group, the broker of a slot that may be any healthy one.
_WHICHEVER = -1


def new_state(plan: Plan, grouped: bool = True) -> KernelState:
    """Every broker and replica healthy, every log as long as its retention, all totals 0.

    grouped: whether groups stand for sets that are in the same state, if the plan has many sets.
    """
    first = _first_state(plan, grouped and plan.by_groups)
    return KernelState._make(array.copy() for array in first)


@lru_cache(maxsize=2)
def _first_state(plan: Plan, grouped: bool) -> KernelState:
    """The same, for blocks to copy: of 100,000 replica sets it takes seconds."""
    housed = _housed(plan)
    slots = _slots(plan, grouped)
    entries, rows = len(slots), layout.SHARES + len(plan.shares)
    columns = len(plan.table.names) + layout.EXTRA_COLUMNS
    isolated_kinds = len(plan.table.kinds) * len(plan.racks)
    distributions = _Distributions()
    outages, clocks = _outages(plan, distributions)
    renewals = _renewals(plan, distributions)
    gaps = max(plan.replicas - 1, 1)
    members = [[b for b, rack in enumerate(housed) if rack == r] for r in range(plan.rack_count)]
    copies, copy_of = _copies(plan)
    served: list[list[tuple[int, int, int]]] = [[] for _ in housed]
    for s, replicas in enumerate(plan.sets):
        for slot, b in enumerate(replicas):
            served[b].append((s, 1 << slot, copy_of[s][slot]))
    places = np.array([place for group in served for place in group], dtype=layout.SERVED)
    sim = KernelState(
        control=np.zeros(1, dtype=layout.CONTROL),
        strikes=_strikes(plan),
        outages=outages,
        racks=_ranges(members, layout.RACK),
        members=np.array([b for group in members for b in group], dtype=np.int64),
        brokers=_ranges(served, layout.BROKER),
        served=places,
        beside=_beside(places, slots),
        copies=np.array([(broker, 0, 0, 0) for broker in copies], dtype=layout.COPY),
        copy_of=np.array(copy_of, dtype=np.int64),
        clocks=clocks,
        running=np.zeros(len(clocks), dtype=np.int64),
        distributions=np.array(distributions.rows, dtype=layout.DISTRIBUTION),
        values=np.array(distributions.values),
        renewals=renewals,
        earliest=np.zeros(len(renewals), dtype=np.int64),
        sets=np.zeros(entries, dtype=layout.SET),
        slots=slots,
        gaps=np.zeros((entries, gaps)),
        moved=np.zeros(gaps),
        attribution=np.zeros((entries, columns)),
        touched=np.zeros(entries, dtype=np.int64),
        totals=np.zeros((rows, columns)),
        outages_by_length=np.zeros(layout.OUTAGE_BINS),
        traffic=np.concatenate(([0.0], np.cumsum(plan.traffic or np.ones(24)))),
        isolated=np.zeros(isolated_kinds, dtype=layout.ISOLATED),
        isolated_totals=np.zeros((isolated_kinds, rows)),
        replayed_totals=np.zeros((rows, columns)),
        replayed_outages=np.zeros(layout.OUTAGE_BINS),
    )
    sim.brokers["rack"] = housed
    sim.racks["voters"][: len(plan.voters)] = plan.voters
    _start_sets(plan, sim, grouped)
    for name, value in _constants(plan, sim).items():
        sim.control[name] = value
    if plan.rolling is not None:
        order = [(b, n) for n, batch in enumerate(plan.rolling.batches) for b in batch]
        for row, (broker, batch) in zip(sim.brokers, order, strict=False):
            row["rolling"], row["batch"] = broker, batch
    return sim


def _slots(plan: Plan, grouped: bool) -> NDArray[np.int64]:
    """The brokers of each set, and of each group: the one in its slot, and others that are well."""
    slots = np.array(plan.sets, dtype=np.int64)
    if not grouped:
        return slots
    groups = np.full((len(plan.racks), plan.replicas, plan.replicas), _WHICHEVER, dtype=np.int64)
    for slot in range(plan.replicas):
        groups[:, slot, slot] = np.arange(len(plan.racks))
    return np.concatenate((slots, groups.reshape(-1, plan.replicas)))


def _beside(served: NDArray[Any], slots: NDArray[np.int64]) -> NDArray[np.int32]:
    """The other brokers of each set that a broker serves."""
    replicas = slots.shape[1]
    beside = np.zeros((len(served), replicas - 1), dtype=np.int32)
    for slot in range(replicas):
        places = served["bit"] == 1 << slot
        beside[places] = np.delete(slots[served["set"][places]], slot, axis=1)
    return beside


def _start_sets(plan: Plan, sim: KernelState, grouped: bool) -> None:
    """Store how each set and group starts: its logs, its partitions, and whether it is followed."""
    sim.sets["base_records"] = plan.retained_records
    # A partition that cannot be written even when healthy: the configuration is the cause.
    sim.attribution[:, layout.NO_CAUSE] = 1.0
    sets = len(plan.sets)
    sim.control["sets"], sim.control["grouped"] = sets, grouped
    sim.sets["weight"][:sets] = plan.partitions
    if not grouped:
        sim.sets["followed"] = 1
        return
    for slot in range(plan.replicas):
        group = sets + sim.slots[:sets, slot] * plan.replicas + slot
        np.add.at(sim.sets["weight"], group, plan.partitions)


def _housed(plan: Plan) -> list[int]:
    """The rack of each broker, of one for each rack with voters alone, and of the quorum: none."""
    only_voters = [r for r, voters in enumerate(plan.voters) if voters and r not in plan.racks]
    return [*plan.racks, *only_voters, _NO_RACK]


def _copies(plan: Plan) -> tuple[list[int], list[list[int]]]:
    """The broker that each copy fills, and the copy that fills each slot of each set.

    A replaced broker copies all partitions that it shares with the same brokers at once, as in the
    CTMC.
    """
    numbers: dict[tuple[frozenset[int], int], int] = {}
    copy_of = [
        [numbers.setdefault((frozenset(replicas), broker), len(numbers)) for broker in replicas]
        for replicas in plan.sets
    ]
    return [broker for _, broker in numbers], copy_of


def _constants(plan: Plan, sim: KernelState) -> dict[str, float]:
    """The plan's constants, and what is no plain 0 at the start, for `KernelState.control`."""
    tail = min(plan.tail_hours * plan.records_per_hour, plan.retained_records)
    constants: dict[str, float] = {
        "replaced_condition": plan.table.replacement.condition,
        "no_disk_cause": sim.totals.shape[1] + layout.NO_DISK,
        "brokers": len(plan.racks),
        "voters": sum(plan.voters),
        "quorum_event": red.QUORUM_BACK,
        "next_strike": -1.0,
        "next_renewal": math.inf,
        "has_clocks_or_crews": bool(plan.lifetimes) or plan.crews > 0,
        "free_crews": plan.crews,
        "in_elections": sum(
            entry.in_elections << place for place, entry in enumerate(plan.measures_of_states)
        ),
        "strikes_per_hour": sim.strikes["per_hour"].sum(),
        "copies_per_hour": plan.copies_per_hour,
        "decisions_per_hour": plan.decisions_per_hour,
        "records_per_hour": plan.records_per_hour,
        "retained_records": plan.retained_records,
        "flush_hours": plan.unflushed_hours,
        "tail_records": tail,
        "tail_chance": -math.expm1(-tail),
        "broker_failover_hours": plan.failovers.broker,
        "handover_hours": plan.failovers.move,
        "budget_hours": plan.budget_hours,
        "waiting_budget_hours": plan.waiting_budget_hours,
        "delivery_hours": plan.delivery_hours,
        "dead_stall_hours": plan.stall_hours[0],
        "hung_stall_hours": plan.stall_hours[1],
        "lag_hours": plan.lag_hours,
        "hourly_traffic": bool(plan.traffic),
        "span_hours": HOURS_PER_YEAR,
        "roll_due": np.inf,
    }
    return constants if plan.rolling is None else constants | _of_rolling(plan, plan.rolling)


def _of_rolling(plan: Plan, rolling: RollingRestarts) -> dict[str, float]:
    """What rolling restarts do, for `KernelState.control`."""
    (entry,) = plan.table.with_effect(BrokerEvent.STOP)
    clean, hard = entry.kinds
    constants: dict[str, float] = {
        "roll_waits": rolling.waits,
        "roll_cause": plan.table.names.index(entry.name),
        "roll_event": PARTITION_EVENT[clean.effect],
        "roll_condition": clean.condition,
        "roll_unclean_event": PARTITION_EVENT[hard.effect],
        "roll_unclean_condition": hard.condition,
        "roll_unclean": rolling.unclean,
        "roll_period_hours": rolling.period_hours,
        "roll_up_hours": rolling.up_hours,
        "roll_pause_hours": rolling.pause_hours,
        "roll_hour": rolling.hour_of_week % 24.0,
        "roll_date": np.inf,
        "roll_alone": rolling.alone,
        "acceleration": rolling.hurry,
        "accelerated_hours": rolling.hurry_hours,
    }
    if rolling.alone:
        constants["span_hours"] = rolling.run_up_hours
    return constants


def _strikes(plan: Plan) -> NDArray[Any]:
    """What each kind of failure does, from the table of mechanisms."""
    mechanism_table = plan.table
    strikes = np.zeros(len(mechanism_table.kinds), dtype=layout.STRIKE)
    for row, entry in zip(strikes, mechanism_table.kinds, strict=True):
        numbers = plan.parameters_of(entry)
        row["cause"] = mechanism_table.names.index(entry.name)
        targets = plan.targets(entry.scope)
        row["targets"] = targets
        if entry.name in plan.lifetimes:
            rates_of_kind = (
                plan.mechanisms[course.full_name].per_hour
                for course in mechanism_table[entry.name].kinds
            )
            row["probability"] = numbers.per_hour / math.fsum(rates_of_kind)
        else:
            row["per_hour"] = numbers.per_hour * targets
        of_rack = entry.scope is Scope.RACK
        row["failover_hours"] = plan.failovers.rack if of_rack else plan.failovers.broker
        row["scope"] = layout.SCOPES.index(entry.scope)
        row["event"], row["reach"] = PARTITION_EVENT[entry.effect], entry.strikes
        row["condition"], row["of_quorum"] = (
            mechanism_table.condition_of(entry),
            entry.effect.of_quorum,
        )
        if entry.exclusive:
            row["excluded"] = sum(
                1 << course.condition for course in mechanism_table[entry.name].kinds
            )
        row["by_chance"], row["share"] = entry.share is not None, numbers.share
        row["every"] = numbers.every
        row["spreads"], row["overlaps"] = numbers.spreads, numbers.overlaps
        row["turned"] = WELL
        if entry.turns_into:
            later_outage = mechanism_table[entry.turns_into]
            row["turned"] = mechanism_table.condition_of(later_outage)
            row["turned_reach"] = later_outage.strikes
            row["turned_event"] = PARTITION_EVENT[later_outage.effect]
    return strikes


class _Distributions:
    """The distributions of times other than exponential and gamma, and what was observed."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, float, float]] = []
        self.values: list[float] = []

    def add(self, distribution: TimeDistribution, mean_hours: float) -> int:
        """Note a distribution with its mean; return its number."""
        start, observed = len(self.values), distribution.values
        mean = math.fsum(observed) / max(len(observed), 1)
        self.values += [value / mean for value in observed]
        scale = distribution.scale(mean_hours)
        place = start, len(self.values)
        self.rows.append((distribution.kind, *place, scale, distribution.parameter))
        return len(self.rows) - 1


def _renewals(plan: Plan, distributions: _Distributions) -> NDArray[Any]:
    """The clocks of the mechanisms whose events do not follow a Poisson process."""
    kinds, rows = plan.table.kinds, []
    for entry in plan.table.entries:
        if entry.name in plan.lifetimes:
            lifetime = plan.lifetimes[entry.name]
            distribution = distributions.add(lifetime.distribution, lifetime.hours)
            first, targets = kinds.index(entry), range(plan.targets(entry.scope))
            rows += [
                (distribution, first, len(entry.kinds), target, 0, 0.0, 0.0) for target in targets
            ]
    return np.array(rows, dtype=layout.RENEWAL)


def _outages(plan: Plan, distributions: _Distributions) -> tuple[NDArray[Any], NDArray[Any]]:
    """The outages of brokers by condition, and the clocks that end them."""
    mechanism_table, brokers = plan.table, len(_housed(plan))
    outages = np.zeros(len(mechanism_table.begun) + 1, dtype=layout.OUTAGE)
    outages["first_clock"] = -1
    joint: list[tuple[int, int]] = []
    for condition, entry in mechanism_table.begun.items():
        numbers, row = plan.parameters_of(entry), outages[condition]
        row["cause"], row["severity"] = mechanism_table.names.index(entry.name), entry.severity
        row["begin"] = PARTITION_EVENT[entry.effect]
        row["end"] = PARTITION_EVENT[entry.effect.end]
        row["of_rack"] = condition in mechanism_table.of_racks
        row["hours"], row["shape"] = numbers.hours, numbers.shape
        if numbers.duration is not None:
            row["shape"], row["distribution"] = (
                0.0,
                distributions.add(numbers.duration, numbers.hours),
            )
        row["of_crew"] = plan.crews > 0 and entry.name in plan.needed_for
        row["hard"], row["dies"] = numbers.hard, numbers.dies
        for death in entry.deaths:
            after = "after" if death.takes_host else "after_process"
            row[after] = mechanism_table[death.outage].condition
        if entry.together:
            row["first_clock"] = brokers + len(joint)
            row["stride"] = entry.scope is Scope.RACK
            racks = range(plan.rack_count) if entry.scope is Scope.RACK else (-1,)
            joint += [(condition, rack) for rack in racks]
    clocks = np.zeros(brokers + len(joint), dtype=layout.CLOCK)
    clocks["place"] = -1
    for row, (condition, rack) in zip(clocks[brokers:], joint, strict=True):
        row["condition"], row["rack"] = condition, rack
    return outages, clocks


def _ranges(groups: Sequence[Sequence[object]], dtype: np.dtype[np.void]) -> NDArray[Any]:
    """Records that say where each group begins and ends in the row of all."""
    ends = np.cumsum([len(group) for group in groups])
    rows = np.zeros(len(groups), dtype=dtype)
    rows["end"] = ends
    rows["start"][1:] = ends[:-1]
    return rows
