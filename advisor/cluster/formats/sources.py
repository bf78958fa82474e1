"""`SOURCES`: every kind of text that is known here, and what is done with it.

One entry is one tool's output or one kind of file. The first entry that recognises a text names it,
so that a special one stands before the general one that would also take it. To add one, write a
`Source` with its example; `tests/cluster/formats/test_sources.py` takes it through all doors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from advisor.cluster.completeness import DESCRIBE
from advisor.cluster.formats.additions import (
    Addition,
    read_api_versions,
    read_configs,
    read_features,
    read_log_dirs,
    read_moves,
    read_quorum,
)
from advisor.cluster.formats.confluent_cli import (
    is_confluent_table,
    is_framed_table,
    parse_confluent_cli,
    parse_framed_table,
)
from advisor.cluster.formats.confluent_operator import parse_confluent_operator
from advisor.cluster.formats.cruise_control import VERBOSE, is_cluster_state, parse_cluster_state
from advisor.cluster.formats.deployments import parse_compose, parse_helm
from advisor.cluster.formats.describe import looks_like_describe, read_describe
from advisor.cluster.formats.json_format import is_generated_plan, parse_generated_plan, parse_json
from advisor.cluster.formats.kcat import HEADING, parse_kcat
from advisor.cluster.formats.pasted import LINE_PREFIX
from advisor.cluster.formats.printed_objects import (
    looks_like_objects,
    parse_kcat_json,
    parse_objects,
    parse_replica_list,
)
from advisor.cluster.formats.strimzi import parse_strimzi
from advisor.cluster.formats.toml_format import parse_toml
from advisor.cluster.formats.topics_as_code import (
    parse_aiven,
    parse_julie,
    parse_terraform,
    parse_topic_lists,
    read_aiven_service,
)
from advisor.cluster.model import Cluster
from advisor.errors import InputError

RackOf = Mapping[int, str | None]
"""Rack by broker id; empty where the user gives none."""

BEGINNING = 200_000
"""Characters that a text is recognised by: one of 100 MB is not searched several times."""

_WIDTH = 500


@dataclass(frozen=True)
class Source:
    """One kind of text that may describe a cluster.

    recognise: whether a text is of this kind, from its first `BEGINNING` characters. It must not
        fail.
    carries: what it has, of brokers, leaders, replicas, ISR, racks and settings; "" if it is
        declined.
    read: the cluster, from the text and its name for error messages. Racks that the user gives are
        set afterwards.
    place: in place of `read`, for a text that only counts replicas: the cluster, from the text, its
        name and the racks, by which replicas are placed. Without either the source is declined.
    instead: for a declined one: why, and what to run instead, as the end of a sentence.
    add: for a declined one that can stand beside a description of the same cluster: what it says of
        the cluster, from the text and its name.
    joins: whether what it says of brokers is added to another file of the same cluster that has the
        partitions.
    needs_racks: whether it says nothing of brokers, so that they are those of the racks that the
        user gives.
    suffix: end of the names of such files (".toml"): settles which one it is where several, or
        none, recognise a text.
    """

    name: str
    recognise: Callable[[str], bool]
    carries: str = ""
    read: Callable[[str, str], Cluster] | None = None
    place: Callable[[str, str, RackOf], Cluster] | None = None
    instead: str = ""
    add: Callable[[str, str], Addition] | None = None
    example: str = ""
    joins: bool = False
    needs_racks: bool = False
    suffix: tuple[str, ...] = ()

    def cluster_in(self, text: str, name: str, rack_of: RackOf) -> Cluster:
        """Read the cluster of a text of this kind; a declined one says what to run instead."""
        if self.read is not None:
            return self.read(text, name)
        if self.needs_racks and not rack_of:
            raise InputError(
                f"{name}: this is {self.name}, which say nothing of brokers: name them with "
                f"--racks 1=a,2=b,3=c, or run {DESCRIBE}"
            )
        if self.place is not None:
            return self.place(text, name, rack_of)
        beside = "" if self.add is None else ", and give both files together (advisor audit A B)"
        raise InputError(f"{name}: this is {self.name}: {self.instead}{beside}")


def has(pattern: str) -> Callable[[str], bool]:
    """Return a recogniser: whether a pattern occurs in the first `_WIDTH` characters of lines."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda beginning: compiled.search(_narrow(beginning)) is not None


