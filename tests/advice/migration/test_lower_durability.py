"""Plans that lower durability: what may never be lowered, and what needs to be asked for."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from advisor.__main__ import main
from advisor.advice import recommend
from advisor.advice.migration.plan import MigrationPlan, make_plan
from advisor.advice.migration.planned_changes import ALLOW, lowered_min_isr, with_usual_floor
from advisor.cluster import Cluster, Partition, Topic, load_cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=1)
CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}})
LOOSE = Config(replication_factor=1, min_insync_replicas=1, acks=1, kafka_version="4.1")
INTERNAL = ("__consumer_offsets", "__transaction_state")


def topic(name: str, replicas: tuple[int, ...], min_isr: int | None) -> Topic:
    configs = {} if min_isr is None else {"min.insync.replicas": str(min_isr)}
    return Topic(name, (Partition(0, replicas[0], replicas, replicas),), configs)


def planned(
    brokers: int, *topics: Topic, config: Config = LOOSE, **options: object
) -> MigrationPlan:
    cluster = Cluster({b: f"r{b}" for b in range(1, brokers + 1)}, topics)
    return make_plan(cluster, config, LOAD, **options)


def defaults(plan: MigrationPlan) -> dict[str, int]:
    lines = plan.files["server.properties"].splitlines()
    pairs = (line.split("=") for line in lines if not line.startswith("#"))
    return {key: int(value) for key, value in pairs}


def settled(plan: MigrationPlan) -> dict[str, tuple[int, int | None]]:
    return {t.name: (t.replication_factor, t.min_insync_replicas) for t in plan.after}


def resources(plan: MigrationPlan) -> dict[str, tuple[int, int]]:
    documents = yaml.safe_load_all(plan.files["kafka-topics.yaml"])
    return {
        d["spec"].get("topicName", d["metadata"]["name"]): (
            d["spec"]["replicas"],
            d["spec"]["config"]["min.insync.replicas"],
        )
        for d in documents
    }


@pytest.mark.parametrize(
    ("brokers", "factor", "least"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (6, 3, 2)]
)
def test_loose_goals_leave_defaults_and_internal_topics_at_three(
    brokers: int, factor: int, least: int
) -> None:
    """RF 1 for the user's topics: Kafka's own and those to come get RF 3 and min ISR 2."""
    plan = planned(brokers, *(topic(name, (1,), None) for name in INTERNAL), topic("t", (1,), None))
    assert defaults(plan) == {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": least,
    }
    assert settled(plan) == {"t": (1, 1), **dict.fromkeys(INTERNAL, (factor, least))}
    # With a resource, Kubernetes could delete an internal topic.
    assert resources(plan) == {"t": (1, 1)}
    moved = {move.topic: len(move.after) for move in plan.moves}
    assert moved == ({} if factor == 1 else dict.fromkeys(INTERNAL, factor))
    assert plan.lowered == ()


def test_a_plan_for_some_topics_leaves_the_brokers_alone() -> None:
    """No server.properties, no default, neither there nor back; nor if it changes a topic."""
    both = topic("metrics", (1, 2, 3), 2), topic("orders", (1, 2, 3), 2)
    plan = planned(3, *both, topics=["metrics"])
    assert "server.properties" not in plan.files
    text = "\n".join([*plan.lines, *plan.rollback])
    assert "--entity-default" not in text
    assert "orders" not in text
    assert "server.properties" in planned(3, *both).files


@given(
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(["all", 1, 0]),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_no_drawn_plan_lowers_internal_topics(
    brokers: int, factor: int, least: int, acks: object, held: int, stated: int | None
) -> None:
    """Whatever is recommended, and whatever they have: three brokers mean RF 3 and min ISR 2."""
    factor, held = min(factor, brokers), min(held, brokers)
    config = LOOSE.changed(replication_factor=factor, min_insync_replicas=min(least, factor))
    config = config.changed(acks=acks)
    usual = with_usual_floor(config, brokers)
    inner = topic(INTERNAL[0], tuple(range(1, held + 1)), stated)
    plan = planned(brokers, inner, config=config)
    assert (
        all(value >= (2 if key.endswith("isr") else 3) for key, value in defaults(plan).items())
        or brokers < 3
    )
    assert usual.replication_factor >= min(3, brokers)
    assert usual.min_insync_replicas >= (2 if brokers >= 3 else 1)
    for reached, min_isr in settled(plan).values():
        assert reached >= held
        # A topic with more replicas than that keeps its settings too.
        if held <= usual.replication_factor and brokers >= 3:
            assert reached >= 3
            assert (min_isr or 1) >= 2
    after = {move.topic: len(move.after) for move in plan.moves}
    assert all(number >= held for number in after.values())


def test_what_is_lowered_is_named_first() -> None:
    """A lower min ISR is in the first line; a higher one is no news."""
    topics = topic("orders", (1, 2, 3), 2), topic("logs", (1, 2, 3), 1)
    loose = LOOSE.changed(replication_factor=3)
    plan = planned(3, *topics, config=loose)
    words = "topic orders: min.insync.replicas from 2 to 1"
    assert plan.lowered == (words,)
    assert plan.lines[0] == f"# This plan lowers durability ({words})."
    assert planned(3, *topics, config=loose.changed(min_insync_replicas=2)).lowered == ()


@pytest.mark.parametrize(
    ("held", "stated", "factor", "least", "lowers"),
    [
        (3, 2, 3, 1, True),
        (3, 3, 3, 2, True),
        (3, 5, 3, 2, True),
        (2, 2, 3, 2, False),
        (2, 3, 3, 2, False),
        (3, None, 3, 1, False),
        (1, 2, 3, 1, False),
    ],
)
def test_min_isr_counts_up_to_the_replicas(
    held: int, stated: int | None, factor: int, least: int, lowers: bool
) -> None:
    """A min ISR above the replication factor counts as the replication factor."""
    target = LOOSE.changed(replication_factor=factor, min_insync_replicas=least)
    assert bool(lowered_min_isr(topic("t", tuple(range(held)), stated), target)) == lowers


def described(*names: str) -> str:
    text = ""
    for name in names:
        text += f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: "
        text += "min.insync.replicas=3\n"
        text += f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    return text


# Disks are lost so often that every write stopped by one missing copy counts.
WORDS = "topic orders: min.insync.replicas from 3 to "


def test_what_lowers_is_held_back() -> None:
    """It is named, and written only with the flag, which says it first."""
    cluster = load_cluster(described("orders"))
    held = recommend(cluster, CARD, LOAD)
    (action,) = held.quick_verdict.actions
    assert action.after.min_insync_replicas < 3
    assert action.held_back
    words = f"{WORDS}{action.after.config.min_insync_replicas}"
    assert held.plan.held_back == (words,)
    for text in ("\n".join(held.commands()), held.files()["commands.sh"]):
        assert words in text
        assert ALLOW in text
        assert "--alter --entity-type topics" not in text
    data = held.to_dict()
    assert (data["held_back"], data["lowers_durability"]) == ([words], [])
    allowed = recommend(cluster, CARD, LOAD, allow_lower_durability=True)
    assert words in allowed.commands()[0]
    assert words in allowed.files()["commands.sh"].splitlines()[2]
    assert "--alter --entity-type topics --entity-name orders" in "\n".join(allowed.commands())


def test_what_guards_nothing_is_not_held_back() -> None:
    """Producers with acks=1 get acks=all with a lower min ISR: written, and not called lower."""
    cluster = load_cluster(described("orders"))
    today = Config(replication_factor=3, min_insync_replicas=3, acks=1, kafka_version="4.1")
    plan = recommend(cluster, CARD, LOAD, current=today).plan
    assert (plan.held_back, plan.lowered) == ((), ())
    assert any("--entity-name orders --add-config min.insync" in line for line in plan.steps)


def test_the_command_line_asks_for_the_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it the command is not in text and files, and both say why."""
    card, source, folder = tmp_path / "card.toml", tmp_path / "describe.txt", tmp_path / "out"
    numbers = ("per_year = { value = 1", "hours = { value = 12")
    lines = (f'{number}, evidence = "own: a test" }}' for number in numbers)
    card.write_text("\n".join(["[broker.destroyed]", *lines, ""]))
    source.write_text(described("metrics", "orders"))
    line = ["recommend", str(source), "--model", str(card), "--topic", "metrics"]
    assert main([*line, "--commands", "--files", str(folder)]) == 0
    text = capsys.readouterr().out
    for shown in (text, (folder / "commands.sh").read_text()):
        assert "Held back, because it lowers durability (topic metrics: " in shown
        assert ALLOW in shown
        assert "kafka-configs.sh --bootstrap-server $BS --alter" not in shown
    assert main([*line, ALLOW, "--files", str(tmp_path / "all")]) == 0
    written = (tmp_path / "all" / "commands.sh").read_text()
    assert "kafka-configs.sh --bootstrap-server $BS --alter" in written
    assert not (folder / "server.properties").exists()
    assert "orders" not in "".join(path.read_text() for path in folder.iterdir())
