"""The metrics that are read, and how exporters spell them: one table, by the end of the name.

One MBean has many names, by the rules of who exports it: case, punctuation, what is put after the
name (`_Value`, `_total`, `_count_total`), and whether the name is in a label. So a name is compared
by its end, without case and punctuation and without what exporters put after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from zlib import crc32

from advisor.rendering import one_line


class Metric(Enum):
    """What is read of brokers and controllers."""

    UP = "up"
    """Whether the target answered; Prometheus' own."""
    START = "start"
    """When the process began; the exporter's, of every JVM."""
    VERSION = "version"
    """Kafka's version, as a number: 3.9.1 is 30901."""
    BROKER_STATE = "broker_state"
    """Each broker's: 3 is running, 6 and 7 shutting down."""
    UNDER_REPLICATED = "under_replicated"
    """Each broker's, of partitions that it leads."""
    UNDER_MIN_ISR = "under_min_isr"
    """Each broker's, of partitions that it leads."""
    AT_MIN_ISR = "at_min_isr"
    """Each broker's, of partitions that it leads."""
    LEADERS = "leaders"
    """Each broker's."""
    ISR_SHRINKS = "isr_shrinks"
    """Each broker's; those that the leader asked for, not the controller's own."""
    ISR_EXPANDS = "isr_expands"
    """Each broker's."""
    FAILED_PRODUCE = "failed_produce"
    """Each broker's."""
    OFFLINE_LOG_DIRS = "offline_log_dirs"
    """Each broker's; a directory that failed, such as by a full disk."""
    OFFLINE = "offline"
    """Every controller's: partitions without a leader."""
    PARTITIONS = "partitions"
    """Every controller's: all partitions."""
    ACTIVE = "active"
    """1 on the active controller."""
    APPLIED_LAG_MS = "applied_lag_ms"
    """Each controller's; grows without a quorum."""
    FENCED = "fenced"
    """Every controller's: brokers that are registered and fenced."""
    ACTIVE_BROKERS = "active_brokers"
    """Every controller's: brokers that are registered and not fenced."""
    SHUTTING_DOWN = "shutting_down"
    """Every controller's: brokers in controlled shutdown."""
    ZONE = "zone"
    """A number that stands for the zone or rack that a target's labels say."""
    SCRAPE_SECONDS = "scrape_seconds"
    """How long a scrape took; Prometheus' own. A host that is there refuses at once."""
    HOST_BOOT = "host_boot"
    """When the host began; node_exporter's."""
    HOST_ROOM = "host_room"
    """Bytes that are free on a disk of the host; node_exporter's, a series for each disk."""
    REGISTRATION = "registration"
    """Every controller's, a series for each broker: 10 fenced, 20 stops, 30 active."""


@dataclass(frozen=True)
class Spelling:
    """How a metric is spelled, by whom.

    end: the end of the name in the words of its source; case and punctuation do not matter.
    source: the MBean, or who spells it so.
    whole: whether it is all of the name, because other metrics end in the same way.
    """

    metric: Metric
    end: str
    source: str
    whole: bool = False


_REPLICA_MANAGER = "kafka.server:type=ReplicaManager"
_CONTROLLER = "kafka.controller:type=KafkaController"
_DATADOG = "Datadog, integrations-core/kafka/metadata.csv"
_MSK = "Amazon MSK in CloudWatch, AWS/Kafka"
_EXAMPLES = "jmx_exporter/examples/kafka-2_0_0.yml"

