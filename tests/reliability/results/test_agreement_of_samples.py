"""How many events a sample should hold decides what is compared with the exact result."""

import pytest

import agreement_of_samples as agreement
from advisor import Cluster, Config, FailureModel, Workload, evaluate

CLUSTER = Cluster.uniform(brokers=3, racks=3)
CRASHES = {"broker": {"crash": {"per_year": 4.0, "minutes": 30.0}}}


def exact(version: str, detection: dict[str, float]):
    """Two replicas down refuse writes for long; changes of leader for a moment, but often."""
    card = {**CRASHES, **({"detection": detection} if detection else {})}
    config = Config(kafka_version=version, replication_factor=3, min_insync_replicas=2)
    return evaluate(CLUSTER, config, FailureModel.from_dict(card), Workload())


@pytest.mark.parametrize(
    ("version", "detection"),
    [
        ("4.2", {"seconds": 60.0}),
        ("4.2", {"kraft_sessions": 5.0, "zookeeper_sessions": 0.0}),
        ("2.8", {"kraft_sessions": 0.0, "zookeeper_sessions": 5.0}),
    ],
)
def test_changes_of_leader_are_no_events(version, detection):
    """However a card says how long a dead leader is not noticed: only long outages count."""
    at_once, noticed = exact(version, {}), exact(version, detection)
    assert noticed.write_unavailability > 2.0 * at_once.write_unavailability
    expected = agreement._events(at_once, "write_unavailability", 1000)
    found = agreement._events(noticed, "write_unavailability", 1000)
    assert found == pytest.approx(expected, rel=1e-6)
    # Each of two others may fail in the half hour that one of three is down.
    assert 0.0 < expected < 1000 * 6 * 4.0**2 * 0.5 / 8760