@lru_cache(maxsize=2)  # all entries look at the same text
def _narrow(text: str) -> str:
    """Cut long lines, which could take the square of their length to search, and prefixes."""
    return "\n".join(LINE_PREFIX.sub("", line[:_WIDTH]) for line in text.splitlines())


def _is_json(beginning: str) -> bool:
    return beginning.lstrip().startswith("{")


def _has_json_keys(*keys: str) -> Callable[[str], bool]:
    """Return a recogniser of JSON that names all of some keys near its beginning."""
    compiled = [re.compile(rf'"{re.escape(key)}" ?:') for key in keys]
    return lambda beginning: (
        beginning.lstrip()[:1] in ("{", "[") and all(key.search(beginning) for key in compiled)
    )


# Brokers by id: what other tools print has lists of them.
_BROKERS_BY_ID = re.compile(r'"brokers" ?: ?\{')


def _is_saved_cluster(beginning: str) -> bool:
    """Whether it is JSON of `Cluster.to_dict`, or written by hand like that, or damaged since."""
    if not _is_json(beginning):
        return False
    by_id = _BROKERS_BY_ID.search(beginning) is not None
    if by_id or not _has_json_keys("kafka_version", "topics")(beginning):
        return by_id
    return not _has_json_keys("service_type")(beginning)  # a managed service


# Koperator, Stackable, KubeDB: these have a kind for a cluster of Kafka, too.
_OTHER_OPERATOR = re.compile(
    r"\bapiVersion\W+(kafka\.banzaicloud\.io|kafka\.stackable\.tech|kubedb\.com)/"
)


def _is_of_another_operator(beginning: str) -> bool:
    return _OTHER_OPERATOR.search(beginning) is not None and "kafka.strimzi.io/" not in beginning


# What kt and kafkactl print of a partition: offsets, and the leader as host:port.
_OFFSETS = re.compile(r'"oldest(_?offset)?"\s*:\s*-?\d', re.IGNORECASE)
_ADDRESS = re.compile(r'"leader"\s*:\s*"[^"\s]*:\d+"', re.IGNORECASE)
_KIND = re.compile(r'"kind"\s*:\s*"Kafka(Topic|Partition|Cluster|Broker)')
_AIVEN = re.compile(r'^[ \t]*resource +"aiven_kafka" +"', re.MULTILINE)


def _is_every_line(pattern: str, beginning: str) -> bool:
    """Whether every line that is not blank is of a pattern, and there is one."""
    lines = [line.strip() for line in beginning.splitlines() if line.strip()]
    return bool(lines) and all(re.fullmatch(pattern, line, re.ASCII) for line in lines)


