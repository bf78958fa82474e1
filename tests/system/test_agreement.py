"""Two fidelities, one truth: the reduction that the probabilities rest on against the reference.

Both live through the same faults and are compared after each: who leads, ISR, ELR, last known
leader, writable, readable, how many acknowledged records were lost, and how many each replica's log
still holds. `agreement_twin` says what stands for what, and what has no counterpart.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.reduced_state import Transition
from agreement_cluster import Move
from agreement_search import DIVERGING, RULES, Seen, configuration, exhaust, walk
from agreement_twin import Experiment

ALL_LOSSES = {Effect.MEDIA_LOSS, Effect.PAGE_CACHE_LOSS, Effect.ELECTION_LOSS, Effect.TAIL}


def search(rules, replicas, *searches):
    """All of the searches under one rule set: (min ISR, acks, unclean), depth, several at once."""
    seen = Seen()
    for of, depth, together in searches:
        experiment = Experiment(
            configuration(rules, replicas, *of), page_cache=True, tail=True, apart=together
        )
        here = exhaust(experiment, depth, together)
        seen.traces += here.traces
        seen.diverged += here.diverged
        seen.losses += here.losses
    assert rules in DIVERGING or not seen.diverged
    return seen


@pytest.mark.parametrize("rules", RULES)
def test_two_replicas(rules):
    """Every trace of four faults with acks=all, of three with an acks=1 tail."""
    seen = search(
        rules, 2, ((1, "all", False), 4, False), ((1, 1, True), 3, False), ((2, 1, False), 3, False)
    )
    assert seen.traces > 4_500
    assert set(seen.losses) == ALL_LOSSES


@pytest.mark.parametrize("rules", RULES)
def test_three_replicas(rules):
    """Every trace of three faults, one broker at a time, with what most people choose."""
    assert search(rules, 3, ((2, "all", False), 3, False)).traces > 2_500


@pytest.mark.parametrize("rules", RULES)
def test_three_replicas_that_fall_together(rules):
    """Every two faults of one, two or three of three brokers."""
    seen = search(rules, 3, ((2, "all", False), 2, True), ((1, 1, True), 2, True))
    assert seen.traces > 1_200
    assert set(seen.losses) == ALL_LOSSES


@pytest.mark.parametrize("rules", RULES)
def test_without_a_controller(rules):
    """Every trace of three faults, one of which may be the loss of the controller quorum."""
    for of in ((1, "all", False), (2, "all", False), (1, "all", True)):
        experiment = Experiment(configuration(rules, 2, *of), page_cache=True, quorum=True)
        assert exhaust(experiment, 3).traces > 1_200


@pytest.mark.parametrize("rules", ["3.6", "4.2"])
def test_tails_without_a_controller(rules):
    """A leader falls while no other can be elected: its tail is lost when another one is."""
    experiment = Experiment(configuration(rules, 2, 1, 1, False), tail=True, quorum=True)
    seen = exhaust(experiment, 3)
    assert seen.traces > 1_200
    assert seen.losses[Effect.TAIL]


@st.composite
def experiments(draw):
    """Any rule set, one to five replicas, any min ISR, acks and circumstances."""
    replicas = draw(st.integers(1, 5))
    config = configuration(
        draw(st.sampled_from(sorted(RULES))),
        replicas,
        draw(st.integers(1, replicas + 1)),
        draw(st.sampled_from(["all", 1, 0])),
        draw(st.booleans()),
    )
    flags = ("copying", "page_cache", "tail", "apart", "quorum")
    drawn = {flag: draw(st.booleans()) for flag in flags}
    # Several that fell while ZooKeeper was away: who is decided first, the reduction leaves open.
    drawn["quorum"] &= config.rules.mode == "kraft"
    return Experiment(config, **drawn)


@settings(max_examples=600)
@given(experiment=experiments(), choices=st.lists(st.integers(0, 999), min_size=8, max_size=14))
def test_random_traces(experiment, choices):
    """Long traces of single and common faults, for every configuration."""
    walk(experiment, choices)


DOWN_LEADERS = {
    "unreachable": (
        (red.ISOLATE, (0, 1)),
        (red.DESTROY, (1,)),
        (red.POWER, (0,)),
        (red.REPLACED, (1,)),
        (red.ISOLATE, (1,)),
        (red.BACK, (0,)),
    ),
    "destroyed": (
        (red.POWER, (1,)),
        (red.DESTROY, (0,)),
        (red.REPLACED, (0,)),
        (red.CRASH, (0,)),
        (red.BACK, (1,)),
        (red.DESTROY, (0,)),
    ),
}


@pytest.mark.parametrize("moves", DOWN_LEADERS.values(), ids=DOWN_LEADERS)
def test_a_leader_on_record_that_is_down(moves):
    """4.0 with ELR elects a last known leader that is down (KAFKA-19522): nobody reads there."""
    experiment = Experiment(configuration("4.0 with ELR", 2, 2, "all", False))
    twin = experiment.start()
    for move in moves:
        twin = experiment.step(twin, Move(*move))
    reduced = experiment.transition_table.states[twin.number]
    leader = reduced.registration.leader
    assert leader != NO_LEADER
    assert reduced.condition[leader] not in (red.UP, red.NOT_FETCHING, red.COPYING)
    assert not red.is_readable(reduced)


def _do_nothing(*_):
    """Stands for a rule that was left out."""


def _always_clean(work):
    """Every broker that is down went down cleanly."""
    return tuple(red.DOWN_CLEAN if c == red.DOWN_UNCLEAN else c for c in work.condition)


@pytest.mark.parametrize(
    ("rule", "instead", "of"),
    [
        ("_follow", _do_nothing, ("3.9", 2, 1, "all", True)),
        ("_lose_page_cache", _do_nothing, ("3.9", 2, 1, "all", False)),
        ("_count_media_loss", _do_nothing, ("3.9", 2, 1, "all", False)),
        ("_remove_from_isr", _do_nothing, ("4.2", 2, 1, "all", False)),
        ("elect_most_complete", _do_nothing, ("3.9", 2, 1, "all", False)),
        ("_remembered_conditions", _always_clean, ("4.2", 2, 2, "all", False)),
    ],
)
def test_a_broken_rule_is_found(rule, instead, of, monkeypatch):
    """With one of its rules broken, the reduction differs from the reference somewhere."""
    monkeypatch.setattr(Transition, rule, instead)
    with pytest.raises(AssertionError, match=r": reference .*, reduction "):
        exhaust(Experiment(configuration(*of), page_cache=True), 4)
