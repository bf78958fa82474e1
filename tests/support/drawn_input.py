"""Mutated files for every reader and drawn arguments for every public call.

Run as a program, it tries as many as asked for, and fails with the first that ends in anything but
an `AdvisorError`, takes more than 5 seconds of processor time or more than 1 GiB of memory.
"""

import argparse
import json
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import advisor
from advisor.cluster import Partition, Topic, format_describe
from advisor.cluster.live.client_properties import load_properties
from advisor.cluster.observed import Observed, Quorum, Setting
from advisor.cluster.racks import read_racks
from advisor.errors import AdvisorError

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 5.0
LIMIT_BYTES = 2**30

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: c}
spec:
  kafka: {version: 4.1.0, config: {min.insync.replicas: 2}, rack: {topologyKey: zone}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: brokers, labels: {strimzi.io/cluster: c}}
spec: {replicas: 3, roles: [broker, controller]}
status: {nodeIds: [3, 4, 5]}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: orders, labels: {strimzi.io/cluster: c}}
spec: {partitions: 6, replicas: 2, config: {min.insync.replicas: 1}}
"""
TOML = """\
kafka_version = "4.1"
[brokers]
1 = "a"
2 = "b"
3 = ""
[controllers]
1 = "a"
[defaults]
partitions = 3
replication_factor = 2
min_insync_replicas = 1
[[topic]]
name = "orders"
configs = { "retention.ms" = 604800000 }
[[topic]]
name = "audit"
replicas = [[1, 2], [2, 3]]
leaders = [1, -1]
isr = [[1, 2], [2]]
"""
PLAN = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}\n'
PROPERTIES = """\
# client
security.protocol=SASL_SSL
sasl.mechanism : PLAIN
sasl.jaas.config=org.example.PlainLoginModule required username="a" \\
  password="\\u0041b";
ssl.truststore.location=/nowhere/ca.pem
ssl.endpoint.identification.algorithm=
request.timeout.ms=5000
"""
RACKS = '[racks]\na = [1, 2]\nb = [3]\n[controllers]\n1 = "a"\n'
# What has broken parsers before.
TOKENS = (
    *(b"", b"\0", b"\n", b"\r\n", b"\t", b" " * 3000, b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *(b"-1", b"0", b"1e999", b"nan", b"2147483647", b"2147483648", b"9" * 30, b"9" * 5000, b"1_"),
    *(
        b"[" * 200,
        b"{" * 200,
        b"{a: " * 60,
        b"- " * 60,
        b"&a [*a, *a]",
        b"*a",
        b"a." * 100,
        b"<<: ",
    ),
    *(b'"', b"'", b"\\", b"\\ud800", b"'''", b'"""', b"=", b":", b",", b"#", b"\xd9\xa3", b"true"),
    *(b"null", b"~", b"!!python/name:os.system", b"$(touch x)", b"`x`", b"\x1b[31m", b"../../x"),
)


class TooSlowError(BaseException):
    """A call used more processor time than it may."""


@dataclass(frozen=True)
class Reader:
    """A function that reads a file, with valid contents of such a file."""

    name: str
    read: Callable[[Path], object]
    suffixes: tuple[str, ...]
    contents: tuple[bytes, ...]


def live_cluster() -> advisor.Cluster:
    """Return a cluster with every field that a saved one can have."""
    setting = Setting("1", "DYNAMIC_TOPIC_CONFIG")
    partition = Partition(0, 1, (1, 2), (1,), (2,), (), (), (), 4)
    return advisor.Cluster(
        {1: "a", 2: "b", 3: None},
        (Topic("orders", (partition,), {"min.insync.replicas": "1"}, "id", True),),
        "4.1",
        "live",
        ("a note",),
        Observed(
            "kraft",
            "id",
            Quorum(1, 1, (1, 2), (3,)),
            {"metadata.version": 1},
            True,
            {1: "4.1"},
            {1: {"min.insync.replicas": setting}},
            {"orders": {"min.insync.replicas": setting}},
            "b1:9092",
            "client.properties",
        ),
        {1: "a", 9: None},
    )


def read_cluster(path: Path) -> object:
    """Read a cluster and go once through all that is shown of it."""
    read = advisor.load_cluster(path)
    json.dumps(read.to_dict()).encode()
    (repr(read) + read._repr_html_() + format_describe(read)).encode()
    return read


def readers() -> tuple[Reader, ...]:
    """Return every reader of files."""
    samples = sorted((ROOT / "data" / "clusters").glob("testp3-*.txt"))[:4]
    described = [format_describe(live_cluster(), version) for version in ("4.1", "2.1", "0.8.0")]
    clusters = (
        *(path.read_bytes() for path in samples),
        *(text.encode() for text in (*described, TOML, STRIMZI, PLAN)),
        json.dumps(live_cluster().to_dict()).encode(),
    )
    cards = sorted((ROOT / "models").glob("*.toml"))[:3]
    scenarios = sorted((ROOT / "tests" / "scenarios").glob("*.txt"))[::9]
    return (
        Reader("cluster", read_cluster, (".txt", ".toml", ".json", ".yaml", ""), clusters),
        Reader("card", advisor.load_model, (".toml",), tuple(p.read_bytes() for p in cards)),
        Reader("scenario", advisor.play, (".txt",), tuple(p.read_bytes() for p in scenarios)),
        Reader("properties", load_properties, (".properties",), (PROPERTIES.encode(),)),
        Reader("racks", lambda path: read_racks(str(path)), (".toml",), (RACKS.encode(),)),
        Reader(
            "controllers",
            lambda path: read_racks(str(path), "controllers", "controller"),
            (".toml",),
            (RACKS.encode(),),
        ),
    )


