"""Limping brokers, overlapping restarts, spreading outages, wiped logs and the controller quorum.

The sampler against the exact chain and closed forms.
"""

import math

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.reliability.results.units import MEASURES
from sampled_runs import FAR, MANY_RACKS, QUIET, TRIO, YEAR, card, off_by, sample

CRASH = {"per_year": 6.0, "minutes": 600.0}
GONE = {"per_year": 2.0, "hours": 60.0}
TIMING = {
    "flush": {"seconds": 30.0},
    "detection": {"seconds": 9.0},
    "election": {"ms_per_leader": 500.0},
}
SEVERAL = {"per_year": 4.0, "brokers": 0.4, "minutes": 500.0}
CARDS = {
    "limping": {
        "broker_gray": {"per_year": 20.0, "minutes": 300.0, "dies": 0.3},
        "broker_power": {"per_year": 2.0, "minutes": 400.0},
    },
    "limping and copying": {
        "broker_gray": {"per_year": 20.0, "minutes": 300.0, "dies": 0.0},
        "broker_destroyed": GONE,
        "copy": {"bytes_per_second": 1000.0},
    },
    "overlapping restarts": {
        "broker_restart": {
            **{"per_year": 15.0, "minutes": 200.0, "overlap": 0.4},
            **{"unclean": 0.3, "unclean_minutes": 500.0},
        },
        "broker_crash": CRASH,
    },
    "spreading": {
        "rack_network": {"per_year": 3.0, "minutes": 600.0, "spreads": 0.3},
        "rack_power": {"per_year": 2.0, "minutes": 600.0, "spreads": 0.2, "not_returning": 0.2},
        "rack_destroyed": {"per_year": 0.3, "spreads": 0.2},
        "broker_destroyed": {"hours": 60.0},
    },
    "several at once": {
        "cluster_crash": SEVERAL,
        "cluster_rollout": {**SEVERAL, "minutes": 200.0},
        "cluster_disk_full": {**SEVERAL, "brokers": 0.2},
        "broker_crash": CRASH,
    },
    "wiped": {
        "cluster_wiped": {"per_year": 1.0, "brokers": 0.5, "hours": 100.0},
        "broker_destroyed": GONE,
        "copy": {"bytes_per_second": 1000.0},
    },
    "without a controller": {
        "cluster_controller": {"per_year": 12.0, "minutes": 600.0, "stops": 0.3},
        "broker_crash": CRASH,
    },
    "limping without a controller": {
        "cluster_controller": {"per_year": 12.0, "minutes": 600.0, "stops": 0.3},
        "broker_gray": {"per_year": 10.0, "minutes": 300.0, "dies": 0.2},
        "broker_power": {"per_year": 3.0, "minutes": 300.0},
    },
}
CARDS["all together"] = {
    "broker_gray": {"per_year": 6.0, "minutes": 300.0, "dies": 0.3},
    "broker_restart": {"per_year": 6.0, "minutes": 200.0, "overlap": 0.4, "unclean": 0.3},
    "rack_network": {"per_year": 2.0, "minutes": 600.0, "spreads": 0.3},
    "cluster_crash": {"per_year": 1.0, "brokers": 0.4, "minutes": 500.0},
    "cluster_wiped": {"per_year": 0.5, "brokers": 0.4, "hours": 60.0},
    "cluster_controller": {"per_year": 4.0, "minutes": 400.0, "stops": 0.3},
}
PAIR = Config(replication_factor=2, min_insync_replicas=1)
RACKS = Cluster.uniform(brokers=6, racks=3)
CASES = {
    "limping": (MANY_RACKS, TRIO),
    "limping and copying": (MANY_RACKS, TRIO),
    "overlapping restarts": (MANY_RACKS, TRIO),
    "spreading": (RACKS, PAIR),
    "several at once": (MANY_RACKS, TRIO),
    "wiped": (MANY_RACKS, TRIO),
    "without a controller": (MANY_RACKS, TRIO),
    "limping without a controller": (MANY_RACKS, PAIR),
    "all together": (RACKS, PAIR),
}


def made(name: str) -> FailureModel:
    """Read one of the cards."""
    return card(**CARDS[name], **TIMING)


@pytest.mark.parametrize("name", CASES)
def test_the_chain_and_the_sampler_agree(name: str) -> None:
    """One partition, sampled in the whole cluster, agrees with its CTMC."""
    cluster, config = CASES[name]
    exact = evaluate(cluster, config, made(name), QUIET)
    found, _ = sample(cluster, config, made(name), QUIET, years=1500)
    off = {}
    for measure in MEASURES:
        one, truth = found.estimate(measure), getattr(exact, measure)
        if not one.seen or truth in (0.0, math.inf):
            assert one.low <= truth <= one.high, (measure, one, truth)
        elif measure == "loss_probability_per_year" and one.value == 1.0:
            assert truth > one.low, (measure, one, truth)
        else:
            off[measure] = off_by(one, truth)
    print(name, {k: (round(v, 2), f"{found.estimate(k).value:.4g}") for k, v in off.items()})
    assert max(map(abs, off.values())) < FAR, off
