"""Conversion of a running cluster's responses, without a cluster."""

import json
import shlex
import threading
import uuid
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.tools import Tools
from advisor.advice.situation import controller_of
from advisor.cluster import Cluster, load_cluster
from advisor.cluster.live import deadline
from advisor.cluster.live.client import BROKER, TOPIC, Answers, parse_setting
from advisor.cluster.live.deadline import run_with_timeout
from advisor.cluster.live.reader import cluster_from_answers, format_topic_id
from advisor.cluster.observed import DEFAULT, Observed, Quorum, Setting
from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from patience import PATIENCE_S
from read_cluster import state_of

MIN_ISR = {"min.insync.replicas": Setting("2", "DYNAMIC_TOPIC_CONFIG")}


def partition(index: int = 0, **changes: Any) -> dict[str, Any]:
    row = {
        "partition_index": index,
        "leader_id": 1,
        "leader_epoch": 7,
        "replica_nodes": [1, 2, 3],
        "isr_nodes": [1, 2],
        "eligible_leader_replicas": [3],
        "last_known_elr": [],
    }
    return {**row, **changes}


def topic(name: str, *partitions: dict[str, Any], error_code: int = 0) -> dict[str, Any]:
    return {"name": name, "error_code": error_code, "topic_id": None, "partitions": partitions}


def answers(**changes: Any) -> Answers:
    told: dict[str, Any] = {
        "topics": [topic("orders", partition())],
        "kraft": True,
        "racks": {1: "a", 2: "b", 3: None},
        "versions": {1: "4.1", 2: "4.1", 3: "4.1"},
        "features": {"metadata.version": 27},
        "features_known": True,
        "quorum": Quorum(9, 4, (7, 8, 9), (1, 2, 3)),
        "settings": {(TOPIC, "orders"): MIN_ISR},
    }
    return Answers(**{**told, **changes})


def test_responses_become_a_cluster() -> None:
    """Complete responses are converted without notes."""
    read = cluster_from_answers(answers(), "kafka:9092")
    (orders,) = read.topics
    (found,) = orders.partitions
    assert (found.leader, found.leader_epoch) == (1, 7)
    assert (found.replicas, found.isr) == ((1, 2, 3), (1, 2))
    assert (found.elr, found.last_known_elr) == ((3,), ())
    assert dict(orders.configs) == {"min.insync.replicas": "2"}
    assert dict(read.brokers) == {1: "a", 2: "b", 3: None}
    assert (read.kafka_version, read.source, read.notes) == ("4.1", "kafka:9092", ())


def test_voters_stand_where_the_brokers_of_their_ids_do() -> None:
    """Kafka reports no rack of a node that is no broker, and no voters under ZooKeeper."""
    read = cluster_from_answers(answers(), "kafka:9092")
    assert read.controllers == {7: None, 8: None, 9: None}
    told = answers(quorum=Quorum(1, 4, (1, 2, 9), (3,)))
    mixed = cluster_from_answers(told, "kafka:9092")
    assert mixed.controllers == {1: "a", 2: "b", 9: None}
    named = mixed.with_racks({9: "c", 2: "x"})
    assert (named.voters_by_rack, named.brokers[2]) == ({"a": 1, "c": 1, "x": 1}, "x")
    zookeeper = cluster_from_answers(answers(kraft=False, quorum=None), "kafka:9092")
    assert zookeeper.controllers is None
    refused = cluster_from_answers(answers(quorum=Quorum(None, 0, (), ())), "kafka:9092")
    assert refused.controllers is None


@pytest.mark.parametrize(
    "changes",
    [
        {"racks": {1: "c\ntouch HIT #"}},
        {"racks": {1: "\x1b[2J"}},
        {"cluster_id": "a\nb"},
        {"settings": {(TOPIC, "orders"): {"flush.ms": Setting("1\n2", "DYNAMIC_TOPIC_CONFIG")}}},
    ],
)
def test_an_answer_that_is_not_printable_is_refused(changes: dict[str, Any]) -> None:
    """Racks, ids and settings of a live cluster have no line breaks and control characters."""
    with pytest.raises(InputError) as caught:
        cluster_from_answers(answers(**changes), "kafka:9092")
    assert str(caught.value).isprintable()


