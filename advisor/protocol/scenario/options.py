"""Validates what scenario commands name: options, numbers, durations, brokers."""

from __future__ import annotations

import re
from typing import Any

from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.partition_registration import Replicas
from advisor.protocol.rules.versions import NEWEST_KNOWN, parse_version
from advisor.protocol.scenario.language import Command, suggestion
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.state import FENCED, STOPPING, Broker, Settings, broker_of

_TOPIC_SETTINGS = ("min_insync_replicas", "unclean_leader_election_enable")
_CLUSTER_OPTIONS = (
    "brokers",
    "kafka",
    "mode",
    "racks",
    "only",
    "session_timeout_ms",
    "eligible_leader_replicas",
    "replica_lag_time_max_ms",
    *_TOPIC_SETTINGS,
)
_TOPIC_OPTIONS = ("replicas", "partitions", "replication_factor", *_TOPIC_SETTINGS)
_PRODUCER_OPTIONS = (
    "acks",
    "retries",
    "delivery_timeout_ms",
    "request_timeout_ms",
    "retry_backoff_ms",
    "linger_ms",
    "max_in_flight_requests_per_connection",
    "enable_idempotence",
    "via",
)
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
MOST_BROKERS = 1_000
MOST_RECORDS = 10**9


def whole_number(text: str, what: str, least: int, most: int = MOST_RECORDS) -> int:
    """Parse a whole number from `least` to `most`; `what` names it in the error."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
        raise InputError(f"expected {what}, a whole number from {least} to {most}, found '{text}'")
    return int(text)


def duration_ms(text: str) -> int:
    """Parse ``5s``, ``500ms``, ``2m`` or ``1h`` to milliseconds; without a unit, seconds."""
    match = re.fullmatch(r"([0-9]{1,9})(ms|s|m|h)?", text)
    if match is None:
        raise InputError(f"expected a duration such as '5s' or '500ms', found '{text}'")
    return int(match[1]) * _UNITS_MS[match[2] or "s"]


def boolean(key: str, text: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    if text.lower() not in ("true", "false"):
        raise InputError(f"expected {key}=true or {key}=false, found '{key}={text}'")
    return text.lower() == "true"


def _check_known(given: dict[str, str], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"unknown option '{key}'{suggestion(key, known)}")


def _value(key: str, text: str) -> Any:
    """A ``Config`` option, converted to its type."""
    if key in ("unclean_leader_election_enable", "eligible_leader_replicas", "enable_idempotence"):
        return boolean(key, text)
    if key in ("acks", "mode", "kafka_version"):
        return text
    return whole_number(text, f"{key}=", 0, 2**31 - 1)


def cluster_of(command: Command) -> Simulation:
    """Simulation described by a ``cluster`` command."""
    given = command.options
    _check_known(given, _CLUSTER_OPTIONS)
    if "brokers" not in given:
        raise InputError("expected brokers=N or a list such as brokers=0,1,2")
    ids = _broker_ids(given["brokers"])
    racks = _racks(given.get("racks"), len(ids))
    settings: dict[str, Any] = {
        key: _value(key, text)
        for key, text in given.items()
        if key in (*_TOPIC_SETTINGS, "eligible_leader_replicas", "replica_lag_time_max_ms", "mode")
    }
    if "kafka" in given:
        settings["kafka_version"] = given["kafka"]
    if given.get("only", "controller") != "controller":
        raise InputError(f"expected only=controller, found 'only={given['only']}'")
    preview = _previews_elr(given, settings)
    timeout = given.get("session_timeout_ms")
    brokers = tuple(Broker(b, rack) for b, rack in sorted(zip(ids, racks, strict=True)))
    return Simulation(
        brokers,
        Settings(
            Config(**settings),
            session_timeout_ms=0
            if timeout is None
            else whole_number(timeout, "session_timeout_ms=", 1, 2**31 - 1),
            only_controller="only" in given,
            preview_elr=preview,
        ),
    )


def _previews_elr(given: dict[str, str], settings: dict[str, Any]) -> bool:
    """Whether a controller-only cluster of 3.7 to 3.9 enables ELR, as Kafka's own tests do.

    No real cluster of these versions has ELR and ``Config`` rejects it, so the option is removed
    from ``settings``.
    """
    if "only" not in given or not settings.get("eligible_leader_replicas"):
        return False
    if not (3, 7) <= parse_version(given.get("kafka", NEWEST_KNOWN)) < (4, 0):
        return False
    del settings["eligible_leader_replicas"]
    return True


def _broker_ids(text: str) -> list[int]:
    if re.fullmatch(r"[0-9]+", text):
        return list(range(1, whole_number(text, "brokers=", 1, MOST_BROKERS) + 1))
    ids = [whole_number(p, "a broker id", 0, 2**31 - 1) for p in text.split(",") if p]
    if len(set(ids)) < len(ids) or not ids:
        raise InputError(f"expected different broker ids, found 'brokers={text}'")
    return ids


def _racks(text: str | None, brokers: int) -> list[str | None]:
    if text is None:
        return [None] * brokers
    racks: list[str | None] = [rack or None for rack in text.split(",")]
    if len(racks) != brokers:
        raise InputError(f"expected racks= with {brokers} names, one a broker, found {len(racks)}")
    return racks


def broker_named(cluster: Simulation, text: str) -> Broker:
    """Broker with the id written in a command."""
    ids = [str(b.id) for b in cluster.state.brokers]
    if text not in ids:
        raise InputError(f"unknown broker '{text}'; brokers are {', '.join(ids)}")
    return broker_of(cluster.state, int(text))


def brokers_named(cluster: Simulation, text: str) -> Replicas:
    """Broker ids of a list such as ``1,2,3``, in that order."""
    ids = tuple(broker_named(cluster, name).id for name in text.split(","))
    if len(set(ids)) < len(ids):
        raise InputError(f"a broker is named twice in '{text}'")
    return ids


def topic_of(command: Command, cluster: Simulation) -> tuple[ev.CreateTopic, dict[str, str]]:
    """CreateTopic event of a ``topic`` command, and the topic configs it sets (dotted names)."""
    given = command.options
    _check_known(given, _TOPIC_OPTIONS)
    name = command.words[0]
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in (".", ".."):
        raise InputError(f"'{name}' is not a topic name that Kafka accepts")
    if "replicas" in given:
        if "partitions" in given or "replication_factor" in given:
            raise InputError("expected replicas=, or partitions= and replication_factor=, not both")
        assignment = tuple(
            brokers_named(cluster, replica_names) for replica_names in given["replicas"].split(";")
        )
        if len({len(replicas) for replicas in assignment}) > 1:
            raise InputError("expected as many replicas for each partition")
    else:
        partitions = whole_number(given.get("partitions", "1"), "partitions=", 1, 100_000)
        default_factor = str(cluster.settings.config.replication_factor)
        factor = given.get("replication_factor", default_factor)
        size = whole_number(factor, "replication_factor=", 1, 32_767)
        assignment = _placed(cluster, partitions, size)
    config = cluster.settings.config
    settings = {key: _value(key, given[key]) for key in _TOPIC_SETTINGS if key in given}
    effective = config.changed(**settings)
    assert effective.min_insync_replicas is not None
    created = ev.CreateTopic(
        name,
        assignment,
        effective.min_insync_replicas,
        bool(effective.unclean_leader_election_enable),
    )
    return created, {key.replace("_", "."): given[key] for key in given if key in _TOPIC_SETTINGS}


def _placed(
    cluster: Simulation, partitions: int, factor: int, existing: int = 0
) -> tuple[Replicas, ...]:
    """Replica assignment made by the cluster's controller; seed 0 under KRaft."""
    racks = {b.id: b.rack for b in cluster.state.brokers}
    if cluster.settings.kraft:
        racks = {b.id: b.rack for b in cluster.state.brokers if b.session != STOPPING}
        fenced = {b.id for b in cluster.state.brokers if b.session == FENCED}
        placed = assign(racks, partitions, factor, "striped", seed=0, fenced=fenced)
    else:
        placed = assign(
            racks,
            partitions,
            factor,
            "rack_alternated",
            start_index=0,
            shift=0,
            start_partition=existing,
        )
    return tuple(tuple(placed[index]) for index in sorted(placed))


