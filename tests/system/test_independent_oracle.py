"""The exact model against a simulation that shares only the controller's rules with it."""

import math
from statistics import fmean, stdev

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.protocol.rules.controller import Policy
from independent_oracle import Partition, Tally, both, during, either, hours_in, written

# One of twenty correct comparisons exceeds this with probability 1 in 800.
FAR = 4.0
BATCHES, YEARS = 20, 25.0
KEPT_HOURS = 168.0
LOAD = Workload(retention_hours=KEPT_HOURS)
FLUSH_HOURS = 0.1
MEASURES = ("loss_events_per_year", "write_unavailability", "read_unavailability")
# Failures so frequent that a few centuries show hundreds of losses: (per year, mean hours).
CASES = {
    "unclean": (
        {"broker.crash": (40.0, 5.0)},
        (0, 1),
        {"min_insync_replicas": 1, "unclean_leader_election_enable": True},
    ),
    "destroyed": (
        {"broker.crash": (60.0, 10.0), "broker.destroyed": (40.0, 24.0)},
        (0, 1, 2),
        {"min_insync_replicas": 2, "eligible_leader_replicas": True},
    ),
    "last in sync": (
        {"broker.restart": (52.0, 5.0), "broker.destroyed": (40.0, 24.0)},
        (0, 1, 2),
        {"min_insync_replicas": 1, "eligible_leader_replicas": False},
    ),
    "page cache": (
        {"broker.power": (40.0, 5.0)},
        (0, 1),
        {"min_insync_replicas": 1, "eligible_leader_replicas": False},
    ),
    "power twice": (
        {"broker.power": (200.0, 0.5)},
        (0, 1),
        {"min_insync_replicas": 2, "eligible_leader_replicas": True},
    ),
    "power after a crash": (
        {"broker.power": (150.0, 0.5), "broker.crash": (200.0, 0.25)},
        (0, 1),
        {"min_insync_replicas": 2, "eligible_leader_replicas": False},
    ),
    "power after a crash, ELR": (
        {"broker.power": (150.0, 0.5), "broker.crash": (200.0, 0.25)},
        (0, 1),
        {"min_insync_replicas": 2, "eligible_leader_replicas": True},
    ),
    "power after a restart": (
        {"broker.power": (150.0, 0.5), "broker.restart": (200.0, 0.25)},
        (0, 1, 2),
        {"min_insync_replicas": 2, "eligible_leader_replicas": False},
    ),
    "power after a restart, ELR": (
        {"broker.power": (150.0, 0.5), "broker.restart": (200.0, 0.25)},
        (0, 1, 2),
        {"min_insync_replicas": 2, "eligible_leader_replicas": True},
    ),
    "rack": (
        {"rack.power": (40.0, 5.0), "rack.network": (10.0, 2.0)},
        (0, 0, 1),
        {"min_insync_replicas": 1, "eligible_leader_replicas": False},
    ),
}
# The formulas and the oracle know no waiting: an operator elects at once what is left.
AT_ONCE = {"hours": 1e-5}


def _config(racks: tuple[int, ...], settings: dict[str, object]) -> Config:
    return Config(replication_factor=len(racks), **settings)


def _card(mechanisms: dict[str, tuple[float, float]]) -> FailureModel:
    tables: dict[str, dict[str, object]] = {"flush": {"seconds": FLUSH_HOURS * 3600.0}}
    for name, (per_year, hours) in mechanisms.items():
        scope, what = name.split(".")
        unit = {"hours": hours} if what == "destroyed" else {"minutes": hours * 60.0}
        tables.setdefault(scope, {})[what] = {"per_year": per_year, **unit}
    return FailureModel.from_dict({**tables, "operator": AT_ONCE})


def _batches(
    mechanisms: dict[str, tuple[float, float]], racks: tuple[int, ...], config: Config
) -> list[Tally]:
    policy = Policy(
        config.effective_min_insync_replicas,
        bool(config.unclean_leader_election_enable),
        config.rules,
    )
    partition = Partition(
        racks,
        policy,
        {name: rate for name, (rate, _) in mechanisms.items()},
        {name: hours for name, (_, hours) in mechanisms.items()},
        FLUSH_HOURS,
        KEPT_HOURS,
        seed=1,
    )
    return [partition.run(YEARS) for _ in range(BATCHES)]


@pytest.mark.parametrize("case", CASES)
def test_exact_measures_agree_with_timestamped_logs(case: str) -> None:
    """Losses and unavailability are within the error of an independent simulation."""
    mechanisms, racks, settings = CASES[case]
    config = _config(racks, settings)
    # The oracle's controllers never fail.
    cluster = Cluster(
        brokers={b: f"r{rack}" for b, rack in enumerate(racks)},
        controllers={101: "x", 102: "y", 103: "z"},
    )
    exact = evaluate(cluster, config, _card(mechanisms), LOAD)
    measures = {name: getattr(exact, name) for name in MEASURES}
    if "broker.destroyed" not in mechanisms:
        # If whole logs are lost, the model's retention clock stops during outages.
        lost = exact.acked_records_lost_per_year
        measures["hours_lost_per_year"] = lost / LOAD.records_per_hour_per_partition
    batches = _batches(mechanisms, racks, config)
    for name, value in measures.items():
        seen = [getattr(batch, name) for batch in batches]
        mean, error = fmean(seen), stdev(seen) / math.sqrt(BATCHES)
        assert value > 0
        assert abs(value - mean) < FAR * error, (name, value, mean, error)


def test_sets_of_hours() -> None:
    """Intersection, union, extension and length of sets of hours."""
    one, other = ((0.0, 2.0), (5.0, 6.0)), ((1.0, 5.5),)
    assert both(one, other) == ((1.0, 2.0), (5.0, 5.5))
    assert either(one, other) == ((0.0, 6.0),)
    assert written(one, 6.0, 7.0) == ((0.0, 2.0), (5.0, 7.0))
    assert written(one, 6.5, 7.0) == (*one, (6.5, 7.0))
    assert hours_in(one) == 3.0
    for span in ((-math.inf, 9.0), (0.5, 5.5), (2.0, 5.0), (2.0, 5.5), (1.0, 1.5), (6.0, 7.0)):
        assert during(one, *span) == both(one, (span,))
    assert hours_in(()) == 0.0
