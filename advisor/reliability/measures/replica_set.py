"""Build the CTMC of one replica set, solve it, and cache the result."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from advisor.errors import NotComputedError
from advisor.formatting import significant
from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain import ctmc
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.failures.mechanisms import COPY, transition
from advisor.reliability.failures.transition_rates import DECISION_HOURS
from advisor.reliability.measure_table import Measure
from advisor.reliability.measures.loss_events import lost_gaps
from advisor.reliability.measures.solved_chain import SetMeasures, SolvedChain
from advisor.reliability.partition.transition_table import EXPLORING, partition_transition_table
from advisor.reliability.solver.sojourn_time import TooManyStepsError
from advisor.reliability.statespace.state_graph import graph


def compute_measures(
    pattern: tuple[int, ...],
    parameters: ChainParameters,
    timeouts: ProducerTimeouts,
    stalls: IsrStalls,
    partitions: float = 1.0,
    shares: tuple[Measure, ...] | None = None,
) -> SetMeasures:
    """Measure one replica set, given the rack number of each replica.

    shares: see `SolvedChain.measures`.
    """
    try:
        solved = solve(pattern, as_if_acknowledged(parameters))
        measures = solved.measures(timeouts, stalls, partitions, shares=shares)
    except TooManyStepsError as error:
        raise NotComputedError(f"{error}: {ends_soonest(parameters)}") from error
    return measures.dropped if parameters.constants.acks == 0 else measures


measure = lru_cache(maxsize=2048)(compute_measures)
"""Do what `compute_measures` does, and cache the measures, which outlive the chain."""


def as_if_acknowledged(parameters: ChainParameters) -> ChainParameters:
    """acks=1 for acks=0: the leader writes the same, and answers."""
    if parameters.constants.acks != 0:
        return parameters
    return replace(parameters, constants=replace(parameters.constants, acks=1))


def ends_soonest(parameters: ChainParameters) -> str:
    """The number of the card that ends outages soonest, and what to do about it."""
    ends = [(rate, name) for name, rate in parameters.rates_per_hour if transition(name).ends]
    rate, name = max(ends)
    quickest = transition(name)
    path = quickest.mechanism.duration[0]
    if quickest.decides or quickest.copies:
        path = DECISION_HOURS if quickest.decides else COPY
    seconds = significant(3600.0 / rate)
    return (
        f"by {path} the card ends some outages within {seconds} seconds on average, and "
        "producers retry far longer; make that longer, or lower retries or delivery_timeout_ms"
    )


@lru_cache(maxsize=8)
def solve(pattern: tuple[int, ...], parameters: ChainParameters) -> SolvedChain:
    """Build the state space of one replica set and solve its chain, for any timeouts."""
    space = ctmc.structure(
        parameters.constants, parameters.environment(pattern), nominal(parameters)
    )
    return SolvedChain(space.condensed, parameters)


def nominal(parameters: ChainParameters) -> NominalRates:
    """The rates that choose the states of a chain."""
    return NominalRates(parameters.nominal_rates_per_hour, parameters.nominal_failover_hours)


def forget_chains() -> None:
    """Free the memory of chains and of what they were built from; their measures are kept."""
    with EXPLORING:
        for cached in (solve, ctmc.structure, lost_gaps, graph, partition_transition_table):
            cached.cache_clear()
