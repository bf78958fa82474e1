"""Public incidents that stopped writes, each run through the chain by what it is put down to."""

import csv
from functools import lru_cache

import pytest

from advisor import Cluster, Config, FailureModel, Workload, catalog, evaluate, load_model
from advisor.reliability.failures.mechanisms import Scope, table
from advisor.reliability.failures.transition_rates import Pick

MINUTES_PER_YEAR = 365 * 24 * 60
# Where a row does not say how long writes were stopped.
USUAL_MINUTES = 260.0
SHARE_OF_BROKERS = 0.7


def incidents():
    """Return the incidents in which writes stopped."""
    path = catalog.data_path("incidents.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [r for r in rows if r["kind"] == "incident" and r["write_unavailable"] == "yes"]


ROWS = incidents()
MODELLED = [
    pytest.param(row, name, id=f"{row['id']}-{name}")
    for row in ROWS
    if row["modelled"] in ("yes", "partly")
    for name in row["mechanism"].split(";")
]


@lru_cache(maxsize=64)
def run(name: str, scope: str, minutes: float):
    """Evaluate a card in which only this happens, once a year, at this scope and length."""
    entry = table()[name]
    numbers = {
        "per_year": 1.0,
        "minutes": minutes,
        "hours": minutes / 60.0,
        "brokers": SHARE_OF_BROKERS,
        "all": 0.0 if scope == "several-brokers" else 1.0,
        "dies": 0.0,
        "stops": 1.0 if scope in ("control-plane", "whole-cluster") else 0.5,
        "overlap": 1.0,
    }
    # What a mechanism may have and the incident does not say is left out.
    given = {n.key: numbers[n.key] for n in entry.numbers if n.key in numbers}
    group, _, kind = name.partition(".")
    model = FailureModel.from_dict({group: {kind: given}})
    # What a zone took with it was not spread over zones.
    racks = 1 if scope in ("zone", "region") else 3
    config = Config(kafka_version="3.9", replication_factor=3, min_insync_replicas=2, acks="all")
    load = Workload(partitions=12, records_per_second=1000.0)
    return evaluate(Cluster.uniform(brokers=6, racks=racks), config, model, load)


@pytest.mark.parametrize(("row", "name"), MODELLED)
def test_the_mechanism_does_what_the_incident_did(row: dict[str, str], name: str) -> None:
    """Writes stop by this cause, for no longer than the incident, and records go where they did."""
    minutes = float(row["duration_minutes"] or USUAL_MINUTES)
    found = run(name, row["scope"], minutes)
    stopped = found.causes["write_unavailability"].get(name, 0.0) * MINUTES_PER_YEAR
    assert stopped > 0.0
    # Once a year for each of six brokers at most.
    assert stopped <= 6.0 * minutes * 1.001
    if row["scope"] in ("whole-cluster", "zone") and row["modelled"] == "yes":
        # All partitions, for as long as it takes; a little longer where brokers return separately.
        longest = 1.02 if table()[name].together or name == "cluster.controller" else 1.2
        assert 0.98 * minutes <= stopped <= longest * minutes
    wiped = name == "cluster.wiped"
    if row["acknowledged_lost"] == "yes" and wiped:
        assert found.causes["loss_events_per_year"].get(name, 0.0) > 0.1
    if row["acknowledged_lost"] == "no":
        assert found.loss_events_per_year < 1e-3


def test_most_write_outages_can_be_made() -> None:
    """At least 85 % of them are "yes" or "partly"; those that are not say why."""
    can = [row for row in ROWS if row["modelled"] in ("yes", "partly")]
    assert len(can) >= 0.85 * len(ROWS)
    assert all(row["gap"] or row["family"] == "unknown" for row in ROWS if row not in can)


def test_each_is_put_down_to_entries_of_the_table() -> None:
    """No incident names a mechanism that does not exist."""
    named = {name for row in ROWS for name in row["mechanism"].split(";") if name}
    assert named <= set(table().names)
    new = {entry.name for entry in table().entries if entry.scope is Scope.CLUSTER}
    assert new - named == {"cluster.destroyed"}, "no public incident of Kafka took a whole site"


@pytest.mark.parametrize("name", catalog.model_names())
def test_cards_stop_whole_clusters_as_often_as_incidents_did(name: str) -> None:
    """Of six brokers all are struck in the share of events in which whole clusters stopped.

    Drawn one by one with the share of brokers struck on average, it would be one event in four.
    """
    counted, model = catalog.evidence()["incidents-whole-cluster"], load_model(name)
    for cause in ("cluster.crash", "cluster.rollout", "cluster.wiped"):
        pick = Pick.of(table()[cause], model)
        assert counted.low < pick.chance_of(6, 6) < counted.high
        assert pick.mean_share**6 < counted.low
