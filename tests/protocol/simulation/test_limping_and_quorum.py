"""Brokers that limp, a cluster without a controller quorum, logs wiped together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from advisor.protocol.exploration.state_equivalence import canonical_state, period_of
from advisor.protocol.rules.config import Config
from advisor.protocol.simulation import events, scheduler
from advisor.protocol.simulation.invariants import ALWAYS, check, lost
from advisor.protocol.simulation.state import (
    ACTIVE,
    FENCED,
    KRAFT_FAILOVER_MS,
    KRAFT_SHUTDOWN_MS,
    ZOOKEEPER_SHUTDOWN_MS,
    Broker,
    Settings,
    State,
    broker_of,
    replica_of,
)
from simulation_lab import PartitionLab

RULES = (
    ("0.8.2", "zookeeper", False),
    ("2.8", "zookeeper", False),
    ("3.9", "zookeeper", False),
    ("3.9", "kraft", False),
    ("4.2", "kraft", False),
    ("4.2", "kraft", True),
)
HOLDERS = (2, 3, 4)
QUORUM = (events.StopQuorum(), events.StartQuorum())


class Lab(PartitionLab):
    """A partition on brokers 2, 3 and 4; broker 1 has no replicas, so it may be the controller."""

    def __init__(self, rules: tuple[str, str, bool], min_isr: int = 1) -> None:
        version, mode, elr = rules
        config = Config(kafka_version=version, mode=mode, eligible_leader_replicas=elr)
        self.settings = Settings(config)
        first = -1 if self.settings.kraft else 1
        brokers = tuple(Broker(b) for b in (1, *HOLDERS))
        self.state = State(brokers, controller_broker=first)
        self.do(events.CreateTopic("t", (HOLDERS,), min_isr))
        self.settle()
        self.write(2)
        self.settle()

    def run_for(self, milliseconds: int):
        self.state, _ = scheduler.run_for(self.state, self.settings, milliseconds)

    def write(self, broker: int, acks: str | int = "all"):
        first = self.state.next_value
        return self.do(events.Produce("t", 0, broker, first, 1, acks))

    @property
    def record(self):
        return self.partition.registration

    def broker(self, broker: int) -> Broker:
        return broker_of(self.state, broker)

    def leo(self, broker: int) -> int:
        replica = replica_of(self.partition, broker)
        assert replica is not None
        return replica.log.leo


@pytest.fixture(params=RULES, ids=lambda rules: "-".join(map(str, rules)))
def rules(request):
    return request.param


def test_a_limping_leader_keeps_only_itself(rules):
    """Every follower that lacks a record leaves between 1 and 1.5 lag times; nobody is elected."""
    lab = Lab(rules)
    before = lab.record
    lab.do(events.Limp(2))
    lab.write(2, 1)
    lab.run_for(lab.settings.lag_ms)
    assert set(lab.record.isr) == set(HOLDERS)
    lab.run_for(lab.settings.lag_ms // 2 + 2)
    assert lab.record.isr == (2,)
    assert (lab.record.leader, lab.record.leader_epoch) == (2, before.leader_epoch)
    assert all(b.session == ACTIVE for b in lab.state.brokers)
    assert lab.leo(3) == lab.leo(4) == lab.leo(2) - 1
    lab.do(events.Recover(2))
    lab.settle()
    assert set(lab.record.isr) == set(HOLDERS)
    assert lab.leo(3) == lab.leo(4) == lab.leo(2)


def test_followers_that_lack_nothing_stay(rules):
    """On an idle partition nobody leaves the ISR of a limping leader."""
    lab = Lab(rules)
    lab.do(events.Limp(2))
    lab.run_for(3 * lab.settings.lag_ms)
    assert set(lab.record.isr) == set(HOLDERS) or lab.settings.lag_messages is not None


def test_a_limping_follower_falls_behind(rules):
    """It leaves the ISR of what it follows, and comes back when it is well."""
    lab = Lab(rules)
    lab.do(events.Limp(3))
    lab.write(2)
    lab.settle()
    assert set(lab.record.isr) == {2, 4}
    lab.do(events.Recover(3))
    lab.settle()
    assert set(lab.record.isr) == set(HOLDERS)


def test_nobody_fetches_from_a_broker_that_becomes_leader_while_it_limps(rules):
    """Its followers leave the ISR of the new epoch, even with the same log."""
    lab = Lab(rules)
    lab.do(events.Limp(3), events.Kill(2))
    lab.settle()
    lab.write(3, 1)
    lab.settle()
    assert lab.record.leader == 3
    assert lab.record.isr == (3,)


def test_a_restart_does_not_end_limping():
    """Only recover does."""
    lab = Lab(RULES[3])
    lab.do(events.Limp(2), events.Kill(2))
    lab.settle()
    lab.do(events.Start(2))
    lab.settle()
    assert lab.broker(2).limping
    assert set(lab.record.isr) == {3, 4}
    lab.do(events.Recover(2))
    lab.settle()
    assert set(lab.record.isr) == set(HOLDERS)


@pytest.mark.parametrize("min_isr", [1, 2])
def test_the_death_of_a_limping_leader(rules, min_isr):
    """With min ISR 1 all that it acknowledged alone is lost; with 2 it acknowledged nothing."""
    lab = Lab(rules, min_isr)
    for broker in HOLDERS:
        lab.do(events.Flush(broker))
    lab.do(events.Limp(2))
    answers = [*lab.write(2), *lab.settle(), *lab.write(2), *lab.settle()]
    acked = sum(isinstance(answer, events.Acked) for answer in answers)
    assert (acked > 0) == (min_isr == 1)
    lab.do(events.PowerOff(2))
    lab.settle()
    lab.do(events.Start(2), events.Recover(2))
    lab.settle()
    assert sum(end - start for start, end in lost(lab.state, lab.partition)) == acked


STRIKES = st.lists(
    st.one_of(
        st.builds(events.Kill, st.sampled_from(HOLDERS)),
        st.builds(events.PowerOff, st.sampled_from(HOLDERS), st.none()),
        st.builds(events.Destroy, st.sampled_from(HOLDERS)),
        st.builds(events.Start, st.sampled_from(HOLDERS)),
        st.builds(events.Isolate, st.sampled_from(HOLDERS)),
        st.builds(events.Heal, st.sampled_from(HOLDERS)),
        st.builds(events.Limp, st.sampled_from(HOLDERS)),
        st.builds(events.Recover, st.sampled_from(HOLDERS)),
        st.builds(events.Lag, st.sampled_from(HOLDERS)),
        st.builds(events.Wipe, st.permutations(HOLDERS).map(lambda p: tuple(p[:2]))),
        st.builds(events.Produce, st.just("t"), st.just(0), st.sampled_from(HOLDERS),
                  st.just(100), st.just(1), st.sampled_from(("all", 1, 0)), st.just(False)),
        st.sampled_from((events.Elect("t", 0, "preferred"), events.Elect("t", 0, "unclean"))),
        st.just(events.KillController()),
        st.builds(events.Advance, st.sampled_from((100, 10_000, 60_000))),
    ),
    max_size=8,
)  # fmt: skip


def strike(lab, faults, after_each):
    for fault in faults:
        if isinstance(fault, events.Start) and lab.broker(fault.broker).running:
            continue
        lab.do(fault)
        after_each()


@given(rules=st.sampled_from(RULES), min_isr=st.sampled_from((1, 2)), faults=STRIKES)
@hypothesis_settings(max_examples=150, deadline=None)
def test_nothing_is_recorded_without_a_quorum(rules, min_isr, faults):
    """No record, session, registration or metadata changes until the quorum is back."""
    lab = Lab(rules, min_isr)
    lab.do(events.StopQuorum())
    record = lab.record
    sessions = {b.id: b.session for b in lab.state.brokers}
    began = {b.id for b in lab.state.brokers if b.running}

    def unchanged():
        lab.settle()
        assert lab.record == record
        assert {b.id: b.session for b in lab.state.brokers} == sessions
        assert all(b.registered <= (b.id in began) for b in lab.state.brokers)
        assert lab.state.controller_epoch == 1

    strike(lab, faults, unchanged)
    lab.do(events.StartQuorum())
    lab.settle()
    for broker in lab.state.brokers:
        reaches = broker.running and broker.connected
        assert broker.session == (ACTIVE if reaches else FENCED), broker
        assert broker.registered or not reaches
    live = {b.id for b in lab.state.brokers if b.session == ACTIVE}
    # A leader on record is alive, and with a live ISR member there is one.
    assert lab.record.leader in {*live, -1}
    assert lab.record.leader >= 0 or not live & set(lab.record.isr)
    assert check(lab.state, ALWAYS) == ()


@given(rules=st.sampled_from(RULES[2:]), faults=STRIKES)
@hypothesis_settings(max_examples=60, deadline=None)
def test_equal_forms_have_equal_futures_without_a_quorum(rules, faults):
    """What the exploration takes for equal stays equal when the quorum stops and comes back."""
    lab = Lab(rules, 2)
    lab.do(events.StopQuorum())
    strike(lab, faults, lambda: None)
    ahead = Lab(rules, 2)
    ahead.state = canonical_state(lab.state, lab.settings)
    lab.do(events.Advance(-lab.state.now_ms % period_of(lab.settings)))
    ahead.do(events.Advance(-ahead.state.now_ms % period_of(lab.settings)))
    for both in (lab, ahead):
        both.settle()
        both.do(events.StartQuorum())
        both.settle()
    one, other = (canonical_state(b.state, b.settings) for b in (lab, ahead))
    assert one.partitions[0].registration == other.partitions[0].registration
    assert one.brokers == other.brokers


def test_sessions_begin_anew_with_the_quorum(rules):
    """A dead broker is fenced one session timeout after the quorum is back, not earlier."""
    lab = Lab(rules)
    lab.do(events.StopQuorum(), events.Kill(2))
    lab.run_for(600_000)
    assert lab.broker(2).session == ACTIVE
    lab.do(events.StartQuorum())
    elects_ms = KRAFT_FAILOVER_MS if lab.settings.kraft else 0
    lab.run_for(elects_ms + lab.settings.session_timeout_ms - 1)
    assert (lab.broker(2).session, lab.record.leader) == (ACTIVE, 2)
    lab.run_for(1)
    assert lab.broker(2).session == FENCED
    assert lab.record.leader == 3


def test_a_quorum_without_faults_leaves_no_trace(rules):
    """Stopped and started, it changes nothing but the controller's epoch."""
    lab = Lab(rules)
    before = lab.partition
    lab.do(*QUORUM)
    lab.settle()
    assert lab.partition == before
    assert lab.state.has_quorum
    assert scheduler.next_event(lab.state, lab.settings) is None