SOURCES: tuple[Source, ...] = (
    Source(
        name="a cluster saved as JSON",
        recognise=_is_saved_cluster,
        carries="brokers, racks, leaders, replicas, ISR and settings",
        read=parse_json,
        example='{"kafka_version": "4.1", "brokers": {"1": "a", "2": "b"}, "topics": [{"name": '
        '"orders", "partitions": [{"index": 0, "leader": 1, "replicas": [1, 2], "isr": [1, 2]}]}]}',
        suffix=(".json",),
    ),
    Source(
        name="a plan of kafka-reassign-partitions.sh",
        recognise=lambda beginning: (
            _is_json(beginning)
            and _has_json_keys("version", "partitions", "topic", "replicas")(beginning)
            and not _has_json_keys("brokers")(beginning)
        ),
        carries="replicas; neither leaders nor ISR nor settings",
        read=parse_json,
        example='{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": '
        "[1, 2]}]}",
        suffix=(".json",),
    ),
    Source(
        name="the output of kafka-reassign-partitions.sh --generate",
        recognise=is_generated_plan,
        carries="the replicas of the current assignment; neither leaders nor ISR nor settings",
        read=parse_generated_plan,
        example='Current partition replica assignment\n{"version":1,"partitions":['
        '{"topic":"orders",'
        '"partition":0,"replicas":[1,2]}]}\n\nProposed partition reassignment configuration\n'
        '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,3]}]}\n',
    ),
    Source(
        name="the output of kafka-reassign-partitions.sh",
        recognise=has(
            r"^Status of partition reassignment:|^Reassignment of partition \S+ |"
            r"^(Current|No) partition reassignments"
            r"|^Current partition replica assignment|^Proposed partition reassignment|"
            r"^Successfully (started|cancelled) .*reassignment|--reassignment-json-file option"
        ),
        instead="what --execute, --verify, --list and --cancel print is not where the replicas are "
        f"now; run {DESCRIBE}, which also shows the replicas that are being added and removed",
        add=read_moves,
        example="Status of partition reassignment:\nReassignment of partition orders-0 is complete."
        "\nReassignment of partition orders-1 is still in progress.\n",
    ),
    Source(
        name="the output of rpk topic describe, of Redpanda",
        recognise=has(
            r"^ *PARTITION +LEADER +(EPOCH +)?REPLICAS|^ *NAME +PARTITIONS +REPLICAS *$|"
            r"^ *Partition +Leader +Replicas +In-Sync Replicas|"
            r"^CLUSTER\n=+\nredpanda\."
        ),
        instead="Redpanda replicates with Raft: acks=all waits for a majority of the replicas and "
        "there is no min ISR. The model of Kafka's replication does not apply to it; give the "
        f"output of {DESCRIBE} of a cluster that runs Apache Kafka",
        example="SUMMARY\n=======\nNAME        readings\nPARTITIONS  1\nREPLICAS    3\n\n"
        "PARTITIONS\n==========\nPARTITION  LEADER  REPLICAS  LOG-START-OFFSET  HIGH-WATERMARK\n"
        "0          3       [3 4 5]   0                 16758\n",
    ),
    Source(
        name="the output of kcat -L",
        recognise=has(HEADING),
        carries="the brokers that run, leaders, replicas and ISR; no settings; no racks",
        read=parse_kcat,
        example="Metadata for all topics (from broker 1: 10.0.0.1:9092/1):\n 1 brokers:\n"
        '  broker 1 at 10.0.0.1:9092\n 1 topics:\n  topic "orders" with 1 partitions:\n'
        "    partition 0, leader 1, replicas: 1, isrs: 1\n",
    ),
    Source(
        name="the output of kcat -L -J",
        recognise=has(r'"originating_broker"\s*:'),
        carries="the brokers that run, leaders, replicas and ISR; no settings; no racks",
        read=parse_kcat_json,
        example='{"originating_broker":{"id":1,"name":"10.0.0.1:9092/1"},"query":{"topic":"*"},'
        '"controllerid":1,"brokers":[{"id":1,"name":"10.0.0.1:9092"}],"topics":[{"topic":"orders",'
        '"partitions":[{"partition":0,"leader":1,"replicas":[{"id":1}],"isrs":[{"id":1}]}]}]}',
        suffix=(".json",),
    ),
    Source(
        name="Cruise Control's kafka_cluster_state",
        recognise=is_cluster_state,
        carries="brokers, leaders, replicas, ISR and the min ISR that holds; no racks",
        read=parse_cluster_state,
        example='{"KafkaPartitionState":{"offline":[],"urp":[],"other":[{"topic":"orders",'
        '"partition":0,"leader":1,"replicas":[1,2],"in-sync":[1,2],"min-isr":1}]}}',
        suffix=(".json",),
    ),
    Source(
        name="an answer of Cruise Control",
        recognise=has(
            r'"(MonitorState|ExecutorState|AnalyzerState|goalSummary|loadBeforeOptimization)"\s*:'
            r"|^(MonitorState|ExecutorState|AnalyzerState): \{"
        ),
        instead=f"it has neither replicas nor ISR; ask it for {VERBOSE}, or run {DESCRIBE}",
        example="MonitorState: {state: RUNNING(20.000% trained), NumValidWindows: (5/5) (100.000%)}"
        "\nExecutorState: {state: NO_TASK_IN_PROGRESS}\n",
        suffix=(".json",),
    ),
    Source(
        name="a table of partitions in Markdown",
        recognise=is_framed_table,
        carries="leaders, replicas and ISR; no settings; no racks",
        read=parse_framed_table,
        example="| Topic | Partition | Leader | Replicas | Isr |\n|---|---|---|---|---|\n"
        "| orders | 0 | 1 | 1,2,3 | 1,2 |\n",
    ),
    Source(
        name="the output of the Confluent CLI",
        recognise=is_confluent_table,
        carries="leaders, replicas, ISR and, where it prints them, settings; no racks",
        read=parse_confluent_cli,
        example="Topic: orders PartitionCount: 1 ReplicationFactor: 3\n"
        "  Topic  | Partition | Leader | Replicas |   ISR    \n"
        "+--------+-----------+--------+----------+---------+\n"
        "  orders |         0 |      0 | [0 1 2]  | [0 1 2]  \n",
    ),
    Source(
        name="replicas as Confluent's REST API lists them",
        recognise=has(r'"is_in_(sync|isr)"\s*:'),
        carries="leaders, replicas and ISR; no settings; no racks",
        read=parse_replica_list,
        example='{"kind":"KafkaReplicaList","data":[{"kind":"KafkaReplica","topic_name":"orders",'
        '"partition_id":0,"broker_id":1,"is_leader":true,"is_in_sync":true}]}',
        suffix=(".json",),
    ),
    Source(
        name="an answer of Confluent's REST API",
        recognise=lambda beginning: (
            _has_json_keys("cluster_id")(beginning) and _KIND.search(beginning) is not None
        ),
        instead="it has no replicas; ask it for "
        f"/v3/clusters/ID/topics/TOPIC/partitions/PARTITION/replicas, or run {DESCRIBE}",
        example='{"kind":"KafkaTopicList","data":[{"kind":"KafkaTopic","cluster_id":"1","topic_name":"orders",'
        '"replication_factor":3,"partitions_count":2}]}',
        suffix=(".json",),
    ),
    Source(
        name="topics of kt or kafkactl as JSON",
        recognise=lambda beginning: (
            _OFFSETS.search(beginning) is not None and _ADDRESS.search(beginning) is not None
        ),
        instead="it names a leader by its address, and replicas by their ids, so that who leads is "
        f"not known; run {DESCRIBE}",
        example='{"name":"orders","partitions":[{"id":0,"oldest":0,"newest":12,'
        '"leader":"kafka-1:9092","replicas":[1,2],"isrs":[1,2]}]}\n',
        suffix=(".json",),
    ),
    Source(
        name="topics as a client of Kafka prints them",
        recognise=looks_like_objects,
        carries="leaders, replicas and ISR, and racks and settings where the client prints them",
        read=parse_objects,
        example="[{'topic': 'orders', 'partitions': [{'partition': 0, 'leader': 1, "
        "'replicas': [1, 2], 'isr': [1, 2]}]}]\n",
        suffix=(".json",),
    ),
    Source(
        name="the output of Confluent's kafka-topics --describe",
        recognise=has(r"\sIsr:.*\s(Offline|Observers|LiveObservers):"),
        carries="leaders, replicas, ISR, observers, offline replicas and settings; no racks",
        read=read_describe,
        example="Topic: orders\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tOffline: \t"
        "Observers: 3\n",
    ),
    Source(
        name="the output of kafka-topics.sh --describe",
        recognise=looks_like_describe,
        carries="leaders, replicas, ISR and settings; no racks",
        read=read_describe,
        example="Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n",
    ),
    Source(
        name="the output of kafka-log-dirs.sh --describe",
        recognise=has(r'^[ \t]*(\{.*)?"logDirs"\s*:'),
        instead=f"it has sizes of logs, and neither leaders nor ISR; run {DESCRIBE}",
        add=read_log_dirs,
        example='Querying brokers for log directories information\n{"version":1,"brokers":'
        '[{"broker":1,"logDirs":[{"logDir":"/data","error":null,"partitions":[]}]}]}\n',
        suffix=(".json",),
    ),
    Source(
        name="topics of Terraform",
        recognise=has(r'^[ \t]*resource +"(aiven_)?kafka_topic" +"'),
        carries="counts of partitions and replicas, and settings; the brokers are those given",
        needs_racks=True,
        place=parse_terraform,
        example='resource "kafka_topic" "orders" {\n  name               = "orders"\n  partitions  '
        "       = 3\n  replication_factor = 3\n}\n",
        suffix=(".tf",),
    ),
    Source(
        name="topics as Aiven's command line prints them",
        recognise=_has_json_keys("topic_name", "replication"),
        carries="counts of partitions and replicas, and settings; the brokers are those given",
        needs_racks=True,
        place=parse_aiven,
        example='[{"topic_name": "orders", "partitions": 3, "replication": 3, '
        '"min_insync_replicas": 2}]',
        suffix=(".json",),
    ),
    Source(
        name="the configuration of an Aiven service",
        recognise=lambda beginning: (
            _AIVEN.search(beginning) is not None
            or _has_json_keys("kafka_user_config")(beginning)
            or _has_json_keys("service_type", "user_config")(beginning)
        ),
        instead=f"it has settings of brokers and no replicas; run {DESCRIBE}",
        add=read_aiven_service,
        example='resource "aiven_kafka" "shop" {\n  kafka_user_config {\n    kafka {\n      '
        "min_insync_replicas = 2\n    }\n  }\n}\n",
        suffix=(".json", ".tf"),
    ),
    Source(
        name="topics of Terraform on Confluent Cloud",
        recognise=has(r'^[ \t]*resource +"confluent_kafka_topic" +"'),
        instead="on Confluent Cloud every topic has RF 3, a topic's min.insync.replicas is 1 or 2, "
        f"and brokers are not shown: there is nothing to choose from a file; run {DESCRIBE}",
        example='resource "confluent_kafka_topic" "orders" {\n  topic_name       = "orders"\n  '
        "partitions_count = 6\n}\n",
    ),
    Source(
        name="a topology of JulieOps",
        recognise=has(r"^ *projects:[ \t]*$"),
        carries="counts of partitions and replicas, and settings; the brokers are those given",
        needs_racks=True,
        place=parse_julie,
        example='context: "shop"\nprojects:\n  - name: "bills"\n    topics:\n'
        '      - name: "orders"\n        config:\n          replication.factor: "3"\n'
        '          num.partitions: "3"\n',
        suffix=(".yaml", ".yml"),
    ),
    Source(
        name="a file of docker compose",
        recognise=has(r"^services:[ \t]*$"),
        carries="brokers, racks where it states them, and settings of brokers; no topics",
        read=parse_compose,
        joins=True,
        example="services:\n  kafka-1:\n    image: apache/kafka:4.1.0\n    environment:\n"
        "      KAFKA_NODE_ID: 1\n",
        suffix=(".yaml", ".yml"),
    ),
    Source(
        name="values of a Helm chart",
        recognise=has(
            r"^(kafka|broker|controller|zookeeper|kraft|provisioning|cp-kafka|cp-helm-charts|"
            r"configurationOverrides):[ \t]*$|^(replicaCount|brokers): *\d"
        ),
        carries="brokers, settings of brokers, and counts of the topics that it makes; no racks",
        place=parse_helm,
        joins=True,
        example="controller:\n  replicaCount: 3\nkraft:\n  enabled: true\n",
        suffix=(".yaml", ".yml"),
    ),
    Source(
        name="topics in YAML",
        recognise=has(r"^topics:[ \t]*$|^meta:[ \t]*$(?=(.*\n)*spec:[ \t]*$)"),
        carries="counts of partitions and replicas, and settings; the brokers are those given",
        needs_racks=True,
        place=parse_topic_lists,
        example="topics:\n  - name: orders\n    partitions: 6\n    replicationFactor: 3\n",
        suffix=(".yaml", ".yml"),
    ),
    Source(
        name="resources of Confluent for Kubernetes",
        recognise=has(r"\bapiVersion\W+platform\.confluent\.io/"),
        carries="brokers, counts of partitions and replicas, and settings that override the "
        "operator's; no ISR",
        place=parse_confluent_operator,
        example="apiVersion: platform.confluent.io/v1beta1\nkind: Kafka\nmetadata:\n"
        "  name: kafka\nspec:\n  replicas: 3\n---\napiVersion: platform.confluent.io/v1beta1\n"
        "kind: KafkaTopic\nmetadata:\n  name: orders\nspec:\n  partitionCount: 3\n  replicas: 3\n",
        suffix=(".yaml", ".yml", ".json"),
    ),
    Source(
        name="Kubernetes resources of another operator than Strimzi and Confluent's",
        recognise=_is_of_another_operator,
        instead=f"they are not read; run {DESCRIBE} in a broker's pod",
        example="apiVersion: kafka.banzaicloud.io/v1beta1\nkind: KafkaCluster\nmetadata:\n"
        "  name: kafka\nspec:\n  brokers:\n    - id: 0\n",
        suffix=(".yaml", ".yml", ".json"),
    ),
    Source(
        name="Kubernetes resources of Strimzi",
        recognise=has(r"^(apiVersion|kind|items):|\"apiVersion\"\s*:\s*\"kafka\.strimzi\.io/"),
        carries="brokers, counts of partitions and replicas, and settings; no ISR",
        place=parse_strimzi,
        example="apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata:\n  name: shop\n"
        "spec:\n  kafka:\n    replicas: 3\n---\napiVersion: kafka.strimzi.io/v1beta2\n"
        "kind: KafkaTopic\nmetadata:\n  name: orders\nspec:\n  partitions: 3\n  replicas: 3\n",
        suffix=(".yaml", ".yml", ".json"),
    ),
    Source(
        name="a description in TOML",
        recognise=has(
            r"^[ \t]*(\[\[?[ \t]*(brokers|broker|racks|controllers|defaults|topic)\b"
            r"|(kafka_version|brokers|racks)[ \t]*=)"
        ),
        carries="brokers, racks, and topics as they are to be",
        place=parse_toml,
        example='brokers = 3\nracks = 3\n\n[[topic]]\nname = "orders"\nreplicas = [[1, 2, 3]]\n',
        suffix=(".toml",),
    ),
    Source(
        name="the output of kafka-consumer-groups.sh",
        recognise=has(
            r"^(GROUP|TOPIC)\s.*\b(CURRENT-OFFSET|LAG)\b|^Group\s+Topic\s+Pid\s+Offset\b|"
            r"^GROUP\s+COORDINATOR \(ID\)"
        ),
        instead=f"it has offsets and no replicas; run {DESCRIBE}",
        example="GROUP  TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG\n"
        "bill   orders  0          12              14              2\n",
    ),
    Source(
        name="the output of kafka-configs.sh --describe",
        recognise=has(
            r"^(Dynamic|All|Default|Quota|SCRAM credential) configs? for |^Configs for |"
            r"^[ \t]+[\w.-]+=.* sensitive=(true|false) synonyms=\{"
        ),
        instead=f"it has settings and no replicas; run {DESCRIBE}, which prints the settings too",
        add=read_configs,
        example="Dynamic configs for topic orders are:\n  min.insync.replicas=2 sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=2}\n",
    ),
    Source(
        name="the output of kafka-metadata-quorum.sh describe",
        recognise=has(r"^(ClusterId: .*\n)?LeaderId: |^NodeId\s.*\bLogEndOffset\b.*\bLag\b"),
        instead=f"it has the controllers and no replicas of topics; run {DESCRIBE}",
        add=read_quorum,
        example="ClusterId:              fMCL8kv1SWm87L_Md-I2hg\nLeaderId:               3002\n"
        "LeaderEpoch:            2\nHighWatermark:          10\n",
    ),
    Source(
        name="the output of kafka-features.sh describe",
        recognise=has(r"^Feature: \S+\s+SupportedMinVersion:"),
        instead=f"it has features and no replicas; run {DESCRIBE}",
        add=read_features,
        example="Feature: metadata.version\tSupportedMinVersion: 3.0-IV1\tSupportedMaxVersion: "
        "4.0-IV3\tFinalizedVersionLevel: 4.0-IV3\tEpoch: 5\n",
    ),
    Source(
        name="the output of kafka-broker-api-versions.sh",
        recognise=has(r"^\S+:\d+ \(id: -?\d+ rack: \S+( isFenced: \w+)?\) -> \("),
        instead=f"it has brokers and no replicas; run {DESCRIBE}",
        add=read_api_versions,
        example="kafka-1:9092 (id: 1 rack: a isFenced: false) -> (\n\tProduce(0): 0 to 12 "
        "[usable: 12],\n",
    ),
    Source(
        name="the output of kafkactl describe topic",
        recognise=has(r"^PARTITION +OLDEST_OFFSET +NEWEST_OFFSET\b|^PARTITION\s.*IN_SYNC_REPLICAS"),
        instead=f"run {DESCRIBE}",
        example="PARTITION   OLDEST_OFFSET   NEWEST_OFFSET   EMPTY   LEADER        REPLICAS   "
        "IN_SYNC_REPLICAS\n0           0               12              false   kafka1:9092  101,102"
        "    101,102\n",
    ),
    Source(
        name="the output of kaf topic describe",
        recognise=has(r"^ *Partition +High Watermark +Leader +Replicas +ISR *$"),
        instead=f"run {DESCRIBE}",
        example="Name:        orders\nInternal:    false\nPartitions:\n"
        "  Partition  High Watermark  Leader  Replicas  ISR\n"
        "  0          12              2       [1 2 3]   [1 2 3]\n",
    ),
    Source(
        name="the output of topicctl get partitions",
        recognise=has(r"^ *ID +\| +LEADER +\| +ISR +\| +REPLICAS +\|"),
        instead=f"run {DESCRIBE}",
        example="  ID | LEADER |   ISR   | REPLICAS | DISTINCT | RACKS | STATUS\n"
        "-----+--------+---------+----------+----------+-------+--------\n"
        "   0 | 1      | [1 2 3] | [1 2 3]  | 3        | [a b] | OK\n",
    ),
    Source(
        name="metrics of Kafka",
        recognise=has(r"^# (HELP|TYPE) kafka_|^kafka_[a-z_]+\{[^}]*\} +[\d.eE+-]+"),
        instead="they count replicas and do not name them; advisor learn reads metrics, and here "
        f"run {DESCRIBE}",
        example="# TYPE kafka_topic_partition_in_sync_replica gauge\n"
        'kafka_topic_partition_in_sync_replica{partition="0",topic="orders"} 3\n',
    ),
    Source(
        name="what ZooKeeper keeps of topics",
        recognise=has(r'^(\[zk: .*\] )?get /\S*brokers/topics/|^\{"controller_epoch":\d+,'),
        instead=f"run {DESCRIBE}",
        example="get /brokers/topics/orders/partitions/0/state\n"
        '{"controller_epoch":1,"leader":3,"version":1,"leader_epoch":5,"isr":[1,2,3]}\n',
        suffix=(".json",),
    ),
    Source(
        name="the output of kafka-get-offsets.sh",
        recognise=lambda beginning: _is_every_line(r"[\w.-]+:\d+:-?\d*", beginning),
        instead=f"it has offsets and no replicas; run {DESCRIBE}",
        example="orders:0:12\norders:1:14\n",
    ),
    Source(
        name="the table of kubectl get kafkatopic",
        recognise=has(r"^NAME +CLUSTER +PARTITIONS +REPLICATION FACTOR\b"),
        instead="it has no settings and no brokers; run kubectl get kafka,kafkanodepool,kafkatopic "
        f"-o yaml, or {DESCRIBE} in a broker's pod",
        example="NAME     CLUSTER   PARTITIONS   REPLICATION FACTOR   READY\n"
        "orders   shop      12           3                    True\n",
    ),
    Source(
        name="the description of an MSK cluster",
        recognise=_has_json_keys("ClusterArn"),
        instead=f"it has brokers and no replicas; run {DESCRIBE}",
        example='{"ClusterInfo": {"ClusterArn": "arn:aws:kafka:us-east-1:1:cluster/shop/1", '
        '"NumberOfBrokerNodes": 3}}\n',
        suffix=(".json",),
    ),
    Source(
        name="a broker's server.properties",
        recognise=has(
            r"^(broker\.id|node\.id|process\.roles|zookeeper\.connect|log\.dirs|listeners|"
            r"advertised\.listeners)\s*="
        ),
        instead=f"it has the settings of one broker and no topics; run {DESCRIBE}",
        example="process.roles=broker,controller\nnode.id=1\nlog.dirs=/data\n",
    ),
    Source(
        name="an error message of Kafka's tools",
        recognise=has(
            r"^Error while executing \w+ command|^(\[[^]]*\] )?(ERROR|WARN) .*org\.apache\.kafka|"
            r"^Exception in thread .*|^(Caused by: )?org\.apache\.kafka\S*Exception"
        ),
        instead=f"the command failed; once it succeeds, give the output of {DESCRIBE}",
        example="Error while executing topic command : Timed out waiting for a node assignment. "
        "Call: describeTopics\n[2025-01-02 10:00:00,000] ERROR "
        "org.apache.kafka.common.errors.TimeoutException: Timed out\n",
    ),
    Source(
        name="a list of names, as kafka-topics.sh --list prints",
        recognise=lambda beginning: _is_every_line(r"[\w.-]+", beginning),
        instead=f"it has no replicas; run {DESCRIBE}",
        example="orders\npayments\n",
    ),
    Source(
        name="JSON",
        recognise=_is_json,
        carries="replicas",
        read=parse_json,
        example='{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}',
        suffix=(".json",),
    ),
)
"""Every known kind of text; the first that recognises a text names it."""