def mutated(draw: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Return a file with one to four pieces cut, doubled, moved or replaced."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        start = draw.randint(0, len(content))
        end = min(len(content), start + draw.choice((0, 0, 1, 1, 3, 20, 200)))
        kind = draw.randrange(5)
        if kind == 0:
            # A token in place of a whole number or word hits a value more often.
            if draw.random() < 0.5:
                words = list(re.finditer(rb"[0-9]+|[A-Za-z_.]+", content[start : start + 100]))
                if words:
                    word = draw.choice(words)
                    start, end = start + word.start(), start + word.end()
            piece = draw.choice(TOKENS)
        elif kind == 1:
            other = draw.choice(others)
            at = draw.randint(0, len(other))
            piece = other[at : at + 60]
        elif kind == 2:
            piece = content[start:end] * draw.choice((2, 2, 50))
        elif kind == 3:
            piece = bytes(draw.randrange(256) for _ in range(draw.randint(1, 4)))
        else:
            content, piece = content[:end], b""
        content = content[:start] + piece + content[end:]
    return content


def limited(work: Callable[[], object]) -> BaseException | None:
    """Return what a call raised that it should not have; an `AdvisorError` is one sentence."""
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        work()
    except AdvisorError as error:
        sentence = str(error)
        if not sentence.strip() or "\n" in sentence:
            return ValueError(f"not one sentence: {sentence!r}")
        try:
            sentence.encode()
        except UnicodeEncodeError as unprintable:
            return unprintable
    except (Exception, TooSlowError) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


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


def calls() -> Mapping[str, tuple[Callable[..., object], Mapping[str, Sequence[Any]], int]]:
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
    inputs = {"cluster": [cluster, one], "config": [config], "model": [model]}
    options: dict[str, Sequence[Any]] = {
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
    described = {
        "brokers": [{1: "a"}],
        "topics": [(topic,)],
        "kafka_version": ["4.1"],
        "source": ["x"],
        "notes": [("x",)],
        "observed": [Observed("kraft")],
        "controllers": [{1: "a"}],
    }
    advice = {"cluster": [one], "model": [model], "load": [load], "goals": [goals]}
    return {
        "Cluster": (advisor.Cluster, described, 1),
        "Cluster.uniform": (
            advisor.Cluster.uniform,
            {"brokers": [3], "racks": [3], "kafka_version": ["4.1"], "controllers": [{1: "a"}]},
            0,
        ),
        "with_racks": (cluster.with_racks, {"mapping": [{1: "a"}]}, 1),
        "topic": (topics.topic, {"name": ["t"]}, 1),
        "rack_of": (cluster.rack_of, {"broker": [1]}, 1),
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


def _stop(_number: int, _frame: object) -> None:
    raise TooSlowError(f"over {LIMIT_S:g} seconds")


def _limit_memory() -> None:
    """Allow 1 GiB more than is in use now."""
    pages = Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]
    limit = int(pages) * 1024 + LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _fail(what: str, error: BaseException) -> None:
    text = "".join([what, "\n", *traceback.format_exception(error, limit=-6)])
    print(text.encode(errors="backslashreplace").decode())


def try_inputs(seed: int, count: int, folder: Path) -> int:
    """Read mutated files; return how many ended in a mistake."""
    failed = 0
    found = readers()
    every = [content for reader in found for content in reader.contents]
    for index in range(count):
        draw = random.Random(f"{seed}-input-{index}")
        reader = draw.choice(found)
        chosen = draw.randrange(len(reader.contents))
        suffixes = reader.suffixes if draw.random() < 0.2 else ("", reader.suffixes[0])
        suffix = draw.choice(suffixes) if len(reader.suffixes) > 1 else reader.suffixes[0]
        path = folder / f"drawn{suffix}"
        content = mutated(draw, reader.contents[chosen], every)
        path.write_bytes(content)
        error = limited(lambda reader=reader, path=path: reader.read(path))  # type: ignore[misc]
        if error is not None:
            failed += 1
            kept = folder.parent / f"fuzz-{seed}-{index}{path.suffix}"
            kept.write_bytes(content)
            _fail(f"input {index} of seed {seed}, {reader.name}, kept as {kept}:", error)
    return failed


def try_calls(seed: int, count: int) -> int:
    """Call with drawn arguments; return how many ended in a mistake."""
    failed = 0
    known = calls()
    for index in range(count):
        draw = random.Random(f"{seed}-call-{index}")
        name = draw.choice(list(known))
        function, valid, required = known[name]
        arguments = drawn_arguments(draw, valid, required)
        error = limited(lambda f=function, a=arguments: f(**a))  # type: ignore[misc]
        if error is not None:
            failed += 1
            said = {key: repr(value)[:60] for key, value in arguments.items()}
            _fail(f"call {index} of seed {seed}, {name}({said}):", error)
    return failed


def main() -> int:
    """Try inputs and calls; print each mistake."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    calls()
    _limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        failed = try_inputs(options.seed, options.inputs, Path(folder))
    failed += try_calls(options.seed, options.calls)
    tried = f"{options.inputs:,} inputs and {options.calls:,} calls of seed {options.seed}"
    print(f"{tried}: {failed} ended in a mistake")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
