"""Other client libraries: their defaults, and a producer's settings in their names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from advisor import catalog
from advisor.advice.migration.properties import idempotent, in_flight, java_settings
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT
from advisor.rendering import (
    FileLines,
    FileText,
    Yaml,
    file_lines,
    joined,
    yaml_comments,
    yaml_document,
)

_FILE = "client_defaults.csv"


@dataclass(frozen=True)
class ClientDefaults:
    """One row of `data/client_defaults.csv`, which `data/README.md` explains.

    delivery_timeout_ms: milliseconds until a send fails for good; None if the library has no such
        limit.
    max_in_flight: requests in flight on a connection: a number, "unlimited", or "" if not stated.
    url, retrieved, verified, note: source, day, "primary" if read in the source itself, and a
        remark.
    """

    client: str
    language: str
    versions: str
    acks: str
    enable_idempotence: bool
    retries: str
    delivery_timeout_ms: int | None
    request_timeout_ms: int
    max_in_flight: str
    url: str
    retrieved: str
    verified: str
    note: str

    @property
    def name(self) -> str:
        """The library with its versions."""
        return f"{self.client} {self.versions}"

    @property
    def gaps(self) -> tuple[str, ...]:
        """Settings that must be set to keep records safe; empty if the defaults are safe."""
        gaps = []
        if self.acks != "all":
            gaps.append(f"acks={self.acks}")
        if not self.enable_idempotence:
            gaps.append("no idempotence")
        if self.retries.isdigit() and int(self.retries) < 10:
            gaps.append(f"{self.retries} retries")
        return tuple(gaps)


@cache
def client_defaults() -> tuple[ClientDefaults, ...]:
    """Return the shipped table of client libraries, in its order."""
    table = catalog.table_rows(catalog.data_path(_FILE), ClientDefaults)
    return tuple(_client(row) for _, row in table)


def _client(row: Mapping[str, str]) -> ClientDefaults:
    limit = row["delivery_timeout_ms"]
    texts = "client", "language", "versions", "acks", "retries", "max_in_flight"
    origin = "url", "retrieved", "verified", "note"
    return ClientDefaults(
        **{name: row[name] for name in (*texts, *origin)},
        enable_idempotence=row["enable_idempotence"] == "true",
        delivery_timeout_ms=int(limit) if limit else None,
        request_timeout_ms=int(row["request_timeout_ms"]),
    )


def newest(client: str) -> ClientDefaults:
    """Return the newest defaults of a library; each library's rows start with them."""
    return next(row for row in client_defaults() if row.client == client)


_BACKOFF_MS = 100
_SARAMA_ACKS = {"all": "WaitForAll", 1: "WaitForLocal", 0: "NoResponse"}
_FRANZ_ACKS = {"all": "AllISRAcks", 1: "LeaderAck", 0: "NoAck"}


def other_client_files(config: Config) -> dict[str, FileText]:
    """Return the settings for Spring, kafka-python, Sarama and franz-go, by file name."""
    return {
        "producer-spring.yaml": spring_producer(config),
        "producer-kafka-python.py": kafka_python_producer(config),
        "producer-sarama.go": sarama_producer(config),
        "producer-franz-go.go": franz_go_producer(config),
    }


def spring_producer(config: Config) -> Yaml:
    """Return Spring Boot's `application.yaml` for its producers, which are Java's."""
    settings: dict[str, object] = {}
    for name, text in java_settings(config).items():
        settings[name] = text == "true" if text in ("true", "false") else text
        settings[name] = int(text) if text.isdigit() else settings[name]
    direct = {name: str(settings.pop(name)) for name in ("acks",)}
    retries = {"retries": settings.pop("retries")} if "retries" in settings else {}
    producer: dict[str, object] = {**direct, **retries, "properties": settings}
    tree = {"spring": {"kafka": {"producer": producer}}}
    head = f"Spring Boot, application.yaml; Java client, Kafka {config.kafka_version}"
    return joined(yaml_comments([head]), yaml_document(tree))


