"""The controls of the explorer, and what their values mean as a `Config`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advisor.decision.rule import MINUTES_PER_LOSS, MINUTES_PER_YEAR
from advisor.errors import AdvisorError, ConfigError
from advisor.formatting import time_per_year
from advisor.present.interactive import seen
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT, NEWEST_KNOWN, parse_version

NEW_TOPIC = ""
MOST_REPLICAS, SMALL_REPLICAS = 5, 3
"""Replication factors offered, and computed for every picture; larger chains take seconds."""
CONTEXT = ("topic", "kafka_version", "card", *seen.KEYS)
"""Controls that decide what the present and the recommended setting are."""
STILL = ("retries", "delivery_timeout_ms")
"""Controls that change failed sends and the producer's file, but no curve and no verdict."""
MOST_TOPICS = 50
"""Topics that can be chosen."""
EVERY_ACKS = ("all", "1", "0")
PRICE = "minutes_per_loss"
"""The control that changes no number, only what is better: the price of losing records."""
PRICES = (
    (10.0, "metrics, ten minutes"),
    (60.0, "page views, an hour"),
    (1_440.0, "clicks, a day"),
    (10_080.0, "orders, a week"),
    (43_200.0, "payments, a month"),
)
"""Steps of that control, in minutes without writes, and their names."""
SWITCHED_VERSIONS = (NEWEST_KNOWN, "3.9", "3.6")
"""Versions in pages without a kernel: the newest, without ELR, refusing a min ISR above RF."""
# Versions between which elections, min ISR or defaults changed, beside the newest.
_VERSIONS = ("4.1", "4.0", "3.9", "3.7", "3.6", "3.0", "2.8", "2.1", "1.1", "0.11")
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
    PRICE: "price of losing records, in time without writes",
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
_NOT_COUNTED = (
    "What your own cluster has seen is counted where there is a kernel: in a notebook, or with "
    "advisor learn."
)
_REJECTED = "Messages are rejected since there are fewer in-sync replicas than required."


def steps(minutes_per_loss: float) -> list[tuple[float, str]]:
    """Return the steps of `PRICE`, with a user's own price among them.

    >>> [name for _, name in steps(300.0)][1:4]
    ['page views, an hour', 'yours, 5 hours', 'clicks, a day']
    """
    users_price = []
    if minutes_per_loss not in dict(PRICES):
        words = time_per_year(minutes_per_loss / MINUTES_PER_YEAR).removesuffix(" a year")
        users_price = [(float(minutes_per_loss), f"yours, {words}")]
    return sorted([*PRICES, *users_price])


def values_of(
    config: Config, topic: str, card: str, minutes_per_loss: float = MINUTES_PER_LOSS
) -> dict[str, str]:
    """Return what each control shows for a setting, as text."""
    elr = config.eligible_leader_replicas
    elr_is_set = "eligible_leader_replicas" in config.explicit
    return {
        "topic": topic,
        "replication_factor": str(config.replication_factor),
        "min_insync_replicas": str(config.min_insync_replicas),
        "acks": str(config.acks),
        "retries": str(config.retries),
        "delivery_timeout_ms": str(config.delivery_timeout_ms or 0),
        "unclean_leader_election_enable": str(config.unclean_leader_election_enable).lower(),
        "eligible_leader_replicas": str(elr).lower() if elr_is_set else "default",
        "kafka_version": config.kafka_version,
        "card": card,
        PRICE: as_text(minutes_per_loss),
    }


def as_text(minutes_per_loss: float) -> str:
    """Return the price of a loss as the control's value."""
    return f"{minutes_per_loss:g}" if minutes_per_loss < 1e6 else repr(minutes_per_loss)


def config_of(values: Mapping[str, str], start: Config) -> Config:
    """Return the setting that the controls show.

    Numbers that they leave as in `start` stay explicit or Kafka's default, as they were.
    """
    start_values = values_of(start, "", "")
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
        if values[name] != start_values[name]:
            if not re.fullmatch(r"\d{1,10}", values[name]):
                raise ConfigError(f"{name}={values[name]!r} must be a whole number, not negative")
            changes[name] = int(values[name])
    return start.changed(**changes)


