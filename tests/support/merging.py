"""The chain of all states, with and without the states that symmetry makes one."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain import ctmc
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.measures import replica_set
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.statespace import lumping, state_graph
from advisor.reliability.workload import Workload
from replica_sets import measured, parameters, solution


def forget() -> None:
    """Nothing of what was explored is known any more."""
    state_graph.graph.cache_clear()
    ctmc.structure.cache_clear()
    replica_set.measure.cache_clear()


def _no_two(_: ChainConstants, environment: FaultEnvironment) -> tuple[int, ...]:
    return tuple(range(len(environment.racks)))


@contextmanager
def all_apart() -> Iterator[None]:
    """No two replicas may change places."""
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lumping, "slot_classes", _no_two)
        yield
    forget()


def whole(
    pattern: tuple[int, ...],
    config: Config,
    card: FailureModel,
    load: Workload,
    voters: tuple[int, ...] = (),
) -> tuple[dict[str, float], dict[str, float], int]:
    """Every measure that is not nothing, how far it may be off, and the number of states."""
    constants = parameters(config, card, load, len(pattern)).constants
    structure = ctmc.whole_structure(
        constants, FaultEnvironment(pattern, possible_mechanisms(card), voters)
    )
    found = measured(solution(structure, config, card, load, len(pattern)), config, card)
    values = {name: sum(parts.values()) for name, parts in found.causes.items()}
    values = {name: value for name, value in values.items() if value > 0}
    errors = {name: found.errors[name] for name in values}
    values["probability"] = float(found.losses[0].first.probability[0])
    return values, errors, structure.states
