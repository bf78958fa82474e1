"""Read a running cluster: what it is asked is in `live_client`, what is made of it is here."""

from __future__ import annotations

import base64
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from advisor.cluster.live.client_properties import ClientProperties, load_properties
from advisor.cluster.live.reachability import first_reached, parse_addresses
from advisor.cluster.live.tls import tls_context
from advisor.cluster.model import Cluster, Partition, Topic
from advisor.cluster.observed import REPLICATION_SETTINGS, Observed, Setting
from advisor.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from advisor.cluster.live.client import Answers

T = TypeVar("T")

TIMEOUT_MS = 30_000
_GRACE_S = 2.0
_TOPIC, _BROKER = 2, 4
_NAMED = 5


def read_live(
    addresses: str,
    client_properties: str | os.PathLike[str] | None = None,
    timeout_ms: int | None = None,
) -> Cluster:
    """Return a running cluster as it is now; nothing in it is changed.

    Parameters
    ----------
    addresses : str
        `host:9092`, or several with commas between them; the first that answers is asked.
    client_properties : str or path, optional
        Path of a Java client's properties file.
    timeout_ms : int, optional
        For everything together, in milliseconds; unless given, the file's
        `default.api.timeout.ms`, or 30 000.

    Raises
    ------
    InputError
        If no broker answers, or the one that does refuses the login.
    MissingExtraError
        If the extra `live` is not installed.
    """
    try:
        from advisor.cluster.live import client
    except ModuleNotFoundError as error:
        if str(error.name).startswith("advisor"):
            raise
        raise MissingExtraError("Reading a live cluster", "live") from None
    places = parse_addresses(addresses)
    properties = (
        ClientProperties() if client_properties is None else load_properties(client_properties)
    )
    if timeout_ms is not None and timeout_ms < 1:
        raise InputError(f"timeout_ms={timeout_ms!r}: give milliseconds, 1 or more")
    limit_ms = timeout_ms or properties.default_api_timeout_ms or TIMEOUT_MS
    deadline = time.monotonic() + limit_ms / 1000
    context = tls_context(properties) if properties.tls else None

    def asked() -> Answers:
        limit_ms = properties.connection_setup_timeout_ms
        place = first_reached(places, context, properties.sasl_mechanism, limit_ms, deadline)
        return client.ask_cluster(place, properties, context, deadline)

    answers = within(asked, limit_ms / 1000 + _GRACE_S)
    if answers is None:
        raise InputError(f"{addresses} did not answer within {limit_ms / 1000:g} seconds")
    return cluster_of(answers, addresses, client_properties)


