"""How a partition can lose: the claims behind the bound on losses, held against every state."""

from itertools import combinations

import pytest

from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.election_risk import (
    EMPTY_ELECTABLE,
    OFFLINE,
    OFFLINE_EMPTY_ELECTABLE,
    SAFE,
    election_risk,
    pending_copies_bound,
)
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from advisor.reliability.workload import Workload
from replica_sets import parameters

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
FAILURES = (red.CRASH, red.ISOLATE, red.STOP, red.POWER)
TOGETHER = (*FAILURES, red.DESTROY, red.BACK)
# Sums of a few unit fractions.
ROUNDING = 1e-12


def setup_of(replicas, min_isr, acks="all", version="4.2", elr=False, unclean=False):
    config = Config(
        kafka_version=version,
        replication_factor=replicas,
        min_insync_replicas=min_isr,
        acks=acks,
        eligible_leader_replicas=elr,
        unclean_leader_election_enable=unclean,
    )
    return parameters(config, load_model("bare_metal_racks"), LOAD, replicas).constants


def without_names(state, ordered):
    """All that is known of the replicas, in an order that exchanging them does not change."""
    held = state.registration
    return tuple(
        sorted(
            (
                slot == held.leader,
                state.condition[slot],
                state.level[slot],
                held.isr.index(slot) if ordered and slot in held.isr else slot in held.isr,
                slot in held.elr,
                slot in held.last_known_elr,
            )
            for slot in range(len(state.level))
        )
    )


def every_step(constants, replicas):
    """All that can happen to a partition: state, event, slots, next state, outcome.

    Falls, destructions and returns strike any slots together.
    """
    table = PartitionTransitionTable(constants, replicas)
    ordered = constants.policy.rules.elect_in_isr_order
    seen, waiting = {without_names(table.states[0], ordered)}, [0]
    while waiting:
        number = waiting.pop()
        state = table.states[number]
        for event in range(red.CAUGHT_UP + 1):
            struck = [slot for slot in range(replicas) if red.applies(state, event, slot)]
            most = len(struck) if event in TOGETHER else min(len(struck), 1)
            for count in range(1, most + 1):
                for slots in combinations(struck, count):
                    following, outcome = table.step(number, event, slots)
                    yield state, event, slots, table.states[following], outcome
                    symmetry_class = without_names(table.states[following], ordered)
                    if symmetry_class not in seen:
                        seen.add(symmetry_class)
                        waiting.append(following)


SETUPS = [
    *[
        (replicas, least, "all", "4.2", elr, False)
        for replicas in (1, 2, 3)
        for least in (1, 2, 3)
        for elr in (False, True)
    ],
    *[(2, 2, acks, "4.2", True, unclean) for acks in (0, 1) for unclean in (False, True)],
    *[(3, least, 1, "4.2", True, False) for least in (1, 2)],
    *[(3, 2, acks, "4.2", True, True) for acks in (1, "all")],
    *[(3, 2, "all", version, None, False) for version in ("2.8", "3.6")],
    (3, 2, "all", "4.0", True, False),
    (4, 2, "all", "4.2", False, False),
]


@pytest.mark.parametrize(("replicas", "least", "acks", "version", "elr", "unclean"), SETUPS)
def test_losses_come_in_the_ways_that_the_bound_counts(
    replicas, least, acks, version, elr, unclean
):
    """No state that the rules let a partition reach loses, or comes near a loss, in another way."""
    constants = setup_of(replicas, least, acks, version, elr, unclean)
    lost = 0
    for state, event, slots, following, outcome in every_step(constants, replicas):
        before, after = election_risk(state), election_risk(following)
        falls = event in (*FAILURES, red.DESTROY)
        lost += bool(outcome.losses)
        strikes_leader = state.registration.leader in slots and before in (SAFE, EMPTY_ELECTABLE)
        if outcome.losses and falls:
            assert strikes_leader or event == red.DESTROY
        if outcome.losses and not falls:
            assert event in (red.BACK, red.REPLACED)
            assert before in (OFFLINE, OFFLINE_EMPTY_ELECTABLE)
            assert after in (SAFE, EMPTY_ELECTABLE)
        if after in (OFFLINE, OFFLINE_EMPTY_ELECTABLE) and before in (SAFE, EMPTY_ELECTABLE):
            assert falls
            assert strikes_leader
        if not (falls and strikes_leader):
            gone = len(slots) if event == red.DESTROY else 0
            assert pending_copies_bound(following) <= pending_copies_bound(state) + gone + ROUNDING
        if not unclean:
            _loses_as_clean_elections_do(constants, state, event, slots, following, outcome)
    assert lost


def _loses_as_clean_elections_do(constants, state, event, slots, following, outcome):
    before, after = election_risk(state), election_risk(following)
    all_of_them = constants.acks == "all"
    if outcome.losses & Effect.MEDIA_LOSS:
        assert event == red.DESTROY
    if outcome.losses & Effect.PAGE_CACHE_LOSS:
        assert event == red.POWER
        assert len(slots) >= constants.policy.min_isr or not all_of_them
    if outcome.losses & Effect.TAIL:
        assert not all_of_them
    elected = bool(outcome.losses & Effect.ELECTION_LOSS)
    if (elected and all_of_them) or (outcome.effects & Effect.TOTAL and event != red.DESTROY):
        assert before == OFFLINE_EMPTY_ELECTABLE != after
        assert event in (red.BACK, red.REPLACED)
    if after in (EMPTY_ELECTABLE, OFFLINE_EMPTY_ELECTABLE) and before not in (
        EMPTY_ELECTABLE,
        OFFLINE_EMPTY_ELECTABLE,
    ):
        assert event == red.DESTROY
    if (
        after == OFFLINE_EMPTY_ELECTABLE
        and before != OFFLINE_EMPTY_ELECTABLE
        and event != red.DESTROY
    ):
        assert event in FAILURES
        assert before == EMPTY_ELECTABLE
