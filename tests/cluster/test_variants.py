"""Public cases that were misread once, and variants: prefix, wrap, order, columns, fences."""

import json
import re
from collections.abc import Callable

import pytest
import yaml

from advisor.cluster import Cluster, load_cluster
from advisor.cluster.broker_presence import presence_of
from advisor.errors import InputError


def described(name: str, configs: str, factor: int, *rows: str) -> str:
    """Return a topic as 2.8 to 3.7 print it; a row is "leader / replicas / isr / what follows"."""
    lines = [
        f"Topic: {name}\tTopicId: Qm2vT8cNR1yKp0sWd4ZbHg\tPartitionCount: {len(rows)}\t"
        f"ReplicationFactor: {factor}\tConfigs: {configs}\n"
    ]
    for number, row in enumerate(rows):
        leader, replicas, isr, *more = row.split("/")
        lines.append(
            f"\tTopic: {name}\tPartition: {number}\tLeader: {leader}\tReplicas: {replicas}\t"
            f"Isr: {isr}{''.join(more)}\n"
        )
    return "".join(lines)


CONSTRAINTS = (
    'confluent.placement.constraints={"version":2,"replicas":[{"count":2,"constraints":{"rack":'
    '"north"}}],"observers":[{"count":2,"constraints":{"rack":"south"}}]}'
)
# https://github.com/opensupplyhub/open-supply-hub/issues/1163
TWO_BROKERS = described("requests", "min.insync.replicas=2", 2, "1/1,2/1,2", "2/2,1/2,1")
# https://kugarocks.com, Kafka, Leader Not Available
LAST_ISR = described("events", "max.message.bytes=20971520", 1, "0/0/0", "none/100/100", "0/0/0")
# https://github.com/mesos/kafka/issues/20
FOUR_REPLICAS = described("tests", "", 3, "1/1,2,3/1,2,3", "2/2,0,3,4/2,3,4", "4/4,0,5/4,5")
# https://github.com/deviceinsight/kafkactl/issues/137
ONE_RACK = described("invoices", "min.insync.replicas=2", 3, "1/1,3,5/1,3,5", "1/1,2,3/1,2,3")
# https://github.com/confluentinc/examples/pull/402
OBSERVERS = described("async", CONSTRAINTS, 4, "1/1,2,3,4/1,2/\tOffline: \tObservers: 3,4")
# https://github.com/strimzi/strimzi-kafka-operator/issues/9469
SAMPLES = described("__KafkaCruiseControlPartitionMetricSamples", "", 2, "0/0,1/0,1", "1/1,2/1,2")
# https://github.com/redpanda-data/redpanda/issues/1930
REDPANDA = described("orders", "redpanda.remote.read=true", 3, "1/1,2,3/1,2,3", "2/1,2,3/1,2,3")
READ = {
    "two brokers": TWO_BROKERS,
    "last ISR": LAST_ISR,
    "four replicas": FOUR_REPLICAS,
    "one rack": ONE_RACK,
    "observers": OBSERVERS,
    "samples": SAMPLES,
}


def _older(text: str) -> str:
    return re.sub(r"\tTopicId: \S+", "", text)


def _oldest_with_headers(text: str) -> str:
    header = re.compile(r"^Topic: (\S+)(\tPartitionCount|\tReplicationFactor|\tConfigs): ", re.M)
    text = header.sub(r"Topic:\1\2:", _older(text))
    return re.sub(r"\t(ReplicationFactor|Configs): ", r"\t\1:", text)


def _newer(text: str) -> str:
    return re.sub(r"(\tIsr: [\d,]*)", r"\1\tElr: \tLastKnownElr: ", text)


def _reversed(text: str) -> str:
    return "".join(reversed(text.splitlines(keepends=True)))


