"""Topic and producer settings with Kafka's defaults and Kafka's validation."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from advisor.arguments import suggests_names
from advisor.errors import ConfigError, shown
from advisor.protocol.rules.versions import (
    MAX_INT,
    NEWEST_KNOWN,
    Rules,
    default,
    parse_version,
    rules_for,
)
from advisor.value_tables import FieldTable

_ACKS: dict[str, str | int] = {"all": "all", "-1": "all", "1": 1, "0": 0}


@suggests_names
@dataclass(frozen=True, kw_only=True)
class Config(FieldTable):
    """Topic, broker and producer settings that decide durability and availability.

    Options have Kafka's names with underscores for dots. None stands for Kafka's default at
    `kafka_version`; after construction every option holds its effective value.

    Parameters
    ----------
    kafka_version : str, default `versions.NEWEST_KNOWN`
        Version of the brokers and of the Java client, from ``"0.8.0"`` on.
    mode : {"kraft", "zookeeper"}, optional
        The controller. Default: "kraft" from 3.3 on.
    eligible_leader_replicas : bool, optional
        Eligible leader replicas (KIP-966). Default: as a new cluster of that version has it, on
        from 4.1.
    replication_factor : int, optional
        Replicas of each partition, 1 to 32767. Default: 1.
    min_insync_replicas : int, optional
        In-sync replicas that acks=all needs, from 1. May exceed the replication factor, as in
        Kafka. Default: 1.
    acks : {"all", 1, 0}, optional
        Acknowledgement that the producer waits for; ``-1`` means "all". Default: "all" from 3.0 on,
        1 before.
    retries : int, optional
        Retries of a failed send, from 0. Default: 2147483647 from 2.1 on, 0 before.
    delivery_timeout_ms : int, optional
        Milliseconds until the producer reports a failure, at least `linger_ms` plus
        `request_timeout_ms`. Default: 120000 from 2.1 on; before, the option does not exist.
    request_timeout_ms : int, optional
        Milliseconds that the producer waits for one response. Default: 30000.
    retry_backoff_ms : int, optional
        Milliseconds between two attempts. Default: 100.
    retry_backoff_max_ms : int, optional
        Upper limit of the exponential backoff, in milliseconds. Default: 1000 from 3.7 on; before,
        the option does not exist.
    linger_ms : int, optional
        Milliseconds that a batch waits for more records. Default: 5 from 4.0 on, 0 before.
    max_in_flight_requests_per_connection : int, optional
        Unacknowledged requests per connection, from 1. Default: 5.
    enable_idempotence : bool, optional
        Idempotent producer. If True is given, acks and retries (and in 0.11 the requests in flight)
        default to what it needs, and a conflict is an error; a default of True is switched off by a
        conflict. Default: True from 3.0.1 on, except in 3.1.0.
    unclean_leader_election_enable : bool, optional
        Elect a replica outside the ISR when no in-sync replica is alive. Default: False from 0.11
        on.
    replica_lag_time_max_ms : int, optional
        Milliseconds after which a follower that is not caught up leaves the ISR. Default: 30000
        from 2.5 on, 10000 before.
    broker_session_timeout_ms : int, optional
        Milliseconds without a heartbeat after which the KRaft controller fences a broker. Default:
        9000; under ZooKeeper the option is not used.
    zookeeper_session_timeout_ms : int, optional
        Milliseconds after which a silent broker's ZooKeeper session ends. Default: 18000 from 2.5
        on, 6000 before; under KRaft the option is not used.

    Attributes
    ----------
    explicit : frozenset of str
        Options that were given, always with "kafka_version".

    Raises
    ------
    ConfigError
        If Kafka would reject the combination, or the version lacks an option.

    See Also
    --------
    advisor.evaluate : Durability and availability of a configuration.
    advisor.recommend : Configurations that meet goals.

    Examples
    --------
    >>> config = Config(kafka_version="3.9", replication_factor=3, min_insync_replicas=2)
    >>> config
    Config(kafka_version='3.9', replication_factor=3, min_insync_replicas=2)
    >>> config.acks, config.unclean_leader_election_enable
    ('all', False)
    >>> Config(kafka_version="2.8").acks
    1
    """

    kafka_version: str = NEWEST_KNOWN
    mode: str | None = None
    eligible_leader_replicas: bool | None = None
    replication_factor: int | None = None
    min_insync_replicas: int | None = None
    acks: str | int | None = None
    retries: int | None = None
    delivery_timeout_ms: int | None = None
    request_timeout_ms: int | None = None
    retry_backoff_ms: int | None = None
    retry_backoff_max_ms: int | None = None
    linger_ms: int | None = None
    max_in_flight_requests_per_connection: int | None = None
    enable_idempotence: bool | None = None
    unclean_leader_election_enable: bool | None = None
    replica_lag_time_max_ms: int | None = None
    broker_session_timeout_ms: int | None = None
    zookeeper_session_timeout_ms: int | None = None
    explicit: frozenset[str] = field(init=False, default=frozenset(), compare=False, repr=False)

    def __post_init__(self) -> None:
        given = frozenset(
            f.name for f in fields(self) if f.init and getattr(self, f.name) is not None
        )
        self._set("explicit", given)
        self._check_options_exist()
        self._set("acks", _acks(self._given_or_default("acks")))
        for name, lower, upper in _INTEGERS:
            self._set(name, _integer(name, self._given_or_default(name), lower, upper))
        if not isinstance(self.mode, str | None):
            raise ConfigError(f"mode={shown(self.mode)} must be 'kraft' or 'zookeeper'")
        if not isinstance(self.eligible_leader_replicas, bool | None):
            _boolean("eligible_leader_replicas", self.eligible_leader_replicas)
        rules = rules_for(self.kafka_version, self.mode, self.eligible_leader_replicas)
        self._set("mode", rules.mode)
        self._set("eligible_leader_replicas", rules.eligible_leader_replicas)
        self._set_session_timeouts()
        for name in ("unclean_leader_election_enable", "enable_idempotence"):
            self._set(name, _boolean(name, self._given_or_default(name)))
        if rules.unclean_only and not self.unclean_leader_election_enable:
            raise ConfigError(
                f"Kafka {self.kafka_version} always elects uncleanly; "
                "unclean_leader_election_enable=False needs 0.8.2 or newer"
            )
        self._set("delivery_timeout_ms", self._delivery_timeout_ms())
        self._set("enable_idempotence", self._idempotence())

    @property
    def rules(self) -> Rules:
        """Replication rules of this version, controller and ELR setting."""
        return rules_for(self.kafka_version, self.mode, self.eligible_leader_replicas)

    @property
    def effective_min_insync_replicas(self) -> int:
        """In-sync replicas that acks=all needs: capped by the replication factor since 3.7."""
        assert self.min_insync_replicas is not None
        assert self.replication_factor is not None
        return effective_min_isr(self.min_insync_replicas, self.replication_factor, self.rules)

    @property
    def session_timeout_ms(self) -> int | None:
        """Milliseconds of silence after which a broker is dead to its controller."""
        if self.mode == "kraft":
            return self.broker_session_timeout_ms
        return self.zookeeper_session_timeout_ms

    def changed(self, **changes: Any) -> Config:
        """Return the settings with some options changed.

        Options that were not given get their defaults again, for example those of another version.

        Parameters
        ----------
        **changes : object
            Options to change, as for `Config`; None makes an option a default again.

        Returns
        -------
        Config
            The new settings.

        Raises
        ------
        ConfigError
            If Kafka would reject the combination.

        See Also
        --------
        Config.to_dict : Every effective option.

        Examples
        --------
        >>> old = Config(kafka_version="2.8", replication_factor=3)
        >>> new = old.changed(kafka_version="4.2")
        >>> old.acks, new.acks, new.replication_factor
        (1, 'all', 3)
        """
        given = {name: getattr(self, name) for name in self.explicit}
        return Config(**{**given, **changes})

    def to_dict(self) -> dict[str, object]:
        """Return every option with its effective value.

        Returns
        -------
        dict of str to object
            Option name to value; times are in milliseconds.

        See Also
        --------
        Config.changed : The settings with some options changed.

        Examples
        --------
        >>> options = Config(replication_factor=3).to_dict()
        >>> options["replication_factor"], options["retries"]
        (3, 2147483647)
        >>> Config(**options) == Config(replication_factor=3)
        True
        """
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def _html_notes(self) -> dict[str, str]:
        default = f"Kafka's default at {self.kafka_version}"
        return {
            name: "given" if name in self.explicit else "not used" if value is None else default
            for name, value in self.to_dict().items()
        }

    def __repr__(self) -> str:
        options = ", ".join(
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name in self.explicit
        )
        return f"Config({options})"

    def _given_or_default(self, name: str) -> object:
        """Return the given value, else what explicit idempotence implies, else Kafka's default.

        Source: ``KafkaProducer.configureAcks``, ``configureRetries``, ``configureInflightRequests``
        (0.11 to 2.8).
        """
        given = getattr(self, name)
        if given is not None:
            return given
        if self.enable_idempotence is True and self._idempotence_is_explicit():
            if name in ("acks", "retries"):
                return {"acks": "all", "retries": MAX_INT}[name]
            if name == "max_in_flight_requests_per_connection" and not self._is_at_least("1.0"):
                return 1
        return default(name, self.kafka_version)

    def _idempotence_is_explicit(self) -> bool:
        return "enable_idempotence" in self.explicit

    def _check_options_exist(self) -> None:
        """Reject a producer option that this version would silently ignore."""
        for name, since in _PRODUCER_OPTIONS_SINCE:
            if getattr(self, name) and not self._is_at_least(since):
                raise ConfigError(
                    f"{name}={getattr(self, name)} needs Kafka {since} or newer; "
                    f"{self.kafka_version} does not know it"
                )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _set_session_timeouts(self) -> None:
        """Set the timeout of this mode; the other mode's is not used."""
        for mode, name in _SESSION_TIMEOUTS.items():
            if mode == self.mode:
                self._set(name, _integer(name, self._given_or_default(name), 1, MAX_INT))
            elif getattr(self, name) is not None:
                used = _SESSION_TIMEOUTS[str(self.mode)]
                raise ConfigError(f"{name} is not used in {self.mode} mode; give {used}")

    def _delivery_timeout_ms(self) -> int | None:
        """Apply Kafka's minimum of linger plus request timeout (KIP-91, ``KafkaProducer``)."""
        if self.delivery_timeout_ms is None:
            return None
        assert self.linger_ms is not None
        assert self.request_timeout_ms is not None
        lower = min(self.linger_ms + self.request_timeout_ms, MAX_INT)
        if self.delivery_timeout_ms >= lower:
            return self.delivery_timeout_ms
        if "delivery_timeout_ms" in self.explicit:
            raise ConfigError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} must be at least linger_ms + "
                f"request_timeout_ms = {lower}"
            )
        return lower

    def _idempotence(self) -> bool:
        """Apply Kafka's rule: a conflict is an error if explicit, else it disables idempotence."""
        assert self.max_in_flight_requests_per_connection is not None
        in_flight = self.max_in_flight_requests_per_connection
        upper = 5 if self._is_at_least("1.0") else 1
        if not self.enable_idempotence:
            return False
        reasons = [
            (self.acks != "all", f'acks={self.acks} (it needs acks="all")'),
            (self.retries == 0, "retries=0 (it needs retries above 0)"),
            (
                in_flight > upper,
                f"max_in_flight_requests_per_connection={in_flight} (at most {upper})",
            ),
        ]
        conflicts = [text for applies, text in reasons if applies]
        rejects_default = in_flight > upper and self._is_at_least("4.0")
        if conflicts and (self._idempotence_is_explicit() or rejects_default):
            raise ConfigError(f"enable_idempotence=True conflicts with {' and '.join(conflicts)}")
        return not conflicts

    def _is_at_least(self, version: str) -> bool:
        return parse_version(self.kafka_version) >= parse_version(version)


