"""Systems that speak Kafka's protocol and do not replicate as Kafka does: named, never judged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from advisor.errors import InputError

REDPANDA = (
    "Redpanda replicates with Raft: acks=all waits for a majority of the replicas, the ISR that it "
    "prints are all replicas that it lists, and min.insync.replicas is not used. The model of "
    "Kafka's replication does not apply to it, so there is no verdict"
)


@dataclass(frozen=True)
class OtherSystem:
    """A system, its marks, and why it is not judged.

    why: sentence, without its period, that says how it replicates.
    """

    name: str
    settings: re.Pattern[str]
    topics: re.Pattern[str]
    why: str


SYSTEMS = (
    OtherSystem(
        "Redpanda",
        # https://docs.redpanda.com/current/reference/properties/topic-properties/
        re.compile(r"(redpanda|(initial\.)?retention\.local\.target)\..+|write\.caching"),
        re.compile(r"_redpanda\..+"),
        REDPANDA,
    ),
    OtherSystem(
        "AutoMQ",
        # https://github.com/AutoMQ/automq
        re.compile(r"automq\..+"),
        re.compile(r"__automq_.+"),
        "AutoMQ keeps records in object storage, and a partition has a single replica by design. "
        "The model of Kafka's replication does not apply to it, so there is no verdict",
    ),
)


def refuse_other_systems(settings: Iterable[str], topics: Iterable[str], source: str) -> None:
    """Refuse a description that shows marks of a system which is not Apache Kafka."""
    settings, topics = frozenset(settings), tuple(topics)
    for system in SYSTEMS:
        marks = sorted(filter(system.settings.fullmatch, settings))
        marks += sorted(filter(system.topics.fullmatch, topics))
        if marks:
            raise InputError(
                f"{source}: {marks[0]} shows that this cluster is {system.name}. {system.why}"
            )