def _prefixed(prefix: str, text: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


VARIANTS: dict[str, Callable[[str], str]] = {
    "without ids (2.4 to 2.7)": _older,
    "joined headers (0.8.1 to 2.3)": _oldest_with_headers,
    "with ELR (3.8)": _newer,
    "partitions first": _reversed,
    "a log's prefix": lambda text: re.sub(
        "^\t?", "2025-01-02T10:00:00Z stdout F ", text, flags=re.M
    ).removesuffix("2025-01-02T10:00:00Z stdout F "),
    "compose's prefix": lambda text: re.sub("^\t?(?=T)", "kafka-1  | ", text, flags=re.M),
    "spaces": lambda text: text.replace("\t", "    "),
    "wrapped before labels": lambda text: re.sub(r"\t(?=Replicas|Offline|Configs)", "\n    ", text),
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "a fence and a prompt": lambda text: f"Our topic:\n```\n$ kafka-topics --describe\n{text}```\n",
    "a warning before it": lambda text: "WARNING: Due to limitations in metric names\n" + text,
    "byte order mark": lambda text: "\ufeff" + text,
    "a log's level": lambda text: re.sub(
        r"^\t?(?=T)", "[2025-01-02 10:00:00,123] INFO ", text, flags=re.M
    ),
    "a pod's name": lambda text: re.sub(r"^\t?(?=T)", "[pod/kafka-0/kafka] ", text, flags=re.M),
    "numbered lines": lambda text: _prefixed("     1\t", text),
    "a list of Ansible": lambda text: "".join(
        f"        {json.dumps(line)},\n" for line in text.splitlines()
    ),
}
COLUMNS = ("without ids (2.4 to 2.7)", "joined headers (0.8.1 to 2.3)", "with ELR (3.8)")
"""Variants that are other columns, and so of other versions."""


def reading(cluster: Cluster) -> dict[str, object]:
    """What a description says, apart from its columns."""
    return {
        "taken for": "kafka-topics" in cluster.taken_for,
        "brokers": list(cluster.brokers),
        "part": cluster.part,
        "presence": presence_of(cluster),
        "topics": {
            topic.name: [
                (p.index, p.leader, p.replicas, p.isr, p.observers, p.offline)
                for p in topic.partitions
            ]
            for topic in cluster.topics
        },
        "configs": [dict(topic.configs) for topic in cluster.topics],
    }


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", READ)
def test_a_variant_of_a_case_reads_like_the_case(case, variant):
    """The same brokers, replicas, states and settings, whatever stands around them."""
    changed = VARIANTS[variant](READ[case])
    assert changed != READ[case]
    assert reading(load_cluster(changed)) == reading(load_cluster(READ[case]))


@pytest.mark.parametrize("columns", ["", *COLUMNS])
@pytest.mark.parametrize("case", READ)
def test_the_version_that_columns_show_survives_what_stands_around_them(case, columns):
    """It decides on rules and defaults: a prefix does not make a cluster newer."""
    text = VARIANTS[columns](READ[case]) if columns else READ[case]
    layout = load_cluster(text).layout
    assert layout is not None
    around = {name: change for name, change in VARIANTS.items() if name not in COLUMNS}
    found = {name: load_cluster(change(text)).layout for name, change in around.items()}
    assert found == dict.fromkeys(around, layout)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("beside", ["", TWO_BROKERS])
def test_a_variant_of_redpanda_is_refused_like_it(beside, variant):
    """Neither a prefix nor a wrap hides the mark, nor another topic."""
    with pytest.raises(InputError, match=r"redpanda\.remote\.read shows .* no verdict"):
        load_cluster(VARIANTS[variant](beside + REDPANDA))


RPK = (
    "SUMMARY\n=======\nNAME        readings\nPARTITIONS  4\nREPLICAS    3\n\nCONFIGS\n=======\n"
    "KEY             VALUE   SOURCE\ncleanup.policy  delete  DYNAMIC_TOPIC_CONFIG\n\nPARTITIONS\n"
    "==========\nPARTITION  LEADER  REPLICAS  LOG-START-OFFSET          HIGH-WATERMARK\n"
    "0          3       [3 4 5]   0                         16758\n"
    "2          4       [3 4 5]   NOT_LEADER_FOR_PARTITION  NOT_LEADER_FOR_PARTITION\n"
)
"""https://github.com/redpanda-data/redpanda/issues/3347"""


@pytest.mark.parametrize(
    "changed",
    [
        RPK,
        RPK[RPK.index("PARTITION  LEADER") :],
        RPK.replace("LEADER  ", "LEADER  EPOCH  ").replace("       [", "       7      ["),
        _prefixed("> ", RPK),
        _prefixed("    ", RPK),
        _prefixed("2025-01-02T10:00:00Z stdout F ", RPK),
        _prefixed("redpanda-0  | ", RPK),
        RPK.replace("\n", "\r\n"),
        f"```\n$ rpk topic describe readings -p\n{RPK}```\n",
        RPK + TWO_BROKERS,
    ],
)
def test_a_variant_of_rpk_is_refused_by_its_name(changed):
    """Of Redpanda, with the reason; never read, and never said to be cut."""
    with pytest.raises(InputError, match=r"rpk topic describe, of Redpanda: .*majority"):
        load_cluster(changed)


# https://github.com/edenhill/kcat/issues/40
KCAT = """\
Metadata for all topics (from broker -1: 10.0.0.65:9092/bootstrap):
 3 brokers:
  broker 1 at 10.0.0.65:9092
  broker 12 at 10.0.0.66:9092
  broker 3 at 10.0.0.67:9092 (controller)
 1 topics:
  topic "install-check" with 2 partitions:
    partition 1, leader 12, replicas: 12,3,1, isrs: 12
    partition 0, leader 3, replicas: 3,1,12, isrs: 1,12,3
"""
# https://github.com/confluentinc/cli/pull/119
CCLOUD = """\
Topic: f1 PartitionCount: 3 ReplicationFactor: 3
  Topic | Partition | Leader | Replicas |   ISR
+-------+-----------+--------+----------+---------+
  f1    |         0 |      0 | [0 1 2]  | [0 1 2]
  f1    |         1 |      1 | [1 2 3]  | [1 2 3]
  f1    |         2 |      2 | [2 3 0]  | [2 3]

Topic: f1 Configuration
                    Name                   |        Value
+-----------------------------------------+---------------------+
  compression.type                        | producer
  min.insync.replicas                     |                   2
"""
# https://github.com/strimzi/strimzi-kafka-operator/issues/8770 and 8696
STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata:
  name: shop
spec:
  kafka:
    version: 3.5.0
    replicas: 1
    config:
      min.insync.replicas: 2
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaNodePool
metadata:
  name: combined
  labels:
    strimzi.io/cluster: shop
spec:
  replicas: 3
  roles: [controller, broker]
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: heartbeats
spec:
  partitions: 1
  replicas: 1
"""


def _swapped(first: str, second: str, text: str) -> str:
    """Return a text with two lines in the other order."""
    lines = text.splitlines(keepends=True)
    places = [next(n for n, line in enumerate(lines) if part in line) for part in (first, second)]
    lines[places[0]], lines[places[1]] = lines[places[1]], lines[places[0]]
    return "".join(lines)


def _around(text: str) -> dict[str, str]:
    """Return a text as logs, terminals, mails and chats show it."""
    return {
        "compose": _prefixed("kcat-1  | ", text),
        "container log": _prefixed("2025-01-02T10:00:00Z stdout F ", text),
        "quoted": _prefixed("> ", text),
        "indented": _prefixed("    ", text),
        "Windows": text.replace("\n", "\r\n"),
        "fence": f"It says:\n```\n$ the tool\n{text}```\nWhat now?\n",
        "byte order mark": "\ufeff" + text,
    }


def _as_list(text: str) -> str:
    """Return resources as `kubectl get -o json` has them, with what a cluster adds."""
    items = [dict(document) for document in yaml.safe_load_all(text)]
    for item in items:
        item["metadata"] = {**item["metadata"], "uid": "1", "resourceVersion": "7"}
        item["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)


_DOCUMENTS = STRIMZI.split("---\n")
OTHERS = {
    **{f"kcat, {name}": (KCAT, text) for name, text in _around(KCAT).items()},
    "kcat, partitions in order": (KCAT, _swapped("partition 1", "partition 0", KCAT)),
    "kcat, one topic asked for": (KCAT, KCAT.replace("all topics", "install-check")),
    "kcat, older": (KCAT, KCAT.replace(" (controller)", "")),
    **{f"ccloud, {name}": (CCLOUD, text) for name, text in _around(CCLOUD).items()},
    "ccloud, other order": (CCLOUD, _swapped("|         0 |", "|         2 |", CCLOUD)),
    "ccloud, spaces at ends": (CCLOUD, CCLOUD.replace("\n", "  \n")),
    "strimzi, kubectl -o json": (STRIMZI, _as_list(STRIMZI)),
    "strimzi, kubectl -o yaml": (STRIMZI, yaml.safe_dump(json.loads(_as_list(STRIMZI)))),
    "strimzi, last first": (STRIMZI, "---\n".join(reversed(_DOCUMENTS))),
    "strimzi, Windows": (STRIMZI, STRIMZI.replace("\n", "\r\n")),
    "strimzi, v1": (STRIMZI, STRIMZI.replace("v1beta2", "v1")),
    "strimzi, comments": (STRIMZI, "# ours\n---\n" + STRIMZI.replace("spec:", "spec:  # all")),
    "strimzi, byte order mark": (STRIMZI, "\ufeff" + STRIMZI),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_variant_of_another_tool_s_output_reads_like_the_case(name):
    """Of kcat, the Confluent CLI and Strimzi: the same brokers, partitions and settings."""
    text, changed = OTHERS[name]
    assert changed != text
    whole, read = load_cluster(text), load_cluster(changed)
    assert reading(read) == reading(whole)
    assert (read.controllers, read.kafka_version) == (whole.controllers, whole.kafka_version)


def test_what_is_right_of_each_case():
    """The states that were misread: two synchronous replicas; broker 100 waited for; 0 behind."""
    (observed,) = load_cluster(OBSERVERS).topics
    assert (observed.replication_factor, observed.min_insync_replicas) == (2, None)
    assert presence_of(load_cluster(OBSERVERS)).missing == ()
    assert presence_of(load_cluster(LAST_ISR)).offline == (100,)
    assert presence_of(load_cluster(FOUR_REPLICAS)).unknown == (0,)
    (four,) = load_cluster(FOUR_REPLICAS).topics
    assert [p.replication_factor for p in four.partitions] == [3, 4, 3]
    (kcat,), (ccloud,) = load_cluster(KCAT).topics, load_cluster(CCLOUD).topics
    assert [p.isr for p in kcat.partitions] == [(1, 12, 3), (12,)]
    assert [p.isr for p in ccloud.partitions][2] == (2, 3)
    assert ccloud.min_insync_replicas == 2
    resources = load_cluster(STRIMZI)
    assert [*resources.brokers] == [0, 1, 2]
    assert resources.topic("heartbeats").min_insync_replicas == 2