def test_unknown_partition_fields_are_none() -> None:
    """Unknown leader, epoch and ELR are None; an empty ELR is empty."""
    row = partition(leader_id=-1, leader_epoch=-1, eligible_leader_replicas=None)
    (orders,) = cluster_from_answers(answers(topics=[topic("orders", row)]), "kafka:9092").topics
    (found,) = orders.partitions
    assert (found.leader, found.leader_epoch, found.elr) == (None, None, None)
    assert found.last_known_elr == ()


def test_reassignments_are_added_to_their_partitions() -> None:
    """Added and removed replicas are converted as in a describe output."""
    row = partition(replica_nodes=[1, 2, 3, 4])
    told = answers(
        topics=[topic("orders", row)],
        reassignments={("orders", 0): ((4,), (3,)), ("gone", 0): ((1,), ())},
    )
    (orders,) = cluster_from_answers(told, "kafka:9092").topics
    assert (orders.partitions[0].adding, orders.partitions[0].removing) == ((4,), (3,))
    assert orders.replication_factor == 3


@pytest.mark.parametrize("changes", [{"racks": {1: "a", 2: "b"}}, {"fenced": {3}}])
def test_brokers_that_do_not_run_are_missing_now(changes: dict[str, Any]) -> None:
    """A broker that is fenced or not registered is missing, though an old ISR still lists it."""
    cluster = cluster_from_answers(answers(**changes), "kafka:9092")
    assert cluster.observed is not None
    assert cluster.observed.down == (3,)
    state = state_of(cluster, "4.1")
    assert not state.in_sync
    assert state.missing == (3,)
    assert load_cluster(json.dumps(cluster.to_dict(), indent=1)).observed == cluster.observed


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"topics": []}, "No topic is shown: there is none, or Describe on the topics is not"),
        ({"topics": [topic("x", error_code=29)]}, "Topic x was left out: the cluster could not"),
        ({"racks": {1: "a", 2: "b"}}, "Brokers that do not run now: 3; their racks are not known."),
        ({"fenced": {3}}, "Brokers that do not run now: 3."),
        ({"versions": {1: "4.1", 2: "3.9", 3: "4.1"}}, "(3.9: 2; 4.1: 1, 3); the oldest is"),
        (
            {"settings_errors": {(BROKER, str(b)): "no connection" for b in range(1, 8)}},
            "The settings of the brokers 1, 2, 3, 4, 5 and 2 more are not known (no connection).",
        ),
        (
            {"settings": {}, "settings_errors": {(TOPIC, "orders"): "TOPIC_AUTHORIZATION_FAILED"}},
            "The settings of the topics orders are not known (TOPIC_AUTHORIZATION_FAILED) and",
        ),
        (
            {"missing": {"the features": "no answer in time"}},
            "The cluster did not tell the features (no answer in time).",
        ),
        (
            {"missing": {"the features": "CLUSTER_AUTHORIZATION_FAILED"}},
            "Topics that may not be described are not listed by Kafka and missing here.",
        ),
    ],
)
def test_missing_parts_are_noted(changes: dict[str, Any], note: str) -> None:
    """Each missing part is one sentence."""
    assert note in "\n".join(cluster_from_answers(answers(**changes), "kafka:9092").notes)


def test_the_oldest_version_counts() -> None:
    """Versions are compared numerically; brokers without one are ignored."""
    read = cluster_from_answers(answers(versions={1: "3.10", 2: "3.9"}), "kafka:9092")
    assert read.kafka_version == "3.9"
    assert cluster_from_answers(answers(versions={}), "kafka:9092").kafka_version is None


