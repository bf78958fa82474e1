"""Arguments of a wrong type or size are refused with a sentence that names them."""

from typing import Any

import pytest

import advisor
from advisor.cluster import Partition, Topic
from advisor.errors import AdvisorError

CLUSTER = advisor.Cluster.uniform(3, 3)
CARD = {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
MODEL = advisor.FailureModel.from_dict(CARD)
CONFIG = advisor.Config(replication_factor=1)
PARTITION = Partition(0, 1, (1,), (1,))
INPUTS = {"cluster": CLUSTER, "config": CONFIG, "model": MODEL}
ADVICE = {"cluster": CLUSTER, "model": MODEL}
LOCAL = {**INPUTS, "engine": "local", "years": 10}
ASSIGN = {"brokers": {1: "a"}, "partitions": 1, "replication_factor": 1}


@pytest.mark.parametrize(
    ("call", "valid", "name", "value"),
    [
        (advisor.evaluate, INPUTS, "cluster", {1: "a"}),
        (advisor.evaluate, INPUTS, "config", {"replication_factor": 3}),
        (advisor.evaluate, INPUTS, "model", 7),
        (advisor.evaluate, INPUTS, "load", 7),
        (advisor.evaluate, INPUTS, "placement", 7),
        (advisor.evaluate, INPUTS, "placement", [("x",)]),
        (advisor.recommend, ADVICE, "cluster", None),
        (advisor.recommend, ADVICE, "model", 7),
        (advisor.recommend, ADVICE, "load", 7),
        (advisor.recommend, ADVICE, "goals", {}),
        (advisor.recommend, ADVICE, "current", "x"),
        (advisor.recommend, ADVICE, "kafka_version", 4.1),
        (advisor.recommend, ADVICE, "topics", "orders"),
        (advisor.audit, ADVICE, "goals", 7),
        (advisor.audit, ADVICE, "producer", {"ack": 1}),
        (advisor.audit, ADVICE, "producer", ["acks"]),
        (advisor.simulate, LOCAL, "config", None),
        (advisor.simulate, LOCAL, "years", 10**400),
        (advisor.simulate, LOCAL, "seed", -(10**400)),
        (advisor.simulate, LOCAL, "engine", []),
        (advisor.simulate, LOCAL, "progress", 7),
        (advisor.simulate, LOCAL, "checkpoint", 7),
        (advisor.simulate, LOCAL, "checkpoint", "\ud800"),
        (advisor.assign, ASSIGN, "partitions", "1"),
        (advisor.assign, ASSIGN, "partitions", 2**40),
        (advisor.assign, ASSIGN, "replication_factor", 1.5),
        (advisor.assign, ASSIGN, "start_partition", None),
        (advisor.assign, ASSIGN, "fenced", 7),
        (advisor.assign, ASSIGN, "random", 7),
        (advisor.Goals, {}, "write_unavailability", 10**400),
        (advisor.Goals, {}, "survive", []),
        (advisor.Workload, {}, "partitions", 10**400),
        (advisor.Workload, {}, "record_bytes", "1"),
        (advisor.Config, {}, "mode", []),
        (advisor.Config, {}, "eligible_leader_replicas", {}),
        (advisor.Config, {}, "kafka_version", "4." + "9" * 5000),
        (advisor.Cluster, {}, "brokers", [1, 2]),
        (advisor.Cluster, {"brokers": {1: "a"}}, "topics", [7]),
        (advisor.Cluster, {"brokers": {1: "a"}}, "notes", "\ud800"),
        (advisor.Cluster, {"brokers": {1: "a"}}, "kafka_version", 4.1),
        (advisor.Cluster, {"brokers": {1: "a"}}, "observed", {}),
        (advisor.Cluster.uniform, {}, "brokers", 10**9),
        (advisor.Cluster.uniform, {}, "racks", 10**400),
        (advisor.FailureModel.from_dict, {"tables": CARD}, "name", 7),
        (MODEL.with_values, {}, "values", [1]),
        (MODEL.get, {"path": "x"}, "default", "x"),
        (MODEL.get, {"default": 0.0}, "path", []),
        (advisor.load_model, {}, "name_or_path", 7),
        (advisor.load_cluster, {"source": "brokers = 3\n"}, "timeout_ms", "x"),
        (advisor.load_cluster, {"source": "brokers = 3\n"}, "client_properties", 7),
        (advisor.load_cluster, {"source": "brokers = 3\n"}, "racks", 7),
        (advisor.load_cluster, {"source": "brokers = 3\n"}, "kafka_version", 4.1),
        (advisor.play, {}, "source", 7),
        (advisor.play, {"source": "cluster brokers=1\n"}, "engine", []),
        (Topic, {"name": "t", "partitions": (PARTITION,)}, "configs", {"a": 1}),
        (Topic, {"name": "t"}, "partitions", 7),
        (Partition, {"index": 0, "leader": 1, "isr": (1,)}, "replicas", 7),
    ],
)
def test_a_wrong_argument_is_named(call: Any, valid: dict[str, Any], name: str, value: Any) -> None:
    """One sentence with the argument's name."""
    with pytest.raises(AdvisorError, match=name) as caught:
        call(**{**valid, name: value})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_message_is_one_line_that_a_terminal_can_print() -> None:
    """Line breaks, escape codes and halves of surrogate pairs do not reach a terminal."""
    message = str(AdvisorError("a\nb\x1b[31m\ud800\u202e"))
    assert message == "a b\\x1b[31m\\ud800\\u202e"
