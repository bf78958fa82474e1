"""The reduced partition: stories that must come out, and what no trace may break."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.protocol.rules.config import Config
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import EMPTY, GAP_LOST
from advisor.reliability.partition.reduced_state import (
    BACK,
    CAUGHT_UP,
    COPIED,
    CRASH,
    DESTROY,
    ISOLATE,
    LAG,
    POWER,
    REPLACED,
    STOP,
    apply,
    healthy,
)

EVENTS = (CRASH, ISOLATE, STOP, POWER, DESTROY, BACK, REPLACED, COPIED, LAG, CAUGHT_UP)


def constants(
    version: str = "4.2",
    min_isr: int = 2,
    acks: str | int = "all",
    unclean: bool = False,
    copying: bool = False,
    replicas: int = 3,
) -> ChainConstants:
    config = Config(
        kafka_version=version,
        replication_factor=replicas,
        min_insync_replicas=min_isr,
        acks=acks,
        unclean_leader_election_enable=unclean,
    )
    return ChainConstants(
        Policy(config.effective_min_insync_replicas, unclean, config.rules), acks, copying, True
    )


def run(of: ChainConstants, *events: tuple[int, int], replicas: int = 3):
    """Strike one slot after another; returns the state and everything that was lost."""
    state, losses = healthy(replicas), 0
    for event, slot in events:
        state, outcome = apply(state, event, (slot,), of)
        losses |= outcome.losses
    return state, losses


def test_last_replica_standing_before_elr():
    """KIP-966's story, 3.9, min ISR 1: two crash, the last writes alone and loses its disk."""
    state, losses = run(constants("3.9", min_isr=1), (CRASH, 1), (CRASH, 2), (DESTROY, 0))
    assert losses & Effect.MEDIA_LOSS
    assert state.registration.isr == (0,)
    assert state.registration.leader == NO_LEADER


def test_an_empty_broker_that_returns_leads_and_empties_the_rest():
    """Without ELR the last in-sync replica keeps its right to lead though its disk is new."""
    state, losses = run(
        constants("3.9", min_isr=2), (ISOLATE, 1), (ISOLATE, 2), (DESTROY, 0), (REPLACED, 0)
    )
    assert losses & Effect.ELECTION_LOSS
    assert state.registration.leader == 0
    assert not state.has_data or state.level[0] == 0


def test_elr_elects_a_replica_that_has_everything():
    """The same with ELR: the last to leave left below min ISR, holds everything, leads again."""
    state, losses = run(
        constants("4.2", min_isr=2), (ISOLATE, 1), (ISOLATE, 2), (DESTROY, 0), (BACK, 1), (BACK, 2)
    )
    assert losses == 0
    assert state.registration.leader == 2


def test_the_operator_waits_for_the_replica_with_more_data():
    """3.9: the stale replica is back first; the complete one is only down, so it is waited for."""
    of = constants("3.9", min_isr=2)
    waiting, losses = run(of, (CRASH, 1), (CRASH, 2), (DESTROY, 0), (BACK, 1))
    assert not red.is_readable(waiting)
    assert losses == 0
    assert not red.operator_can_elect(waiting)
    assert apply(waiting, red.DECIDED, (0,), of)[0] == waiting
    state, outcome = apply(waiting, BACK, (2,), of)
    # Kafka itself would wait for the destroyed one for ever.
    assert not red.is_readable(state)
    state, outcome = apply(state, red.DECIDED, (0,), of)
    assert (state.registration.leader, outcome.losses) == (2, 0)


def test_losing_power_below_min_isr_loses_nothing():
    """Nothing was written with one replica left of two needed, so its page cache is clean."""
    _, losses = run(constants("3.9", min_isr=2), (CRASH, 1), (CRASH, 2), (POWER, 0))
    assert losses == 0


def test_losing_power_alone_loses_the_page_cache():
    """With min ISR 1 the last replica writes alone; without power its newest records are gone."""
    _, losses = run(constants("3.9", min_isr=1), (CRASH, 1), (CRASH, 2), (POWER, 0))
    assert losses & Effect.PAGE_CACHE_LOSS


def test_all_dark_at_once_loses_the_page_cache():
    """The whole ISR without power: what no disk holds is lost, whatever min ISR."""
    _, outcome = apply(healthy(3), POWER, (0, 1, 2), constants(min_isr=3))
    assert outcome.losses == Effect.LOSS | Effect.PAGE_CACHE_LOSS


def test_unclean_election_loses_what_the_new_leader_lacks():
    """1.0 with unclean election: the crashed one returns first and its history counts."""
    of = constants("2.0", min_isr=1, unclean=True)
    state, losses = run(of, (CRASH, 1), (CRASH, 2), (CRASH, 0), (BACK, 1))
    assert losses & Effect.ELECTION_LOSS
    assert state.registration.leader == 1
    assert state.registration.isr == (1,)


