"""The graph of many states at once against the same moves followed one by one."""

from collections import Counter

import numpy as np
import pytest

import conditions
from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_CLOSED
from advisor.reliability.partition.transition_table import (
    PartitionTransitionTable,
    partition_transition_table,
)
from advisor.reliability.statespace import state_graph
from advisor.reliability.statespace.lumping import Symmetry
from advisor.reliability.statespace.successors import partition_events
from advisor.reliability.workload import Workload
from merging import all_apart
from replica_sets import parameters

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)


def ask(card, pattern, unclean, acks="all"):
    model = load_model(card)
    config = Config(
        kafka_version="4.2",
        replication_factor=len(pattern),
        min_insync_replicas=2,
        acks=acks,
        unclean_leader_election_enable=unclean,
    )
    constants = parameters(config, model, LOAD, 6).constants
    return constants, FaultEnvironment(pattern, possible_mechanisms(model))


def followed(table: PartitionTransitionTable, partition: int, events: fault_processes.Events):
    """The next partition, what happened as bits, and the gap map, by the transition table alone."""
    now, losses, total, failed, moved = partition, 0, False, False, False
    gaps = list(range(table.states[partition].gaps))
    begun = GAP_CLOSED
    for event, slots in events:
        if slots:
            now, outcome = table.step(now, event, slots)
            losses |= outcome.losses
            total |= bool(outcome.effects & Effect.TOTAL)
            failed |= bool(outcome.effects & Effect.FAILOVER)
            moved |= bool(outcome.effects & Effect.HANDOVER)
            gaps = [outcome.gap_map[gap] if gap >= 0 else gap for gap in gaps]
            begun = outcome.gap_map[begun] if begun >= 0 else begun
            begun = 0 if outcome.effects & Effect.UNFLUSHED else begun
    leads = table.readable(partition) and table.readable(now)
    certain = bool(losses & ~Effect.TAIL)
    flags = (
        Effect.LOSS * certain
        + Effect.TAIL * (not certain and losses != 0)
        + Effect.TOTAL * total
        + Effect.FAILOVER * (failed and leads)
        + Effect.HANDOVER * (moved and not failed and leads)
        + Effect.UNFLUSHED * (begun == 0)
    )
    rest = [GAP_CLOSED] * (max(table.replicas - 1, 1) - len(gaps))
    return now, flags, (*gaps, *rest)


def one_by_one(
    table: PartitionTransitionTable,
    environment: fault_processes.FaultEnvironment,
    brokers,
    partition,
):
    """Every move out of a state without merging: name, brokers, partition, flags, gaps."""
    moves = [
        (change.rate, change.own, partition_events(change.events))
        for change in fault_processes.changes(brokers, environment)
    ]
    moves += [("copy", brokers.own, ((red.COPIED, (s,)),)) for s in table.copying(partition)]
    found = Counter()
    for name, own, events in moves:
        now, flags, gaps = followed(table, partition, events)
        stays = (own, now) == (brokers.own, partition)
        if not stays or flags & (Effect.LOSS | Effect.TAIL | Effect.TOTAL):
            found[name, own, now, flags, gaps] += 1
    return found


@pytest.mark.parametrize(
    ("card", "pattern", "acks"),
    [
        ("three_az_cloud", (0, 1, 2), "all"),
        ("bare_metal_racks", (0, 0, 1), "all"),
        ("bare_metal_racks", (0, 1), 1),
    ],
)
def test_many_states_at_once_move_as_each_by_itself(card, pattern, acks):
    """Without merging, the moves are those of faults and transition table, state by state."""
    constants, environment = ask(card, pattern, unclean=True, acks=acks)
    with all_apart():
        found = state_graph.Graph(constants, environment)
    states = np.zeros(1, dtype=np.int64)
    for _ in range(2):
        _, rows = found.moves(states)
        states = np.unique(np.concatenate([states, rows[:, state_graph.TARGET]]))
    owner, rows = found.moves(states)
    own = found._changes.own
    assert len(states) > 50
    for index, state in enumerate(states.tolist()):
        brokers = fault_processes.BrokerStates(
            tuple(own[found.broker_states[state]].tolist()), environment.racks
        )
        expected = one_by_one(found.table, environment, brokers, int(found.partition[state]))
        mine = Counter()
        for target, rate, flags, gaps, _, times in rows[owner == index].tolist():
            after = tuple(own[found.broker_states[target]].tolist())
            now = int(found.partition[target])
            mine[found.rate_names[rate], after, now, flags, found.gap_maps[gaps]] += times
        assert mine == expected


@pytest.mark.parametrize("pattern", [(0, 0, 1, 1, 2), (0, 1, 2, 3), (0, 0, 0), tuple(range(12))])
def test_states_that_differ_by_exchanging_alike_replicas_have_one_form(pattern):
    """Slots and racks may change places; what the brokers are in comes back out of the code."""
    constants, environment = ask("three_az_cloud", pattern, unclean=False)
    table = partition_transition_table(constants, len(pattern))
    symmetry = Symmetry(table, environment)
    draw = np.random.default_rng(5)
    # The last slot is the controller quorum's, which keeps its place.
    slots, replicas = environment.slot_racks, len(pattern)
    assert len(slots) == replicas + 1
    own = draw.integers(1, environment.table.conditions, size=(50, len(slots)))
    racks = np.tile(slots, (50, 1))
    # In a healthy partition the leader is distinguished; the followers are exchangeable.
    order = np.stack([[0, *(1 + draw.permutation(replicas - 1)), replicas] for _ in own])
    healthy = np.zeros(50, dtype=np.int64)
    code, _ = symmetry.representatives(own, racks, healthy)
    moved, _ = symmetry.representatives(
        np.take_along_axis(own, order, axis=1), np.take_along_axis(racks, order, axis=1), healthy
    )
    assert code.tolist() == moved.tolist()
    back, names = symmetry.broker_states(code)
    for before, after, row in zip(own, back, names, strict=True):
        assert sorted(before.tolist()) == sorted(after.tolist())
        assert sorted(row.tolist()) == sorted(slots)
    for kept in (0, replicas):
        other = own.copy()
        other[:, kept] = other[:, kept] % (environment.table.conditions - 1) + 1
        assert all(symmetry.representatives(other, racks, healthy)[0] != code)


def test_racks_of_one_size_may_change_places():
    """Two racks with two replicas each are exchangeable; which of them lost power is irrelevant."""
    constants, environment = ask("three_az_cloud", (0, 0, 1, 1, 2), unclean=False)
    symmetry = Symmetry(partition_transition_table(constants, 5), environment)
    dark = conditions.RACK_DARK
    quorum = environment.slot_racks[-1]
    own = np.array([[0, dark, dark, 0, 0, 0], [0, 0, 0, dark, dark, 0]])
    racks = np.array([[2, 0, 0, 1, 1, quorum], [2, 0, 0, 1, 1, quorum]])
    first, second = symmetry.representatives(own, racks, np.zeros(2, dtype=np.int64))[0].tolist()
    assert first == second
