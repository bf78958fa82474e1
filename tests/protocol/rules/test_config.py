"""Kafka's defaults by version, its validation, and explicit against default settings."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import AdvisorError, ConfigError
from advisor.protocol.rules.config import Config, effective_min_isr
from advisor.protocol.rules.versions import MAX_INT, NEWEST_KNOWN, default, parse_version

# Option -> (first version with it, last version before the next change, default), read in the
# ConfigDefs of each release.
ERAS: dict[str, list[tuple[str, str, object]]] = {
    "acks": [("0.8.2", "2.8.2", 1), ("3.0.0", "4.4.0", "all")],
    "retries": [("0.8.2", "2.0.1", 0), ("2.1.0", "4.4.0", 2147483647)],
    "delivery_timeout_ms": [("0.8.2", "2.0.1", None), ("2.1.0", "4.4.0", 120_000)],
    "request_timeout_ms": [("0.8.2", "4.4.0", 30_000)],
    "retry_backoff_ms": [("0.8.2", "4.4.0", 100)],
    "retry_backoff_max_ms": [("0.8.2", "3.6.2", None), ("3.7.0", "4.4.0", 1_000)],
    "linger_ms": [("0.8.2", "3.9.1", 0), ("4.0.0", "4.4.0", 5)],
    "max_in_flight_requests_per_connection": [("0.8.2", "4.4.0", 5)],
    "enable_idempotence": [
        ("0.11.0", "2.8.2", False),
        ("3.0.0", "3.0.0", False),
        ("3.0.1", "3.0.2", True),
        ("3.1.0", "3.1.0", False),
        ("3.1.1", "4.4.0", True),
    ],
    "replication_factor": [("0.8.0", "4.4.0", 1)],
    "min_insync_replicas": [("0.8.2", "4.4.0", 1)],
    "unclean_leader_election_enable": [("0.8.2", "0.10.2.2", True), ("0.11.0", "4.4.0", False)],
    "replica_lag_time_max_ms": [("0.8.0", "2.4.1", 10_000), ("2.5.0", "4.4.0", 30_000)],
    "eligible_leader_replicas": [("3.9.0", "4.0.2", False), ("4.1.0", "4.4.0", True)],
    "mode": [("0.8.0", "3.2.3", "zookeeper"), ("3.3.0", "4.4.0", "kraft")],
}

# The same for options that only the rules use.
BROKER_ERAS: dict[str, list[tuple[str, str, object]]] = {
    "replica_lag_max_messages": [("0.8.0", "0.8.2.2", 4_000), ("0.9.0", "4.4.0", None)],
    "zookeeper_session_timeout_ms": [
        ("0.8.0", "2.4.1", 6_000),
        ("2.5.0", "3.9.1", 18_000),
        ("4.0.0", "4.4.0", None),
    ],
    "broker_session_timeout_ms": [("2.8.0", "4.4.0", 9_000)],
}

BOUNDARIES = [
    (option, version, value)
    for option, eras in ERAS.items()
    for first, last, value in eras
    for version in sorted({first, last})
]


@pytest.mark.parametrize(("option", "version", "value"), BOUNDARIES)
def test_defaults_on_both_sides_of_each_change(option: str, version: str, value: object) -> None:
    """The first and last release of every era have the era's default."""
    got = getattr(Config(kafka_version=version), option)
    assert got == value
    assert type(got) is type(value)


def test_broker_timeouts_by_version() -> None:
    """Lag in messages until 0.8.2; ZooKeeper session 6 s, from 2.5 18 s, removed in 4.0."""
    for option, eras in BROKER_ERAS.items():
        for first, last, value in eras:
            assert default(option, first) == default(option, last) == value, option


def test_every_option_of_a_config_has_an_era() -> None:
    """No default is missing from the tables above."""
    timeouts = {"broker_session_timeout_ms", "zookeeper_session_timeout_ms"}
    assert timeouts < set(BROKER_ERAS)
    assert set(Config().to_dict()) == set(ERAS) | timeouts | {"kafka_version"}