def test_a_follower_that_lags_is_no_leader():
    """A replica out of the ISR though up is not elected by a clean election."""
    state, losses = run(constants("3.9", min_isr=1), (LAG, 1), (LAG, 2), (CRASH, 0))
    assert losses == 0
    assert not red.is_readable(state)


def test_acks_1_flags_the_tail_only_when_another_takes_over():
    """A leader without a possible successor returns with its tail."""
    alone = constants("3.9", min_isr=1, acks=1, replicas=1)
    assert run(alone, (CRASH, 0), (BACK, 0), replicas=1)[1] == 0
    assert run(constants("3.9", min_isr=1, acks=1), (CRASH, 0))[1] == Effect.TAIL
    assert run(constants("3.9", min_isr=1), (CRASH, 0))[1] == 0


def test_copying_takes_a_leader():
    """A replaced broker copies while there is a leader, and is in sync when it has copied."""
    state, _ = run(constants(copying=True), (DESTROY, 2), (REPLACED, 2))
    assert state.condition[2] == red.COPYING
    assert state.level[2] == EMPTY
    state, _ = apply(state, COPIED, (2,), constants(copying=True))
    assert state == healthy(3)


def test_gaps_are_followed():
    """What 1 lacks (gap 1) and what 1 and 2 lack (gap 0): lost together with their last holder."""
    of = constants("3.9", min_isr=1)
    state, _ = run(of, (CRASH, 1), (CRASH, 2))
    assert state.level == (0, 2, 1)
    after, outcome = apply(state, DESTROY, (0,), of)
    assert outcome.gap_map == (GAP_LOST, 0)
    assert after.level == (EMPTY, 1, 0)


@pytest.mark.parametrize("version", ["3.9", "4.2"])
@pytest.mark.parametrize("min_isr", [1, 2, 3])
def test_fewer_destroyed_than_min_isr_lose_nothing(version, min_isr):
    """Exhaustive to depth 5: min ISR m survives m - 1 destroyed brokers without an operator.

    Crashes and returns may come in between. Where no electable replica is left the operator
    elects; without ELR a replaced broker may then lead empty, which is the known flaw.
    """
    of = constants(version, min_isr=min_isr)
    steps = tuple(product((CRASH, BACK, DESTROY), range(3)))

    def follow(state, depth, destroyed):
        if depth == 0:
            return
        for event, slot in steps:
            if event == DESTROY and len(destroyed | {slot}) >= min_isr:
                continue
            if not red.applies(state, event, slot):
                continue
            after, outcome = apply(state, event, (slot,), of)
            assert not outcome.losses
            follow(after, depth - 1, destroyed | {slot} if event == DESTROY else destroyed)

    follow(healthy(3), 5, frozenset())


traces = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.sets(st.integers(0, 2), min_size=1)), max_size=14
)
setups = st.builds(
    constants,
    version=st.sampled_from(["0.8.2", "0.10", "2.0", "3.9", "4.0", "4.2"]),
    min_isr=st.integers(1, 4),
    acks=st.sampled_from(["all", 1, 0]),
    unclean=st.booleans(),
    copying=st.booleans(),
)


@settings(max_examples=400)
@given(of=setups, trace=traces)
def test_no_trace_breaks_the_partition(of, trace):
    """The leader is up and in sync, in-sync replicas hold everything, levels have no holes."""
    state = healthy(3)
    for event, slots in trace:
        state, outcome = apply(state, event, tuple(sorted(slots)), of)
        registration = state.registration
        finite = sorted({level for level in state.level if level != EMPTY})
        assert finite == list(range(len(finite)))
        assert state.gaps == max(len(finite) - 1, 0)
        if registration.leader != NO_LEADER:
            assert registration.leader in registration.isr
            assert state.condition[registration.leader] == red.UP
            assert {state.level[slot] for slot in registration.isr} <= {0, EMPTY}
        assert not set(registration.isr) & set(registration.elr)
        assert (registration.isr or registration.elr) or of.policy.rules.eligible_leader_replicas
        assert all(gap < state.gaps for gap in outcome.gap_map)
        if outcome.effects & Effect.TOTAL:
            assert outcome.losses & (Effect.MEDIA_LOSS | Effect.ELECTION_LOSS)


@given(of=setups, trace=traces)
def test_the_partition_is_healthy_after_all_brokers_return(of, trace):
    """However bad it was: when all have returned and copied, the partition is whole."""
    state = healthy(3)
    for event, slots in trace:
        state, _ = apply(state, event, tuple(sorted(slots)), of)
    for _ in range(2):
        for event in (BACK, REPLACED, CAUGHT_UP, COPIED):
            state, _ = apply(state, event, (0, 1, 2), of)
    assert set(state.condition) == {red.UP}
    assert sorted(state.registration.isr) == [0, 1, 2]
    assert len(set(state.level)) == 1
