"""The search for the fewest faults that lose an acknowledged record."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.protocol.exploration.shortest_loss import (
    CRASHES,
    FAULTS,
    Loss,
    NoLoss,
    shortest_loss,
)
from advisor.protocol.exploration.state_equivalence import canonical_state, period_of
from advisor.protocol.exploration.transitions import SearchState, Transitions
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.player import play
from advisor.protocol.simulation.cluster import REST_MS
from advisor.protocol.simulation.events import Advance, Kill
from advisor.protocol.simulation.scheduler import run_for, settle
from advisor.protocol.simulation.step import step

ERAS = ("0.8.2", "0.10.2", "0.11.0", "2.0", "2.8", "3.9", "4.1")


def config(version, factor, min_isr, acks="all", **more):
    """A config without unclean elections unless set explicitly."""
    more.setdefault("unclean_leader_election_enable", False)
    return Config(
        kafka_version=version,
        replication_factor=factor,
        min_insync_replicas=min_isr,
        acks=acks,
        **more,
    )


def assert_plays_a_loss(found):
    assert isinstance(found, Loss), found
    played = play(found.scenario)
    assert played.ok, played.differences
    assert "NoAcknowledgedRecordLost" in played.transcript
    verbs = [line.removeprefix("! ").partition(" ")[0] for line in found.scenario.splitlines()]
    assert sum(verb in FAULTS for verb in verbs) == found.faults


def test_loss_before_0_11_is_found():
    """Two crashes lose a record held by three replicas: followers truncate to the HW (KIP-101)."""
    found = shortest_loss(config("0.10.2", 3, 2), faults=2, kinds=["kill"])
    assert_plays_a_loss(found)
    assert found.faults == 2
    verdict = "2 faults are enough to lose an acknowledged record, and fewer are not ("
    assert str(found).startswith(verdict)


@pytest.mark.parametrize("version", ["0.11.0", "2.0", "3.9", "4.1"])
def test_leader_epochs_fixed_it(version):
    """With leader epochs (KIP-101, 0.11) no two crashes lose that record."""
    none = shortest_loss(config(version, 3, 2), faults=2, kinds=["kill"], writes=1)
    assert isinstance(none, NoLoss)
    assert (none.faults, none.writes, none.complete) == (2, 1, True)


def test_three_replicas_min_isr_two_survive_two_crashes():
    """RF 3, min ISR 2, acks=all: no two crashes, power losses or lost disks lose a record."""
    none = shortest_loss(config("3.9", 3, 2), faults=2, kinds=CRASHES, writes=1)
    assert isinstance(none, NoLoss)
    assert none.complete
    assert none.states > 5_000


@pytest.mark.parametrize(
    ("factor", "min_isr", "acks", "faults"),
    [
        (1, 1, "all", 1),
        (2, 1, 1, 1),
        (3, 2, 1, 1),
        (2, 1, "all", 2),
        (2, 2, "all", 2),
        (3, 1, 0, 1),
    ],
)
def test_fewest_faults(factor, min_isr, acks, faults):
    """As many crashes as replicas that acks waits for: one for acks=1 and 0, two for RF 2."""
    found = shortest_loss(config("3.9", factor, min_isr, acks), faults=faults, kinds=CRASHES)
    assert_plays_a_loss(found)
    assert found.faults == faults


def test_last_replica_standing_is_found():
    """Two clean stops, then the last ISR member loses power: lost on 3.9, kept by ELR (KIP-966)."""
    found = shortest_loss(
        config("3.9", 3, 2), faults=3, kinds={"stop": 2, "power-off": 1}, writes=1
    )
    assert_plays_a_loss(found)
    assert found.faults == 3
    commands = [line for line in found.scenario.splitlines() if not line.startswith(">")]
    with_elr = "\n".join(commands).replace("kafka=3.9", "kafka=4.1")
    assert "NoAcknowledgedRecordLost" not in play(with_elr).transcript


def test_unclean_election_loses_after_one_lagging_and_one_crash():
    """With unclean elections, one lagging replica and one crash are enough."""
    allowed = config("3.9", 2, 1, unclean_leader_election_enable=True)
    found = shortest_loss(allowed, faults=2, kinds=["kill", "lag"])
    assert_plays_a_loss(found)
    forbidden = config("3.9", 2, 1, unclean_leader_election_enable=False)
    assert isinstance(shortest_loss(forbidden, faults=2, kinds=["kill", "lag"], writes=2), NoLoss)


def test_every_loss_found_plays():
    """``play`` reproduces every loss found, for every era, small RF, min ISR and acks."""
    losses = 0
    for version, factor, acks in product(ERAS, (1, 2), ("all", 1, 0)):
        for min_isr in range(1, factor + 1):
            found = shortest_loss(config(version, factor, min_isr, acks), faults=1)
            if isinstance(found, Loss):
                assert_plays_a_loss(found)
                losses += 1
            else:
                assert (factor, acks) == (2, "all")
    assert losses == 49


def test_no_faults_lose_nothing():
    """Without faults nothing is lost, and the search is reported as complete."""
    for version in ERAS:
        none = shortest_loss(config(version, 2, 1), faults=0)
        assert isinstance(none, NoLoss)
        assert (none.faults, none.complete) == (0, True)
        assert str(none).startswith("no acknowledged record is lost within 0 faults and 1 write:")


def test_a_bound_is_admitted():
    """A search stopped by max_states is not reported as complete."""
    none = shortest_loss(config("2.0", 3, 2), faults=2, kinds=["kill"], max_states=100)
    assert isinstance(none, NoLoss)
    assert not none.complete
    assert none.states <= 300
    assert str(none).startswith("no loss found with")
    assert str(none).endswith(f"the search ended after {none.states} states")


def test_no_shorter_way_without_merging():
    """Brute force over command sequences, without merging states, finds nothing shorter."""
    case = config("2.0", 2, 1, 1)
    search = Transitions(case, ("kill", "lag"))
    level = [SearchState(search.initial, 1, (1, 1), 2)]
    length = 0
    while not any(map(search.has_lost, level)):
        level = [after for node in level for _, after in search.moves(node)]
        length += 1
    found = shortest_loss(case, faults=1, kinds=["kill", "lag"])
    given = [line for line in found.scenario.splitlines() if not line.startswith(">")]
    assert len(given) - len(["cluster", "topic", "consume", "check"]) == length


def test_pruning_changes_no_answer(monkeypatch):
    """Without pruning states that cannot lose a record, the same losses are found."""

    def answers():
        return [
            shortest_loss(config(*case, unclean_leader_election_enable=unclean), faults=1)
            for case in [
                ("0.10.2", 2, 1),
                ("0.10.2", 2, 1, 1),
                ("2.0", 2, 2, 1),
                ("4.1", 2, 1, 0),
            ]
            for unclean in (False, True)
        ]

    short = answers()
    monkeypatch.setattr(Transitions, "_cannot_lose", lambda _search, _state: False)
    long = answers()
    assert sum(found.states for found in short) < sum(found.states for found in long)
    for one, two in zip(short, long, strict=True):
        assert type(one) is type(two)
        assert getattr(one, "scenario", None) == getattr(two, "scenario", None)
        assert getattr(one, "complete", None) == getattr(two, "complete", None)


def test_a_second_leader_can_still_lose_something():
    """A quiescent state with one leader is pruned; not while a stale leader accepts writes."""
    search = Transitions(config("3.9", 2, 1, 1), FAULTS)
    node = SearchState(search.initial, 2, (2,) * len(FAULTS), 0)
    pruned = [search._cannot_lose(node.state)]
    for wanted in ["kill 1", "start 1", "isolate 2", "heal 2"]:
        node = next(after for steps, after in search.moves(node) if steps.line == wanted)
        pruned.append(search._cannot_lose(node.state))
        if wanted == "isolate 2":
            node = node._replace(faults_left=1)
    assert pruned == [True, True, True, False, True]
    unsettled = search._event(Kill(2))(search.initial)
    assert not search._cannot_lose(unsettled)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(ERAS),
    st.sampled_from(["all", 1]),
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
)
def test_cached_quiescence_equals_a_full_run(version, acks, choices):
    """Cached runs to quiescence, and pauses on the way, end where a run without cache does."""
    search = Transitions(config(version, 3, 2, acks), FAULTS)
    conf, quiescence = search.settings, search.quiescence
    state = search.initial
    for choice in choices:
        commands = list(search._commands(SearchState(state, 4, (4,) * len(FAULTS), 4)))
        state = canonical_state(commands[choice % len(commands)][2](state), conf)
        for later in (state, run_for(state, conf, 4_000)[0]):
            settled, effects = settle(later, conf, REST_MS)
            wait_ms = -settled.now_ms % period_of(conf)
            settled, _ = step(settled, Advance(wait_ms), conf)
            quiet = not effects and settle(later, conf)[0] == later
            assert quiescence.settle(later) == (canonical_state(settled, conf), wait_ms, not quiet)
            assert quiescence.is_quiet(later) == quiet
            assert quiescence.advance(later, 7_000) == run_for(later, conf, 7_000)[0]
        if choice % 2:
            state = quiescence.settle(state).state
            assert quiescence.is_quiet(state)
            assert settle(state, conf)[0] == state


@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from(ERAS),
    st.sampled_from(["all", 1]),
    st.lists(st.integers(0, 60), min_size=6, max_size=14),
)
def test_representatives_behave_identically(version, acks, choices):
    """Any command takes a state and its representative to the same representative."""
    search = Transitions(config(version, 3, 2, acks), FAULTS)
    conf = search.settings
    plain = search.initial._replace(now_ms=search.initial.now_ms + 7 * period_of(conf))
    plain = plain._replace(next_broker_epoch=9)
    for choice in choices:
        node = SearchState(canonical_state(plain, conf), 4, (4,) * len(FAULTS), 4)
        commands = list(search._commands(node))
        apply = commands[choice % len(commands)][2]
        plain, representative = apply(plain), apply(node.state)
        assert canonical_state(plain, conf) == canonical_state(representative, conf)
        if choice % 3 == 0:
            plain, representative = (settle(s, conf, REST_MS)[0] for s in (plain, representative))
        elif choice % 3 == 1:
            plain, representative = (run_for(s, conf, 1_000)[0] for s in (plain, representative))
        assert canonical_state(plain, conf) == canonical_state(representative, conf)


def test_a_loss_must_last():
    """A record on another replica's disk does not count as lost while there is no leader."""
    case = config("3.9", 2, 1, 1, unclean_leader_election_enable=True)
    search = Transitions(case, FAULTS)
    node = SearchState(search.initial, 2, (2,) * len(FAULTS), 1)
    seen = []
    for wanted in ["isolate 1", "produce t-0 1 acks=1 retries=0 via=1", "! isolate 2"]:
        node = next(after for steps, after in search.moves(node) if steps.line == wanted)
        seen.append(search.has_lost(node))
    assert seen == [False, True, False]


