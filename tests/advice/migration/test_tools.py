"""Command lines and files that a real Kafka of each version takes."""

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from advisor.advice.migration.other_clients import spring_producer
from advisor.advice.migration.plan import MigrationPlan, make_plan
from advisor.advice.migration.properties import (
    broker_properties,
    in_flight,
    java_producer,
    librdkafka_producer,
    strimzi_topics,
)
from advisor.advice.migration.tools import Tools
from advisor.cluster import Cluster, Partition, Topic
from advisor.cluster.observed import Observed, Setting
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
WANTED = Config(replication_factor=3, min_insync_replicas=2, acks="all", kafka_version="4.1")


def topic(name: str, *replicas: tuple[int, ...], **configs: str) -> Topic:
    partitions = tuple(Partition(i, r[0], r, r) for i, r in enumerate(replicas))
    return Topic(name, partitions, {k.replace("_", "."): v for k, v in configs.items()})


def plan(*topics: Topic, config: Config = WANTED) -> MigrationPlan:
    return make_plan(Cluster(SIX, topics), config, Workload(partitions=6))


def position(lines: tuple[str, ...], *words: str) -> int:
    """Find the only line that holds all the words."""
    (found,) = [i for i, line in enumerate(lines) if all(word in line for word in words)]
    return found


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("4.1", "kafka-configs.sh --bootstrap-server $BS --alter --entity-type topics"),
        ("2.5", "kafka-configs.sh --bootstrap-server $BS --alter --entity-type topics"),
        ("2.4", "kafka-configs.sh --zookeeper $ZK --alter --entity-type topics"),
        ("0.9.0", "kafka-configs.sh --zookeeper $ZK --alter --entity-type topics"),
        ("0.8.2", "kafka-topics.sh --zookeeper $ZK --alter --topic orders --config"),
    ],
)
def test_min_isr_is_set_with_the_tool_of_the_version(version: str, expected: str) -> None:
    """Topic settings took --bootstrap-server in 2.5 and had a tool of their own from 0.9."""
    line = Tools(version).alter_topic("orders", {"min.insync.replicas": "2"}).text
    assert line.startswith(expected)
    assert "min.insync.replicas=2" in line
    assert "orders" in shlex.split(line)


def test_first_version_of_bootstrap_server_in_each_tool() -> None:
    """The topics tool in 2.2, preferred election in 2.4, reassignment in 2.6, throttle 0.10.1."""
    assert "--zookeeper" in Tools("2.1").describe("t").text
    assert "--bootstrap-server" in Tools("2.2").describe("t").text
    assert Tools("2.3").elect_preferred("f").text.startswith("kafka-preferred-replica-election.sh")
    assert "--election-type preferred" in Tools("2.4").elect_preferred("f").text
    assert "--zookeeper" in Tools("2.5").reassign("f", 1000).text
    assert "--bootstrap-server" in Tools("2.6").reassign("f", 1000).text
    assert "--throttle" not in Tools("0.10.0").reassign("f", 1000).text
    assert "--throttle 1000" in Tools("0.10.1").reassign("f", 1000).text
    assert Tools("2.5").cancel_reassignment("f") is None
    assert "--additional" not in Tools("2.5").reassign("f", 1000, instead=True).text
    assert "--additional" in Tools("2.6").reassign("f", 1000, instead=True).text
    assert Tools("1.0").alter_default("min.insync.replicas", "2") is None


@pytest.mark.parametrize("version", ["0.8.2", "0.10.1", "1.1", "2.1", "2.3", "2.5", "2.8", "4.1"])
def test_every_variable_used_is_set(version: str) -> None:
    """Each block, which is copied for itself, sets the shell variables that it uses; once."""
    changed = plan(topic("t", (1,)), config=WANTED.changed(kafka_version=version))
    created = make_plan(Cluster(SIX), WANTED.changed(kafka_version=version), Workload())
    for made in (changed, created):
        blocks = made.preflight, made.steps, made.verify, made.rollback, tuple(made.lines)
        for lines in blocks:
            for name in ("BS", "ZK"):
                uses = [n for n, s in enumerate(lines) if f"${name}" in s and s[0] != "#"]
                sets = [n for n, line in enumerate(lines) if line.startswith(f"{name}=")]
                assert len(sets) <= 1
                assert not uses or (sets and sets[0] < uses[0]), (name, lines)


