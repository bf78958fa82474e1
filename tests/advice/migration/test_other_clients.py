"""producer settings of other client libraries, and the table of their defaults."""

import ast
import re
from datetime import date
from itertools import product

import pytest
import yaml
from kafka import KafkaProducer

import advisor
from advisor import catalog
from advisor.advice.migration import other_clients as module
from advisor.advice.migration.other_clients import client_defaults, newest, other_client_files
from advisor.advice.migration.properties import broker_properties
from advisor.cli import text
from advisor.errors import ConfigError, ModelError
from advisor.protocol.rules.config import Config

SAFE = Config(replication_factor=3, min_insync_replicas=2, delivery_timeout_ms=600_000)


def possible() -> list[Config]:
    """Return configurations over versions, acks, retries and idempotence that Kafka takes."""
    found = []
    for version, acks, retries, idempotence in product(
        ("0.10.2", "2.0", "2.8", "4.2"), ("all", 1, 0), (None, 0, 7), (None, False)
    ):
        try:
            given = {"acks": acks, "retries": retries, "enable_idempotence": idempotence}
            found.append(Config(kafka_version=version, **given))
        except ConfigError:
            continue
    return found


def kafka_python(config: Config) -> dict[str, object]:
    call = ast.parse(other_client_files(config)["producer-kafka-python.py"].text).body[0].value
    return {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}


def test_kafka_python_knows_every_setting() -> None:
    """Its names are those of the installed library, and acks and idempotence fit together."""
    assert len(possible()) > 40
    for config in possible():
        settings = kafka_python(config)
        assert set(settings) <= set(KafkaProducer.DEFAULT_CONFIG)
        assert settings["acks"] == config.acks
        if settings["enable_idempotence"]:
            assert settings["acks"] == "all"
            assert settings["max_in_flight_requests_per_connection"] <= 5
            assert settings.get("retries", 1) > 0
    assert kafka_python(SAFE)["delivery_timeout_ms"] == 600_000


def test_spring_has_the_java_settings() -> None:
    """The tree is Spring's; acks and retries are its own, the rest are Kafka's properties."""
    for config in possible():
        tree = yaml.safe_load(other_client_files(config)["producer-spring.yaml"].text)
        producer = tree["spring"]["kafka"]["producer"]
        assert set(producer) <= {"acks", "retries", "properties"}
        assert str(producer["acks"]) == str(config.acks)
        assert all("." in name for name in producer["properties"])
    producer = yaml.safe_load(other_client_files(SAFE)["producer-spring.yaml"].text)["spring"][
        "kafka"
    ]
    assert producer["producer"]["properties"]["enable.idempotence"] is True
    assert producer["producer"]["properties"]["delivery.timeout.ms"] == 600_000


def test_sarama_retries_as_long_as_the_timeout() -> None:
    """Retries times backoff make the delivery timeout; idempotence has one request in flight."""
    for config in [SAFE, *possible()]:
        code = other_client_files(config)["producer-sarama.go"].text
        retries = int(re.search(r"Retry\.Max = (\d+)", code)[1])
        backoff = int(re.search(r"Retry\.Backoff = (\d+) \*", code)[1])
        if config.delivery_timeout_ms is not None and config.retries > 10_000:
            assert retries * backoff >= config.delivery_timeout_ms > (retries - 1) * backoff
        else:
            assert retries <= max(config.retries, 1200)
        if "Idempotent = true" in code:
            assert "MaxOpenRequests = 1\n" in code
            assert "RequiredAcks = sarama.WaitForAll\n" in code
            assert retries >= 1
        wanted = {"all": "WaitForAll", 1: "WaitForLocal", 0: "NoResponse"}[config.acks]
        assert f"RequiredAcks = sarama.{wanted}\n" in code


def test_franz_go_is_idempotent_unless_that_is_impossible() -> None:
    """Idempotence is its default and is switched off where acks or retries exclude it."""
    for config in possible():
        code = other_client_files(config)["producer-franz-go.go"].text
        wanted = {"all": "AllISRAcks", 1: "LeaderAck", 0: "NoAck"}[config.acks]
        assert f"kgo.RequiredAcks(kgo.{wanted}())," in code
        assert ("DisableIdempotentWrite" in code) or config.acks == "all"
    assert "RecordDeliveryTimeout(600000 * time.Millisecond)" in (
        other_client_files(SAFE)["producer-franz-go.go"].text
    )


