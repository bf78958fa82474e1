"""Configurations, cards and clusters on which the exact answer and the sample have to agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from advisor import Cluster, Config, FailureModel, Workload, load_model
from advisor.catalog import model_names

# A week of records is longer than nearly every outage, an hour shorter than many.
LOAD = Workload(records_per_second=1.0, retention_hours=168.0, replication_delay_ms=200.0)
SHORT = replace(LOAD, retention_hours=1.0)


class Case(NamedTuple):
    """One comparison."""

    name: str
    cluster: Cluster
    config: Config
    model: FailureModel
    load: Workload


def stressed(model: FailureModel) -> FailureModel:
    """The card with everything ten times as often, outages three times as long: losses are seen."""
    values = {}
    for path, quantity in model.quantities.items():
        if path.endswith(".per_year"):
            values[path] = 10.0 * quantity.value
        elif path.endswith(".minutes"):
            values[path] = 3.0 * quantity.value
    # Ten restarts a month of one broker would leave no time between them.
    if "broker.restart.per_year" in values:
        values["broker.restart.per_year"] = model["broker.restart.per_year"]
    return model.with_values(values)


def grid() -> Iterator[Case]:
    """All shipped cards, RF 1 to 3, every acks, min ISR, unclean and ELR on and off, racks."""
    for card in model_names():
        yield from _single(card)
        yield from _pairs(card)
        yield from _triples(card)
        yield from _short(card)


def _stressed(model: FailureModel, config: Config) -> FailureModel:
    hard = stressed(model)
    # The chain has too few of the quickest replacements, as its assumptions say; those may lead.
    unclean = config.unclean_leader_election_enable
    return hard.with_values({"broker.destroyed.shape": 1.0}) if unclean else hard


def _case(card: str, hard: bool, racks: int, spare: int, **settings: Any) -> Case:
    model = load_model(card)
    config = Config(kafka_version="4.1", **settings)
    brokers = int(settings["replication_factor"]) + spare
    words = " ".join(f"{key}={value}" for key, value in settings.items())
    name = f"{card}{' stressed' if hard else ''}, {brokers} brokers, {racks} racks, {words}"
    return Case(
        name,
        Cluster.uniform(brokers, min(racks, brokers)),
        config,
        _stressed(model, config) if hard else model,
        LOAD,
    )


def _single(card: str) -> Iterator[Case]:
    for acks, hard in (("all", False), (1, False), ("all", True), (0, True)):
        yield _case(card, hard, 1, 0, replication_factor=1, acks=acks)


def _pairs(card: str) -> Iterator[Case]:
    for min_isr, unclean, elr in product((1, 2), (False, True), (False, True)):
        yield _case(
            card,
            True,
            1 if card == "single_rack" else 2,
            0,
            replication_factor=2,
            min_insync_replicas=min_isr,
            acks="all",
            unclean_leader_election_enable=unclean,
            eligible_leader_replicas=elr,
        )
    for acks, hard, racks in ((1, False, 2), (0, False, 1), (0, True, 2)):
        yield _case(card, hard, racks, 1, replication_factor=2, min_insync_replicas=1, acks=acks)


def _triples(card: str) -> Iterator[Case]:
    settings = (
        (1, "all", False, True, 3),
        (2, "all", False, True, 3),
        (2, "all", False, False, 2),
        (2, "all", True, False, 3),
        (3, "all", False, True, 1),
        (1, 1, False, False, 3),
        (1, 0, False, True, 3),
    )
    for min_isr, acks, unclean, elr, racks in settings:
        yield _case(
            card,
            True,
            racks,
            0,
            replication_factor=3,
            min_insync_replicas=min_isr,
            acks=acks,
            unclean_leader_election_enable=unclean,
            eligible_leader_replicas=elr,
        )


def _short(card: str) -> Iterator[Case]:
    """Records that expire while a replica is out of service."""
    racks = 1 if card == "single_rack" else 3
    for replicas, unclean in ((2, True), (3, True), (2, False)):
        case = _case(
            card,
            True,
            racks,
            0,
            replication_factor=replicas,
            min_insync_replicas=1,
            acks="all",
            unclean_leader_election_enable=unclean,
        )
        yield case._replace(name=f"{case.name}, one hour kept", load=SHORT)