def test_a_new_topic_is_created() -> None:
    """A cluster without topics gets one with the recommended settings."""
    made = make_plan(Cluster(SIX), WANTED, Workload(partitions=6))
    line = made.steps[position(made.steps, "--create")]
    assert "--partitions 6 --replication-factor 3 --config min.insync.replicas=2" in line
    assert "reassign.json" not in made.files


def test_min_isr_alone_needs_no_moves() -> None:
    """A topic that only lacks the min ISR gets one line; the rollback restores the value."""
    made = plan(topic("t", (1, 2, 3), min_insync_replicas="1"))
    assert made.moves == ()
    assert position(made.steps, "--entity-name t", "min.insync.replicas=2") >= 0
    assert position(made.rollback, "--entity-name t", "min.insync.replicas=1") >= 0


def test_an_unset_min_isr_is_unset_again() -> None:
    """The rollback of a setting that was absent removes it; what was set needs no function."""
    made = plan(topic("t", (1, 2, 3)))
    line = made.rollback[position(made.rollback, "--delete-config min.insync.replicas")]
    assert line.startswith("unset_option kafka-configs.sh ")
    stated = plan(topic("t", (1, 2, 3), min_insync_replicas="1"))
    assert not any("unset_option" in line for line in stated.rollback)
    older = Tools("0.8.2").unset_topic("t", "k").text
    assert older.endswith("--delete-config k")
    assert Tools("0.8.1").unset_topic("t", "k").text.endswith("--deleteConfig k")


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ("echo Completed", 0, "Completed"),
        ("echo 'Invalid config(s): min.insync.replicas' >&2; exit 1", 0, "not set; going on"),
        ("echo 'Timed out waiting for a node' >&2; exit 1", 1, "Timed out waiting"),
    ],
)
def test_a_rollback_goes_on_only_where_nothing_was_set(
    tmp_path: Path, answer: str, code: int, said: str
) -> None:
    """Any other error of the tool stops the script, and is shown."""
    (tmp_path / "kafka-configs.sh").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "kafka-configs.sh").chmod(0o755)
    script = tmp_path / "rollback.sh"
    script.write_text(plan(topic("t", (1, 2, 3))).scripts["rollback.sh"] + "echo the end\n")
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    run = subprocess.run(["sh", script], capture_output=True, text=True, env=path, check=False)
    assert run.returncode == code
    assert said in run.stdout + run.stderr
    assert ("the end" in run.stdout) is (code == 0)


def test_before_kip_73_nothing_is_said_of_a_throttle() -> None:
    """0.10.0 cannot throttle moves: neither the commands nor the comments have a throttle."""
    for version in ("0.9", "0.10.0", "0.10.1"):
        made = plan(topic("t", (1,)), config=WANTED.changed(kafka_version=version))
        text = "\n".join((*made.lines, *made.rollback))
        assert ("--throttle" in text) is (version == "0.10.1")
        assert ("cannot throttle" in text) is (version != "0.10.1")
        assert ("removes the throttle" in text) is (version == "0.10.1")


def test_the_first_release_has_none_of_the_tools() -> None:
    """0.8.0 has no kafka-topics.sh: its script says so and stops before anything else."""
    first = Config(replication_factor=3, acks="all", kafka_version="0.8.0")
    made = plan(topic("t", (1,)), config=first)
    for lines in (made.preflight, made.rollback):
        assert "other tools than these: upgrade" in lines[0]
        assert lines[1] == "command -v kafka-topics.sh"
    assert (
        plan(topic("t", (1,)), config=first.changed(kafka_version="0.8.1")).rollback[0]
        != (made.rollback[0])
    )