@pytest.mark.parametrize(
    ("row", "kind", "source"),
    [
        ({"config_source": 1}, TOPIC, "DYNAMIC_TOPIC_CONFIG"),
        ({"config_source": 3}, BROKER, "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ({"config_source": 5}, BROKER, "DEFAULT_CONFIG"),
        ({"is_default": True}, TOPIC, "DEFAULT_CONFIG"),
        ({"is_default": False}, TOPIC, "DYNAMIC_TOPIC_CONFIG"),
        ({"is_default": False}, BROKER, "STATIC_BROKER_CONFIG"),
    ],
)
def test_where_a_setting_comes_from(row: dict[str, Any], kind: int, source: str) -> None:
    """Brokers report the config source since 1.1, before only whether it is the default."""
    assert parse_setting({"name": "x", "value": "1", **row}, kind) == Setting("1", source)


def test_topic_ids_are_printed_as_kafka_prints_them() -> None:
    """URL-safe base64 without padding (`org.apache.kafka.common.Uuid`); zero means none."""
    told = "99feb01c-29c3-4a5a-8d6b-9ef1e25b1d6a"
    assert format_topic_id(told) == format_topic_id(uuid.UUID(told)) == "mf6wHCnDSlqNa57x4lsdag"
    assert format_topic_id(uuid.UUID(int=0)) is None
    assert format_topic_id(None) is None


@pytest.mark.parametrize(
    ("mode", "features", "known", "expected"),
    [
        ("kraft", {"eligible.leader.replicas.version": 1}, True, True),
        ("kraft", {"metadata.version": 27}, True, False),
        ("kraft", {}, False, None),
        ("zookeeper", {}, False, False),
    ],
)
def test_whether_eligible_leader_replicas_are_on(
    mode: str, features: dict[str, int], known: bool, expected: bool | None
) -> None:
    """A feature that is not finalized is disabled, if features are known."""
    seen = Observed(mode=mode, features=features, features_known=known)
    assert seen.eligible_leader_replicas is expected


def test_the_mode_of_the_live_cluster_is_used() -> None:
    """The cluster's own mode and ELR are used, for its own version only."""
    read = cluster_from_answers(answers(), "kafka:9092")
    assert controller_of(read, "4.1") == {"mode": "kraft", "eligible_leader_replicas": False}
    assert controller_of(read, "4.2") == {}
    assert controller_of(Cluster(brokers={1: None}), "4.1") == {}


@pytest.mark.parametrize(
    ("mode", "voters", "expected"),
    [
        ("kraft", (1, 2, 9), {"broker_session_timeout_ms": 12_000}),
        ("kraft", (7, 8, 9), {}),
        ("zookeeper", (), {"zookeeper_session_timeout_ms": 30_000}),
    ],
)
def test_the_session_timeout_of_the_live_cluster_is_used(
    mode: str, voters: tuple[int, ...], expected: dict[str, int]
) -> None:
    """The longest of the nodes where it applies: the controllers, or every ZooKeeper client."""
    reported = {
        (BROKER, str(broker)): {
            "broker.session.timeout.ms": Setting(str(value), "STATIC_BROKER_CONFIG"),
            "zookeeper.session.timeout.ms": Setting(str(10_000 * broker), "STATIC_BROKER_CONFIG"),
        }
        for broker, value in ((1, 6_000), (2, 12_000), (3, 45_000))
    }
    quorum = Quorum(voters[0], 4, voters, ()) if voters else None
    told = answers(kraft=mode == "kraft", quorum=quorum, settings=reported)
    read = cluster_from_answers(replace(told, versions=dict.fromkeys((1, 2, 3), "3.9")), "k:1")
    options = controller_of(read, "3.9")
    assert options == {"mode": mode, "eligible_leader_replicas": False, **expected}
    assert Config(kafka_version="3.9", **options).session_timeout_ms == next(
        iter(expected.values()), 9_000
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {(BROKER, "notanumber"): {}}}, "settings of broker 'notanumber', which is"),
        ({"settings": {(BROKER, "-1"): {}}}, "settings of broker '-1', which is not a broker id"),
        ({"settings": {(BROKER, "9" * 5_000): {}}}, "which is not a broker id"),
        ({"topics": [topic("..", partition())]}, "'..' is not the name of a topic"),
        ({"topics": [{**topic("", partition()), "name": None}]}, "None is not the name of a topic"),
        ({"topics": [topic("orders")]}, "topic orders has no partitions"),
        ({"topics": [topic("t", partition(replica_nodes=[-1]))]}, "-1"),
        (
            {"settings": {(TOPIC, "orders"): {"min.insync.replicas": Setting("x", "")}}},
            "min.insync.replicas='x'",
        ),
    ],
)
def test_an_answer_that_no_broker_gives_is_one_sentence(changes: dict[str, Any], said: str) -> None:
    """Whatever answers at the address: the error says what is wrong with the answer."""
    with pytest.raises(InputError) as error:
        cluster_from_answers(answers(**changes), "k:1")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "broken",
    [
        {"versions": {"1": "4.1", "01": "4.0"}},
        {"versions": {"notanumber": "4.1"}},
        {"broker_settings": {"-1": {}}},
        {"down": [float("inf")]},
        {"down": [1.5]},
        {"features": {"metadata.version": float("inf")}},
        {"quorum": {"leader": float("inf"), "leader_epoch": 1, "voters": [], "observers": []}},
    ],
)
def test_a_saved_observation_with_wrong_numbers_is_refused(broken: dict[str, Any]) -> None:
    """Ids that are none, or the same twice, and numbers that are not whole: one sentence."""
    read = cluster_from_answers(answers(), "k:1").to_dict()
    document = {**read, "observed": {**read["observed"], **broken}}
    with pytest.raises(InputError, match="observed is not what a saved cluster has"):
        load_cluster(json.dumps(document, indent=1))


