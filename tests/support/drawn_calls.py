"""Every public call with valid arguments, and values of wrong types and sizes in their place."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import advisor
from advisor.cluster import Partition, Topic
from advisor.cluster.observed import Observed, Quorum, Setting

# Arguments of wrong types and sizes.
WILD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        3,
        7,
        2**15,
        2**31 - 1,
        2**31,
        2**63,
        2**64,
        10**400,
        -(10**400),
    ),
    *(0.5, -0.0, 1e308, 5e-324, float("inf"), float("nan"), 1j),
    *("", " ", "x", "a\0b", "\ud800", "x\ny", "9" * 5000, "all", "rack", "4.1", "/dev/zero", "-0"),
    *(b"", b"x", (), (1, 2), [], [1], [[]], [(1, 2), (2, 1)], [("x",)], {}, {"a": 1}, {1: "a"}),
    *({1: [1]}, {"a": [1, 2]}, {"a": ["1"]}, {(): ()}, {1: "\ud800"}, {None: None}, set(), {1, 2}),
    *(
        object(),
        object,
        len,
        lambda *_: 1,
        range(3),
        iter(()),
        Path("/"),
        Path("nothing"),
        Ellipsis,
    ),
)

Choices = Mapping[str, Sequence[Any]]
"""Values to draw for each argument."""


def calls() -> Mapping[str, tuple[Callable[..., object], Choices, int]]:
    """Return name to (function, valid values by parameter, how many parameters are required)."""
    card = {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
    model = advisor.FailureModel.from_dict(card)
    cluster = advisor.Cluster.uniform(3, 3)
    text = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    topics = advisor.load_cluster(text)
    config = advisor.Config(replication_factor=1)
    load = advisor.Workload(partitions=2)
    goals = advisor.Goals(loss_probability_per_year=None)
    one = advisor.Cluster.uniform(1, None)
    partition, topic = topics.topics[0].partitions[0], topics.topics[0]
    inputs: Choices = {
        "cluster": [cluster, one],
        "config": [config],
        "model": [model],
    }
    options: Choices = {
        "kafka_version": ["4.1", "2.4"],
        "replication_factor": [1, 3],
        "min_insync_replicas": [1],
        "acks": ["all", 1, 0],
        "unclean_leader_election_enable": [True],
        "retries": [0, 5],
        "enable_idempotence": [False],
        "delivery_timeout_ms": [120_000],
        "request_timeout_ms": [30_000],
        "retry_backoff_ms": [100],
        "retry_backoff_max_ms": [1000],
        "linger_ms": [0],
        "max_in_flight_requests_per_connection": [5],
        "replica_lag_time_max_ms": [30_000],
        "mode": ["kraft", "zookeeper"],
        "eligible_leader_replicas": [True, False],
        "broker_session_timeout_ms": [9000],
        "zookeeper_session_timeout_ms": [18_000],
    }
    described: Choices = {
        "brokers": [{1: "a"}],
        "topics": [(topic,)],
        "kafka_version": ["4.1"],
        "source": ["x"],
        "notes": [("x",)],
        "observed": [Observed("kraft")],
        "controllers": [{1: "a"}],
    }
    advice: Choices = {
        "cluster": [one],
        "model": [model],
        "load": [load],
        "goals": [goals],
    }
    return {
        "Cluster": (advisor.Cluster, described, 1),
        "Cluster.uniform": (
            advisor.Cluster.uniform,
            {"brokers": [3], "racks": [3], "kafka_version": ["4.1"], "controllers": [{1: "a"}]},
            0,
        ),
        "with_racks": (cluster.with_racks, {"mapping": [{1: "a"}]}, 1),
        "topic": (topics.topic, {"name": ["t"]}, 1),
        "Topic": (
            Topic,
            {
                "name": ["t"],
                "partitions": [(partition,)],
                "configs": [{"a": "b"}],
                "topic_id": ["x"],
                "marked_for_deletion": [True],
            },
            2,
        ),
        "Partition": (
            Partition,
            {
                "index": [0],
                "leader": [1],
                "replicas": [(1, 2)],
                "isr": [(1,)],
                "elr": [(2,)],
                "last_known_elr": [()],
                "adding": [()],
                "removing": [()],
                "leader_epoch": [1],
            },
            4,
        ),
        "Observed": (
            Observed,
            {
                "mode": ["kraft"],
                "cluster_id": ["x"],
                "quorum": [Quorum(1, 1, (1,), ())],
                "features": [{"a": 1}],
                "features_known": [True],
                "versions": [{1: "4.1"}],
                "broker_settings": [{1: {"a": Setting("1", "DEFAULT_CONFIG")}}],
                "topic_settings": [{"t": {"a": Setting("1", "DEFAULT_CONFIG")}}],
                "bootstrap_servers": ["b:1"],
                "command_config": ["c"],
            },
            1,
        ),
        "Config": (advisor.Config, options, 0),
        "changed": (config.changed, options, 0),
        "Workload": (
            advisor.Workload,
            {
                "partitions": [1],
                "records_per_second": [1.0],
                "record_bytes": [100],
                "retention_hours": [1.0],
                "replication_delay_ms": [1.0],
                "bytes_per_broker": [1e9],
                "within_rack_ms": [0.5],
                "between_racks_ms": [2.0],
            },
            0,
        ),
        "Goals": (
            advisor.Goals,
            {
                "loss_probability_per_year": [1e-6],
                "write_unavailability": [1e-4],
                "read_unavailability": [1e-4],
                "records_refused_per_year": [10.0],
                "acked_records_lost_per_year": [10.0],
                "survive": ["rack"],
            },
            0,
        ),
        "FailureModel": (
            advisor.FailureModel,
            {
                "name": ["x"],
                "title": ["x"],
                "when_to_use": ["x"],
                "quantities": [model.quantities],
            },
            4,
        ),
        "from_dict": (advisor.FailureModel.from_dict, {"tables": [card], "name": ["x"]}, 1),
        "with_values": (model.with_values, {"values": [{"broker.destroyed.hours": 1.0}]}, 1),
        "draws": (lambda n, seed: list(model.draws(n, seed)), {"n": [2], "seed": [1]}, 2),
        "get": (model.get, {"path": ["flush.seconds"], "default": [0.0]}, 2),
        "assign": (
            advisor.assign,
            {
                "brokers": [{1: "a", 2: "b"}, {1: None}],
                "partitions": [2],
                "replication_factor": [1],
                "algorithm": ["striped", "modulo", "rack_alternated"],
                "start_index": [0],
                "shift": [0],
                "start_partition": [0],
                "seed": [1],
                "fenced": [{1}],
                "random": [None],
            },
            3,
        ),
        "load_cluster": (
            advisor.load_cluster,
            {
                "source": [text, "brokers=3\nkafka_version='4.1'\n"],
                "racks": ["1=a", {1: "a"}],
                "kafka_version": ["4.1"],
                "client_properties": ["x"],
                "timeout_ms": [1000],
                "controllers": ["1=a"],
            },
            1,
        ),
        "load_model": (advisor.load_model, {"name_or_path": ["three_az_cloud"]}, 1),
        "play": (
            advisor.play,
            {"source": ["cluster brokers=1\n"], "engine": ["model"], "progress": [len]},
            1,
        ),
        "evaluate": (advisor.evaluate, {**inputs, "load": [load], "placement": [[(1,)]]}, 3),
        "simulate": (
            advisor.simulate,
            {
                **inputs,
                "load": [load],
                "years": [10],
                "seed": [1],
                "engine": ["local"],
                "placement": [[(1,)]],
                "checkpoint": [None],
                "progress": [len],
            },
            7,
        ),
        "audit": (
            advisor.audit,
            {
                **advice,
                "cluster": [topics],
                "kafka_version": ["4.1"],
                "producer": [{"acks": "all"}],
            },
            2,
        ),
        "recommend": (
            advisor.recommend,
            {**advice, "current": [config], "kafka_version": ["4.1"], "topics": [[]]},
            2,
        ),
    }


def drawn_arguments(
    draw: random.Random, valid: Mapping[str, Sequence[Any]], required: int
) -> dict[str, Any]:
    """Return arguments, of which one to three are of a wrong type or size."""
    names = list(valid)
    given = names[:required] + [name for name in names[required:] if draw.random() < 0.2]
    arguments = {name: draw.choice(valid[name]) for name in given}
    for name in draw.sample(names, min(len(names), draw.choice((1, 1, 1, 2, 3)))):
        arguments[name] = wild(draw)
    return arguments


def wild(draw: random.Random, depth: int = 2) -> Any:
    """Return a value of any type and size."""
    kind = draw.randrange(8)
    if kind == 0 and depth:
        return [wild(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    if kind == 1 and depth:
        keys = ("a", 1, 2, "broker", "1", None)
        return {key: wild(draw, depth - 1) for key in draw.sample(keys, draw.randint(1, 3))}
    if kind == 2:
        return draw.choice((-1, 1)) * draw.randrange(2 ** draw.choice((3, 8, 31, 64)))
    return draw.choice(WILD)