@pytest.mark.parametrize(("version", "number"), [("0.10.2", 1), ("0.11", 1), ("1.0", 5)])
def test_requests_in_flight_keep_the_order(version: str, number: int) -> None:
    """Before idempotence only one request in flight keeps the order under retries."""
    config = WANTED.changed(kafka_version=version, retries=10)
    setting = f"max.in.flight.requests.per.connection={number}\n"
    java = java_producer(config).text
    assert setting in java
    assert setting in librdkafka_producer(config).text
    assert ("can write a record twice" in java) is (version == "0.10.2")
    spring = yaml.safe_load(spring_producer(config).text)["spring"]["kafka"]["producer"]
    assert spring["properties"]["max.in.flight.requests.per.connection"] == number
    assert not any(str(key).startswith("#") for key in (*spring, *spring["properties"]))
    own = config.changed(max_in_flight_requests_per_connection=3)
    assert in_flight(own) == min(3, number) if version != "0.10.2" else 3
    assert in_flight(WANTED.changed(kafka_version="0.10.2", retries=0)) == 5


def test_the_rollback_first_calls_off_what_is_being_copied() -> None:
    """The copy and its throttle are what hurts; then the settings, then the way back."""
    made = plan(topic("t", (1,), (2,)))
    order = [
        position(made.rollback, "--cancel"),
        position(made.rollback, "--delete-config min.insync.replicas"),
        position(made.rollback, "--execute"),
    ]
    assert order == sorted(order)


def test_a_rollback_has_no_heading_without_lines() -> None:
    """Moves alone put no setting back; nothing done is nothing to undo, and is said."""
    heading = "# Rollback of the settings, with all replicas in sync:"
    moved = plan(topic("t", (1,), (2,), min_insync_replicas="2")).rollback
    assert heading not in moved
    assert "# Move back:" in moved
    nothing = plan(topic("t", (1, 2, 3), min_insync_replicas="2")).rollback
    assert heading not in nothing
    assert "# Nothing to undo here." in nothing
    assert heading in plan(topic("t", (1, 2, 3))).rollback


def test_replicas_are_copied_before_min_isr_is_raised() -> None:
    """If replicas are added: execute, verify, preferred election, then min ISR."""
    made = plan(topic("t", (1,), (2,)))
    order = [
        position(made.steps, "--execute"),
        position(made.steps, "--verify"),
        position(made.steps, "--election-type preferred"),
        position(made.steps, "--entity-name t", "min.insync.replicas=2"),
    ]
    assert order == sorted(order)
    assert {"reassign.json", "rollback.json", "election.json"} <= made.files.keys()
    for line in (*made.lines, *made.rollback):
        for word in shlex.split(line, comments=True):
            assert not word.endswith(".json") or word in made.files


def test_copied_bytes_and_time_are_stated() -> None:
    """One copy of two partitions each on a broker of its own: bytes of both, time of one."""
    load = Workload(partitions=2, records_per_second=2.0, record_bytes=1000, retention_hours=100.0)
    grown = topic("t", (1, 2), (4, 5), min_insync_replicas="2")
    inner = topic("__consumer_offsets", (1, 2), min_insync_replicas="2")
    for throttle, time in ((50_000, "2 hours"), (60_000, "100 minutes")):
        made = make_plan(Cluster(SIX, (grown, inner)), WANTED, load, throttle)
        (line,) = [line for line in made.steps if "takes at least" in line]
        assert "is 720 MB, Kafka's own topics aside" in line
        assert line.endswith(f"takes at least {time}.")
    alone = make_plan(Cluster(SIX, (inner,)), WANTED, load)
    assert not any("takes at least" in line for line in alone.steps)


def test_replicas_in_one_rack_are_spread() -> None:
    """A topic with enough replicas in one rack is still moved over the racks."""
    made = plan(topic("t", (1, 4, 2), min_insync_replicas="2"))
    (move,) = made.moves
    assert sorted(str(SIX[broker]) for broker in move.after) == ["a", "b", "c"]
    assert move.copies == 1


def test_elr_warning_depends_on_the_version() -> None:
    """Changing min ISR clears the ELR: the plan says so from 4.1 on."""
    new = plan(topic("t", (1,)))
    old = plan(topic("t", (1,)), config=WANTED.changed(kafka_version="3.9"))
    assert any("clears the eligible leader replicas" in line for line in new.preflight)
    assert not any("clears the eligible leader replicas" in line for line in old.preflight)


