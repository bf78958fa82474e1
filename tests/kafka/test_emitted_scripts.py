"""What a script printed is judged by what its tools said last."""

import pytest

from emitted_scripts import Ran

DONE = "Reassignment of partition together-1 is completed.\n"
ELSEWHERE = (
    "There is no active reassignment of partition together-0, but replica set is 1,2,3,4 "
    "rather than 1,2,3.\n"
)
THERE = "Reassignment of partition together-0 is completed.\n"
OLD = "Reassignment of partition [together,0] completed successfully\n"


@pytest.mark.parametrize("output", [THERE, ELSEWHERE + DONE + THERE, OLD, "Completed updating.\n"])
def test_a_move_that_a_broker_hears_of_late_is_well(output: str) -> None:
    """A look that came before the broker knew is forgiven once a later one finds the replicas."""
    assert Ran(0, output).well


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (0, ELSEWHERE),
        (0, THERE + ELSEWHERE),
        (0, ELSEWHERE + DONE),
        (1, THERE),
        (0, THERE + "Error: Assignments failed.\n"),
    ],
)
def test_replicas_that_stay_elsewhere_are_a_failure(code: int, output: str) -> None:
    """So are a return code and a word of failure, whatever else was said."""
    assert not Ran(code, output).well
