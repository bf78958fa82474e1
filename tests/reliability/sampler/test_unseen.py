"""What samples are too short to show still fits below their upper ends."""

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate

TRIO = Config(replication_factor=3, min_insync_replicas=2)


@pytest.mark.parametrize("mechanism", ["crash", "power"])
def test_a_bound_allows_for_elections(mechanism: str) -> None:
    """A process is back long before its partitions have another leader, which takes 10 seconds."""
    card = FailureModel.from_dict(
        {
            "broker": {mechanism: {"per_year": 1e-4, "minutes": 1e-4}},
            "detection": {"seconds": 10.0},
            "election": {"ms_per_leader": 5.0},
        }
    )
    inputs = Cluster.uniform(3), TRIO, card, Workload(partitions=3)
    exact = evaluate(*inputs)
    found = simulate(*inputs, 100, 1, "local", method="crude")
    for measure in ("write_unavailability", "read_unavailability", "records_refused_per_year"):
        bound = found.estimate(measure)
        assert not bound.seen
        assert exact.at_worst(measure) <= bound.high, measure
    # The bound is that of the card, and not 3 in 100 years without writes.
    assert found.write_unavailability.high < 10.0 * exact.write_unavailability


def test_an_outage_too_rare_to_be_seen_lasts_as_long_as_its_election() -> None:
    """Beside frequent controlled restarts, rare network outages of a rack are mostly elections."""
    card = FailureModel.from_dict(
        {
            "broker": {"restart": {"per_year": 4.0, "minutes": 0.01}},
            "rack": {"network": {"per_year": 2e-4, "minutes": 1e-4}},
            "detection": {"seconds": 3600.0},
            "election": {"ms_per_leader": 5.0},
        }
    )
    inputs = Cluster.uniform(3), TRIO, card, Workload(partitions=3)
    exact = evaluate(*inputs).write_unavailability
    found = simulate(*inputs, 100, 1, "local", method="crude").write_unavailability
    assert found.seen
    assert found.value < exact < found.high


@pytest.mark.parametrize(
    ("config", "load"),
    [
        (TRIO, Workload(records_per_second=0.0)),
        (
            Config(replication_factor=2, min_insync_replicas=3, kafka_version="3.6"),
            Workload(partitions=2),
        ),
    ],
)
def test_without_a_record_none_is_lost(config: Config, load: Workload) -> None:
    """Where nothing is ever acknowledged, losses are "none", and no bound of some number."""
    inputs = Cluster.uniform(6, 3), config, "three_az_cloud", load
    found = simulate(*inputs, 50, engine="local", method="crude")
    exact = evaluate(*inputs)
    for name in (
        "loss_probability_per_year",
        "loss_events_per_year",
        "acked_records_lost_per_year",
        "mean_years_to_loss",
    ):
        assert found.interval(name) == (getattr(exact, name), getattr(exact, name))
        assert str(found.estimate(name)) in ("none", "never")
    assert "years, so" not in repr(found)