@pytest.mark.parametrize("gap", ["\n", "\r\n", "\u2028", " \n "])
def test_addresses_with_line_breaks_between_them_stay_one_line(gap: str) -> None:
    """What stands beside a comma is left out, so that no command is cut in two."""
    observed = Observed("kraft", bootstrap_servers=f"a:1,{gap}b:2{gap}")
    assert observed.bootstrap_servers == "a:1,b:2"
    cluster = replace(cluster_from_answers(answers(), "k:1"), observed=observed)
    plan = make_plan(cluster, Config(replication_factor=3), Workload(partitions=1))
    (first,) = [line for line in plan.lines if line.startswith("BS=")]
    assert first.startswith("BS=${BS:-a:1,b:2}")
    assert all("\n" not in line for line in plan.lines)


def test_observed_survives_json() -> None:
    """JSON preserves everything; malformed data is rejected."""
    read = cluster_from_answers(
        answers(settings={(TOPIC, "orders"): MIN_ISR, (BROKER, "1"): {}}), "k:1"
    )
    saved = json.dumps(read.to_dict(), indent=1)
    again = load_cluster(saved)
    assert again.observed == read.observed
    assert (again.topics, again.controllers) == (read.topics, read.controllers)
    assert hash(again.observed) == hash(read.observed)
    for broken in ({"mode": "kraft"}, [1], {**read.to_dict()["observed"], "versions": {"x": "1"}}):
        document = {**read.to_dict(), "observed": broken}
        with pytest.raises(InputError, match="observed"):
            load_cluster(json.dumps(document, indent=1))
    for epoch in (-1, "x", True, 1.5):
        document = read.to_dict()
        document["topics"][0]["partitions"][0]["leader_epoch"] = epoch
        with pytest.raises(InputError, match="leader_epoch is"):
            load_cluster(json.dumps(document, indent=1))


def test_work_is_abandoned_after_the_timeout() -> None:
    """A timeout returns None; an error of the function is raised, also a TimeoutError."""
    over = threading.Event()
    assert run_with_timeout(lambda: over.wait(PATIENCE_S), 0.05) is None
    over.set()  # only now, so that the limit alone ended the call
    assert run_with_timeout(lambda: 7, PATIENCE_S) == 7

    def fails() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        run_with_timeout(fails, PATIENCE_S)


