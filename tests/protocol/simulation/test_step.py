"""The simulation one event at a time: fetches, ISR, high watermark, responses."""

from __future__ import annotations

import pytest

from advisor.protocol.rules.isr import may_join
from advisor.protocol.rules.versions import rules_for
from advisor.protocol.simulation import events, scheduler
from advisor.protocol.simulation.fetch import accepts
from simulation_lab import Lab, follower_state, kinds


def test_high_watermark_moves_one_fetch_after_the_record():
    """The first fetch copies the record, the second informs the leader, the third the follower."""
    lab = Lab("3.9")
    assert lab.produce(2) == ()
    lab.fetch(2), lab.fetch(3)
    assert (lab.at(1).hw, lab.at(2).log.leo, lab.at(2).hw) == (0, 2, 0)
    lab.fetch(2)
    assert lab.at(1).hw == 0
    assert kinds(lab.fetch(3)) == ["Acked"]
    assert (lab.at(1).hw, lab.at(2).hw) == (2, 0)
    lab.fetch(2)
    assert lab.at(2).hw == 2


def test_acks_all_waits_for_every_member_not_for_min_isr():
    """Two of three replicas satisfy min.insync.replicas=2, and the response still waits."""
    lab = Lab("3.9")
    lab.produce()
    for _ in range(3):
        assert lab.fetch(2) == ()
    assert lab.at(1).waiting != ()


def test_acks_1_and_0_are_answered_by_the_leader_alone():
    """The response comes before any follower has fetched."""
    lab = Lab("3.9")
    assert kinds(lab.produce(acks=1)) == ["Acked"]
    assert kinds(lab.produce(acks=0)) == ["Acked"]
    assert lab.partition.committed == ()


def test_acks_all_below_min_isr_is_refused_before_the_append():
    """Nothing is appended."""
    lab = Lab("3.9")
    lab.do(events.Kill(2), events.Kill(3))
    lab.settle()
    (effect,) = lab.produce()
    assert effect.error == "NOT_ENOUGH_REPLICAS"
    assert lab.at(1).log.leo == 0


def test_isr_that_shrinks_after_the_append_is_another_error_before_3_7():
    """Appended and replicated to all members, but too few: NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
    lab = Lab("3.6", min_isr=2)
    lab.produce()
    lab.do(events.Kill(2), events.Kill(3))
    errors = [e.error for e in lab.settle() if isinstance(e, events.Failed)]
    assert errors == ["NOT_ENOUGH_REPLICAS_AFTER_APPEND"]
    assert lab.at(1).log.leo == 1


def test_since_3_7_the_frozen_high_watermark_makes_it_a_timeout():
    """The high watermark never reaches the record, so the request times out (KAFKA-15583)."""
    lab = Lab("3.7", min_isr=2)
    lab.produce()
    lab.do(events.Kill(2), events.Kill(3))
    errors = [e.error for e in lab.settle() if isinstance(e, events.Failed)]
    assert errors == ["REQUEST_TIMED_OUT"]
    assert lab.at(1).hw == 0


def test_a_request_to_a_follower_or_a_dead_broker_fails():
    """The error names are Kafka's."""
    lab = Lab("3.9")
    (effect,) = lab.produce(broker=2)
    assert effect.error == "NOT_LEADER_OR_FOLLOWER"
    lab.do(events.Kill(1))
    (effect,) = lab.produce(broker=1)
    assert effect.error == "NETWORK_EXCEPTION"


def test_pending_requests_die_with_their_leader():
    """The producer gets a connection error; the record does not count as acknowledged."""
    lab = Lab("3.9")
    lab.produce()
    assert [e.error for e in lab.do(events.Kill(1))] == ["NETWORK_EXCEPTION"]
    assert lab.partition.acked == ()


@pytest.mark.parametrize("start_ms", [0, 1, 7_000, 14_999, 15_000])
def test_a_hung_follower_leaves_the_isr_after_1_to_1_5_times_the_lag(start_ms):
    """The leader checks every half ``replica.lag.time.max.ms`` (30 s)."""
    lab = Lab("3.9")
    lab.state, _ = scheduler.run_for(lab.state, lab.settings, start_ms)
    lab.do(events.Lag(3))
    hung_ms = lab.state.now_ms
    lab.produce()
    lab.settle()
    assert lab.partition.registration.isr == (1, 2)
    took_ms = lab.state.now_ms - hung_ms
    assert 30_000 < took_ms <= 45_000


