"""A SIGKILL at a random moment changes no byte; `bench/kill_moments.py` kills more often."""

import pytest

from kills import SWEEPS, swept


@pytest.mark.parametrize("what", SWEEPS)
def test_a_kill_changes_nothing(what: str) -> None:
    """Of a Python worker, a standalone worker, and the driver, which resumes."""
    assert swept(what, 1, 7) == {"struck": 1, "same": 1}
