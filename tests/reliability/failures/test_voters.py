"""A quorum needs more than half of its voters."""

import pytest

from advisor.reliability.failures.fault_processes import (
    BACK,
    LOST,
    BrokerStates,
    FaultEnvironment,
    quorum_state,
)
from advisor.reliability.failures.mechanisms import WELL, table


@pytest.mark.parametrize(
    ("voters", "out", "expected"),
    [
        ((2, 2), 0, LOST),
        ((2, 2), 1, LOST),
        ((1, 2), 0, BACK),
        ((1, 2), 1, LOST),
        ((2, 3), 0, BACK),
    ],
)
def test_half_of_the_voters_elect_no_controller(
    voters: tuple[int, ...], out: int, expected: int
) -> None:
    """Two of four voters are no majority, and neither is one of three."""
    condition = min(table().of_racks)
    environment = FaultEnvironment((0, 1), frozenset({"rack.power"}), voters)
    own = tuple(condition if rack == out else WELL for rack in (0, 1))
    assert quorum_state(BrokerStates(own, (0, 1)), environment) == expected