def test_what_comes_while_the_limit_passes_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but an error of the function itself is raised."""

    class Late(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            value = super().result(PATIENCE_S)
            if timeout is not None:
                raise TimeoutError
            return value

    monkeypatch.setattr(deadline, "Future", Late)
    assert run_with_timeout(lambda: 7, 0.05) == 7


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_limit_is_positive(timeout_ms: int) -> None:
    """A limit below 1 ms is rejected before connecting."""
    with pytest.raises(InputError, match="give milliseconds, 1 or more"):
        load_cluster("127.0.0.1:9092", timeout_ms=timeout_ms)


def test_plan_has_client_properties_and_restores_inheritance() -> None:
    """The plan has address and client properties; its rollback restores inheritance."""
    inherited = {"min.insync.replicas": Setting("2", "STATIC_BROKER_CONFIG")}
    told = answers(settings={(TOPIC, "orders"): inherited})
    read = cluster_from_answers(told, "kafka-1:9092, kafka-2:9093", "the client's.properties")
    wanted = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=3)
    plan = make_plan(read, wanted, Workload())
    assert plan.lines[0].startswith("BS=${BS:-kafka-1:9092,kafka-2:9093} ")
    assert shlex.split(plan.lines[1], comments=True) == [
        "CLIENT=${CLIENT:-the client's.properties}"
    ]
    tools = [line for line in (*plan.lines, *plan.rollback) if line.startswith("kafka-")]
    assert tools
    assert all('--bootstrap-server $BS --command-config "$CLIENT" ' in line for line in tools)
    (back,) = [line for line in plan.rollback if "orders" in line]
    assert "--delete-config min.insync.replicas" in back
    own = make_plan(cluster_from_answers(answers(), "kafka-1:9092"), wanted, Workload())
    (back,) = [line for line in own.rollback if "orders" in line]
    assert "--add-config min.insync.replicas=2" in back
    assert "command-config" not in back


@pytest.mark.parametrize(
    ("version", "option"), [("4.1", "admin.config"), ("4.2", "command-config")]
)
def test_the_election_tool_has_its_own_option(version: str, option: str) -> None:
    """KIP-1147 renamed the option of `kafka-leader-election.sh` in 4.2."""
    assert (
        f'--{option} "$CLIENT"' in Tools(version, "b:1", "c.properties").elect_preferred("f").text
    )


@pytest.mark.parametrize(
    ("changes", "source", "system"),
    [
        (
            {"settings": {(TOPIC, "orders"): {"redpanda.remote.read": Setting("false", DEFAULT)}}},
            "b:9092",
            "Redpanda",
        ),
        (
            {"settings": {(BROKER, "1"): {"automq.zonerouter.channels": Setting("", DEFAULT)}}},
            "b:9092",
            "AutoMQ",
        ),
        ({}, "shop.servicebus.windows.net:9093", "Azure Event Hubs"),
    ],
)
def test_what_answers_like_kafka_and_is_not_is_refused(
    changes: dict[str, Any], source: str, system: str
) -> None:
    """A running cluster shows its marks in default values, too."""
    with pytest.raises(InputError, match=rf"{system}.*no verdict"):
        cluster_from_answers(answers(**changes), source)


def test_a_managed_service_is_known_by_its_addresses() -> None:
    """The remark names it, as for a pasted output."""
    source = "b-1.shop.wm1fi5.c23.kafka.us-east-1.amazonaws.com:9094"
    assert cluster_from_answers(answers(), source).managed == "Amazon MSK"
    assert cluster_from_answers(answers(), "b:9092").managed is None


def test_offline_replicas_of_a_broker_that_runs_are_a_failed_directory() -> None:
    """The metadata lists them; the broker is in sync elsewhere and not reported as down."""
    rows = partition(0, isr_nodes=[1, 3], offline_replicas=[2]), partition(1, isr_nodes=[1, 2, 3])
    cluster = cluster_from_answers(answers(topics=[topic("orders", *rows)]), "b:9092")
    state = state_of(cluster, "4.1")
    assert (state.missing, state.presence.failed_directories) == ((), (2,))
