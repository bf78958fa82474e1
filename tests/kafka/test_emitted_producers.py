"""Emitted producer files, tested with Kafka's Java clients and librdkafka."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException, Producer

from advisor.advice.migration.properties import java_producer, librdkafka_producer
from advisor.advice.recommendations.recommendation import compared
from advisor.caches import cache_folder
from advisor.errors import ConfigError
from advisor.kafka_lab.nodes.distribution import (
    BrokersUnavailableError,
    only_maven,
    run_maven,
)
from advisor.protocol.rules.config import Config
from clusters import skip_or_fail
from patience import PATIENCE_S

# One Java client per change of the producer's settings, and the version given to the advisor.
CLIENTS = {
    "0.8.2.2": "0.8.2",
    "0.9.0.1": "0.9.0",
    "0.10.2.2": "0.10.2",
    "0.11.0.3": "0.11.0",
    "1.1.1": "1.1",
    "2.0.1": "2.0",
    "2.1.1": "2.1",
    "2.8.2": "2.8",
    "3.0.2": "3.0",
    "3.9.2": "3.9",
    "4.2.1": "4.2",
}
# Files that these versions must reject or ignore, as a check of the test itself.
WRONG = {
    "conflict": "acks=1\nenable.idempotence=true\n",
    "in-flight": "acks=all\nenable.idempotence=true\nmax.in.flight.requests.per.connection=6\n",
    "no-retries": "acks=all\nenable.idempotence=true\nretries=0\n",
    "unknown": "acks=all\nmin.insync.replicas=2\n",
    "word": "acks=most\n",
}
LOGGING = "slf4j-api-1.7.36.jar"
HERE = Path(__file__).parent


class Verdict(NamedTuple):
    """A client's verdict on a file: accepted or the error, and ignored keys."""

    outcome: str
    ignored: str


def possible(kafka_version: str) -> Iterator[Config]:
    """Return the configurations that can be recommended for a version, and all other valid ones."""
    usual = Config(kafka_version=kafka_version, replication_factor=3, min_insync_replicas=2)
    yield from compared(usual, 3)
    choices = product(
        ("all", 1, 0),
        (None, 0, 3, 2_147_483_647),
        (None, 1, 7),
        (None, True, False),
        ({}, {"delivery_timeout_ms": 600_000, "linger_ms": 50}),
    )
    for acks, retries, in_flight, idempotence, times in choices:
        try:
            yield Config(
                kafka_version=kafka_version,
                acks=acks,
                retries=retries,
                max_in_flight_requests_per_connection=in_flight,
                enable_idempotence=idempotence,
                retry_backoff_ms=250 if in_flight == 1 else None,
                **times,
            )
        except ConfigError:
            continue


def name_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def java_clients() -> Path:
    """A folder with the clients' jars, downloaded by Maven on first use."""
    if shutil.which("java") is None:
        skip_or_fail("Java is not here: install it")
    folder = cache_folder("clients")
    wanted = [*(f"kafka-clients-{release}.jar" for release in CLIENTS), LOGGING]
    try:
        with only_maven():
            if not all((folder / jar).is_file() for jar in wanted):
                options = [f"-DoutputDirectory={folder}"]
                run_maven("Kafka's clients", HERE / "clients.xml", "copy", options)
    except BrokersUnavailableError as error:
        skip_or_fail(str(error))
    return folder


@pytest.fixture(scope="module")
def verdicts(java_clients: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Verdict of each client by "release/file", from one Java process."""
    folder = tmp_path_factory.mktemp("properties")
    arguments = []
    for release, kafka_version in CLIENTS.items():
        (folder / release).mkdir()
        files = {
            name_of(text): text for text in (java_producer(c).text for c in possible(kafka_version))
        }
        for name, text in {**files, **WRONG}.items():
            (folder / release / name).write_text(text)
        arguments += [str(java_clients / f"kafka-clients-{release}.jar"), str(folder / release)]
    command = [
        "java",
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        str(java_clients / LOGGING),
    ]
    command += [str(HERE / "ProducerCheck.java"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: Verdict(outcome, ignored) for name, outcome, ignored in rows}


@pytest.mark.parametrize("release", CLIENTS)
def test_java_clients_accept_emitted_files(verdicts: dict[str, Verdict], release: str) -> None:
    """Each file creates a producer of its version, which ignores no line."""
    texts = {java_producer(config).text for config in possible(CLIENTS[release])}
    assert len(texts) >= 20
    for text in texts:
        assert verdicts[f"{release}/{name_of(text)}"] == Verdict("accepted", ""), text


def test_java_clients_reject_invalid_files(verdicts: dict[str, Verdict]) -> None:
    """The clients do reject conflicts since 0.11, and invalid acks always."""
    for release in CLIENTS:
        assert verdicts[f"{release}/word"].outcome.startswith("refused"), release
        assert "min.insync.replicas" in verdicts[f"{release}/unknown"].ignored, release
    for release in list(CLIENTS)[3:]:
        for name in ("conflict", "in-flight", "no-retries"):
            assert verdicts[f"{release}/{name}"].outcome.startswith("refused"), (release, name)


@pytest.mark.parametrize("kafka_version", CLIENTS.values())
def test_librdkafka_accepts_emitted_files(kafka_version: str) -> None:
    """librdkafka, which rejects unknown keys, accepts every file."""
    for text in {librdkafka_producer(config).text for config in possible(kafka_version)}:
        lines = [line.split("=") for line in text.splitlines() if not line.startswith("#")]
        Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **dict(lines)})


def test_librdkafka_rejects_invalid_files() -> None:
    """The client librdkafka does reject conflicts and unknown keys."""
    for name in ("conflict", "in-flight", "unknown", "word"):
        given = dict(line.split("=") for line in WRONG[name].splitlines())
        with pytest.raises(KafkaException):
            Producer({"bootstrap.servers": "127.0.0.1:1", **given})


def test_java_and_librdkafka_files_agree() -> None:
    """Settings known to both clients have the same value in both files."""
    for kafka_version in CLIENTS.values():
        for config in possible(kafka_version):
            java, other = (
                dict(line.split("=") for line in text.splitlines() if not line.startswith("#"))
                for text in (java_producer(config).text, librdkafka_producer(config).text)
            )
            for key in other.keys() & java.keys():
                assert other[key] == java[key], (config, key)
            assert {"acks", "retries", "max.in.flight.requests.per.connection"} <= other.keys()
            assert ("enable.idempotence=true" in java_producer(config).text) == (
                "enable.idempotence=true" in librdkafka_producer(config).text
            )
