"""Invariants after every step of random faults, under old and new rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from advisor.protocol.log import replica_log
from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.rules.config import Config
from advisor.protocol.simulation import events, scheduler
from advisor.protocol.simulation.invariants import ALWAYS, INVARIANTS, check, lost
from advisor.protocol.simulation.state import Broker, Settings, State, broker_of
from advisor.protocol.simulation.step import step

BROKERS = (1, 2, 3)

CRASHES = st.one_of(
    st.builds(events.Kill, st.sampled_from(BROKERS)),
    st.builds(events.Start, st.sampled_from(BROKERS)),
    st.builds(events.Stop, st.sampled_from(BROKERS)),
    st.builds(events.Isolate, st.sampled_from(BROKERS)),
    st.builds(events.Heal, st.sampled_from(BROKERS)),
    st.builds(events.Lag, st.sampled_from(BROKERS)),
    st.builds(events.CatchUp, st.sampled_from(BROKERS)),
    st.builds(events.KillController),
    st.builds(events.Advance, st.sampled_from((1, 1_000, 5_000, 9_000, 20_000))),
    st.builds(events.Elect, st.just("t"), st.just(0), st.just("preferred")),
)
LOSSY = st.one_of(
    st.builds(events.PowerOff, st.sampled_from(BROKERS), st.sampled_from((None, 0, 1, 3))),
    st.builds(events.Destroy, st.sampled_from(BROKERS)),
    st.builds(events.Elect, st.just("t"), st.just(0), st.just("unclean")),
    st.builds(events.Flush, st.sampled_from(BROKERS)),
)
# Internal events that run before the next fault, in any order; None: until quiescent.
INTERNAL_EVENTS = st.one_of(st.none(), st.lists(st.integers(0, 5), max_size=10))
VERSIONS = (
    ("0.8.2", "zookeeper", False),
    ("0.10.2", "zookeeper", False),
    ("0.11", "zookeeper", False),
    ("2.0", "zookeeper", False),
    ("2.4", "zookeeper", False),
    ("3.4", "zookeeper", False),
    ("3.5", "kraft", False),
    ("3.9", "kraft", False),
    ("4.2", "kraft", True),
)


def sensible(state: State, event: object) -> bool:
    """Return whether a fault is possible: only a running broker dies, only a stopped one starts."""
    if isinstance(event, events.Kill | events.Stop):
        return broker_of(state, event.broker).running
    if isinstance(event, events.Start):
        return not broker_of(state, event.broker).running
    return True


def walk(settings: Settings, script, acks="all") -> Iterator[State]:
    """Yield every state of a random run: faults, a write after each, and some internal events."""
    state = State(tuple(Broker(b) for b in BROKERS))
    state, _ = step(state, events.CreateTopic("t", ((1, 2, 3),), 2), settings)
    state, _ = scheduler.settle(state, settings)
    yield state
    for event, choices in script:
        if sensible(state, event):
            state, _ = step(state, event, settings)
            yield state
        for broker in BROKERS:
            first = state.next_value
            state, _ = step(state, events.Produce("t", 0, broker, first, 1, acks), settings)
            yield state
        if choices is None:
            state, _ = scheduler.settle(state, settings)
            yield state
        for choice in choices or ():
            internal = list(scheduler.enabled(state, settings))
            if not internal:
                break
            state, _ = step(state, internal[choice % len(internal)], settings)
            yield state


def settings_of(version: str, mode: str, elr: bool) -> Settings:
    return Settings(
        Config(
            kafka_version=version,
            mode=mode,
            eligible_leader_replicas=elr if mode == "kraft" and version >= "4" else None,
        )
    )


def storm(settings: Settings, seed: int, steps: int) -> Iterator[State]:
    """Yield a long run in which any event may come at any moment, and responses may be lost."""
    random = Random(seed)
    state = State(tuple(Broker(b) for b in BROKERS))
    state, _ = step(state, events.CreateTopic("t", ((1, 2, 3),), 2), settings)
    for _ in range(steps):
        broker = random.choice(BROKERS)
        kind = random.random()
        if kind < 0.75:
            internal = list(scheduler.enabled(state, settings))
            due_ms = scheduler.next_time_ms(state, settings)
            event = events.Advance(0 if due_ms is None else due_ms - state.now_ms)
            if internal:
                event = random.choice(internal)
            if isinstance(event, events.Fetch) and random.random() < 0.3:
                event = event._replace(answered=False)
        elif kind < 0.85:
            event = events.Produce("t", 0, broker, state.next_value, 1, "all")
        else:
            faults = (
                events.Kill,
                events.Start,
                events.Start,
                events.Stop,
                events.Isolate,
                events.Heal,
                events.Heal,
                events.Lag,
            )
            event = random.choice((*faults, events.CatchUp, events.CatchUp))(broker)
            if random.random() < 0.1:
                event = random.choice((events.KillController(), events.Elect("t", 0, "preferred")))
        if sensible(state, event):
            state, _ = step(state, event, settings)
            yield state


@pytest.mark.parametrize(
    ("version", "mode", "elr"), [v for v in VERSIONS if v[0] in ("2.4", "3.4", "3.9", "4.2")]
)
def test_a_storm_of_crashes_loses_nothing_with_acks_all(version, mode, elr):
    """Every invariant holds after each of thousands of events in any order, with lost messages."""
    for seed in range(25):
        for state in storm(settings_of(version, mode, elr), seed, 150):
            assert check(state) == ()


def test_the_storm_finds_a_follower_that_joins_too_early(monkeypatch):
    """With a broken rule for joining the ISR the same storm violates WeakIsr, so it can fail."""
    monkeypatch.setattr(isr_rules, "may_join", lambda *_: True)
    settings = settings_of("3.9", "kraft", False)
    names = {
        violation.name
        for seed in range(25)
        for state in storm(settings, seed, 150)
        for violation in check(state)
    }
    assert "WeakIsr" in names


SCRIPTS = st.lists(st.tuples(CRASHES, INTERNAL_EVENTS), max_size=12)
LOSSY_SCRIPTS = st.lists(st.tuples(st.one_of(CRASHES, LOSSY), INTERNAL_EVENTS), max_size=12)


@pytest.mark.parametrize(("version", "mode", "elr"), VERSIONS)
@hypothesis_settings(max_examples=40)
@given(script=LOSSY_SCRIPTS)
def test_unconditional_invariants_hold_under_any_faults(version, mode, elr, script):
    """Well-formed states, the leader in its ISR, one leader per epoch, under any faults."""
    for state in walk(settings_of(version, mode, elr), script, acks=1):
        assert check(state, ALWAYS) == ()


@pytest.mark.parametrize(
    ("version", "mode", "elr"), [v for v in VERSIONS if v[0] in ("2.0", "2.4", "3.5", "3.9", "4.2")]
)
@hypothesis_settings(max_examples=60)
@given(script=SCRIPTS)
def test_crashes_lose_nothing_with_acks_all(version, mode, elr, script):
    """Without loss of page cache or disk and with clean elections, every invariant holds."""
    for state in walk(settings_of(version, mode, elr), script):
        assert check(state) == ()


@hypothesis_settings(max_examples=60)
@given(script=LOSSY_SCRIPTS)
def test_records_lost_in_a_quiescent_cluster_stay_lost(script):
    """With all brokers up, the lost records of a quiescent cluster do not come back."""
    settings = settings_of("3.9", "kraft", False)
    for state in walk(settings, script):
        last = state
    for broker in BROKERS:
        for event in (events.Heal(broker), events.CatchUp(broker)):
            last, _ = step(last, event, settings)
        if not broker_of(last, broker).running:
            last, _ = step(last, events.Start(broker), settings)
    last, _ = scheduler.settle(last, settings)
    lost_before = lost(last, last.partitions[0])
    last, _ = scheduler.run_for(last, settings, 60_000)
    assert replica_log.without(lost_before, lost(last, last.partitions[0])) == ()


def test_a_leader_that_wrote_nothing_leaves_no_epoch_behind():
    """Found by the walk above: its follower repeated its request for an epoch without records."""
    script = [
        (events.Kill(3), None),
        (events.Kill(1), []),
        (events.Start(1), []),
        (events.Advance(1), None),
    ]
    for state in walk(settings_of("3.5", "kraft", False), script):
        assert check(state) == ()


def test_every_invariant_detects_a_broken_log():
    """Each invariant fails on a state that violates it."""
    settings = settings_of("3.9", "kraft", False)
    state = next(walk(settings, []))
    state, _ = step(state, events.Produce("t", 0, 1, 0, 4, "all"), settings)
    state, _ = scheduler.settle(state, settings)
    assert check(state) == ()
    partition = state.partitions[0]
    one, two, three = partition.replicas
    record = partition.registration
    other = replica_log.append(replica_log.EMPTY, [replica_log.Run(0, 50, 4)], with_epochs=True)
    broken = {
        "TypeOk": partition._replace(replicas=(one._replace(hw=9), two, three)),
        "LeaderInIsr": partition._replace(registration=replace(record, isr=(2, 3))),
        "OneLeaderAnEpoch": partition._replace(replicas=(one, two._replace(role="leader"), three)),
        "WeakIsr": partition._replace(
            replicas=(one, two._replace(log=replica_log.EMPTY, hw=0), three)
        ),
        "StrongIsr": partition._replace(
            replicas=(one, two._replace(log=replica_log.EMPTY, hw=0), three)
        ),
        "LeaderCompleteness": partition._replace(
            replicas=(one._replace(log=replica_log.EMPTY, hw=0), two, three)
        ),
        "LogMatching": partition._replace(replicas=(one, two._replace(log=other), three)),
        "ConsistentRead": partition._replace(
            replicas=(one, two._replace(log=other, role="leader", leader_epoch=7), three)
        ),
        "NoCommittedRecordLost": partition._replace(
            replicas=tuple(r._replace(log=replica_log.EMPTY, hw=0) for r in partition.replicas)
        ),
        "NoAcknowledgedRecordLost": partition._replace(
            replicas=(one._replace(log=replica_log.EMPTY, hw=0), two, three)
        ),
    }
    assert set(broken) == set(INVARIANTS)
    for name, changed in broken.items():
        names = [v.name for v in check(state._replace(partitions=(changed,)))]
        assert name in names


@pytest.mark.parametrize(
    ("version", "mode", "fails"),
    [("0.10.2", "zookeeper", True), ("2.4", "zookeeper", False), ("3.9", "kraft", False)],
)
def test_two_crashes_of_three_lose_records_only_before_0_11(version, mode, fails):
    """The second leader's first follower has truncated to its HW when that leader dies."""
    settings = settings_of(version, mode, False)
    state = next(walk(settings, []))
    state, _ = step(state, events.AlterTopic("t", unclean=False), settings)
    state, _ = step(state, events.Produce("t", 0, 1, 0, 2, "all"), settings)
    for broker in (2, 3, 2, 3):
        state, _ = step(state, events.Fetch(0, broker), settings)
    assert replica_log.size(state.partitions[0].acked) == 2
    for event in (
        events.Kill(1),
        events.Advance(settings.session_timeout_ms),
        events.Expire(1),
        events.ApplyMetadata(0, 2),
        events.ApplyMetadata(0, 3),
        events.Kill(2),
        events.Advance(settings.session_timeout_ms),
        events.Expire(2),
    ):
        state, _ = step(state, event, settings)
    state, _ = scheduler.settle(state, settings)
    assert (lost(state, state.partitions[0]) != ()) is fails
