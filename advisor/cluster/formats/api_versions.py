"""Which Kafka answers requests of these versions, as `kafka-broker-api-versions.sh` lists them."""

from __future__ import annotations

import re

_API = re.compile(r"\b([A-Za-z]+)\(\d+\): (?:\d+ to )?(\d+)\b")
# The first release that takes a request in a version: `clients/src/main/resources/common/message`
# of Apache Kafka, by release. LeaderAndIsr is not listed under KRaft, where 3.4 looks like 3.3.
_FIRST_WITH = (
    ("4.3", "DescribeLogDirs", 5),
    ("4.2", "ListOffsets", 11),
    ("4.1", "Produce", 13),
    ("4.0", "ListOffsets", 10),
    ("3.9", "Fetch", 17),
    ("3.8", "Produce", 11),
    ("3.7", "Fetch", 16),
    ("3.6", "AddPartitionsToTxn", 4),
    ("3.5", "Fetch", 15),
    ("3.4", "LeaderAndIsr", 7),
    ("3.3", "DescribeAcls", 3),
    ("3.2", "JoinGroup", 9),
    ("3.1", "Fetch", 13),
    ("3.0", "ListOffsets", 7),
    ("2.8", "Produce", 9),
    ("2.7", "Fetch", 12),
    ("2.6", "DescribeClientQuotas", 0),
    ("2.5", "DescribeAcls", 2),
    ("2.4", "Produce", 8),
    ("2.3", "Fetch", 11),
    ("2.2", "ListOffsets", 5),
    ("2.1", "Fetch", 10),
    ("2.0", "Fetch", 8),
    ("1.1", "Fetch", 7),
    ("1.0", "Metadata", 5),
    ("0.11", "Metadata", 4),
    ("0.10.2", "OffsetFetch", 2),
    ("0.10.1", "Metadata", 2),
)
_LEAST_APIS = 10


def version_of_apis(text: str) -> str | None:
    """Return the Kafka version of a broker; None if its requests are not listed, or not all.

    >>> version_of_apis("kafka-1:9092 (id: 1 rack: null) -> (")
    """
    newest = {name: int(version) for name, version in _API.findall(text)}
    if len(newest) < _LEAST_APIS:
        return None
    for version, name, least in _FIRST_WITH:
        if newest.get(name, -1) >= least:
            return version
    return None


def mode_of_apis(text: str) -> str | None:
    """Return the controller that brokers have; None if their requests do not show it.

    Brokers with ZooKeeper take UpdateMetadata from it, those of KRaft answer DescribeQuorum.
    """
    names = {name for name, _ in _API.findall(text)}
    if "UpdateMetadata" in names:
        return "zookeeper"
    return "kraft" if "DescribeQuorum" in names else None