@pytest.mark.parametrize(
    ("version", "mode", "broker", "zookeeper"),
    [
        ("0.8.0", None, None, 6_000),
        ("2.4", None, None, 6_000),
        ("2.5", None, None, 18_000),
        ("2.8", None, None, 18_000),
        ("2.8", "kraft", 9_000, None),
        ("3.2", None, None, 18_000),
        ("3.3", None, 9_000, None),
        ("3.9", "zookeeper", None, 18_000),
        ("3.9", None, 9_000, None),
        ("4.4", None, 9_000, None),
    ],
)
def test_the_session_timeout_is_that_of_the_mode(
    version: str, mode: str | None, broker: int | None, zookeeper: int | None
) -> None:
    """The other mode's option is not used and stays None."""
    config = Config(kafka_version=version, mode=mode)
    found = (config.broker_session_timeout_ms, config.zookeeper_session_timeout_ms)
    assert found == (broker, zookeeper)
    assert config.session_timeout_ms == (broker or zookeeper)
    assert Config(**config.to_dict()) == config


def test_a_given_session_timeout_counts() -> None:
    """Given for its mode, it replaces the default; another mode's is an error."""
    assert Config(broker_session_timeout_ms=30_000).session_timeout_ms == 30_000
    old = Config(kafka_version="3.9", mode="zookeeper", zookeeper_session_timeout_ms=6_000)
    assert old.session_timeout_ms == 6_000
    assert old.changed(acks=1).session_timeout_ms == 6_000
    with pytest.raises(ConfigError, match="not used in kraft mode; give broker_session_timeout_ms"):
        old.changed(mode="kraft")


def test_defaults_are_not_explicit() -> None:
    """Only the version always counts as explicit."""
    assert Config().explicit == {"kafka_version"}
    assert repr(Config(acks=1)) == f"Config(kafka_version='{NEWEST_KNOWN}', acks=1)"


def test_what_is_given_is_explicit_even_if_it_is_the_default() -> None:
    """retries=0 and False count as explicit; None does not."""
    config = Config(retries=0, unclean_leader_election_enable=False, acks=None)
    assert config.explicit - {"kafka_version"} == {"retries", "unclean_leader_election_enable"}


def test_given_and_defaulted_are_equal_settings() -> None:
    """The same settings compare equal; only ``explicit`` differs."""
    assert Config() == Config(acks="all", retries=MAX_INT)
    assert hash(Config()) == hash(Config(acks="all"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [("all", "all"), ("-1", "all"), (-1, "all"), (" ALL ", "all"), (1, 1), ("1", 1), ("0", 0)],
)
def test_acks_as_kafka_spells_it(written: str | int, meant: str | int) -> None:
    """``ProducerConfig.parseAcks``: all is -1."""
    assert Config(acks=written).acks == meant


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"acks": 2}, "acks=2 is not a Kafka setting"),
    ({"acks": True}, "acks=True"),
    ({"acks": "most"}, "acks=most"),
    ({"acks": 10**5000}, "acks=1e5000 is not"),
    ({"retries": 10**5000}, "retries=1e5000 must lie"),
    ({"retries": "1" * 500}, "1... must be a whole number"),
    ({"replication_factor": [10**5000]}, "replication_factor=<list> must be"),
    ({"kafka_version": 10**5000}, "kafka_version='1e5000' is no"),
    ({"kafka_version": "9" * 500}, "99... is not a Kafka version"),
    ({"replication_factor": 0}, "replication_factor=0"),
    ({"replication_factor": 32_768}, "replication_factor=32768"),
    ({"replication_factor": 2.5}, "must be a whole number"),
    ({"replication_factor": True}, "must be a whole number"),
    ({"min_insync_replicas": 0}, "min_insync_replicas=0"),
    ({"retries": -1}, "retries=-1"),
    ({"retries": MAX_INT + 1}, "retries=2147483648"),
    ({"linger_ms": -1}, "linger_ms=-1"),
    ({"request_timeout_ms": -1}, "request_timeout_ms=-1"),
    ({"retry_backoff_ms": -1}, "retry_backoff_ms=-1"),
    ({"retry_backoff_max_ms": -1}, "retry_backoff_max_ms=-1"),
    ({"max_in_flight_requests_per_connection": 0}, "max_in_flight_requests_per_connection=0"),
    ({"replica_lag_time_max_ms": math.nan}, "must be a whole number"),
    ({"broker_session_timeout_ms": 0}, "broker_session_timeout_ms=0"),
    ({"broker_session_timeout_ms": MAX_INT + 1}, "broker_session_timeout_ms=2147483648"),
    ({"broker_session_timeout_ms": 1.5}, "must be a whole number"),
    ({"zookeeper_session_timeout_ms": 6_000}, "is not used in kraft mode"),
    (
        {"kafka_version": "2.8", "broker_session_timeout_ms": 9_000},
        "broker_session_timeout_ms is not used in zookeeper mode; give zookeeper_session",
    ),
    ({"enable_idempotence": 1}, "must be True or False"),
    ({"unclean_leader_election_enable": "no"}, "must be True or False"),
    ({"kafka_version": "new"}, "is not a Kafka version"),
    ({"kafka_version": "0.7.2"}, "replication"),
    ({"mode": "raft"}, "is not a controller mode"),
    ({"kafka_version": "4.0", "mode": "zookeeper"}, "ended with 3.9"),
    ({"kafka_version": "2.7", "mode": "kraft"}, "began with 2.8"),
    ({"kafka_version": "3.9", "eligible_leader_replicas": True}, "4.0 or newer"),
    (
        {"kafka_version": "0.8.1", "unclean_leader_election_enable": False},
        "always elects uncleanly",
    ),
    ({"delivery_timeout_ms": 30_004}, "at least linger_ms"),
    ({"enable_idempotence": True, "acks": 1}, "conflicts with acks=1"),
    ({"enable_idempotence": True, "retries": 0}, "conflicts with retries=0"),
    (
        {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
        "at most 5",
    ),
    (
        {
            "kafka_version": "0.11",
            "enable_idempotence": True,
            "max_in_flight_requests_per_connection": 2,
        },
        "at most 1",
    ),
    ({"kafka_version": "0.10.2", "enable_idempotence": True}, "needs Kafka 0.11 or newer"),
    ({"kafka_version": "2.0", "delivery_timeout_ms": 120_000}, "needs Kafka 2.1 or newer"),
    ({"kafka_version": "3.6", "retry_backoff_max_ms": 1_000}, "needs Kafka 3.7 or newer"),
]


