"""What a reading of real brokers shows, what is still owed, and when they have come to rest."""

from dataclasses import replace

import pytest

from advisor.kafka_lab.machine_load import ExpectedServing, TooBusyError
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import Clocks
from advisor.kafka_lab.observation import quiescence
from advisor.kafka_lab.observation.controller_state import ControllerState
from advisor.kafka_lab.observation.quiescence import LinkFaults, pending_work, wait_until_quiescent
from advisor.kafka_lab.observation.snapshot import Snapshot, state_from_snapshot
from advisor.protocol.log.leader_epoch_cache import EpochStart
from advisor.protocol.log.replica_log import Log, Run
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.scenario.rendering import log_line, state_line
from advisor.protocol.simulation.invariants import check
from advisor.protocol.simulation.state import Broker, Partition, State

FULL = Log(runs=(Run(0, 0, 10),), leo=10, epochs=(EpochStart(0, 0),))
SHORT = Log(runs=(Run(0, 0, 6),), leo=6, epochs=(EpochStart(0, 0),))
ALL = frozenset({1, 2, 3})
RECORD = Registration(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1)


def reading(record=RECORD, logs=None, hw: int | None = 10, running=ALL, serving=ALL) -> Snapshot:
    copies = {1: FULL, 2: FULL, 3: FULL} | (logs or {})
    return Snapshot(
        ControllerState({("t", 0): record}, serving),
        {(broker, "t", 0): log for broker, log in copies.items()},
        {("t", 0): hw},
        running,
    )


def test_a_whole_cluster_owes_nothing():
    """All serve, all have copied, all are in the ISR: nothing will change by itself."""
    assert pending_work(reading(), LinkFaults()) == []


@pytest.mark.parametrize(
    ("seen", "links", "what"),
    [
        (reading(running={1, 2}), LinkFaults(), "broker 3 is to be fenced"),
        (reading(), LinkFaults(isolated=frozenset({3})), "broker 3 is to be fenced"),
        (reading(serving=frozenset({1, 2})), LinkFaults(), "broker 3 is to serve"),
        (reading(hw=None), LinkFaults(), "t-0: broker 1 does not lead yet"),
        (reading(), LinkFaults(lagging=frozenset({3})), "t-0: broker 3 may leave the ISR"),
        (reading(logs={3: SHORT}), LinkFaults(), "t-0: broker 3 is to copy"),
        (reading(replace(RECORD, isr=(1, 2))), LinkFaults(), "t-0: broker 3 is to join the ISR"),
        (
            reading(logs={3: SHORT}),
            LinkFaults(lagging=frozenset({3})),
            "t-0: broker 3 may leave the ISR",
        ),
        (
            reading(replace(RECORD, leader_epoch=1)),
            LinkFaults(),
            "t-0: broker 1 has not begun epoch 1",
        ),
        (reading(replace(RECORD, adding=(3,))), LinkFaults(), "t-0: a reassignment is to end"),
    ],
)
def test_what_must_still_happen_is_named(seen, links, what):
    """A clock that still runs, or copying that is under way, is owed; each in a sentence."""
    assert pending_work(seen, links) == [what]


@pytest.mark.parametrize(
    ("seen", "links"),
    [
        # Out of the ISR and not copying: nothing brings it back.
        (reading(replace(RECORD, isr=(1, 2)), {3: SHORT}), LinkFaults(lagging=frozenset({3}))),
        # Down, and known to be.
        (reading(replace(RECORD, isr=(1, 2)), running={1, 2}, serving={1, 2}), LinkFaults()),
        # Nobody leads: the controller acts when somebody comes back.
        (
            reading(
                replace(RECORD, isr=(1,), leader=NO_LEADER),
                hw=None,
                running={2, 3},
                serving={2, 3},
            ),
            LinkFaults(),
        ),
        (
            reading(replace(RECORD, adding=(3,), isr=(1, 2)), {3: SHORT}),
            LinkFaults(lagging=frozenset({3})),
        ),
    ],
)
def test_what_stays_as_it_is_owes_nothing(seen, links):
    """What waits for somebody else to act is at rest."""
    assert pending_work(seen, links) == []