def controls(
    topics: Iterable[str],
    most_replicas: int,
    cards: Iterable[str],
    values: Mapping[str, str],
    prices: Sequence[tuple[float, str]] = PRICES,
) -> list[dict[str, Any]]:
    """Return every control with its choices; number fields have limits instead."""
    versions = sorted(
        {NEWEST_KNOWN, *_VERSIONS, values["kafka_version"]}, key=parse_version, reverse=True
    )
    factors = _upto(most_replicas, values["replication_factor"])
    options: dict[str, Sequence[tuple[str, str]]] = {
        "topic": [(NEW_TOPIC, "a new topic"), *((name, name) for name in topics)],
        "replication_factor": factors,
        "min_insync_replicas": _upto(most_replicas, values["min_insync_replicas"]),
        "acks": [(text, text) for text in EVERY_ACKS],
        "unclean_leader_election_enable": _SWITCH,
        "eligible_leader_replicas": _ELR,
        "kafka_version": [(text, text) for text in versions],
        "card": [(text, text) for text in sorted({*cards, values["card"]})],
        PRICE: [(as_text(price), name) for price, name in prices],
    }
    numbers = {"retries": (MAX_INT, 1), "delivery_timeout_ms": (_LONGEST_MS, _STEP_MS)}
    return [
        _choice(key, options[key])
        if key in options
        else {**_named(key), "min": 0, "max": numbers[key][0], "step": numbers[key][1]}
        for key in _LABELS
    ]


def precomputed(
    controls: Sequence[Mapping[str, Any]], settings: Iterable[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return the controls, less what was counted, with only the choices that some settings have."""
    offered: dict[str, set[str]] = {}
    for values in settings:
        for key, option in values.items():
            offered.setdefault(key, set()).add(option)
    restricted = []
    for control in controls:
        if control.get("group") == seen.PREFIX:
            continue
        if control["key"] == PRICE:
            restricted.append(dict(control))
            continue
        texts = offered[control["key"]]
        numbers = [(text, text) for text in sorted(texts, key=lambda t: (len(t), t))]
        options = control.get("options") or numbers
        restricted.append(_choice(control["key"], [o for o in options if o[0] in texts]))
    return restricted


def left_out(elsewhere: Sequence[Mapping[str, str]], keys: Sequence[str]) -> str:
    """Return a note on what the page lacks; `elsewhere` has a setting of each other curve."""
    if not elsewhere:
        return _NOT_COUNTED
    values = elsewhere[0]
    timeout = f"another delivery.timeout.ms than {values['delivery_timeout_ms']}"
    if "unclean_leader_election_enable" in keys:
        other = {"off": "on", "on": "off"}[dict(_SWITCH)[values["unclean_leader_election_enable"]]]
        timeout += f" or with unclean election {other}"
    versions = len({other_values["kafka_version"] for other_values in elsewhere}) > 1
    lacks = [
        f"other topics{' or Kafka versions' * versions} with acks other than {values['acks']}",
        f"other topics{', Kafka versions' * versions} or failure models with {timeout}",
    ]
    if versions:
        lacks.append("other Kafka versions with other topics or failure models")
    return (
        f"Not on this page: {'; '.join(lacks)}. How sure it is stands with the setting shown "
        "first, also of other failure models, and with what it should be set to; elsewhere the "
        f"verdict is the one at the middle values. {_NOT_COUNTED}"
    )


def capped(config: Config) -> str:
    """Return what Kafka makes of a min ISR above the RF; "" if it refuses writes."""
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
    min_isr, factor = config.min_insync_replicas or 1, config.replication_factor or 1
    if config.acks != "all" or config.effective_min_insync_replicas <= factor:
        return ""
    return (
        f"Kafka {config.kafka_version} refuses every write: “{_REJECTED}” "
        f"min.insync.replicas {min_isr} is above the replication factor {factor}."
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
    if isinstance(error, seen.CountError):
        return f"Not counted: {message}"
    return f"This cannot be computed: {message}"


def refused_by(error: AdvisorError) -> list[str]:
    """Return the controls whose values together are refused.

    >>> refused_by(ConfigError("eligible_leader_replicas needs KRaft and Kafka 4.0 or newer"))
    ['eligible_leader_replicas', 'kafka_version']
    """
    if isinstance(error, seen.CountError):
        return list(error.controls)
    if not isinstance(error, ConfigError):
        return ["card"]
    message = str(error)
    keys = [key for key in _LABELS if re.search(rf"(?<![a-z_]){key}(?![a-z_])", message)]
    if "Kafka " in message and "kafka_version" not in keys:
        keys.append("kafka_version")
    return keys


def _named(key: str) -> dict[str, Any]:
    return {"key": key, "label": _LABELS[key]}


def _choice(key: str, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {**_named(key), "options": [list(option) for option in options]}


def _upto(largest: int, current: str) -> list[tuple[str, str]]:
    return [(str(n), str(n)) for n in range(1, max(largest, int(current)) + 1)]
