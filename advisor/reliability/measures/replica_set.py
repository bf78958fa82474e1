"""One replica set's chain: built, solved for every measure, and remembered."""

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
) -> SetMeasures:
    """Measure one replica set; the same question is answered once.

    Parameters
    ----------
    pattern : tuple of int
        Rack number of each replica.
    parameters : ChainParameters
    timeouts : ProducerTimeouts
    stalls : IsrStalls
    """
    return solve(pattern, parameters).measures(timeouts, stalls)


@lru_cache(maxsize=64)
def solve(pattern: tuple[int, ...], parameters: ChainParameters) -> SolvedChain:
    """Build the state space of one replica set and solve its chain.

    How long producers wait is no part of it, so that many configurations share a solution.
    """
    nominal = NominalRates(parameters.nominal_rates_per_hour, parameters.nominal_failover_hours)
    space = ctmc.structure(parameters.constants, parameters.setting(pattern), nominal)
    return SolvedChain(space, parameters)
