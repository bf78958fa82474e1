"""What left-out states are likened to where restarts are planned."""

import pytest

import conditions
from advisor import Config, load_model
from advisor.reliability.chain import drift_bound
from advisor.reliability.failures import transition_rates
from advisor.reliability.workload import Workload
from merging import all_apart, whole
from replica_sets import measure_set, parameters

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
KEPT = ("broker.crash", "broker.restart", "broker.destroyed", "rack.destroyed")


@pytest.fixture
def card():
    known = load_model("bare_metal_racks")
    gone = {f"{name}.per_year": 0.0 for name in known.mechanisms if name not in KEPT}
    return known.with_values(gone)


def test_a_restart_is_like_no_other_outage(card):
    """A crash may be of its length, but then others may restart: ten times as much may be lost."""
    config = Config(replication_factor=4, min_insync_replicas=2)
    found = drift_bound.alike(dict(parameters(config, card, LOAD, 4).rates_per_hour))
    lengths = [
        transition_rates.rate_per_hour(f"repair {name}", config, card, LOAD, 4) for name in KEPT[:2]
    ]
    assert max(lengths) < drift_bound._ALIKE * min(lengths)
    assert found[conditions.RESTARTING] == conditions.RESTARTING
    assert (found == conditions.RESTARTING).sum() == 1


@pytest.mark.parametrize("elr", [False, True])
def test_bounds_hold_where_a_restart_makes_an_empty_replica_lead(card, elr):
    """Two are down, one copies: whoever restarts the leader loses all, by an unclean election."""
    config = Config(
        kafka_version="4.2",
        replication_factor=4,
        min_insync_replicas=2,
        eligible_leader_replicas=elr,
        unclean_leader_election_enable=True,
    )
    kept = measure_set((0, 1, 2, 3), config, card, LOAD, 4)
    with all_apart():
        apart, _, states = whole((0, 1, 2, 3), config, card, LOAD)
    assert kept.states < states / 2
    for name, bound in kept.errors.items():
        if name in apart:
            assert abs(sum(kept.causes[name].values()) - apart[name]) <= bound, name
