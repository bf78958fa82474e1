"""Chains of single replica sets, straight from settings, card and workload."""

from __future__ import annotations

from dataclasses import replace

from advisor import Config, FailureModel, Workload
from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.measures import replica_set
from advisor.reliability.measures.solved_chain import SetMeasures, SolvedChain
from advisor.reliability.solver.generator import EXACT

parameters = ChainParameters.read


def measured(solved: SolvedChain, config: Config, model: FailureModel) -> SetMeasures:
    """Every measure of a solved chain for the producers of a configuration."""
    return solved.measures(ProducerTimeouts.of(config), IsrStalls.of(config, model))


def solution(
    structure: Structure, config: Config, model: FailureModel, load: Workload, brokers: int
) -> SolvedChain:
    """Solve a given state space."""
    return SolvedChain(structure, parameters(config, model, load, brokers))


def measure_set(
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    precision: float = EXACT,
    like: FailureModel | None = None,
) -> SetMeasures:
    """Measure a replica set, on the states that matter for another card if one is given."""
    asked = parameters(config, model, load, brokers)
    if like is not None:
        nominal = parameters(config, like, load, brokers)
        asked = replace(asked.roughly_like(nominal), precision=precision)
    return replica_set.measure(
        pattern, asked, ProducerTimeouts.of(config), IsrStalls.of(config, model)
    )