def test_a_follower_at_the_end_never_leaves_the_isr_for_lag():
    """L19: an idle partition keeps a hung follower in the ISR."""
    lab = Lab("3.9")
    lab.do(events.Lag(3))
    lab.state, _ = scheduler.run_for(lab.state, lab.settings, 10**7)
    assert lab.partition.registration.isr == (1, 2, 3)


def test_maximal_isr_holds_the_high_watermark_while_a_join_is_pending():
    """KIP-497: between proposal and response the leader already waits for the joining follower."""
    lab = Lab("3.9", min_isr=1)
    lab.do(events.Kill(3))
    lab.settle()
    lab.do(events.Start(3), events.Register(3), events.Unfence(3), events.ApplyMetadata(0, 3))
    lab.fetch(3)
    assert lab.at(1).proposal is not None
    lab.do(events.Lag(3))
    lab.produce()
    lab.fetch(2), lab.fetch(2)
    assert lab.at(1).hw == 0
    assert lab.at(1).isr == (1, 2)


def test_a_stale_broker_epoch_keeps_a_restarted_broker_out():
    """L13, KIP-903: a proposal made for the previous broker epoch is rejected since 3.5."""
    for version, error in (("3.9", ["INELIGIBLE_REPLICA"]), ("3.4", [])):
        lab = Lab(version, min_isr=1)
        lab.do(events.Kill(3))
        lab.settle()
        lab.do(events.Start(3), events.Register(3), events.Unfence(3), events.ApplyMetadata(0, 3))
        lab.fetch(3)
        assert lab.at(1).proposal is not None
        # It loses its log and restarts before the controller has read the proposal.
        lab.do(
            events.PowerOff(3, 0),
            events.Expire(3),
            events.Start(3),
            events.Register(3),
            events.Unfence(3),
        )
        effects = lab.do(events.ApplyMetadata(0, 1)) if lab.at(1).proposal is None else ()
        effects += lab.do(events.SubmitIsr(0, 1))
        assert [e.error for e in effects if isinstance(e, events.Refused)] == error


@pytest.mark.parametrize(("version", "joins"), [("2.0.0", True), ("2.1", False), ("3.9", False)])
def test_joining_needs_the_epoch_start_since_2_1(version, joins):
    """L05, KAFKA-7128: at the high watermark 1 but before the epoch start 5."""
    rules = rules_for(version, "kraft" if version == "3.9" else "zookeeper")
    assert may_join(3, 1, 5, True, rules) is joins


@pytest.mark.parametrize(("version", "answered"), [("2.0", True), ("2.1", False)])
def test_fetches_of_another_epoch_are_fenced_since_2_1(version, answered):
    """L06, KIP-320: a follower with a newer epoch than its leader gets no response."""
    lab = Lab(version, mode="zookeeper")
    follower = lab.at(2)._replace(leader_epoch=4)
    assert accepts(lab.at(1), follower, lab.settings) is answered


def test_a_follower_at_the_leaders_end_is_caught_up_now():
    """``Replica.updateFetchState``: at the end it is now, behind it as of its last fetch."""
    lab = Lab("3.9")
    lab.produce(2)
    lab.fetch(2), lab.fetch(2)
    lab.do(events.Advance(1_000))
    lab.fetch(2)
    first = lab.state.now_ms
    assert follower_state(lab, 2).caught_up_ms == first
    lab.do(events.Advance(1_000))
    lab.produce(1, acks=1)
    lab.fetch(2)
    assert follower_state(lab, 2).caught_up_ms == first
    second = lab.state.now_ms
    lab.produce(1, acks=1)
    lab.do(events.Advance(1_000))
    # It has now all that the leader had at its last fetch, and no more.
    lab.fetch(2)
    assert follower_state(lab, 2).caught_up_ms == second
    lab.fetch(2)
    assert follower_state(lab, 2).caught_up_ms == lab.state.now_ms


def test_a_follower_of_a_log_that_was_empty_was_caught_up_then():
    """The leader's end at the last fetch may be 0: ``lastFetchLeaderLogEndOffset``."""
    lab = Lab("3.9")
    lab.do(events.Advance(1_000))
    lab.fetch(2)
    caught_up_ms = lab.state.now_ms
    lab.do(events.Advance(1_000))
    lab.put(
        lab.at(1)._replace(followers=tuple(f._replace(caught_up_ms=0) for f in lab.at(1).followers))
    )
    lab.produce(1, acks=1)
    lab.fetch(2)
    assert follower_state(lab, 2).caught_up_ms == caught_up_ms