@pytest.mark.parametrize("on", ["true", "TRUE"])
def test_unclean_election_is_switched_off_where_it_is_on(on: str) -> None:
    """Set on the topic, in any case, or by default before 0.11, it is set to false and back."""
    wanted = WANTED.changed(unclean_leader_election_enable=False)
    key = "unclean.leader.election.enable"
    stated = topic("t", (1, 2, 3), unclean_leader_election_enable=on, min_insync_replicas="2")
    made = plan(stated, config=wanted)
    assert position(made.steps, f"{key}=false") >= 0
    assert position(made.rollback, f"{key}={on}") >= 0
    silent = topic("t", (1, 2, 3), min_insync_replicas="2")
    old = plan(silent, config=wanted.changed(kafka_version="0.10.2"))
    assert position(old.steps, f"{key}=false") >= 0
    assert not any(key in line for line in plan(silent, config=wanted).steps)


def test_nothing_to_do_is_said() -> None:
    """A topic that is as recommended gets no command except the brokers' default."""
    made = plan(topic("t", (1, 2, 3), min_insync_replicas="2"))
    assert made.steps[0] == "# Nothing to change: every topic has these settings already."


def test_java_producer_names_idempotence() -> None:
    """Idempotence is explicit with acks=all, absent otherwise, and bounds max.in.flight."""
    assert "enable.idempotence=true\n" in java_producer(WANTED).text
    assert "enable.idempotence" not in java_producer(WANTED.changed(acks=1)).text
    first = java_producer(WANTED.changed(kafka_version="0.11.0", retries=3)).text
    assert "max.in.flight.requests.per.connection=1\n" in first
    assert "delivery.timeout.ms" not in first
    assert "enable.idempotence=true\n" in librdkafka_producer(WANTED).text
    assert "retries=0\n" in librdkafka_producer(WANTED.changed(retries=0)).text


def test_producer_properties_round_trip() -> None:
    """The properties, read back as a configuration, give the same configuration."""
    lines = java_producer(WANTED).text.splitlines()[1:]
    read = {key.replace(".", "_"): value for key, value in (line.split("=") for line in lines)}
    options = {
        key: value if key == "acks" else value == "true" if value == "true" else int(value)
        for key, value in read.items()
    }
    again = Config(replication_factor=3, min_insync_replicas=2, kafka_version="4.1", **options)
    assert again == WANTED


def test_strimzi_names_are_valid_and_distinct() -> None:
    """Names that Kubernetes refuses go into topicName, and no two resources share a name."""
    made = strimzi_topics([("a_b", 1), ("a-b", 2), ("A.b", 3), ("___", 1)], WANTED).text
    documents = list(yaml.safe_load_all(made))
    names = [d["metadata"]["name"] for d in documents]
    assert names == ["a-b", "a-b-2", "a.b", "topic"]
    assert [d["spec"].get("topicName", d["metadata"]["name"]) for d in documents] == [
        "a_b",
        "a-b",
        "A.b",
        "___",
    ]
    assert documents[0]["spec"]["replicas"] == 3
    assert documents[0]["spec"]["config"] == {"min.insync.replicas": 2}


def test_scripts_stop_at_errors_and_set_their_variables() -> None:
    """Both scripts use set -e and set the variables that they use."""
    made = plan(topic("t", (1,)))
    for lines in (made.lines, made.rollback):
        assert any(line.startswith("BS=${BS:-") for line in lines)


def test_the_wait_counts_moved_partitions() -> None:
    """The script continues when as many partitions are complete as the file names."""
    made = plan(topic("t", (1,), (2,), (3,)), topic("done", (1, 2, 3), min_insync_replicas="2"))
    wait = made.steps[position(made.steps, "--verify")]
    assert len(made.moves) == 3
    assert wait.startswith('until test "$(')
    assert wait.endswith(" = 3; do sleep 10; done")


def test_min_isr_waits_for_missing_replicas() -> None:
    """If one partition still lacks replicas, min ISR changes after the copies."""
    made = plan(topic("t", (1, 2, 3), (2,)))
    assert position(made.steps, "--execute") < position(made.steps, "--entity-name t")