def test_the_java_rows_are_the_defaults_of_config() -> None:
    """The table says of the Java client what `Config` says."""
    java = {row.versions: row for row in client_defaults() if row.client == "Java client"}
    versions = {
        "3.2 and later": ("3.2", "4.4"),
        "2.1 to 2.8": ("2.1", "2.8"),
        "1.0 to 2.0": ("2.0",),
    }
    assert set(java) == set(versions)
    for name, row in java.items():
        for version in versions[name]:
            config = Config(kafka_version=version)
            assert row.acks == str(config.acks)
            assert row.enable_idempotence == config.enable_idempotence
            assert int(row.retries) == config.retries
            assert row.delivery_timeout_ms == config.delivery_timeout_ms
            assert row.request_timeout_ms == config.request_timeout_ms
            assert int(row.max_in_flight) == config.max_in_flight_requests_per_connection


def test_the_kafka_python_row_is_the_installed_library() -> None:
    """The newest row of kafka-python equals the defaults of the library that is installed."""
    row, defaults = newest("kafka-python"), KafkaProducer.DEFAULT_CONFIG
    assert row.versions == "3.0"
    assert {"all": -1}[row.acks] == defaults["acks"]
    assert row.enable_idempotence == defaults["enable_idempotence"]
    assert (row.retries, defaults["retries"]) == ("unlimited", float("inf"))
    assert row.delivery_timeout_ms == defaults["delivery_timeout_ms"]
    assert row.request_timeout_ms == defaults["request_timeout_ms"]
    assert int(row.max_in_flight) == defaults["max_in_flight_requests_per_connection"]


@pytest.mark.parametrize("row", client_defaults(), ids=lambda row: row.name)
def test_every_row_is_complete(row: module.ClientDefaults) -> None:
    """Each library has a source, a day, values that are possible, and stands once."""
    assert row.url.startswith("https://")
    assert date.fromisoformat(row.retrieved) >= date(2026, 11, 1)
    assert row.verified == "primary"
    assert row.acks in ("all", "1", "0")
    assert row.retries == "unlimited" or int(row.retries) >= 0
    assert row.max_in_flight in ("", "unlimited") or int(row.max_in_flight) >= 1
    assert [each.name for each in client_defaults()].count(row.name) == 1
    assert not row.enable_idempotence or (row.acks == "all" and row.gaps == ())


def test_the_command_lists_every_library() -> None:
    """One line for each, with what an application has to set itself."""
    said = text.clients(client_defaults()).text.splitlines()
    for row in client_defaults():
        line = next(each for each in said if each.startswith(row.name))
        assert line.endswith(", ".join(row.gaps) or "nothing")
    assert any(line.startswith("Sarama 1.61") and "acks=1" in line for line in said)


def test_other_columns_are_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with other columns is named."""
    path = tmp_path / "client_defaults.csv"
    path.write_text("client,acks\n")
    monkeypatch.setattr(catalog, "data_path", lambda _name: path)
    with pytest.raises(ModelError, match=r"client_defaults\.csv:1: the columns must be client"):
        client_defaults.__wrapped__()


def test_consumers_may_fetch_from_their_own_rack() -> None:
    """Brokers in several racks are told of KIP-392 in a comment, from 2.4 on."""
    line = "# replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert line in broker_properties(SAFE, racks=True).text.splitlines()
    assert "replica.selector" not in broker_properties(SAFE).text
    assert (
        "replica.selector"
        not in broker_properties(SAFE.changed(kafka_version="2.3"), racks=True).text
    )
    advice = advisor.recommend(advisor.Cluster.uniform(3, racks=3), "three_az_cloud")
    assert line in advice.files()["server.properties"].splitlines()


def test_retries_of_sarama_are_no_limit_on_time() -> None:
    """A try against a broker that hangs lasts for its read timeout, which the comment says."""
    settings = other_client_files(SAFE)["producer-sarama.go"].text
    assert "longer where a broker hangs" in settings
    assert "Net.ReadTimeout" in settings
