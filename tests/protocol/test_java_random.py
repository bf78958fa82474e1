"""``java.util.Random`` and ``Collections.shuffle`` against recorded draws."""

import json
from pathlib import Path

import pytest

from advisor.protocol.jvm import JavaRandom, shuffle

RECORDED = json.loads(
    (Path(__file__).resolve().parents[1] / "facts" / "java_random.json").read_text(encoding="utf-8")
)


def test_bounded_draws_are_those_of_java():
    """Random.nextInt(bound) is reproduced for 63 pairs of seed and bound, edge cases included."""
    recorded = RECORDED["next_int"]
    assert len(recorded) == 63
    for seed, bound, expected in recorded:
        random = JavaRandom(seed)
        assert [random.next_int(bound) for _ in expected] == expected, (seed, bound)


def test_shuffles_are_those_of_java():
    """Collections.shuffle is reproduced for lists of 0, 1, 2, 5 and 12."""
    for seed, size, expected in RECORDED["shuffle"]:
        items = list(range(size))
        shuffle(items, JavaRandom(seed))
        assert items == expected, (seed, size)


@pytest.mark.parametrize("bound", [0, -1, 2**31])
def test_a_bound_that_java_cannot_take_is_refused(bound: int):
    """A bound outside 1 to 2^31 - 1 raises instead of looping forever."""
    with pytest.raises(ValueError, match="bound must be from 1 to"):
        JavaRandom(0).next_int(bound)
