"""Check the arguments of `recommend` and `audit` before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from advisor.advice.goals import Goals
from advisor.cluster import Cluster
from advisor.errors import InputError, expect, shown
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.times.exactness import check_exact
from advisor.reliability.workload import Workload


def check_arguments(
    cluster: object, model: object, load: object, goals: object, kafka_version: object
) -> None:
    """Check the types of the arguments that `recommend` and `audit` have in common.

    Raises InputError if one is of the wrong type; the message names it.
    Raises NotComputedError if the card has times that the exact answer does not take.
    """
    expect("cluster", cluster, Cluster, "a Cluster, as load_cluster returns it")
    expect("model", model, FailureModel, "a FailureModel, as load_model returns it")
    expect("load", load, Workload | None, "a Workload, or None")
    expect("goals", goals, Goals | None, "Goals, or None")
    expect("kafka_version", kafka_version, str | None, 'a text such as "4.1", or None')
    assert isinstance(model, FailureModel)
    check_exact(model)


def check_producer_settings(producer: object) -> None:
    """Check that a producer's settings are options of `Config`, by name.

    Raises InputError if it is not a mapping, or a name is not an option of `Config`.
    """
    expect("producer", producer, Mapping | None, "settings by name, or None")
    options = {field.name for field in fields(Config) if field.init}
    for name in producer if isinstance(producer, Mapping) else ():
        if not isinstance(name, str) or name not in options:
            raise InputError(f"producer={shown(name)}: give names of options of Config")