class _Clock:
    """Time that passes only in sleep."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(quiescence.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(quiescence.time, "sleep", self.pass_s)

    def pass_s(self, seconds):
        self.now += seconds


def test_rest_is_reached_soon_where_nothing_is_owed(monkeypatch):
    """A whole cluster is believed after a second of the same readings."""
    clock = _Clock(monkeypatch)
    assert wait_until_quiescent(reading, LinkFaults(), Clocks()) == reading()
    assert 1.0 <= clock.now <= 1.5


def test_where_something_is_owed_every_clock_strikes_first(monkeypatch):
    """A follower that does not copy, though it may, is waited for as long as clocks run."""
    clock = _Clock(monkeypatch)
    stuck = reading(logs={3: SHORT})
    wait_until_quiescent(lambda: stuck, LinkFaults(), Clocks())
    assert clock.now >= 1.0 + Clocks().longest_timer_ms / 1000


def test_a_session_is_waited_for_however_long_it_takes(monkeypatch):
    """A dead broker that still counts as alive is no rest, on the busiest machine."""
    clock = _Clock(monkeypatch)
    before, after = (
        reading(running={1, 2}),
        reading(replace(RECORD, isr=(1, 2)), running={1, 2}, serving=frozenset({1, 2})),
    )
    seen = wait_until_quiescent(lambda: before if clock.now < 60 else after, LinkFaults(), Clocks())
    assert seen == after


def test_an_equal_copy_is_waited_for_until_it_is_in_the_isr(monkeypatch):
    """A copy that equals its leader's joins the ISR without fail, however late."""
    clock = _Clock(monkeypatch)
    outside = reading(replace(RECORD, isr=(1, 2)))
    seen = wait_until_quiescent(
        lambda: outside if clock.now < 60 else reading(), LinkFaults(), Clocks()
    )
    assert seen == reading()


def test_a_cluster_that_never_rests_is_an_error_that_says_why(monkeypatch):
    """The error names what was still owed."""
    _Clock(monkeypatch)
    with pytest.raises(BrokersUnavailableError, match="broker 3 is to be fenced"):
        wait_until_quiescent(lambda: reading(running={1, 2}), LinkFaults(), Clocks())


def state() -> State:
    settings = Partition("t", 0, 2, False, RECORD, (), acked=((0, 10),), committed=((0, 10),))
    return State(tuple(Broker(b) for b in (1, 2, 3)), (settings,))


def test_a_reading_is_looked_at_as_a_state_is():
    """The looks of the protocol print what was read."""
    seen = state_from_snapshot(reading(replace(RECORD, isr=(1, 2)), {3: SHORT}), state())
    partition = seen.partitions[0]
    line = "leader=1 epoch=0 replicas=1,2,3 isr=1,2 elr= hw=10"
    assert state_line(seen, partition) == line
    assert log_line(partition, 3) == "leo=6 epochs=0@0"
    assert check(seen) == ()


def test_loss_is_counted_from_what_lies_on_disks():
    """A leader without four of ten acknowledged records loses them; a copy elsewhere is no help."""
    seen = state_from_snapshot(reading(logs={1: SHORT}, hw=6), state())
    found = {str(violation) for violation in check(seen)}
    assert "NoAcknowledgedRecordLost t-0: lost 4 of 10 acknowledged records" in found
    assert "LeaderCompleteness t-0: leader 1 lacks 4 committed records" in found


def test_a_leader_that_does_not_answer_has_no_high_watermark():
    """Of a leader on record that does not lead, though it runs, the look shows a dash."""
    seen = state_from_snapshot(reading(hw=None), state())
    assert state_line(seen, seen.partitions[0]).endswith("hw=-")


def test_a_broker_fenced_for_no_reason_spoils_the_run():
    """Who served, and to whom nothing was done, must go on serving."""
    steady = ExpectedServing()
    steady.check({1, 2}, {1, 2})
    with pytest.raises(TooBusyError, match="broker 2"):
        steady.check({1}, {1, 2})


def test_a_broker_that_was_disturbed_may_be_fenced():
    """After a fault its session may end; once it serves again it is watched again."""
    steady = ExpectedServing()
    steady.check({1, 2}, {1, 2})
    steady.disturb(2)
    steady.check({1, 2}, {1})
    steady.check({1}, {1})
    steady.check({1, 2}, {1, 2})
    with pytest.raises(TooBusyError):
        steady.check({1}, {1, 2})