def effective_min_isr(min_insync_replicas: int, replication_factor: int, rules: Rules) -> int:
    """Return the in-sync replicas that acks=all needs, since 3.7 at most all of them."""
    if not rules.min_isr_supported:
        return 1
    if rules.min_isr_capped:
        return min(min_insync_replicas, replication_factor)
    return min_insync_replicas


def outlasts_default(config: Config) -> bool:
    """Return whether the producer waits longer for a delivery than by Kafka's default."""
    usual = default("delivery_timeout_ms", config.kafka_version)
    waits = config.delivery_timeout_ms
    return isinstance(usual, int) and waits is not None and waits > usual


_INTEGERS: tuple[tuple[str, int, int], ...] = (
    ("replication_factor", 1, 32_767),
    ("min_insync_replicas", 1, MAX_INT),
    ("retries", 0, MAX_INT),
    ("delivery_timeout_ms", 0, MAX_INT),
    ("request_timeout_ms", 0, MAX_INT),
    ("retry_backoff_ms", 0, 2**63 - 1),
    ("retry_backoff_max_ms", 0, 2**63 - 1),
    ("linger_ms", 0, 2**63 - 1),
    ("max_in_flight_requests_per_connection", 1, MAX_INT),
    ("replica_lag_time_max_ms", 1, 2**63 - 1),
)


_SESSION_TIMEOUTS = {
    "kraft": "broker_session_timeout_ms",
    "zookeeper": "zookeeper_session_timeout_ms",
}


# A producer option, and the version that brought it.
_PRODUCER_OPTIONS_SINCE: tuple[tuple[str, str], ...] = (
    ("enable_idempotence", "0.11"),
    ("delivery_timeout_ms", "2.1"),
    ("retry_backoff_max_ms", "3.7"),
)


def _acks(value: object) -> str | int:
    text = value if isinstance(value, str) else shown(value)
    acks = _ACKS.get(text.strip().lower()) if not isinstance(value, bool) else None
    if acks is None:
        raise ConfigError(
            f"acks={text[:20]} is not a Kafka setting; write acks=all, acks=1 or acks=0"
        )
    return acks


def _integer(name: str, value: object, lower: int, upper: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name}={shown(value)} must be a whole number")
    if not lower <= value <= upper:
        raise ConfigError(f"{name}={shown(value)} must lie between {lower} and {upper}")
    return value


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={shown(value)} must be True or False")
    return value
