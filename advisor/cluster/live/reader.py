"""`read_live`: read a running cluster and convert the responses to a `Cluster`."""

from __future__ import annotations

import base64
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.cluster.addresses import parse_addresses
from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.live.client_properties import ClientProperties, load_properties
from advisor.cluster.live.deadline import run_with_timeout
from advisor.cluster.live.reachability import first_reachable
from advisor.cluster.live.tls import tls_context
from advisor.cluster.managed_services import EVENT_HUBS, EVENT_HUBS_WORDS, service_of
from advisor.cluster.model import Cluster
from advisor.cluster.observed import REPLICATION_SETTINGS, Observed, Setting
from advisor.cluster.other_systems import refuse_other_systems
from advisor.cluster.topic import MAX_ID, Partition, Topic
from advisor.errors import InputError, MissingExtraError, shown
from advisor.parsing import whole_number

if TYPE_CHECKING:
    from advisor.cluster.live.client import Answers

TIMEOUT_MS = 30_000
_GRACE_S = 1.0
_TOPIC, _BROKER = 2, 4
_MAX_NAMES = 5


def read_live(
    addresses: str,
    client_properties: str | os.PathLike[str] | None = None,
    timeout_ms: int | None = None,
) -> Cluster:
    """Read a running cluster without changing it; its properties file may set the time limit."""
    try:
        from advisor.cluster.live import client
    except ModuleNotFoundError as error:
        if str(error.name).startswith("advisor"):
            raise
        raise MissingExtraError("Reading a live cluster", "live") from None
    bootstrap = parse_addresses(addresses)
    properties = (
        ClientProperties() if client_properties is None else load_properties(client_properties)
    )
    if timeout_ms is not None and timeout_ms < 1:
        raise InputError(f"timeout_ms={timeout_ms!r}: give milliseconds, 1 or more")
    limit_ms = timeout_ms or properties.default_api_timeout_ms or TIMEOUT_MS
    deadline = time.monotonic() + limit_ms / 1000

    def query() -> Answers:
        context = tls_context(properties) if properties.tls else None
        setup_ms = properties.connection_setup_timeout_ms
        address = first_reachable(bootstrap, context, properties.sasl_mechanism, setup_ms, deadline)
        return client.query_cluster(address, properties, context, deadline)

    answers = run_with_timeout(query, limit_ms / 1000 + _GRACE_S)
    if answers is None:
        raise InputError(f"{addresses} did not answer within {limit_ms / 1000:g} seconds")
    return cluster_from_answers(answers, addresses, client_properties)


def cluster_from_answers(
    answers: Answers, source: str, client_properties: str | os.PathLike[str] | None = None
) -> Cluster:
    """Convert responses to a cluster, with a note for each part that is missing."""
    refuse_other_systems(
        (key for rows in answers.settings.values() for key in rows),
        (str(topic["name"]) for topic in answers.topics),
        source,
    )
    if EVENT_HUBS.search(source):
        raise InputError(f"{source}: {EVENT_HUBS_WORDS}")
    described = [topic for topic in answers.topics if not topic["error_code"]]
    topics = tuple(
        _topic(topic, answers) for topic in sorted(described, key=lambda topic: str(topic["name"]))
    )
    mentioned = {
        b for topic in topics for partition in topic.partitions for b in partition.brokers()
    }
    version = min(answers.versions.values(), key=version_numbers, default=None)
    return Cluster(
        brokers={**dict.fromkeys(sorted(mentioned)), **answers.racks},
        topics=topics,
        kafka_version=version,
        source=source,
        notes=(*_notes(answers, topics, mentioned), *_version_notes(answers)),
        observed=replace(
            _observed(answers),
            down=_down(answers, mentioned),
            bootstrap_servers=",".join(map(str, parse_addresses(source))),
            command_config=None if client_properties is None else os.fspath(client_properties),
        ),
        controllers=_controllers(answers),
        managed=service_of(source, (topic.name for topic in topics)),
    )


def _controllers(answers: Answers) -> dict[int, str | None] | None:
    """Return the voters with their racks; Kafka reports the rack only of nodes that are brokers.

    No controller registers a rack (KIP-919, `ControllerRegistration`), and a ZooKeeper ensemble is
    not reported at all.
    """
    if answers.quorum is None or not answers.quorum.voters:
        return None
    return {voter: answers.racks.get(voter) for voter in answers.quorum.voters}


def _topic(row: Mapping[str, Any], answers: Answers) -> Topic:
    name = row["name"]
    settings = answers.settings.get((_TOPIC, name), {})
    return Topic(
        name=name,
        partitions=tuple(_partition(name, partition, answers) for partition in row["partitions"]),
        configs={
            key: setting.value or "" for key, setting in settings.items() if not setting.is_default
        },
        topic_id=format_topic_id(row.get("topic_id")),
    )