def alterations_of(
    name: str, command: Command, cluster: Simulation, configs: dict[str, str]
) -> list[Any]:
    """Events of an ``alter`` command; updates ``configs``, the configs set on the topic."""
    given = command.options
    _check_known(given, (*_TOPIC_SETTINGS, "partitions"))
    if not given:
        raise InputError("expected 'alter TOPIC key=value'")
    events: list[Any] = []
    if "partitions" in given:
        events.append(_growth(name, given["partitions"], cluster))
    settings = {key: _value(key, given[key]) for key in _TOPIC_SETTINGS if key in given}
    if settings:
        cluster.settings.config.changed(**settings)
        events.append(
            ev.AlterTopic(
                name,
                settings.get("min_insync_replicas"),
                settings.get("unclean_leader_election_enable"),
            )
        )
        configs.update({key.replace("_", "."): given[key] for key in settings})
    return events


def _growth(name: str, text: str, cluster: Simulation) -> ev.GrowTopic:
    existing = [p for p in cluster.state.partitions if p.topic == name]
    wanted = whole_number(text, "partitions=", 1, 100_000)
    if wanted <= len(existing):
        raise InputError(
            f"topic '{name}' has {len(existing)} partitions; a topic only grows, "
            f"expected more than {len(existing)}, found {wanted}"
        )
    factor = len(existing[0].registration.replicas)
    return ev.GrowTopic(name, _placed(cluster, wanted - len(existing), factor, len(existing)))


def producer_of(command: Command, cluster: Simulation) -> tuple[Config, int | None]:
    """Producer settings of a ``produce`` command, and the broker of its ``via=`` option."""
    given = command.options
    _check_known(given, _PRODUCER_OPTIONS)
    settings = {key: _value(key, text) for key, text in given.items() if key != "via"}
    via = given.get("via")
    broker = None if via is None else broker_named(cluster, via).id
    return cluster.settings.config.changed(**settings), broker
