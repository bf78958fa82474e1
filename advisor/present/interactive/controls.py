"""The controls of the explorer, and what their values mean as a `Config`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError, ConfigError
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT, parse_version

NEW_TOPIC = ""
MOST_REPLICAS, SMALL_REPLICAS = 5, 3
"""Replication factors offered, and computed for every picture; larger chains take seconds."""
CONTEXT = ("topic", "kafka_version", "card")
"""Controls that decide what the present and the recommended setting are."""
STILL = ("retries", "delivery_timeout_ms")
"""Controls that change failed sends and the producer's file, but no curve and no verdict."""
_MOST_TOPICS = 50
EVERY_ACKS = ("all", "1", "0")
SWITCHED_VERSIONS = ("4.4", "3.9", "3.6")
"""Versions in pages without a kernel: the newest, without ELR, refusing a min ISR above RF."""
_VERSIONS = ("4.4", "4.1", "4.0", "3.9", "3.7", "3.6", "3.0", "2.8", "2.1", "1.1", "0.11")
_LABELS = {
    "topic": "topic",
    "replication_factor": "replication factor",
    "min_insync_replicas": "min.insync.replicas",
    "acks": "acks",
    "retries": "retries",
    "delivery_timeout_ms": "delivery.timeout.ms",
    "unclean_leader_election_enable": "unclean election",
    "eligible_leader_replicas": "eligible leader replicas",
    "kafka_version": "Kafka version",
    "card": "failure model",
}
_SWITCH = (("false", "off"), ("true", "on"))
_ELR = (("default", "default"), *_SWITCH)
_LONGEST_MS, _STEP_MS = 86_400_000, 10_000
# What Kafka's client throws, by what our own message says.
_KAFKA_SAYS = (
    (
        r"delivery_timeout_ms=\d+ must be at least",
        "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms",
    ),
    (
        "conflicts with acks=",
        "Must set acks to all in order to use the idempotent producer. Otherwise we cannot "
        "guarantee idempotence.",
    ),
    (
        "conflicts with retries=0",
        "Must set retries to non-zero when using the idempotent producer.",
    ),
)
_REJECTED = "Messages are rejected since there are fewer in-sync replicas than required."


def values_of(config: Config, topic: str, card: str) -> dict[str, str]:
    """Return what each control shows for a setting, as text."""
    elr = config.eligible_leader_replicas
    stated = "eligible_leader_replicas" in config.explicit
    return {
        "topic": topic,
        "replication_factor": str(config.replication_factor),
        "min_insync_replicas": str(config.min_insync_replicas),
        "acks": str(config.acks),
        "retries": str(config.retries),
        "delivery_timeout_ms": str(config.delivery_timeout_ms or 0),
        "unclean_leader_election_enable": str(config.unclean_leader_election_enable).lower(),
        "eligible_leader_replicas": str(elr).lower() if stated else "default",
        "kafka_version": config.kafka_version,
        "card": card,
    }


def config_of(values: Mapping[str, str], start: Config) -> Config:
    """Return the setting that the controls show.

    Numbers that they leave as in `start` stay explicit or Kafka's default, as they were.

    Raises
    ------
    ConfigError
        If Kafka would reject it, or a number is invalid.
    """
    before = values_of(start, "", "")
    acks = values["acks"]
    changes: dict[str, Any] = {
        "kafka_version": values["kafka_version"],
        "replication_factor": int(values["replication_factor"]),
        "min_insync_replicas": int(values["min_insync_replicas"]),
        "acks": acks if acks == "all" else int(acks),
        "unclean_leader_election_enable": values["unclean_leader_election_enable"] == "true",
    }
    elr = values["eligible_leader_replicas"]
    changes["eligible_leader_replicas"] = None if elr == "default" else elr == "true"
    for name in ("retries", "delivery_timeout_ms"):
        if values[name] != before[name]:
            if not re.fullmatch(r"\d{1,10}", values[name]):
                raise ConfigError(f"{name}={values[name]!r} must be a whole number, not negative")
            changes[name] = int(values[name])
    return start.changed(**changes)


def controls(
    cluster: Cluster,
    most: int,
    cards: Iterable[str],
    values: Mapping[str, str],
    no_topic: str = "a new topic",
) -> list[dict[str, Any]]:
    """Return every control with its choices; number fields have limits instead.

    `no_topic` says what `NEW_TOPIC` stands for.
    """
    versions = sorted({*_VERSIONS, values["kafka_version"]}, key=parse_version, reverse=True)
    factors = _upto(most, values["replication_factor"])
    options: dict[str, Sequence[tuple[str, str]]] = {
        "topic": _topics(cluster, no_topic),
        "replication_factor": factors,
        "min_insync_replicas": _upto(most, values["min_insync_replicas"]),
        "acks": [(text, text) for text in EVERY_ACKS],
        "unclean_leader_election_enable": _SWITCH,
        "eligible_leader_replicas": _ELR,
        "kafka_version": [(text, text) for text in versions],
        "card": [(text, text) for text in sorted({*cards, values["card"]})],
    }
    numbers = {"retries": (MAX_INT, 1), "delivery_timeout_ms": (_LONGEST_MS, _STEP_MS)}
    return [
        _choice(key, options[key])
        if key in options
        else {**_named(key), "min": 0, "max": numbers[key][0], "step": numbers[key][1]}
        for key in _LABELS
    ]