def test_requests_to_the_controller_time_out(rules):
    """Topics, elections and reassignments need a controller."""
    lab = Lab(rules)
    lab.do(events.StopQuorum())
    before = lab.state
    for request in (
        events.CreateTopic("u", (HOLDERS,)),
        events.GrowTopic("t", (HOLDERS,)),
        events.DeleteTopic("t"),
        events.AlterTopic("t", 3),
        events.Elect("t", 0, "preferred"),
        events.Reassign("t", 0, (3, 4)),
    ):
        assert lab.do(request) == (events.Refused("REQUEST_TIMED_OUT"),)
    assert lab.state == before


def test_a_broker_told_to_stop_waits_for_the_controller(rules):
    """It serves until its patience ends, and its session outlives it."""
    lab = Lab(rules)
    patience_ms = KRAFT_SHUTDOWN_MS if lab.settings.kraft else ZOOKEEPER_SHUTDOWN_MS
    lab.do(events.StopQuorum(), events.Stop(2))
    lab.run_for(patience_ms - 1)
    lab.write(2, 1)
    assert lab.broker(2).running
    lab.run_for(1)
    assert not lab.broker(2).running
    assert (lab.broker(2).session, lab.record.leader) == (ACTIVE, 2)
    replica = replica_of(lab.partition, 2)
    assert replica.log.flushed == replica.log.leo == 2