SPELLINGS = (
    Spelling(Metric.UP, "up", "Prometheus", whole=True),
    Spelling(Metric.START, "process_start_time_seconds", "client_java, in jmx_exporter"),
    Spelling(Metric.SCRAPE_SECONDS, "scrape_duration_seconds", "Prometheus", whole=True),
    Spelling(Metric.HOST_BOOT, "node_boot_time_seconds", "node_exporter", whole=True),
    Spelling(Metric.HOST_ROOM, "node_filesystem_avail_bytes", "node_exporter", whole=True),
    Spelling(Metric.VERSION, "app_info", "kafka.server:type=app-info, label version"),
    Spelling(Metric.VERSION, "app_info_version", "the same; Koperator's rules"),
    Spelling(Metric.BROKER_STATE, "KafkaServer_BrokerState", "kafka.server:type=KafkaServer"),
    Spelling(Metric.UNDER_REPLICATED, "UnderReplicatedPartitions", _REPLICA_MANAGER),
    Spelling(Metric.UNDER_MIN_ISR, "UnderMinIsrPartitionCount", _REPLICA_MANAGER),
    Spelling(Metric.AT_MIN_ISR, "ReplicaManager_AtMinIsrPartitionCount", _REPLICA_MANAGER),
    Spelling(Metric.LEADERS, "ReplicaManager_LeaderCount", _REPLICA_MANAGER),
    Spelling(Metric.LEADERS, "replication.leader_count", _DATADOG),
    Spelling(Metric.LEADERS, "LeaderCount", _MSK, whole=True),
    Spelling(Metric.ISR_SHRINKS, "ReplicaManager_IsrShrinks", f"{_REPLICA_MANAGER}; {_EXAMPLES}"),
    Spelling(Metric.ISR_EXPANDS, "ReplicaManager_IsrExpands", f"{_REPLICA_MANAGER}; {_EXAMPLES}"),
    Spelling(
        Metric.FAILED_PRODUCE,
        "BrokerTopicMetrics_FailedProduceRequests",
        f"kafka.server:type=BrokerTopicMetrics; {_EXAMPLES}",
    ),
    Spelling(Metric.OFFLINE_LOG_DIRS, "OfflineLogDirectoryCount", "kafka.log:type=LogManager"),
    Spelling(Metric.OFFLINE, "OfflinePartitionsCount", _CONTROLLER),
    Spelling(Metric.PARTITIONS, "GlobalPartitionCount", _CONTROLLER),
    Spelling(Metric.ACTIVE, "ActiveControllerCount", _CONTROLLER),
    Spelling(Metric.APPLIED_LAG_MS, "LastAppliedRecordLagMs", _CONTROLLER),
    Spelling(Metric.FENCED, "FencedBrokerCount", _CONTROLLER),
    Spelling(Metric.ACTIVE_BROKERS, "ActiveBrokerCount", _CONTROLLER),
    Spelling(Metric.SHUTTING_DOWN, "ControlledShutdownBrokerCount", f"{_CONTROLLER}, from 4.1 on"),
    Spelling(Metric.REGISTRATION, "BrokerRegistrationState", f"{_CONTROLLER}, from 4.1 on"),
)
AFTERWARDS = ("value", "total", "count", "persec")
"""What exporters put after a name, and Kafka after meters: `_Value` (rules without a name, as MSK's
open monitoring), `_total` (the exporter's examples), `_count_total` (exporter 1.x, of rules that
say `_count`), `PerSec_count`."""
_NO_COUNT = re.compile(r"(rate|percentile|mean|stddev|min|max)$")
"""Ends of other numbers that an MBean has beside its value or count."""
_PARTS = ("topic", "partition", "quantile")
"""Labels of series that have a part of a broker's number."""
_BEANS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

_TARGETS = ("pod", "kubernetes_pod_name", "instance")
"""Labels that name a target: a pod keeps its name when its address changes."""
_CLUSTERS = ("cluster", "kafka_cluster", "strimzi_io_cluster")
_SUBJECTS = {
    Metric.REGISTRATION: ("broker", "broker_id", "brokerid"),
    Metric.HOST_ROOM: ("mountpoint",),
}
"""Labels that say of what a target speaks, where it speaks of several."""
OF_HOSTS = (Metric.HOST_BOOT, Metric.HOST_ROOM)
"""Metrics of a host, whose target is the host's exporter."""
_ZONES = (
    *("topology_kubernetes_io_zone", "failure_domain_beta_kubernetes_io_zone"),
    *("availability_zone", "zone", "rack"),
)
"""Labels that a scrape configuration may keep of where a target stands."""


def plain(text: Any) -> str:
    """Return a name without case and punctuation."""
    return re.sub(r"[^a-z0-9]", "", str(text).lower())


_ENDS = tuple((plain(row.end), row) for row in SPELLINGS)


