"""Twelve clusters as operators run them: what is recommended, and that it is no accident."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import pytest

from advisor.advice import Goals, Recommendation, recommend
from advisor.cluster import Cluster, Partition, Topic
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.workload import Workload

ZONES = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
RACK = Goals(loss_probability_per_year=1e-3, write_unavailability=1e-3, survive="rack")
USUAL = Goals(loss_probability_per_year=1e-3, write_unavailability=1e-3)
LOOSE = Goals(loss_probability_per_year=1.0, write_unavailability=1e-2)
THREE_TWO = "RF 3, min.insync.replicas 2, acks=all"


@dataclass(frozen=True)
class Case:
    """One cluster with its goals, what is recommended, and why an operator would agree."""

    name: str
    brokers: dict[int, str]
    card: str
    goals: Goals
    expected: str
    reason: str
    operator: str
    topics: tuple[Topic, ...] = ()
    current: Config | None = None
    version: str | None = None


def topic(name: str, lists: list[tuple[int, ...]], min_isr: int) -> Topic:
    partitions = tuple(Partition(i, r[0], r, r) for i, r in enumerate(lists))
    return Topic(name, partitions, {"min.insync.replicas": str(min_isr)})


def in_racks(brokers: int, racks: int) -> dict[int, str]:
    return {broker: f"r{broker % racks}" for broker in range(1, brokers + 1)}


PAIRS = [(1, 2), (4, 5), (7, 8), (2, 6)]
CASES = (
    Case(
        "three brokers in one rack",
        in_racks(3, 1),
        "single_rack",
        USUAL,
        THREE_TWO,
        "With min.insync.replicas 3",
        "one broker may restart while another is gone from the ISR, without loss",
    ),
    Case(
        "three brokers in three zones",
        in_racks(3, 3),
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "RF 2 is too few for losing a rack",
        "a zone may go: two copies remain, which is what writes need",
    ),
    Case(
        "six brokers in three zones",
        ZONES,
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "RF 4 would be worse for losing a rack",
        "a fourth copy would share a zone with another and save nothing",
    ),
    Case(
        "six brokers in two data centres",
        in_racks(6, 2),
        "two_az",
        USUAL,
        THREE_TWO,
        "It costs ",
        "two sites never give both, so no fourth copy is bought for it",
    ),
    Case(
        "two and a half data centres",
        {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"},
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "Every partition then has a replica on broker 5",
        "the third site votes with data, and has to be sized for it",
    ),
    Case(
        "nine brokers with topics of two replicas",
        in_racks(9, 3),
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "the change copies four replicas",
        "RF 2 cannot lose a broker without losing writes or records",
        topics=(topic("orders", PAIRS, 1),),
    ),
    Case(
        "thirty brokers on bare metal",
        in_racks(30, 5),
        "bare_metal_racks",
        USUAL,
        THREE_TWO,
        "It costs ",
        "67 % more disk for no sure gain is not bought",
    ),
    Case(
        "payments",
        ZONES,
        "three_az_cloud",
        Goals(
            loss_probability_per_year=1e-5,
            write_unavailability=1e-3,
            survive="rack",
            acked_records_lost_per_year=100.0,
        ),
        THREE_TWO,
        "With acks=1: data loss",
        "the usual setting for money; beyond it only a second cluster helps",
    ),
    Case(
        "metrics",
        ZONES,
        "three_az_cloud",
        LOOSE,
        THREE_TWO,
        "RF 1, min.insync.replicas 1, acks=all meets the goals too, with",
        "cheaper settings are named with what they risk; none is taken in silence",
        topics=(topic("metrics", [(1, 2, 3), (4, 5, 6)], 2), topic("orders", [(1, 2, 3)], 2)),
    ),
    Case(
        "producers with acks=1",
        ZONES,
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "With acks=1: data loss",
        "acks=1 loses with every failed leader",
        topics=(topic("orders", [(1, 2, 3), (4, 5, 6)], 2),),
        current=Config(replication_factor=3, min_insync_replicas=2, acks=1, kafka_version="3.9"),
        version="3.9",
    ),
    Case(
        "Kafka 2.4",
        in_racks(3, 3),
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "RF 2 is too few for losing a rack",
        "the rule is older than KIP-966 and holds with ZooKeeper",
        version="2.4",
    ),
    Case(
        "Kafka 4.1",
        in_racks(3, 3),
        "three_az_cloud",
        RACK,
        THREE_TWO,
        "RF 2 is too few for losing a rack",
        "eligible leader replicas make the same setting safer",
        version="4.1",
    ),
)
NAMES = [case.name for case in CASES]


@cache
def advised(name: str) -> Recommendation:
    case = next(case for case in CASES if case.name == name)
    names = [case.topics[0].name] if name == "metrics" else None
    return recommend(
        Cluster(case.brokers, case.topics),
        load_model(case.card),
        Workload(partitions=12) if not case.topics else None,
        case.goals,
        case.current,
        case.version,
        names,
    )


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_recommendation_and_its_reason(case: Case) -> None:
    """The setting, the sentence that gives the reason, and no risk in silence."""
    advice = advised(case.name)
    assert advice.best.name == case.expected, case.operator
    assert any(case.reason in reason for reason in advice.why), case.operator
    assert advice.best.risks == ()
    if advice.best.meets_all and advice.topics:
        assert not any(row["planned_misses"] for row in advice.to_dict()["topics"])
    lowered = advice.plan.lowered
    assert all("min.insync.replicas" not in each for each in lowered)


def test_metrics_alone_change_nothing_else() -> None:
    """Goals of one topic: no broker defaults, and no other topic in commands or files."""
    advice = advised("metrics")
    files = advice.files()
    assert "server.properties" not in files
    assert not any("orders" in text for text in files.values())


SMALL = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 2, "minutes": 5},
            "restart": {"per_year": 12, "minutes": 8},
            "destroyed": {"per_year": 0.05, "hours": 12},
        },
        "rack": {"network": {"per_year": 0.1, "minutes": 60}},
    }
)


def best_of(case: Case, model: FailureModel, **goals: float) -> Config:
    wanted = replace(case.goals, **goals)
    cluster = Cluster({b: r for b, r in case.brokers.items() if b <= 6})
    load = Workload(partitions=12)
    advice = recommend(cluster, model, load, wanted, None, case.version)
    return advice.best.config.changed(kafka_version="4.1")


@pytest.mark.parametrize("case", CASES[:6], ids=NAMES[:6])
def test_no_number_of_a_card_decides_alone(case: Case) -> None:
    """The best setting is the same with any one number halved or doubled."""
    best = best_of(case, SMALL)
    for path, quantity in SMALL.quantities.items():
        for factor in (0.5, 2.0):
            other = SMALL.with_values({path: factor * quantity.value})
            assert best_of(case, other) == best, f"{path} times {factor}"


@pytest.mark.parametrize("case", CASES[:6], ids=NAMES[:6])
def test_a_goal_ten_times_as_strict_moves_one_step_at_most(case: Case) -> None:
    """From 1e-5 to 1e-6 for losses: at most one replica and one in min ISR more."""
    loose, strict = (best_of(case, SMALL, loss_probability_per_year=p) for p in (1e-5, 1e-6))
    steps = [
        (getattr(strict, name) or 0) - (getattr(loose, name) or 0)
        for name in ("replication_factor", "min_insync_replicas")
    ]
    assert all(abs(step) <= 1 for step in steps)
    assert loose.acks == strict.acks == "all"