def test_a_broker_that_waits_to_stop_does_so_when_the_quorum_is_back(rules):
    """Its leaderships move in good order: nobody waits for its session to end."""
    lab = Lab(rules)
    lab.do(events.StopQuorum(), events.Stop(2))
    lab.run_for(60_000)
    lab.do(events.StartQuorum())
    lab.run_for(KRAFT_FAILOVER_MS)
    assert not lab.broker(2).running
    assert (lab.broker(2).session, lab.broker(2).stops_by_ms) == (FENCED, None)
    assert lab.record.leader == 3


def test_a_broker_in_the_middle_of_its_shutdown_waits_for_the_quorum():
    """KRaft: it stops only when the controller says so."""
    lab = Lab(RULES[3])
    lab.do(events.Stop(2), events.StopQuorum())
    lab.run_for(60_000)
    assert lab.broker(2).running
    lab.do(events.StartQuorum())
    lab.settle()
    assert not lab.broker(2).running
    assert lab.record.leader == 3


@pytest.mark.parametrize(
    ("end", "clean"),
    [
        (events.Kill, True),
        (events.Stop, True),
        (events.PowerOff, False),
        (events.Destroy, False),
    ],
)
def test_a_broker_that_waits_to_register_has_not_opened_its_logs(end, clean):
    """After a clean stop, the end of such a process is not an unclean shutdown of its logs."""
    lab = Lab(RULES[5], 2)
    lab.do(events.Stop(2))
    lab.settle()
    lab.do(events.StopQuorum(), events.Start(2))
    lab.settle()
    lab.do(end(2))
    lab.settle()
    assert (lab.broker(2).running, lab.broker(2).clean) == (False, clean)


@given(rules=st.sampled_from(RULES), brokers=st.permutations(HOLDERS), many=st.integers(1, 3))
@hypothesis_settings(max_examples=40, deadline=None)
def test_a_wipe_destroys_all_at_the_same_moment(rules, brokers, many):
    """The same as destroy of each, with nothing in between; the order does not matter."""
    struck = tuple(brokers[:many])
    one, other = Lab(rules), Lab(rules)
    one.do(events.Wipe(struck))
    other.do(*(events.Destroy(b) for b in sorted(struck)))
    assert one.state == other.state
    one.settle()
    assert [one.leo(b) for b in HOLDERS] == [0 if b in struck else 1 for b in HOLDERS]
    missing = lost(one.state, one.partition)
    assert missing == (((0, 1),) if many == 3 else ())
