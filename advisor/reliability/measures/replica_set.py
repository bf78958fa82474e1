"""One replica set's chain, chosen by a card's numbers and solved for every measure."""

from __future__ import annotations

import math
from functools import lru_cache

from advisor.protocol.rules.config import Config
from advisor.protocol.rules.controller import Policy
from advisor.reliability.chain import ctmc
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.failures import fault_processes, transition_rates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import table, transition
from advisor.reliability.measures.solved_chain import SetMeasures, Solution
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.solver import generator
from advisor.reliability.workload import Workload

__all__ = [
    "SetMeasures",
    "measure",
    "setting_for",
    "setup_for",
    "solution",
    "solved",
]


def setup_for(config: Config, model: FailureModel, load: Workload, brokers: int) -> ChainConstants:
    """The reduction's constants for a configuration and card."""
    # Nobody else asks for the min ISR, so that these configurations have one chain.
    asks_for_it = config.acks == "all" or config.rules.eligible_leader_replicas
    policy = Policy(
        min_isr=config.effective_min_insync_replicas if asks_for_it else 1,
        unclean=bool(config.unclean_leader_election_enable),
        rules=config.rules,
    )
    assert config.acks is not None
    return ChainConstants(
        policy=policy,
        acks=config.acks,
        copying=transition_rates.copy_hours(config, model, load, brokers) > 0,
        page_cache=model.get("flush.seconds", 0.0) > 0,
    )


def setting_for(pattern: tuple[int, ...], model: FailureModel) -> fault_processes.Setting:
    """The machines' side of the chain."""
    mechanisms = frozenset(m for m in model.mechanisms if model.rate_per_hour(m) > 0)
    shares = (entry.share_path for entry in table().entries if entry.share)
    mechanisms |= {path for path in shares if model.get(path, 0.0) > 0}
    return fault_processes.Setting(pattern, mechanisms)


def rates_for(
    setup: ChainConstants,
    setting: fault_processes.Setting,
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
) -> dict[str, float]:
    """The rate per hour of everything that can happen to a replica set."""
    names = transition_rates.names(setting.mechanisms, len(setting.racks), setup.copying)
    return {
        name: transition_rates.rate_per_hour(name, config, model, load, brokers) for name in names
    }


def guide_for(
    setup: ChainConstants,
    setting: fault_processes.Setting,
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    brokers_per_rack: float = 1.0,
) -> NominalRates:
    """What the choice of states goes by: failures rounded up, ends of outages down."""
    found = rates_for(setup, setting, config, model, load, brokers)
    rounded = {name: _power_of_two(rate, not transition(name).ends) for name, rate in found.items()}
    slowest = max(transition_rates.failovers(model, load, brokers, brokers_per_rack))
    return NominalRates(tuple(rounded.items()), _power_of_two(slowest, False))


def _power_of_two(value: float, up: bool) -> float:
    if value <= 0:
        return 0.0
    exponent = math.log2(value)
    return 2.0 ** (math.ceil(exponent) if up else math.floor(exponent))


@lru_cache(maxsize=2048)
def measure(
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    precision: float = generator.EXACT,
    like: FailureModel | None = None,
    brokers_per_rack: float = 1.0,
) -> SetMeasures:
    """Solve the chain of one replica set; the same question is answered once.

    Parameters
    ----------
    pattern : tuple of int
        Rack number of each replica.
    config, model, load
    brokers : int
        Of the whole cluster.
    precision : float
        Relative accuracy asked of the solver; the errors say what that may miss.
    like : FailureModel, optional
        A card whose chain is to be taken, if it has the same states.
    brokers_per_rack : float
        Those whose leaders move together when a rack fails.
    """
    asked = (model, load, brokers, precision, like, brokers_per_rack)
    return solved(pattern, config, *asked).measures(config)


def solved(
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    precision: float = generator.EXACT,
    like: FailureModel | None = None,
    brokers_per_rack: float = 1.0,
) -> Solution:
    """The chain of one replica set with numbers in it; for the parameters see :func:`measure`."""
    setup, setting = setup_for(config, model, load, brokers), setting_for(pattern, model)
    chosen_by = model
    if like is not None and setup_for(config, like, load, brokers) == setup:
        chosen_by = like if setting_for(pattern, like) == setting else model
    guide = guide_for(setup, setting, config, chosen_by, load, brokers, brokers_per_rack)
    found = rates_for(setup, setting, config, model, load, brokers)
    _, hung = transition_rates.stall_hours(config, model)
    numbers, moves = (
        tuple(found.items()),
        transition_rates.failovers(model, load, brokers, brokers_per_rack),
    )
    return _solved(setup, setting, guide, numbers, model, load, moves, hung, precision)


@lru_cache(maxsize=64)
def _solved(
    setup: ChainConstants,
    setting: fault_processes.Setting,
    guide: NominalRates,
    found: tuple[tuple[str, float], ...],
    model: FailureModel,
    load: Workload,
    failovers: transition_rates.Failovers,
    hung_hours: float,
    precision: float,
) -> Solution:
    """The chain of many configurations: how long producers wait changes nothing in it."""
    structure = ctmc.structure(setup, setting, guide)
    return Solution(structure, dict(found), model, load, failovers, hung_hours, precision)


def solution(
    structure: Structure, config: Config, model: FailureModel, load: Workload, brokers: int
) -> Solution:
    """Fill a structure with a card's numbers and solve it, to all digits."""
    found = rates_for(structure.setup, structure.setting, config, model, load, brokers)
    _, hung = transition_rates.stall_hours(config, model)
    failovers = transition_rates.failovers(model, load, brokers, 1.0)
    return Solution(structure, found, model, load, failovers, hung, generator.EXACT)
