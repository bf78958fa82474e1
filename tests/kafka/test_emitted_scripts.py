"""A script is judged by the last output of its tools."""

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
def test_stale_verification_is_not_a_failure(output: str) -> None:
    """A stale verification is ignored if a later one finds the replicas."""
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
def test_incomplete_reassignment_is_a_failure(code: int, output: str) -> None:
    """A non-zero exit code or a failure word is a failure, whatever else is printed."""
    assert not Ran(code, output).well
