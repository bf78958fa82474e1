"""Build the CTMC of one replica set, solve it, and cache the result."""

from __future__ import annotations

from functools import lru_cache

from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain import ctmc
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.measures.solved_chain import SetMeasures, SolvedChain


@lru_cache(maxsize=2048)
def measure(
    pattern: tuple[int, ...],
    parameters: ChainParameters,
    timeouts: ProducerTimeouts,
    stalls: IsrStalls,
    partitions: float = 1.0,
) -> SetMeasures:
    """Measure one replica set.

    Parameters
    ----------
    pattern : tuple of int
        Rack number of each replica.
    partitions : float
        How many on the set count as one when records are lost.
    """
    return solve(pattern, parameters).measures(timeouts, stalls, partitions)


@lru_cache(maxsize=64)
def solve(pattern: tuple[int, ...], parameters: ChainParameters) -> SolvedChain:
    """Build the state space of one replica set and solve its chain.

    Independent of the producers' timeouts, so that many configurations share a solution.
    """
    nominal = NominalRates(parameters.nominal_rates_per_hour, parameters.nominal_failover_hours)
    space = ctmc.structure(parameters.constants, parameters.setting(pattern), nominal)
    return SolvedChain(space, parameters)