def test_the_brokers_default_is_shown_and_not_run() -> None:
    """It is a comment there and back; with ELR it cannot be removed again."""
    cluster = Cluster(SIX, (topic("t", (1, 2, 3)),))
    old = make_plan(cluster, WANTED.changed(kafka_version="3.6"), Workload(partitions=6))
    new = make_plan(cluster, WANTED, Workload(partitions=6))
    for made in (old, new):
        assert made.steps[position(made.steps, "--entity-default")].startswith("#")
        assert made.rollback[position(made.rollback, "--entity-default")].startswith("#")
    assert "--delete-config" in old.rollback[position(old.rollback, "--entity-default")]
    assert "min.insync.replicas=1" in new.rollback[position(new.rollback, "--entity-default")]


def test_topic_names_are_escaped_in_patterns() -> None:
    """A dot in a topic name matches only a dot where the tool takes an expression."""
    assert Tools("4.1").describe("a.b", "c").text == (
        r"kafka-topics.sh --bootstrap-server $BS --describe --topic 'a\.b|c'"
    )
    assert (
        r"--topic 'a\.b' " in Tools("0.8.2").alter_topic("a.b", {"min.insync.replicas": "2"}).text
    )


def test_broker_properties_are_those_of_the_version() -> None:
    """The transaction log came with 0.11; the rest is older."""
    assert "default.replication.factor=3\n" in broker_properties(WANTED).text
    assert "transaction.state.log.min.isr=2\n" in broker_properties(WANTED).text
    assert "transaction" not in broker_properties(WANTED.changed(kafka_version="0.10.2")).text


def test_broker_properties_stop_topics_made_by_mistake() -> None:
    """As a comment, since some mean topics to be created that way; share groups came with 4.1."""
    text = broker_properties(WANTED).text
    assert "# auto.create.topics.enable=false\n" in text
    assert "share.coordinator.state.topic.replication.factor=3\n" in text
    assert "share.coordinator.state.topic.min.isr=2\n" in text
    assert "share" not in broker_properties(WANTED.changed(kafka_version="4.0")).text


def test_only_internal_topics_give_no_resources() -> None:
    """Then there is no file at all."""
    assert "kafka-topics.yaml" not in plan(topic("__consumer_offsets", (1,))).files
    head = plan(topic("t", (1,)), topic("__consumer_offsets", (1,))).files["kafka-topics.yaml"]
    assert [d["metadata"]["name"] for d in yaml.safe_load_all(head)] == ["t"]
    assert "only with Cruise Control" in head
    assert "in place of its kafka-configs.sh lines" in head


@pytest.mark.parametrize(("version", "again"), [("2.5", "with a higher"), ("4.1", "--additional")])
def test_the_throttle_is_to_be_above_what_is_written(version: str, again: str) -> None:
    """Else the copy never ends; where the load comes near it, a warning says so."""
    for rate, near in ((1.0, False), (3000.0, True)):
        load = Workload(partitions=2, records_per_second=rate, record_bytes=1000)
        described = Cluster(SIX, (topic("t", (1, 2), (4, 5), min_insync_replicas="2"),))
        config = WANTED.changed(kafka_version=version)
        made = make_plan(described, config, load, 2_000_000)
        assert "and above what producers write" in made.steps[position(made.steps, "# Copy 2")]
        assert again in made.steps[position(made.steps, "higher --throttle")]
        told = [line for line in made.steps if line.startswith("# Raise the throttle: ")]
        assert len(told) == near
        # Half of the load: either broker copies one of the two partitions.
        assert not near or "1.5 MB a second" in told[0]


def test_the_rollback_says_where_a_value_may_be_the_brokers() -> None:
    """A description shows both since 2.2, and setting it on the topic pins what was inherited."""
    both = topic("t", (1, 2, 3), min_insync_replicas="1")
    line = "--entity-name my-topic --delete-config min.insync.replicas"
    (told,) = [each for each in plan(both).rollback if line in each]
    assert told.startswith("#   ")
    old = plan(both, config=WANTED.changed(kafka_version="2.1")).rollback
    none = plan(topic("t", (1, 2, 3))).rollback
    observed = Observed(
        mode="kraft",
        topic_settings={"t": {"min.insync.replicas": Setting("1", "DYNAMIC_TOPIC_CONFIG")}},
    )
    live = make_plan(Cluster(SIX, (both,), observed=observed), WANTED, Workload()).rollback
    for rollback in (old, none, live):
        assert not any(line in each for each in rollback)
