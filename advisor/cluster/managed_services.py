"""Managed services by their marks, and what a user can set there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Service:
    """A managed service that runs Apache Kafka.

    marked: which commands of a plan do not work there, and what does in their place.
    """

    name: str
    hosts: re.Pattern[str]
    topics: re.Pattern[str]
    sentence: str
    marked: str
    sources: tuple[str, ...]


_NONE = re.compile(r"(?!)")
_MSK_DOCS = "https://docs.aws.amazon.com/msk/latest/developerguide/"
MSK, MSK_SERVERLESS = "Amazon MSK", "Amazon MSK Serverless"
CONFLUENT_CLOUD, AIVEN = "Confluent Cloud", "Aiven for Apache Kafka"
_SERVICES = (
    Service(
        MSK,
        re.compile(r"\.kafka\.[a-z0-9-]+\.amazonaws\.com\b"),
        re.compile(r"__amazon_msk_.+"),
        "The cluster is on Amazon MSK: replicas and settings of topics are changed with Kafka's "
        "tools, those of brokers with an MSK configuration; Express brokers have RF 3 and min ISR "
        "2, which cannot be changed.",
        "On Amazon MSK server.properties cannot be edited: set options of brokers in an MSK "
        "configuration (aws kafka update-cluster-configuration). Express brokers refuse another RF "
        "or min ISR, and reassignments unless their intelligent rebalancing is paused.",
        sources=(
            f"{_MSK_DOCS}msk-update-broker-count.html",
            f"{_MSK_DOCS}msk-update-cluster-config.html",
            f"{_MSK_DOCS}msk-configuration-express-read-only.html",
            f"{_MSK_DOCS}cruise-control.html",
        ),
    ),
    Service(
        MSK_SERVERLESS,
        re.compile(r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com\b"),
        _NONE,
        "The cluster is on Amazon MSK Serverless: the service decides on replicas and "
        "min.insync.replicas, and neither can be set for a topic.",
        "On Amazon MSK Serverless neither replicas nor min.insync.replicas can be set: there is "
        "nothing to run. Producers can be given acks=all.",
        sources=(f"{_MSK_DOCS}serverless-config.html",),
    ),
    Service(
        CONFLUENT_CLOUD,
        re.compile(r"\.confluent\.cloud\b"),
        _NONE,
        "The cluster is on Confluent Cloud: RF is 3 and cannot be changed, and min.insync.replicas "
        "of a topic is 1 or 2.",
        "On Confluent Cloud replicas cannot be moved nor leaders elected, and brokers have no "
        "options to set: only min.insync.replicas of a topic is changed, to 1 or 2.",
        sources=(
            "https://docs.confluent.io/cloud/current/topics/manage.html",
            "https://github.com/confluentinc/terraform-provider-confluent (the API answers: Topic "
            "replication factor must be 3)",
        ),
    ),
    Service(
        AIVEN,
        re.compile(r"\.(aivencloud|aiven)\.com\b"),
        _NONE,
        "The cluster is on Aiven for Apache Kafka: RF and min.insync.replicas of a topic are set "
        "with avn service topic-update; Aiven places the replicas and sets the brokers' options.",
        "On Aiven for Apache Kafka the service moves the replicas: say with avn service "
        "topic-update how many a topic is to have, and its min.insync.replicas.",
        sources=("https://aiven.io/docs/tools/cli/service/topic",),
    ),
)

SERVICES: Mapping[str, Service] = MappingProxyType({service.name: service for service in _SERVICES})
"""Every service by its name."""

EVENT_HUBS = re.compile(r"\.servicebus\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)\b")
"""Hosts of Azure Event Hubs, which answers Kafka's protocol and is not Kafka."""

# https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations: brokers cannot be
# configured ("Managed by Event Hubs (replication, ...)"), of topics only partitions and retention.
EVENT_HUBS_WORDS = (
    "this is from Azure Event Hubs, which answers Kafka's protocol and is not Kafka: the service "
    "decides on replication, and neither replication factor nor min.insync.replicas can be set "
    "there. The model of Kafka's replication does not apply to it, so there is no verdict"
)


def service_of(text: str, topics: Iterable[str]) -> str | None:
    """Return the managed service whose marks a description has; None if it has none."""
    names = tuple(topics)
    for service in _SERVICES:
        if service.hosts.search(text) or any(map(service.topics.fullmatch, names)):
            return service.name
    return None