def precomputed(
    every: Sequence[Mapping[str, Any]], settings: Iterable[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return the controls with only the choices that some of the settings have."""
    found: dict[str, set[str]] = {control["key"]: set() for control in every}
    for values in settings:
        for key, chosen in values.items():
            found[key].add(chosen)
    shown = []
    for control in every:
        known = found[control["key"]]
        numbers = [(text, text) for text in sorted(known, key=lambda t: (len(t), t))]
        options = control.get("options") or numbers
        shown.append(_choice(control["key"], [o for o in options if o[0] in known]))
    return shown


def left_out(elsewhere: Sequence[Mapping[str, str]], keys: Sequence[str]) -> str:
    """Return a note on the topics, failure models and versions that the page does not cover.

    Parameters
    ----------
    elsewhere : sequence of mapping of str to str
        A setting of each curve of other topics, failure models and versions.
    keys : sequence of str
        The controls of the page.
    """
    if not elsewhere:
        return ""
    values = elsewhere[0]
    timeout = f"another delivery.timeout.ms than {values['delivery_timeout_ms']}"
    if "unclean_leader_election_enable" in keys:
        other = {"off": "on", "on": "off"}[dict(_SWITCH)[values["unclean_leader_election_enable"]]]
        timeout += f" or with unclean election {other}"
    versions = len({each["kafka_version"] for each in elsewhere}) > 1
    lacks = [
        f"other topics{' or Kafka versions' * versions} with acks other than {values['acks']}",
        f"other topics{', Kafka versions' * versions} or failure models with {timeout}",
    ]
    if versions:
        lacks.append("other Kafka versions with other topics or failure models")
    return (
        f"Not on this page: {'; '.join(lacks)}. Each failure model has intervals for the setting "
        "shown first."
    )


def capped(config: Config) -> str:
    """Return what Kafka makes of a min ISR above the replication factor; "" if it refuses writes.

    Since 3.7 both are the same setting, so that a page holds only one of them.
    """
    above = config.changed(replication_factor=1, min_insync_replicas=2)
    if above.effective_min_insync_replicas > 1:
        return ""
    return (
        f"Kafka {config.kafka_version} takes a min.insync.replicas above the replication factor "
        "for the replication factor (since 3.7)."
    )


def min_isr_refusal(config: Config) -> str:
    """Return why Kafka before 3.7 refuses every write; "" if it does not.

    Source: `Partition.effectiveMinIsr` (KAFKA-15583); the words are those of
    `NotEnoughReplicasException`.
    """
    least, factor = config.min_insync_replicas or 1, config.replication_factor or 1
    if config.acks != "all" or config.effective_min_insync_replicas <= factor:
        return ""
    return (
        f"Kafka {config.kafka_version} refuses every write: “{_REJECTED}” "
        f"min.insync.replicas {least} is above the replication factor {factor}."
    )


def refusal(error: AdvisorError) -> str:
    """Return why a setting has no answer, in Kafka's words where Kafka has some."""
    message = str(error).replace("eligible_leader_replicas", "eligible leader replicas")
    for name in ("delivery_timeout_ms", "request_timeout_ms", "linger_ms", "enable_idempotence"):
        message = message.replace(name, name.replace("_", "."))
    for pattern, words in _KAFKA_SAYS:
        if re.search(pattern, str(error)):
            return f"Kafka refuses this: “{words}” ({message})"
    if isinstance(error, ConfigError):
        return f"Kafka refuses this: {message}"
    return f"This cannot be computed: {message}"


def _named(key: str) -> dict[str, Any]:
    return {"key": key, "label": _LABELS[key]}


def _choice(key: str, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {**_named(key), "options": [list(option) for option in options]}


def _upto(most: int, chosen: str) -> list[tuple[str, str]]:
    return [(str(n), str(n)) for n in range(1, max(most, int(chosen)) + 1)]


def _topics(cluster: Cluster, none: str) -> list[tuple[str, str]]:
    ordered = sorted(cluster.topics, key=lambda topic: topic.internal)[:_MOST_TOPICS]
    return [(NEW_TOPIC, none), *((topic.name, topic.name) for topic in ordered)]
