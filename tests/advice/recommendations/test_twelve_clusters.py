"""Clusters as operators run them: what is recommended, by the rule in the open, and no accident."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import pytest

from advisor.advice import Goals, Recommendation, recommend
from advisor.advice.deciding import Decision
from advisor.advice.situation import Situation
from advisor.cluster import Cluster, Partition, Topic
from advisor.decision import Depth, ExactEvaluator
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.workload import Workload

ZONES = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
TWO_AND_A_HALF = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
USUAL = Goals()
RACK = Goals(survive="rack")
PRICE, MINUTES = 10_080.0, 525_600.0
WEEK = (3, 2)


@dataclass(frozen=True)
class Case:
    """One cluster, the RF and min ISR recommended, and why an operator would agree."""

    name: str
    brokers: dict[int, str]
    card: str
    expected: tuple[int, int]
    operator: str
    goals: Goals = USUAL
    topics: tuple[Topic, ...] = ()
    current: Config | None = None
    version: str | None = None


def topic(name: str, lists: list[tuple[int, ...]], min_isr: int) -> Topic:
    partitions = tuple(Partition(i, r[0], r, r) for i, r in enumerate(lists))
    return Topic(name, partitions, {"min.insync.replicas": str(min_isr)})


def in_racks(brokers: int, racks: int) -> dict[int, str]:
    return {broker: f"r{broker % racks}" for broker in range(1, brokers + 1)}


PAIRS = [(1, 2), (4, 5), (7, 8), (2, 6)]
ACKS_1 = Config(replication_factor=3, min_insync_replicas=2, acks=1, kafka_version="3.9")
CASES = (
    Case(
        "three brokers in one rack",
        in_racks(3, 1),
        "single_rack",
        WEEK,
        "what strikes the rack strikes every copy, but a leader that limps is alone with its tail",
    ),
    Case("three in three zones", in_racks(3, 3), "three_az_cloud", WEEK, "a zone may go", RACK),
    Case("six in three zones", ZONES, "three_az_cloud", WEEK, "a fourth shares a zone", RACK),
    Case("six in two data centres", in_racks(6, 2), "two_az", WEEK, "no RF gives both"),
    Case("two and a half", TWO_AND_A_HALF, "three_az_cloud", WEEK, "the third votes", RACK),
    Case(
        "nine with two replicas",
        in_racks(9, 3),
        "three_az_cloud",
        WEEK,
        "RF 2 cannot lose a broker without losing writes or records",
        topics=(topic("orders", PAIRS, 1),),
    ),
    Case("thirty on bare metal", in_racks(30, 5), "bare_metal_racks", WEEK, "no sure gain"),
    Case("fifty on bare metal", in_racks(50, 5), "bare_metal_racks", WEEK, "no sure gain"),
    Case("two brokers", {1: "a", 2: "b"}, "two_az", (2, 1), "min ISR 2 stops at any restart"),
    Case("Strimzi on spot", ZONES, "spot_instances", WEEK, "nodes go one at a time"),
    Case(
        "payments",
        ZONES,
        "three_az_cloud",
        WEEK,
        "the usual setting for money; beyond it only a second cluster helps",
        Goals(minutes_per_loss=40_320.0, survive="rack"),
    ),
    Case(
        "metrics",
        ZONES,
        "three_az_cloud",
        WEEK,
        "what is well is kept",
        topics=(topic("metrics", [(1, 2, 3), (4, 5, 6)], 2), topic("orders", [(1, 2, 3)], 2)),
    ),
    Case(
        "producers with acks=1",
        ZONES,
        "three_az_cloud",
        WEEK,
        "acks=1 loses with every failed leader",
        topics=(topic("orders", [(1, 2, 3), (4, 5, 6)], 2),),
        current=ACKS_1,
        version="3.9",
    ),
    Case("Kafka 2.4", in_racks(3, 3), "three_az_cloud", WEEK, "older than KIP-966", version="2.4"),
    Case("Kafka 4.1", in_racks(3, 3), "three_az_cloud", WEEK, "safer with ELR", version="4.1"),
)
NAMES = [case.name for case in CASES]


@cache
def advised(name: str, partitions: int = 12) -> Recommendation:
    case = next(case for case in CASES if case.name == name)
    return recommend(
        Cluster(case.brokers, case.topics),
        load_model(case.card),
        Workload(partitions=partitions) if not case.topics else None,
        case.goals,
        case.current,
        case.version,
        [case.topics[0].name] if name == "metrics" else None,
    )


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_recommendation(case: Case) -> None:
    """The setting, acks=all, never fewer replicas, nothing lowered without consent."""
    advice = advised(case.name)
    config = advice.best.config
    assert (config.replication_factor, config.min_insync_replicas) == case.expected, case.operator
    assert config.acks == "all"
    for action in advice.quick_verdict.actions:
        assert action.after.replication_factor >= action.today.replication_factor
        assert action.after.config.acks == "all"
    assert advice.plan.lowered == ()
    assert len(str(advice.quick_verdict).split()) <= 60


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_rule_by_hand(case: Case) -> None:
    """Minutes without writes and losses of every min ISR, from `evaluate`, and the least of them.

    Each above the least of all, so that what no setting prevents does not hide the difference.
    """
    advice = advised(case.name)
    (action, *_) = advice.quick_verdict.actions
    chosen, price = action.after, case.goals.minutes_per_loss
    (question,) = (q for q in advice.decision.questions if q.topic == action.topic)
    amounts = {}
    for least in range(1, chosen.replication_factor + 1):
        config = chosen.config.changed(min_insync_replicas=least)
        result = evaluate(
            advice.cluster, config, advice.model, question.load, placement=chosen.placement
        )
        lost = -math.log1p(-result.loss_probability_per_year)
        amounts[least] = lost, result.write_unavailability * MINUTES
    floor = [min(values) for values in zip(*amounts.values(), strict=True)]
    cost = {
        least: minutes - floor[1] + price * (lost - floor[0])
        for least, (lost, minutes) in amounts.items()
    }
    cheapest = min(cost, key=lambda least: cost[least])
    own = cost[chosen.min_insync_replicas]
    assert chosen.min_insync_replicas == cheapest or own - cost[cheapest] < max(10.0, 0.1 * own)
    # Of many topics, rare first losses that replica sets share are fitted.
    assert action.loss_after == pytest.approx(amounts[chosen.min_insync_replicas][0], rel=5e-3)
    assert action.refused_after == pytest.approx(amounts[chosen.min_insync_replicas][1], rel=1e-9)


@pytest.mark.parametrize("name", [NAMES[0], NAMES[2], NAMES[3], NAMES[8]])
def test_the_number_of_partitions_changes_nothing(name: str) -> None:
    """Partitions that lose at the same moment are one loss."""
    choices = {str(advised(name, number).best.name) for number in (1, 12, 120)}
    assert len(choices) == 1


def test_a_lower_min_isr_waits_for_consent() -> None:
    """Min ISR 3 of 3 stops writes at every restart: 2 is better, and its command is held back."""
    strict = Cluster(ZONES, (topic("orders", [(1, 2, 3), (4, 5, 6)], 3),))
    card = load_model("three_az_cloud")
    held, allowed = (recommend(strict, card, allow_lower_durability=yes) for yes in (False, True))
    for advice, waits in ((held, True), (allowed, False)):
        (action,) = advice.quick_verdict.actions
        assert (action.after.min_insync_replicas, action.held_back) == (2, waits)
        command = "--entity-name orders --add-config min.insync.replicas=2"
        assert any(command in line for line in advice.commands()) != waits
        assert bool(advice.plan.held_back) == waits


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
            "lag": {"per_year": 10, "minutes": 10},
            "destroyed": {"per_year": 0.05, "hours": 12},
        },
        "rack": {"network": {"per_year": 0.1, "minutes": 60}},
    }
)
SMALL_CASES = [case for case in CASES if len(case.brokers) <= 6 and case.version is None][:5]


@pytest.mark.parametrize("case", SMALL_CASES, ids=[case.name for case in SMALL_CASES])
def test_no_number_of_a_card_decides_unnamed(case: Case) -> None:
    """Halved or doubled, any one number leaves the choice, or `depends_on` names it."""
    cluster, load = Cluster(case.brokers), Workload(partitions=12)
    situation = Situation.read(cluster, load, "4.1")
    today = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=3, acks="all")

    def decision(model: FailureModel) -> Decision:
        return Decision(situation, model, case.goals.requirements, new_topic=today)

    whole = decision(SMALL).answered(
        ExactEvaluator(cluster, SMALL, 0), Depth(draws=False, others=False)
    )
    assert whole.choice is not None
    assert whole.choice.depends_on is not None
    changing = set()
    for path, quantity in SMALL.quantities.items():
        for factor in (0.5, 2.0):
            other = decision(SMALL.with_values({path: factor * quantity.value}))
            if other.at_middle.actions[0].after.key != whole.actions[0].after.key:
                changing.add(path)
    assert changing == set(whole.choice.depends_on)