def kafka_python_producer(config: Config) -> FileLines:
    """Return keyword arguments for `kafka.KafkaProducer` of kafka-python 3."""
    settings: dict[str, object] = {"acks": config.acks}
    if config.retries is not None and config.retries < MAX_INT:
        settings["retries"] = config.retries
    if config.delivery_timeout_ms is not None:
        settings["delivery_timeout_ms"] = config.delivery_timeout_ms
        settings["request_timeout_ms"] = config.request_timeout_ms
        settings["linger_ms"] = config.linger_ms
    settings["enable_idempotence"] = idempotent(config)
    settings["max_in_flight_requests_per_connection"] = in_flight(config)
    rows = (f"    {name}={value!r}," for name, value in settings.items())
    return file_lines([_head("#", "kafka-python"), "producer_settings = dict(", *rows, ")"])


def sarama_producer(config: Config) -> FileLines:
    """Return a function for Sarama, which has no delivery timeout.

    The number of retries that fit into ``delivery.timeout.ms`` replaces it. With idempotence Sarama
    allows one request in flight.
    """
    safe = idempotent(config)
    backoff = config.retry_backoff_ms or _BACKOFF_MS
    budget = 120_000 if config.delivery_timeout_ms is None else config.delivery_timeout_ms
    most_retries = MAX_INT if config.retries is None else config.retries
    retries = min(most_retries, max(1, math.ceil(budget / backoff)))
    lines = [
        f"config.Producer.RequiredAcks = sarama.{_SARAMA_ACKS[_acks(config)]}",
        f"config.Producer.Idempotent = {str(safe).lower()}",
        f"config.Net.MaxOpenRequests = {1 if safe else in_flight(config)}",
        "// With the backoff, at least delivery.timeout.ms; longer where a broker hangs, since",
        "// each try then waits for Net.ReadTimeout.",
        f"config.Producer.Retry.Max = {retries}",
        f"config.Producer.Retry.Backoff = {backoff} * time.Millisecond",
        f"config.Producer.Timeout = {config.request_timeout_ms} * time.Millisecond",
    ]
    return file_lines(
        [
            _head("//", "Sarama"),
            *_go_imports("github.com/IBM/sarama"),
            "func producerSettings(config *sarama.Config) {",
            *(f"\t{line}" for line in lines),
            "}",
        ]
    )


def franz_go_producer(config: Config) -> FileLines:
    """Return a function with the options for franz-go's `kgo.NewClient`."""
    safe = idempotent(config)
    options = [f"kgo.RequiredAcks(kgo.{_FRANZ_ACKS[_acks(config)]}())"]
    if not safe:
        options.append("kgo.DisableIdempotentWrite()")
        options.append(f"kgo.MaxProduceRequestsInflightPerBroker({in_flight(config)})")
    if config.retries is not None and config.retries < MAX_INT:
        options.append(f"kgo.RecordRetries({config.retries})")
    if config.delivery_timeout_ms is not None:
        limit = max(1000, config.delivery_timeout_ms)
        options.append(f"kgo.RecordDeliveryTimeout({limit} * time.Millisecond)")
    options.append(f"kgo.ProduceRequestTimeout({config.request_timeout_ms} * time.Millisecond)")
    return file_lines(
        [
            _head("//", "franz-go"),
            *_go_imports("github.com/twmb/franz-go/pkg/kgo"),
            "func producerSettings() []kgo.Opt {",
            "\treturn []kgo.Opt{",
            *(f"\t\t{option}," for option in options),
            "\t}",
            "}",
        ]
    )


def _go_imports(module: str) -> tuple[str, ...]:
    return ("package main", "", "import (", '\t"time"', "", f'\t"{module}"', ")", "")


def _acks(config: Config) -> str | int:
    assert config.acks is not None
    return config.acks


def _head(comment: str, client: str) -> str:
    """Return the defaults of the library as a comment."""
    row = newest(client)
    gaps = f"its defaults: {', '.join(row.gaps)}" if row.gaps else "its defaults are safe"
    return f"{comment} {row.name}; {gaps} (data/client_defaults.csv, {row.retrieved})"
