"""Intervals of other schemes: from the draws of Kafka's, on the states that matter."""

import pytest

import advisor
from advisor.lessons.scheme_reliability.comparison import (
    chains_that_matter,
    compare_schemes,
    rows_beside,
    scheme_intervals,
    scheme_row,
)
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.case import Case
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.solver.generator import ROUGH
from advisor.reliability.workload import Workload

CLUSTER = advisor.Cluster.uniform(brokers=3, racks=3)
CLOUD = load_model("three_az_cloud")
DESTROYED = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 50, "hours": 12}}})


def test_kafkas_row_holds_the_figures_of_its_own_table() -> None:
    """Every measure of the first row, and its interval, equals the result's exactly."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    result = evaluate(cluster, config, CLOUD, Workload(partitions=12))
    row = rows_beside(result)[0]
    assert row == compare_schemes(cluster, config, CLOUD, Workload(partitions=12))[0]
    intervals = scheme_intervals(row, result)
    for measure in measure_table.names():
        assert getattr(row, measure) == getattr(result, measure)
        assert intervals[measure] == result.interval(measure)


@pytest.mark.parametrize("name", ["majority", "asynchronous"])
def test_draws_are_solved_to_a_thousandth_on_the_states_that_matter(name: str) -> None:
    """A few draws of a card with what strikes brokers and racks, on these states and on all."""
    far = [n for n in CLOUD.mechanisms if n.startswith("cluster.") and n != "cluster.power"]
    model = CLOUD.with_values({f"{mechanism}.per_year": 0.0 for mechanism in far})
    case = Case.read(CLUSTER, Config(replication_factor=3, min_insync_replicas=2), model)
    chains = chains_that_matter(name, case.roughly(model))
    (chain,) = chains.values()
    assert len(chain.keys) < 1000
    for draw in model.draws(3, seed=0):
        whole, part = (scheme_row(name, case.roughly(draw), each) for each in (None, chains))
        for measure in measure_table.names():
            assert getattr(part, measure) == pytest.approx(getattr(whole, measure), rel=1e-3)


def test_intervals_of_all_rows_come_from_the_same_draws() -> None:
    """Where a scheme and Kafka agree, so do their intervals, within the rough solver's precision.

    Destroyed disks only, with a range; the synchronous scheme and min ISR 3. The logarithm of
    every draw may be off by ROUGH on each side, so the centre of the log-normal by as much, and its
    half width by twice that.
    """
    ranged = {"value": 50, "low": 10, "high": 90}
    model = FailureModel.from_dict({"broker": {"destroyed": {"per_year": ranged, "hours": 12}}})
    config = Config(replication_factor=3, min_insync_replicas=3, acks="all")
    result = evaluate(CLUSTER, config, model)
    row = next(row for row in rows_beside(result) if row.name == "synchronous")
    intervals = scheme_intervals(row, result)
    for measure in (
        "loss_probability_per_year",
        "mean_years_to_loss",
        "acked_records_lost_per_year",
        "write_unavailability",
        "records_refused_per_year",
    ):
        low, high = intervals[measure]
        assert low < getattr(row, measure) < high
        assert (low, high) == pytest.approx(result.interval(measure), rel=6 * ROUGH)
    exact = scheme_intervals(row, evaluate(CLUSTER, config, DESTROYED))
    assert exact["mean_years_to_loss"] == (row.mean_years_to_loss,) * 2


def test_a_range_may_end_where_nothing_of_the_kind_happens() -> None:
    """Draws without unclean restarts have other states: as on all states of each draw."""
    ranged = {"value": 0.02, "low": 0.0, "high": 0.2}
    restarts = {"per_year": 12, "minutes": 8, "unclean": ranged, "unclean_minutes": 30}
    model = FailureModel.from_dict({"broker": {"restart": restarts}})
    config = Config(replication_factor=3, min_insync_replicas=2)
    result = evaluate(CLUSTER, config, model)
    draws = list(uncertainty.parameter_draws(model, result.states))
    assert {draw["broker.restart.unclean"] > 0.0 for draw in draws} == {False, True}
    row = next(row for row in rows_beside(result) if row.name == "majority")
    case = Case.read(CLUSTER, config, model)
    drawn = [scheme_row("majority", case.roughly(draw)).write_unavailability for draw in draws]
    found = scheme_intervals(row, result)["write_unavailability"]
    assert found == pytest.approx(uncertainty.lognormal_interval(drawn), rel=1e-2)
