"""One leader against replicas that all take writes."""

from math import factorial

import pytest

from advisor.errors import InputError
from advisor.lessons.schemes.write_paths import all_write_paths, leader_paths, orders


@pytest.mark.parametrize("replicas", [1, 2, 3, 5, 7])
def test_paths_grow_with_replicas_or_with_their_square(replicas: int) -> None:
    """N - 1 paths from a leader; N (N - 1) where all write. Each joins two different replicas."""
    assert len(set(leader_paths(replicas))) == replicas - 1
    assert len(set(all_write_paths(replicas))) == replicas * (replicas - 1)
    assert all(source != target for source, target in all_write_paths(replicas))


@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_a_leader_keeps_one_order_and_without_one_no_two_logs_agree(replicas: int) -> None:
    """Each replica that appends its own record first begins differently from the others."""
    with_leader = orders(replicas, one_leader=True)
    assert with_leader.equal == with_leader.outcomes == factorial(replicas)
    without = orders(replicas, one_leader=False)
    assert without.outcomes == factorial(replicas - 1) ** replicas
    assert without.equal == 0


def test_more_replicas_than_can_be_tried_are_refused() -> None:
    """The number of orders explodes."""
    with pytest.raises(InputError, match="replicas=5 must lie between 2 and 4"):
        orders(5, one_leader=True)