@pytest.mark.parametrize(("settings", "says"), REFUSED)
def test_what_kafka_refuses_is_refused_in_a_sentence(settings: dict[str, Any], says: str) -> None:
    """The message names the option, its value and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        Config(**settings)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, AdvisorError)


def test_odd_but_legal_settings_pass() -> None:
    """A min ISR above the replication factor is legal, and so is a backoff above its maximum."""
    assert Config(replication_factor=2, min_insync_replicas=3).min_insync_replicas == 3
    assert Config(retry_backoff_ms=5_000).retry_backoff_max_ms == 1_000


# --- delivery timeout ----------------------------------------------------------------------------


def test_delivery_timeout_may_be_exactly_the_sum() -> None:
    """KIP-91: delivery.timeout.ms >= linger.ms + request.timeout.ms."""
    assert Config(delivery_timeout_ms=30_005).delivery_timeout_ms == 30_005


def test_a_defaulted_delivery_timeout_rises_to_the_sum() -> None:
    """``configureDeliveryTimeout``: only an explicit value is an error; the default is raised."""
    assert Config(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    assert Config(linger_ms=2**40).delivery_timeout_ms == MAX_INT


# --- idempotence ---------------------------------------------------------------------------------

CONFLICTS: list[dict[str, Any]] = [
    {"acks": 1},
    {"acks": 0},
    {"retries": 0},
    {"max_in_flight_requests_per_connection": 6},
]


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_implied_idempotence_is_silently_off(conflict: dict[str, Any]) -> None:
    """3.2 to 3.9: a default that conflicts is dropped without an error."""
    assert Config(kafka_version="3.9", **conflict).enable_idempotence is False
    assert Config(kafka_version="3.9").enable_idempotence is True


@pytest.mark.parametrize("version", ["0.11", "1.0", "2.8", "3.0", "3.9", "4.0", "4.2", "4.4"])
@pytest.mark.parametrize("conflict", CONFLICTS)
def test_explicit_idempotence_with_a_conflict_is_an_error(
    version: str, conflict: dict[str, Any]
) -> None:
    """In every version that has idempotence."""
    with pytest.raises(ConfigError):
        Config(kafka_version=version, enable_idempotence=True, **conflict)


def test_too_many_in_flight_is_an_error_since_4_0_even_when_implied() -> None:
    """4.0 turned the warning of 3.x into an error; acks=1 still switches it off silently."""
    with pytest.raises(ConfigError, match="at most 5"):
        Config(kafka_version="4.0", max_in_flight_requests_per_connection=6)
    assert Config(kafka_version="4.0", acks=1).enable_idempotence is False


def test_idempotence_switched_off_allows_everything() -> None:
    """False never conflicts."""
    for conflict in CONFLICTS:
        assert Config(enable_idempotence=False, **conflict).enable_idempotence is False


@pytest.mark.parametrize(
    ("version", "in_flight"), [("0.11", 1), ("1.0", 5), ("2.0", 5), ("2.8", 5), ("3.0", 5)]
)
def test_explicit_idempotence_implies_what_it_needs(version: str, in_flight: int) -> None:
    """``configureAcks``, ``configureRetries``, ``configureInflightRequests`` of 0.11 to 2.8."""
    config = Config(kafka_version=version, enable_idempotence=True)
    assert config.enable_idempotence is True
    assert (config.acks, config.retries) == ("all", MAX_INT)
    assert config.max_in_flight_requests_per_connection == in_flight


def test_what_idempotence_implies_is_not_explicit() -> None:
    """Without explicit idempotence the old defaults return."""
    config = Config(kafka_version="2.0", enable_idempotence=True)
    assert "acks" not in config.explicit
    assert config.changed(enable_idempotence=False).acks == 1


# --- changed -------------------------------------------------------------------------------------


def test_changed_recomputes_defaults() -> None:
    """Another version brings its own defaults for options that were not given."""
    old = Config(kafka_version="2.8", replication_factor=3)
    new = old.changed(kafka_version="4.2")
    assert (old.acks, old.linger_ms) == (1, 0)
    assert (new.acks, new.linger_ms, new.replication_factor) == ("all", 5, 3)


def test_changed_keeps_explicit_options_and_none_resets_one() -> None:
    """None makes an option a default again."""
    config = Config(acks=1, linger_ms=7)
    assert config.changed(retries=3).explicit - {"kafka_version"} == {
        "acks",
        "linger_ms",
        "retries",
    }
    assert config.changed(acks=None).acks == "all"
    assert config.acks == 1


def test_changed_is_refused_like_a_new_one() -> None:
    """The same validation applies."""
    with pytest.raises(ConfigError):
        Config(enable_idempotence=True).changed(acks=1)
    with pytest.raises(TypeError):
        Config().changed(aks=1)


def test_a_raised_delivery_timeout_is_recomputed() -> None:
    """The raised delivery timeout is not explicit and returns to its default."""
    config = Config(request_timeout_ms=200_000)
    assert config.changed(request_timeout_ms=None).delivery_timeout_ms == 120_000


@given(
    first=st.sampled_from(["0.8.2", "0.11", "2.0", "2.1", "3.0", "3.9", "4.2"]),
    second=st.sampled_from(["0.8.2", "0.11", "2.0", "2.1", "3.0", "3.9", "4.2"]),
    given_=st.fixed_dictionaries(
        {},
        optional={
            "acks": st.sampled_from(["all", 1, 0]),
            "retries": st.integers(0, 9),
            "replication_factor": st.integers(1, 5),
            "min_insync_replicas": st.integers(1, 5),
        },
    ),
)
def test_changing_the_version_is_building_it_there(
    first: str, second: str, given_: dict[str, Any]
) -> None:
    """A change of version equals a construction at that version."""
    there = Config(kafka_version=first, **given_).changed(kafka_version=second)
    built = Config(kafka_version=second, **given_)
    assert there == built
    assert there.explicit == built.explicit


# --- min ISR and versions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "min_isr", "replicas", "effective"),
    [("0.8.1", 2, 3, 1), ("0.8.2", 2, 3, 2), ("3.6", 3, 2, 3), ("3.7", 3, 2, 2), ("4.2", 2, 3, 2)],
)
def test_effective_min_isr_by_version(
    version: str, min_isr: int, replicas: int, effective: int
) -> None:
    """The option does not exist before 0.8.2; it is capped by the replication factor since 3.7."""
    config = Config(kafka_version=version, min_insync_replicas=min_isr, replication_factor=replicas)
    assert config.effective_min_insync_replicas == effective
    assert effective_min_isr(min_isr, replicas, config.rules) == effective


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("4.2", (4, 2, 0, 0)),
        ("3.9.1", (3, 9, 1, 0)),
        ("0.10.2.2", (0, 10, 2, 2)),
        ("v2.8.0", (2, 8, 0, 0)),
        ("3.9.0-rc3", (3, 9, 0, 0)),
    ],
)
def test_versions_as_people_write_them(text: str, version: tuple[int, ...]) -> None:
    """Two to four numbers, with a v or a suffix."""
    assert parse_version(text) == version
