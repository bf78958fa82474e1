"""Snapshots of real brokers: pending changes, quiescence, and conversion to a state."""

from dataclasses import replace

import pytest

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import ClusterTimeouts
from advisor.kafka_lab.observation import quiescence
from advisor.kafka_lab.observation.controller_state import ControllerState
from advisor.kafka_lab.observation.quiescence import OpenFaults, pending_work, wait_until_quiescent
from advisor.kafka_lab.observation.snapshot import Snapshot, state_from_snapshot
from advisor.kafka_lab.real_simulation import ExpectedSessions, TooBusyError
from advisor.protocol.log.leader_epoch_cache import EpochStart
from advisor.protocol.log.replica_log import Log, Run
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.scenario.rendering import log_line, state_line
from advisor.protocol.simulation.invariants import check
from advisor.protocol.simulation.state import Broker, Partition, State

FULL = Log(runs=(Run(0, 0, 10),), leo=10, epochs=(EpochStart(0, 0),))
SHORT = Log(runs=(Run(0, 0, 6),), leo=6, epochs=(EpochStart(0, 0),))
ALL = frozenset({1, 2, 3})
NO_QUORUM = OpenFaults(has_quorum=False)
RECORD = Registration(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1)


def reading(record=RECORD, logs=None, hw: int | None = 10, running=ALL, serving=ALL) -> Snapshot:
    copies = {1: FULL, 2: FULL, 3: FULL} | (logs or {})
    return Snapshot(
        ControllerState({("t", 0): record}, dict.fromkeys(serving, 1)),
        {(broker, "t", 0): log for broker, log in copies.items()},
        {("t", 0): hw},
        running,
    )


def test_healthy_cluster_has_no_pending_work():
    """If all brokers serve and all replicas are in sync, nothing is pending."""
    assert pending_work(reading(), OpenFaults()) == []


@pytest.mark.parametrize(
    ("seen", "links", "what"),
    [
        (reading(running={1, 2}), OpenFaults(), "broker 3 is to be fenced"),
        (reading(), OpenFaults(isolated=frozenset({3})), "broker 3 is to be fenced"),
        (reading(serving=frozenset({1, 2})), OpenFaults(), "broker 3 is to serve"),
        (reading(hw=None), OpenFaults(), "t-0: broker 1 does not lead yet"),
        (reading(), OpenFaults(lagging=frozenset({3})), "t-0: broker 3 may leave the ISR"),
        (reading(logs={3: SHORT}), OpenFaults(), "t-0: broker 3 is to copy"),
        (reading(replace(RECORD, isr=(1, 2))), OpenFaults(), "t-0: broker 3 is to join the ISR"),
        (
            reading(logs={3: SHORT}),
            OpenFaults(lagging=frozenset({3})),
            "t-0: broker 3 may leave the ISR",
        ),
        (
            reading(replace(RECORD, leader_epoch=1)),
            OpenFaults(),
            "t-0: broker 1 has not begun epoch 1",
        ),
        (reading(replace(RECORD, adding=(3,))), OpenFaults(), "t-0: a reassignment is to end"),
        # A limping follower; the leader limps in another test, with both followers.
        (reading(), OpenFaults(limping=frozenset({3})), "t-0: broker 3 may leave the ISR"),
        # It runs again, and its last life still has a session.
        (reading(), OpenFaults(waiting=frozenset({3})), "broker 3 is to register"),
        (reading(), OpenFaults(stopping=frozenset({2})), "broker 2 is to stop"),
        # Without a controller followers still copy.
        (reading(logs={3: SHORT}), NO_QUORUM, "t-0: broker 3 is to copy"),
    ],
)
def test_pending_work_is_named(seen, links, what):
    """Each pending timeout or replication is one sentence."""
    assert pending_work(seen, links) == [what]


@pytest.mark.parametrize(
    ("seen", "links"),
    [
        # Out of the ISR and not fetching: it cannot return.
        (reading(replace(RECORD, isr=(1, 2)), {3: SHORT}), OpenFaults(lagging=frozenset({3}))),
        # Down and fenced.
        (reading(replace(RECORD, isr=(1, 2)), running={1, 2}, serving={1, 2}), OpenFaults()),
        # Offline: the controller acts when an ISR member returns.
        (
            reading(
                replace(RECORD, isr=(1,), leader=NO_LEADER),
                hw=None,
                running={2, 3},
                serving={2, 3},
            ),
            OpenFaults(),
        ),
        (
            reading(replace(RECORD, adding=(3,), isr=(1, 2)), {3: SHORT}),
            OpenFaults(lagging=frozenset({3})),
        ),
        # The leader limps: its followers are out of the ISR for good.
        (
            reading(replace(RECORD, isr=(1,)), {2: SHORT, 3: SHORT}),
            OpenFaults(limping=frozenset({1})),
        ),
        # Without a controller: a dead ISR member, a dead leader, one that waits to register, one
        # that is to join the ISR, one that cannot copy.
        (reading(running={1, 2}), NO_QUORUM),
        (reading(hw=None, running={2, 3}), NO_QUORUM),
        (reading(logs={3: SHORT}), replace(NO_QUORUM, waiting=frozenset({3}))),
        (reading(replace(RECORD, isr=(1, 2))), NO_QUORUM),
        (reading(logs={3: SHORT}), replace(NO_QUORUM, lagging=frozenset({3}))),
        (reading(replace(RECORD, adding=(3,))), NO_QUORUM),
    ],
)
def test_blocked_changes_are_not_pending(seen, links):
    """A change that needs an external event is not pending."""
    assert pending_work(seen, links) == []