def changed_leader(state, **changes):
    """The state with the leader's record of its first follower changed."""
    partition = state.partitions[0]
    leader = partition.replicas[0]
    first, *others = leader.followers
    leader = leader._replace(followers=(first._replace(**changes), *others))
    replicas = (leader, *partition.replicas[1:])
    return state._replace(partitions=(partition._replace(replicas=replicas),))


def changed_broker(state, **changes):
    """The state with broker 2, which is down, changed."""
    one, two, three = state.brokers
    down = two._replace(running=False, registered=False, silent_since_ms=0)
    return state._replace(brokers=(one, down._replace(**changes), three))


def test_relevant_differences_are_not_merged():
    """States that differ in a follower's broker epoch, or in a broker's shutdown, stay distinct."""
    search = Transitions(config("3.9", 3, 2), FAULTS)
    conf = search.settings
    start = search.initial
    live = start._replace(brokers=tuple(b._replace(epoch=3) for b in start.brokers))
    for one, two in [
        (changed_leader(live, broker_epoch=3), changed_leader(live, broker_epoch=2)),
        (changed_leader(live, broker_epoch=2), changed_leader(live, broker_epoch=-1)),
        (changed_broker(start, clean=True), changed_broker(start, clean=False)),
        (changed_broker(start), changed_broker(start, silent_since_ms=-1_000)),
        (start, start._replace(now_ms=1_000)),
    ]:
        assert canonical_state(one, conf) != canonical_state(two, conf)
    later = start._replace(now_ms=start.now_ms + period_of(conf), next_broker_epoch=12)
    assert canonical_state(later, conf) == canonical_state(start, conf)


@pytest.mark.parametrize(
    "arguments", [{"faults": 0}, {"faults": 1, "kinds": {"kill": 0}}, {"faults": 1, "writes": 0}]
)
def test_a_bound_may_be_zero(arguments):
    """Without faults or without writes nothing is lost, and the search is complete."""
    found = shortest_loss(config("3.9", 2, 1), **{"kinds": ["kill"], **arguments})
    assert found.complete


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_states": 0}, "max_states must be at least 1"),
        ({"kinds": ["flood"]}, "unknown fault 'flood'; known are kill, stop, power-off, destroy"),
        ({"kinds": {"kill": -1}}, "faults and writes must be at least 0"),
        ({"faults": -1}, "faults and writes must be at least 0"),
        ({"writes": -1}, "faults and writes must be at least 0"),
    ],
)
def test_bad_questions(arguments, words):
    """An unknown fault or a negative bound is rejected with one sentence."""
    with pytest.raises(InputError, match=words):
        shortest_loss(config("3.9", 2, 1), **arguments)