def within(work: Callable[[], T], limit_s: float) -> T | None:
    """Return what the work returns, or None when it takes longer.

    A name server that does not answer cannot be interrupted, only be left behind.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="advisor-live", daemon=True).start()
    try:
        return done.result(timeout=limit_s)
    except TimeoutError:
        if done.done():
            raise
        return None


def cluster_of(
    answers: Answers, source: str, client_properties: str | os.PathLike[str] | None = None
) -> Cluster:
    """Return the cluster that the answers describe, with a note for each that is missing.

    Parameters
    ----------
    answers : Answers
    source : str
        The addresses that were given.
    client_properties : str or path, optional
        The file that the cluster was asked with.

    Raises
    ------
    InputError
        If no broker was told of.
    """
    told = [topic for topic in answers.topics if not topic["error_code"]]
    topics = tuple(
        _topic(topic, answers) for topic in sorted(told, key=lambda topic: str(topic["name"]))
    )
    seen = {b for topic in topics for partition in topic.partitions for b in partition.brokers()}
    version = min(answers.versions.values(), key=_numbers, default=None)
    return Cluster(
        brokers={**dict.fromkeys(sorted(seen)), **answers.racks},
        topics=topics,
        kafka_version=version,
        source=source,
        notes=(*_notes(answers, topics, seen), *_version_notes(answers)),
        observed=replace(
            _observed(answers),
            bootstrap_servers=",".join(map(str, parse_addresses(source))),
            command_config=None if client_properties is None else os.fspath(client_properties),
        ),
    )


def _topic(row: Mapping[str, Any], answers: Answers) -> Topic:
    name = str(row["name"])
    settings = answers.settings.get((_TOPIC, name), {})
    return Topic(
        name=name,
        partitions=tuple(_partition(name, partition, answers) for partition in row["partitions"]),
        configs={
            key: setting.value or "" for key, setting in settings.items() if not setting.is_default
        },
        topic_id=topic_id_of(row.get("topic_id")),
    )


def _partition(topic: str, row: Mapping[str, Any], answers: Answers) -> Partition:
    index = int(row["partition_index"])
    adding, removing = answers.moves.get((topic, index), ((), ()))
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
    )


def _ids(ids: list[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)


def topic_id_of(told: object) -> str | None:
    """Return a topic's id as Kafka prints it, in URL-safe base64; None before 2.8."""
    if told is None or (number := uuid.UUID(str(told))).int == 0:
        return None
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def _observed(answers: Answers) -> Observed:
    def of(kind: int) -> dict[str, dict[str, Setting]]:
        return {
            name: {key: rows[key] for key in sorted(rows.keys() & REPLICATION_SETTINGS)}
            for (asked, name), rows in answers.settings.items()
            if asked == kind
        }

    return Observed(
        mode="kraft" if answers.kraft else "zookeeper",
        cluster_id=answers.cluster_id,
        quorum=answers.quorum,
        features=answers.features,
        features_known=answers.features_known,
        versions=answers.versions,
        broker_settings={int(name): rows for name, rows in of(_BROKER).items()},
        topic_settings=of(_TOPIC),
    )


def _notes(answers: Answers, topics: tuple[Topic, ...], seen: set[int]) -> list[str]:
    notes = []
    gone = sorted((seen - answers.racks.keys()) | answers.fenced)
    if gone:
        racks = "; their racks are not known" if seen - answers.racks.keys() else ""
        notes.append(f"Brokers that do not run now: {_list(gone)}{racks}.")
    for names, reason in _grouped(answers.refused, _BROKER).items():
        notes.append(f"The settings of the brokers {names} are not known ({reason}).")
    for names, reason in _grouped(answers.refused, _TOPIC).items():
        notes.append(
            f"The settings of the topics {names} are not known ({reason}) and taken as Kafka's "
            "defaults, min.insync.replicas=1 among them; DescribeConfigs must be allowed on topics."
        )
    for topic in answers.topics:
        if topic["error_code"]:
            notes.append(f"Topic {topic['name']} was left out: the cluster could not describe it.")
    for what, reason in answers.missing.items():
        notes.append(f"The cluster did not tell {what} ({reason}).")
    if not topics:
        notes.append(
            "No topic is shown: there is none, or Describe on the topics is not allowed here."
        )
    elif "AUTHORIZATION" in " ".join((*answers.refused.values(), *answers.missing.values())):
        notes.append("Topics that may not be described are not listed by Kafka and missing here.")
    return notes


def _grouped(refused: Mapping[tuple[int, str], str], kind: int) -> dict[str, str]:
    """Return names and the reason they share, the names as one text."""
    reasons: dict[str, list[str]] = {}
    for (asked, name), reason in refused.items():
        if asked == kind:
            reasons.setdefault(reason, []).append(name)
    return {_list(names): reason for reason, names in reasons.items()}


def _list(names: list[Any]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(str, names[:_NAMED])) + more


def _version_notes(answers: Answers) -> list[str]:
    found = sorted(set(answers.versions.values()), key=_numbers)
    if len(found) < 2:
        return []
    by_version = "; ".join(
        f"{version}: {_list([b for b, v in answers.versions.items() if v == version])}"
        for version in found
    )
    return [f"Brokers run different versions ({by_version}); the oldest is reckoned with."]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