def metric_of(labels: Mapping[str, Any]) -> Metric | None:
    """Return the metric that a series is of; None if it is none that is read.

    >>> metric_of({"__name__": "kafka_server_ReplicaManager_UnderMinIsrPartitionCount_Value"}).name
    'UNDER_MIN_ISR'
    >>> metric_of({"__name__": "kafka_controller_value", "name": "OfflinePartitionsCount"}).name
    'OFFLINE'
    """
    name = plain(labels.get("__name__", ""))
    if _NO_COUNT.search(name) or any(key in labels for key in _PARTS):
        return None
    beans = ("", *_shortened(plain(labels.get("name", ""))))
    spelled = (f"{start}{bean}" for start in _shortened(name) for bean in beans)
    return next((metric for metric in map(_by_end, spelled) if metric is not None), None)


def _by_end(name: str) -> Metric | None:
    for end, row in _ENDS:
        if name == end or (not row.whole and name.endswith(end)):
            return row.metric
    return None


def _shortened(name: str) -> Iterator[str]:
    """A name, and what is left of it without one more of what exporters put after it."""
    yield name
    while True:
        end = next((end for end in AFTERWARDS if name.endswith(end)), None)
        if end is None:
            return
        name = name.removesuffix(end)
        yield name


def key_of(labels: Mapping[str, Any]) -> tuple[str, str, Metric] | None:
    """Cluster, target and metric of a series; None if it is not read.

    What a controller says of a broker has both in its target.
    """
    metric = metric_of(labels)
    # The pod of a host's exporter says nothing about the host.
    named = ("instance",) if metric in OF_HOSTS else _TARGETS
    target = next((one_line(labels[key]) for key in named if key in labels), "")
    if metric is None or not target:
        return None
    if metric in _SUBJECTS:
        names = _SUBJECTS[metric]
        subject = next((one_line(labels[key]) for key in names if key in labels), "")
        if not subject:
            return None
        target = f"{target} of {subject}"
    cluster = next((one_line(labels[key]) for key in _CLUSTERS if key in labels), "")
    return cluster, target, metric


def version_of(labels: Mapping[str, Any]) -> float | None:
    """Return the version that a label says, as a number.

    >>> version_of({"version": "3.9.1"}), version_of({})
    (30901.0, None)
    """
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", str(labels.get("version", "")))
    if numbers is None:
        return None
    major, minor, patch = (int(number or 0) for number in numbers.groups())
    return float(10_000 * major + 100 * minor + patch)


def host_of(target: str) -> str:
    """Return the host of a target, which its exporters have in common.

    >>> host_of("broker-1.example.org:9404")
    'broker-1.example.org'
    """
    return target.partition(" of ")[0].rpartition(":")[0] or target.partition(" of ")[0]


def zone_of(labels: Mapping[str, Any]) -> float | None:
    """Return a number that stands for the zone that labels say; None if they say none.

    >>> zone_of({"zone": "a"}) == zone_of({"zone": "a", "pod": "x"}) != zone_of({"zone": "b"})
    True
    """
    zone = next((str(labels[key]) for key in _ZONES if key in labels), None)
    return None if zone is None else float(crc32(zone.encode()))


def name_pattern() -> str:
    """Return a regular expression of the names that Kafka's metrics have in Prometheus.

    Those of which the MBean's name is in a label are found by `bean_pattern`.
    """
    beans = (row.end for row in SPELLINGS if row.metric not in _OWN or _is_version(row))
    ends = sorted({_spaced(bean) for bean in beans})
    afterwards = "|".join(AFTERWARDS)
    return f"(?i).*({'|'.join(ends)})(_?({afterwards}))*"


def bean_pattern() -> str:
    """Return a regular expression of the MBeans' names, as a label has them.

    >>> import re
    >>> bool(re.fullmatch(bean_pattern(), "UnderMinIsrPartitionCount"))
    True
    """
    beans = {row.end.rpartition("_")[2] for row in SPELLINGS if row.metric not in _OWN}
    return f"({'|'.join(sorted(bean for bean in beans if '.' not in bean))})(PerSec)?"


_OWN = (Metric.UP, Metric.START, Metric.VERSION, Metric.SCRAPE_SECONDS, *OF_HOSTS)
"""Metrics that are not an MBean's with a name."""


def _is_version(row: Spelling) -> bool:
    return row.metric is Metric.VERSION


def _spaced(bean: str) -> str:
    return "_?".join(word.lower() for word in _BEANS.findall(bean))