def test_nobody_fetches_from_a_limping_leader():
    """All its followers may leave the ISR."""
    pending = pending_work(reading(), OpenFaults(limping=frozenset({1})))
    assert pending == [f"t-0: broker {b} may leave the ISR" for b in (2, 3)]


class _Clock:
    """A clock that advances only in sleep; it stands in for the module `time` of quiescence.

    The module itself is left alone: threads of other tests may still sleep in this process.
    """

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(quiescence, "time", self)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_quiescence_is_quick_without_pending_work(monkeypatch):
    """Without pending changes, one second of equal snapshots is enough."""
    clock = _Clock(monkeypatch)
    assert wait_until_quiescent(reading, OpenFaults, ClusterTimeouts()) == reading()
    assert 1.0 <= clock.now <= 1.5


def test_pending_work_waits_for_the_longest_timeout(monkeypatch):
    """With a pending change, the wait is as long as the longest timeout."""
    clock = _Clock(monkeypatch)
    stuck = reading(logs={3: SHORT})
    wait_until_quiescent(lambda: stuck, OpenFaults, ClusterTimeouts())
    assert clock.now >= 1.0 + ClusterTimeouts().longest_timer_ms / 1000


def test_fencing_is_waited_for(monkeypatch):
    """A dead broker that is not fenced is waited for without a limit from timeouts."""
    clock = _Clock(monkeypatch)
    before, after = (
        reading(running={1, 2}),
        reading(replace(RECORD, isr=(1, 2)), running={1, 2}, serving=frozenset({1, 2})),
    )
    seen = wait_until_quiescent(
        lambda: before if clock.now < 60 else after, OpenFaults, ClusterTimeouts()
    )
    assert seen == after


def test_joining_the_isr_is_waited_for(monkeypatch):
    """A follower equal to its leader is waited for until it is in the ISR."""
    clock = _Clock(monkeypatch)
    outside = reading(replace(RECORD, isr=(1, 2)))
    seen = wait_until_quiescent(
        lambda: outside if clock.now < 60 else reading(), OpenFaults, ClusterTimeouts()
    )
    assert seen == reading()


def test_missing_quiescence_is_an_error_with_the_pending_work(monkeypatch):
    """The error names the pending change."""
    _Clock(monkeypatch)
    with pytest.raises(BrokersUnavailableError, match="broker 3 is to be fenced"):
        wait_until_quiescent(lambda: reading(running={1, 2}), OpenFaults, ClusterTimeouts())


def state() -> State:
    settings = Partition("t", 0, 2, False, RECORD, (), acked=((0, 10),), committed=((0, 10),))
    return State(tuple(Broker(b) for b in (1, 2, 3)), (settings,))


def test_snapshot_is_rendered_as_a_state():
    """The renderers of the protocol print a converted snapshot."""
    seen = state_from_snapshot(reading(replace(RECORD, isr=(1, 2)), {3: SHORT}), state())
    partition = seen.partitions[0]
    line = "leader=1 epoch=0 replicas=1,2,3 isr=1,2 elr= hw=10"
    assert state_line(seen, partition) == line
    assert log_line(partition, 3) == "leo=6 epochs=0@0"
    assert check(seen) == ()


def test_loss_is_detected_from_logs_on_disk():
    """A leader that lacks 4 of 10 acknowledged records has lost them, whatever others hold."""
    seen = state_from_snapshot(reading(logs={1: SHORT}, hw=6), state())
    found = {str(violation) for violation in check(seen)}
    assert "NoAcknowledgedRecordLost t-0: lost 4 of 10 acknowledged records" in found
    assert "LeaderCompleteness t-0: leader 1 lacks 4 committed records" in found


def test_unresponsive_leader_has_no_high_watermark():
    """A registered leader that does not answer as leader has the high watermark `-`."""
    seen = state_from_snapshot(reading(hw=None), state())
    assert state_line(seen, seen.partitions[0]).endswith("hw=-")


def test_fencing_without_a_fault_is_an_error():
    """A broker that is fenced without an injected fault invalidates the run."""
    expected = ExpectedSessions()
    expected.check({1: 11, 2: 12}, {1, 2})
    with pytest.raises(TooBusyError, match="broker 2"):
        expected.check({1: 11}, {1, 2})


def test_another_session_without_a_fault_is_an_error():
    """A broker that was fenced and serves again has another session, which is as bad."""
    expected = ExpectedSessions()
    expected.check({1: 11, 2: 12}, {1, 2})
    with pytest.raises(TooBusyError, match="broker 2"):
        expected.check({1: 11, 2: 13}, {1, 2})


def test_fencing_after_a_fault_is_expected():
    """After a fault a broker may be fenced; once it serves again it must keep serving."""
    expected = ExpectedSessions()
    expected.check({1: 11, 2: 12}, {1, 2})
    expected.disturb(2)
    expected.check({1: 11, 2: 12}, {1})
    expected.check({1: 11}, {1})
    expected.check({1: 11, 2: 13}, {1, 2})
    with pytest.raises(TooBusyError):
        expected.check({1: 11}, {1, 2})