# What a partition looks like in the output of each tool: two in one text are noticed by it.
_PARTITIONS: Mapping[str, Callable[[str], bool]] = {
    "the output of kcat -L": has(r"\bpartition \d+,? leader:? -?\d+, replicas:"),
    "the output of kafka-topics.sh --describe": has(r"(?<!\S)[Pp]artition:\s*\d+\s+[Ll]eader:"),
    "the output of kafka-reassign-partitions.sh --generate": is_generated_plan,
    "the output of the Confluent CLI": is_confluent_table,
    "Cruise Control's kafka_cluster_state": is_cluster_state,
    "topics as a client of Kafka prints them": looks_like_objects,
}


def not_read(text: str, source: Source) -> str:
    """Say which other tool's partitions are in a text that one reader has read; "" if none are."""
    if source.name not in _PARTITIONS or _is_json(text):
        return ""
    beginning = text[:BEGINNING]
    if source.read is parse_kcat:  # some clients print lists in brackets in such lines
        beginning = re.sub(r".*\bpartition \d+,? leader.*", "", beginning)
    tools = [
        name for name, shows in _PARTITIONS.items() if name != source.name and shows(beginning)
    ]
    if not tools:
        return ""
    return f"It also has {', '.join(tools)}, which was not read; give each output in its own file."


def source_of(text: str, suffix: str = "") -> Source | None:
    """Return what a text is, by its beginning and the end of its file's name; None if unknown."""
    beginning = text[:BEGINNING]
    candidates = [source for source in SOURCES if source.recognise(beginning)]
    if not candidates and looks_like_describe(text[BEGINNING:]):
        candidates = [source for source in SOURCES if source.recognise is looks_like_describe]
    of_suffix = [source for source in SOURCES if suffix in source.suffix]
    of_text_and_suffix = [source for source in candidates if source in of_suffix]
    return next(iter([*of_text_and_suffix, *candidates, *reversed(of_suffix)]), None)
