"""Valid files for every reader, and mutations of them."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import advisor
from advisor.advice.migration.plan import make_plan
from advisor.cluster import Partition, Topic, format_describe
from advisor.cluster.live.client_properties import load_properties
from advisor.cluster.observed import Observed, Quorum, Setting
from advisor.cluster.racks import read_racks
from corpus import entries

ROOT = Path(__file__).resolve().parents[2]

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
    config = advisor.Config(
        replication_factor=min(3, len(read.brokers)), kafka_version=read.kafka_version or "4.1"
    )
    make_plan(read, config, advisor.Workload())
    return read


def readers() -> tuple[Reader, ...]:
    """Return every reader of files."""
    samples = sorted((ROOT / "data" / "clusters").glob("testp3-*.txt"))[:4]
    described = [format_describe(live_cluster(), version) for version in ("4.1", "2.1", "0.8.0")]
    clusters = (
        *(path.read_bytes() for path in samples),
        *(text.encode() for text in (*described, TOML, STRIMZI, PLAN)),
        json.dumps(live_cluster().to_dict()).encode(),
        *(entry.path.read_bytes() for entry in entries()),
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
