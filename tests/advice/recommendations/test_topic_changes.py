"""Each topic today and as planned: the verdict, the audit and the commands agree."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.__main__ import main
from advisor.advice import Goals, recommend
from advisor.advice.audits.topic_audit import Evaluate
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.topics_after_plan import crowded_broker_words
from advisor.advice.recommendations.topic_changes import unmet
from advisor.cluster import Cluster, Partition, Topic, load_cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 2, "minutes": 5},
            "destroyed": {"per_year": 0.01, "hours": 12},
        },
        "rack": {"network": {"per_year": 0.1, "minutes": 60}},
    }
)
GOALS = Goals(loss_probability_per_year=0.1, write_unavailability=1e-3, survive="rack")
TWO_AND_A_HALF = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}


def topic(name: str, *lists: tuple[int, ...], min_isr: int = 2) -> str:
    text = f"Topic: {name}\tPartitionCount: {len(lists)}\tReplicationFactor: {len(lists[0])}\t"
    text += f"Configs: min.insync.replicas={min_isr}\n"
    for index, replicas in enumerate(lists):
        ids = ",".join(map(str, replicas))
        text += f"\tTopic: {name}\tPartition: {index}\tLeader: {replicas[0]}\t"
        text += f"Replicas: {ids}\tIsr: {ids}\n"
    return text


ORDERS = topic("orders", (1, 2, 3, 4), (3, 4, 1, 2))
METRICS = topic("metrics", (1, 3, 5), (2, 4, 5))


def described(*topics: str, racks: dict[int, str] | None = None) -> Cluster:
    return load_cluster("".join(topics)).with_racks(racks or TWO_AND_A_HALF)


@pytest.mark.parametrize("allow", [False, True])
def test_no_plan_takes_replicas_away(allow: bool) -> None:
    """2 + 2 + 1: RF 4 survives no rack, RF 3 does; the four replicas stay, and it is said."""
    cluster = described(ORDERS, METRICS, METRICS.replace("metrics", "traces"))
    audited = advisor.audit(cluster, CARD, goals=GOALS)
    assert [t.topic.name for t in audited.topics if not t.ok] == ["orders"]
    load = Workload(partitions=6)
    advice = recommend(cluster, CARD, load, GOALS, allow_lower_durability=allow)
    assert advice.best.name == "RF 3, min.insync.replicas 2, acks=all"
    rows = {row["topic"]: row for row in advice.to_dict()["topics"]}
    assert rows["orders"]["today"] == rows["orders"]["planned"] == "RF 4, min ISR 2"
    assert rows["orders"]["today_misses"] == ["survive_without_loss"]
    assert not any(row["changes"] for row in rows.values())
    assert "# orders has 4 replicas and keeps them" in "\n".join(advice.commands())
    words = "After the change orders still misses the goal for losses in one failure."
    assert words in advice.caveats


def test_what_runs_with_more_replicas_is_not_told_to_have_fewer() -> None:
    """All topics have RF 4: RF 3 would meet the goals, and is named but not recommended."""
    load = Workload(partitions=2)
    advice = recommend(described(ORDERS), CARD, load, GOALS, allow_lower_durability=True)
    assert advice.best.name == "RF 5, min.insync.replicas 3, acks=all"
    words = "RF 3, min.insync.replicas 2, acks=all meets the goals too, with "
    (why,) = [reason for reason in advice.why if reason.startswith(words)]
    assert why.endswith("no plan takes replicas away, or leaves one where two brokers are.")


def test_a_topic_of_mixed_replication_factors_gets_its_largest() -> None:
    """Partitions with 1, 2 and 3 replicas, and a plan for RF 2: all get three, none gives one."""
    cluster = Cluster(
        {1: "a", 2: "b", 3: "c"},
        (
            Topic("mixed", (Partition(0, 1, (1,), (1,)), Partition(1, 1, (1, 2, 3), (1, 2, 3)))),
            Topic("__consumer_offsets", (Partition(0, 1, (1,), (1,)),)),
            Topic("rich", (Partition(0, 1, (1, 2, 3), (1, 2, 3)),)),
        ),
    )
    config = Config(replication_factor=2, min_insync_replicas=1)
    plan = make_plan(cluster, config, Workload(partitions=2))
    after = {t.name: [len(p.replicas) for p in t.partitions] for t in plan.after}
    assert after == {"mixed": [3, 3], "__consumer_offsets": [3], "rich": [3]}


def test_the_plan_passes_the_audit_that_blames_today() -> None:
    """The cluster as the plan leaves it, audited by `audit`, says what the plan said."""
    cluster = described(ORDERS, METRICS)
    advice = recommend(cluster, CARD, Workload(partitions=4), GOALS)
    after = Cluster(cluster.brokers, advice.plan.after)
    audited = advisor.audit(after, CARD, goals=GOALS)
    said = {change.name: set(unmet(change.planned)) for change in advice.topic_changes}
    assert {t.topic.name: set(t.choice.unmet) for t in audited.topics} == said
    today = advisor.audit(cluster, CARD, goals=GOALS)
    said = {change.name: set(unmet(change.today)) for change in advice.topic_changes}
    assert {t.topic.name: set(t.choice.unmet) for t in today.topics} == said


def test_more_replicas_that_meet_the_goals_are_kept() -> None:
    """A topic with more replicas than needed and no goal missed keeps them."""
    racks = {1: "a", 2: "b", 3: "c", 4: "d"}
    usual = topic("usual", (1, 2, 3), (2, 3, 4))
    cluster = described(topic("rich", (1, 2, 3, 4), min_isr=3), usual, racks=racks)
    goals = Goals(loss_probability_per_year=0.1, write_unavailability=1e-3)
    advice = recommend(cluster, CARD, Workload(partitions=3), goals)
    assert advice.best.config.replication_factor == 3
    assert "# rich has 4 replicas and keeps them" in "\n".join(advice.commands())
    change = next(change for change in advice.topic_changes if change.name == "rich")
    assert not change.changes
    assert "RF 4" in change.row()["planned"]


def test_a_goal_still_missed_is_in_the_verdict() -> None:
    """A topic that keeps more replicas, and misses with either number, is named."""
    cluster = described(topic("rich", (1, 2, 3, 4), min_isr=4))
    loose = {"loss_probability_per_year": 1.0, "write_unavailability": 1e-5}
    advice = recommend(cluster, CARD, Workload(partitions=1), Goals(**loose))
    (change,) = advice.topic_changes
    assert unmet(change.today) == ("write_unavailability",)
    assert advice.best.meets_all
    assert ("After the change" in " ".join(advice.caveats)) == bool(unmet(change.planned))
    few = replace(advice, cluster=advice.cluster)
    object.__setattr__(few, "topic_changes", (replace(change, planned=change.today),))
    assert few.caveats[-1] == "After the change rich still misses the goal for time without writes."
    assert few.verdict.startswith("No, ")


def test_the_arbiters_broker_gets_everything() -> None:
    """2 + 2 + 1 with three replicas: said in the reasons and before the first command."""
    advice = recommend(described(METRICS), CARD, Workload(partitions=2), GOALS)
    words = "Every partition then has a replica on broker 5, the only one of rack c"
    assert any(reason.startswith(words) for reason in advice.why)
    assert advice.commands()[0].startswith(f"# {words}")


@pytest.mark.parametrize(
    ("racks", "factor", "crowded"),
    [
        ({1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}, 3, True),
        ({1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}, 2, False),
        ({1: "a", 2: "b", 3: "c"}, 3, False),
        ({1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}, 3, False),
        ({1: "a", 2: "a", 3: "b", 4: "b", 5: None}, 3, False),
        ({1: "a", 2: "a", 3: "b"}, 2, True),
    ],
)
def test_a_rack_with_one_broker(racks: dict[int, str], factor: int, crowded: bool) -> None:
    """A new topic fills it where there are as many replicas as racks, and other racks have more."""
    config = Config(replication_factor=factor, min_insync_replicas=1)
    assert bool(crowded_broker_words((), Cluster(racks), config)) == crowded


def test_today_stands_beside_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of the command line: each topic, today's setting, the plan's, and the goals."""
    card, source = tmp_path / "card.toml", tmp_path / "describe.txt"
    numbers = ("per_year = { value = 0.1", "hours = { value = 12")
    lines = (f'{number}, evidence = "own: a test" }}' for number in numbers)
    card.write_text("\n".join(["[broker.destroyed]", *lines, ""]))
    source.write_text(topic("a", (1, 2, 3), min_isr=1) + topic("b", (1,), min_isr=1))
    line = ["recommend", str(source), "--model", str(card), "--loss-probability-per-year", "0.01"]
    assert main(line) == 0
    table = [x.split("  ") for x in capsys.readouterr().out.splitlines()]
    rows = {cells[0]: [c.strip() for c in cells if c.strip()] for cells in table if len(cells) > 3}
    assert rows["topic"][2:] == ["today", "goals", "with this plan", "goals"]
    assert rows["a"][2:] == ["RF 3, min ISR 1", "met", "RF 3, min ISR 2", "met"]
    assert rows["b"][2] == "RF 1, min ISR 1"
    assert rows["b"][3].startswith("missed: losses")
    assert rows["b"][4:] == ["RF 3, min ISR 2", "met"]


def test_what_the_plan_does_not_change_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today and as planned are one question for METRICS and two for ORDERS, of one evaluator."""
    asked: list[tuple[int, int]] = []
    made = []

    def counting() -> Evaluate:
        evaluated = topic_evaluator()
        made.append(evaluated)

        def found(cluster: Cluster, config: Config, *rest: Any, **named: Any) -> Reliability:
            asked.append((config.replication_factor or 0, len(named["placement"])))
            return evaluated(cluster, config, *rest, **named)

        return found

    monkeypatch.setattr("advisor.advice.recommendations.topic_changes.topic_evaluator", counting)
    load = Workload(partitions=4)
    orders = topic("orders", (1, 3), (2, 5))
    advice = recommend(described(orders, METRICS), CARD, load, GOALS, allow_lower_durability=True)
    changes = {change.name: change for change in advice.topic_changes}
    assert (changes["orders"].changes, changes["metrics"].changes) == (True, False)
    assert sorted(asked) == [(2, 2), (3, 2), (3, 2)]
    assert len(made) == 1
    metrics = changes["metrics"]
    assert metrics.today[0].choice.reliability is metrics.planned[0].choice.reliability
