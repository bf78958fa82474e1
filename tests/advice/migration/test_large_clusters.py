"""Plans of large clusters: batches that Kafka takes, commands that a shell takes, quickly made."""

import cProfile
import json

import pytest

import advisor.advice.migration.planned_changes as planned_changes
from advisor.advice.migration.moves import plan_moves
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.planned_changes import MOST_MOVES
from advisor.cluster import Cluster, Partition, Topic
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

WANTED = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2)
LONGEST_ARGUMENT = 131_072
MOST_OF_KRAFT = 10_000


def cluster(brokers: int, topics: int, partitions: int, racks: int = 3) -> Cluster:
    """Topics of two replicas, that all have to be given a third one."""
    made = []
    for t in range(topics):
        first = [(t * partitions + p) % brokers for p in range(partitions)]
        lists = [(b, (b + 1) % brokers) for b in first]
        parts = tuple(Partition(p, r[0], r, r) for p, r in enumerate(lists))
        made.append(Topic(f"{'long.name' * 20}{t:05d}", parts))
    return Cluster({b: f"r{b % racks}" for b in range(brokers)}, tuple(made))


def test_a_broker_is_chosen_among_a_thousand_as_quickly_as_among_ten() -> None:
    """The calls for 20,000 moves hardly grow with brokers or racks; once it took seven times."""
    calls = {}
    for brokers, racks in ((12, 3), (1000, 3), (1000, 1000)):
        topics = cluster(brokers, 200, 100, racks).topics
        ids = {b: f"r{b % racks}" for b in range(brokers)}
        profile = cProfile.Profile()
        moves = profile.runcall(plan_moves, topics, ids, {topic.name: 3 for topic in topics})
        calls[brokers, racks] = sum(entry.callcount for entry in profile.getstats())
        assert len(moves) == 20_000
    assert max(calls.values()) < 2.0 * calls[12, 3]


def test_moves_come_in_batches_that_kafka_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is moved, awaited and elected on its own; together they are all moves, once."""
    assert MOST_MOVES <= MOST_OF_KRAFT
    monkeypatch.setattr(planned_changes, "MOST_MOVES", 7)
    plan = make_plan(cluster(9, 4, 5), WANTED, Workload(partitions=20))
    read = {name: json.loads(text) for name, text in plan.files.items() if name.endswith("json")}
    assert list(read) == [
        f"{k}-{n}.json" for n in (1, 2, 3) for k in ("reassign", "rollback", "election")
    ]
    for kind in ("reassign", "rollback", "election"):
        rows = [row for n in (1, 2, 3) for row in read[f"{kind}-{n}.json"]["partitions"]]
        assert [(row["topic"], row["partition"]) for row in rows] == [
            (m.topic, m.partition) for m in plan.moves
        ]
    steps = [line for line in plan.steps if ".json" in line]
    assert [next(n for n in (1, 2, 3) if f"-{n}.json" in line) for line in steps] == [
        1,
        1,
        1,
        2,
        2,
        2,
        3,
        3,
        3,
    ]
    assert [" = 7" in steps[at] for at in (1, 4, 7)] == [True, True, False]
    back = [line for line in plan.rollback if "--execute" in line]
    assert ["rollback-3" in back[0], "rollback-2" in back[1], "rollback-1" in back[2]] == [True] * 3
    assert sum("--cancel" in line for line in plan.rollback) == 3


def test_no_command_is_longer_than_the_shell_takes() -> None:
    """Thousands of long names are described by several commands, all names once."""
    described = cluster(9, 1000, 1)
    plan = make_plan(described, WANTED, Workload(partitions=1000))
    assert max(len(line.encode()) for line in (*plan.lines, *plan.rollback)) < LONGEST_ARGUMENT
    lines = [line for line in plan.verify if "--describe --topic" in line]
    names = "|".join(line.split("--topic ")[1].strip("'").replace("\\.", ".") for line in lines)
    assert names.split("|") == [topic.name for topic in described.topics]
    assert len(lines) > 1