def _partition(topic: str, row: Mapping[str, Any], answers: Answers) -> Partition:
    index = int(row["partition_index"])
    adding, removing = answers.reassignments.get((topic, index), ((), ()))
    epoch = row.get("leader_epoch")
    return Partition(
        index=index,
        leader=row["leader_id"] if row["leader_id"] >= 0 else None,
        replicas=tuple(row["replica_nodes"]),
        isr=tuple(row["isr_nodes"]),
        elr=_ids(row.get("eligible_leader_replicas")),
        last_known_elr=_ids(row.get("last_known_elr")),
        adding=adding,
        removing=removing,
        leader_epoch=None if epoch is None or epoch < 0 else epoch,
        offline=tuple(row.get("offline_replicas") or ()),
    )


def _ids(ids: list[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)


def format_topic_id(value: object) -> str | None:
    """Format a topic id as Kafka does, in URL-safe base64; None before 2.8."""
    if value is None or (number := uuid.UUID(str(value))).int == 0:
        return None
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def _observed(answers: Answers) -> Observed:
    def of(kind: int) -> dict[str, dict[str, Setting]]:
        return {
            name: {key: rows[key] for key in sorted(rows.keys() & REPLICATION_SETTINGS)}
            for (of_kind, name), rows in answers.settings.items()
            if of_kind == kind
        }

    return Observed(
        mode="kraft" if answers.kraft else "zookeeper",
        cluster_id=answers.cluster_id,
        quorum=answers.quorum,
        features=answers.features,
        features_known=answers.features_known,
        versions=answers.versions,
        broker_settings={_broker_id(name): rows for name, rows in of(_BROKER).items()},
        topic_settings=of(_TOPIC),
    )


def _broker_id(name: str) -> int:
    """Return a broker id; what answers with another is not to be believed in the rest either."""
    number = whole_number(name, MAX_ID)
    if number is None:
        raise InputError(
            f"the cluster answers with settings of broker {shown(name)}, which is not a broker id; "
            "check that the address is a Kafka broker's"
        )
    return number


def _down(answers: Answers, mentioned: set[int]) -> tuple[int, ...]:
    """Return the brokers that hold replicas or are registered, and do not run."""
    return tuple(sorted((mentioned - answers.racks.keys()) | answers.fenced))


def _notes(answers: Answers, topics: tuple[Topic, ...], mentioned: set[int]) -> list[str]:
    notes = []
    down = _down(answers, mentioned)
    if down:
        racks = "; their racks are not known" if mentioned - answers.racks.keys() else ""
        notes.append(f"Brokers that do not run now: {_list(list(down))}{racks}.")
    for names, reason in _grouped(answers.settings_errors, _BROKER).items():
        notes.append(f"The settings of the brokers {names} are not known ({reason}).")
    for names, reason in _grouped(answers.settings_errors, _TOPIC).items():
        notes.append(
            f"The settings of the topics {names} are not known ({reason}) and taken as Kafka's "
            "defaults, min.insync.replicas=1 among them; DescribeConfigs must be allowed on topics."
        )
    for topic in answers.topics:
        if topic["error_code"]:
            notes.append(f"Topic {topic['name']} was left out: the cluster could not describe it.")
    for answer, reason in answers.missing.items():
        notes.append(f"The cluster did not tell {answer} ({reason}).")
    if not topics:
        notes.append(
            "No topic is shown: there is none, or Describe on the topics is not allowed here."
        )
    elif "AUTHORIZATION" in " ".join(
        (*answers.settings_errors.values(), *answers.missing.values())
    ):
        notes.append("Topics that may not be described are not listed by Kafka and missing here.")
    return notes


def _grouped(settings_errors: Mapping[tuple[int, str], str], kind: int) -> dict[str, str]:
    """Return error reasons by the names that share them, joined to one text."""
    reasons: dict[str, list[str]] = {}
    for (of_kind, name), reason in settings_errors.items():
        if of_kind == kind:
            reasons.setdefault(reason, []).append(name)
    return {_list(names): reason for reason, names in reasons.items()}


def _list(names: list[Any]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(str, names[:_MAX_NAMES])) + more


def _version_notes(answers: Answers) -> list[str]:
    versions = sorted(set(answers.versions.values()), key=version_numbers)
    if len(versions) < 2:
        return []
    by_version = "; ".join(
        f"{version}: {_list([b for b, v in answers.versions.items() if v == version])}"
        for version in versions
    )
    return [f"Brokers run different versions ({by_version}); the oldest is used."]
