"""Managed services by their marks, and what a user can set there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Service:
    """A managed service that runs Apache Kafka.

    Attributes
    ----------
    name : str
    hosts : re.Pattern
        Names of its brokers' hosts, wherever they stand in a text.
    topics : re.Pattern
        Names of topics that the service makes.
    sentence : str
        What a user there can set, and what not.
    marked : str
        Which commands of a plan do not work there, and what does in their place.
    """

    name: str
    hosts: re.Pattern[str]
    topics: re.Pattern[str]
    sentence: str
    marked: str


_NONE = re.compile(r"(?!)")
_SERVICES = (
    Service(
        "Amazon MSK",
        re.compile(r"\.kafka(-serverless)?\.[a-z0-9-]+\.amazonaws\.com\b"),
        re.compile(r"__amazon_msk_.+"),
        # https://docs.aws.amazon.com/msk/latest/developerguide/msk-configuration-express-read-only.html
        "The cluster is on Amazon MSK: replicas and settings of topics are changed with Kafka's "
        "tools, those of brokers with an MSK configuration; Express brokers have RF 3 and min ISR "
        "2, which cannot be changed.",
        "On Amazon MSK server.properties cannot be edited, and Express brokers refuse another RF "
        "or min ISR: set brokers' options in an MSK configuration (aws kafka "
        "update-cluster-configuration).",
    ),
    Service(
        "Confluent Cloud",
        re.compile(r"\.confluent\.cloud\b"),
        _NONE,
        # https://docs.confluent.io/cloud/current/topics/manage.html
        "The cluster is on Confluent Cloud: RF is 3 and cannot be changed, and min.insync.replicas "
        "of a topic is 1 or 2.",
        "On Confluent Cloud kafka-reassign-partitions.sh, kafka-leader-election.sh and options of "
        "brokers do not work; a topic's option is set with confluent kafka topic update TOPIC "
        "--config min.insync.replicas=2.",
    ),
    Service(
        "Aiven for Apache Kafka",
        re.compile(r"\.(aivencloud|aiven)\.com\b"),
        _NONE,
        # https://aiven.io/docs/tools/cli/service/topic
        "The cluster is on Aiven for Apache Kafka: RF and min.insync.replicas of a topic are set "
        "with avn service topic-update; Aiven places the replicas and sets the brokers' options.",
        "On Aiven kafka-reassign-partitions.sh and options of brokers do not work: use avn service "
        "topic-update SERVICE TOPIC --replication N --min-insync-replicas N.",
    ),
)

SERVICES: Mapping[str, Service] = MappingProxyType({service.name: service for service in _SERVICES})
"""Every service by its name."""

EVENT_HUBS = re.compile(r"\.servicebus\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)\b")
"""Hosts of Azure Event Hubs, which answers Kafka's protocol and is not Kafka."""

# https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations
EVENT_HUBS_WORDS = (
    "this is from Azure Event Hubs, which answers Kafka's protocol and is not Kafka: the service "
    "decides on replication, and neither replication factor nor min.insync.replicas can be set "
    "there. The model of Kafka's replication does not apply to it, so there is no verdict"
)


def service_of(text: str, topics: Iterable[str]) -> str | None:
    """Return the managed service whose marks a description has; None if it has none.

    Parameters
    ----------
    text : str
        The beginning of the description, or addresses.
    topics : iterable of str
        Names of its topics.
    """
    names = tuple(topics)
    for service in _SERVICES:
        if service.hosts.search(text) or any(map(service.topics.fullmatch, names)):
            return service.name
    return None
