"""Elimination against a plain linear solve, where that keeps its digits."""

import numpy as np
import pytest

from advisor.reliability.solver.gth_elimination import Elimination


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("states", [2, 3, 4, 9])
def test_it_solves_dense_chains(states: int, forward: bool) -> None:
    """Every state leads to every other, so that each elimination adds to all rates left."""
    rng = np.random.default_rng(states)
    rates, leak = rng.uniform(0.5, 2.0, (states, states)), rng.uniform(0.1, 1.0, states)
    np.fill_diagonal(rates, 0.0)
    given = rng.uniform(0.5, 2.0, states)
    system = np.diag(rates.sum(axis=1) + leak) - rates
    expected = np.linalg.solve(system.T if forward else system, given)
    found = Elimination(rates, leak).solve(given, forward)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
