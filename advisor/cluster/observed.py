"""`Observed`: controller, features and settings, which only a running cluster reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from advisor.cluster.addresses import looks_like_addresses, parse_addresses
from advisor.cluster.frozen import FrozenMap
from advisor.cluster.topic import MAX_ID
from advisor.errors import InputError, shown
from advisor.parsing import whole_number

_Value = TypeVar("_Value")
ELR_FEATURE = "eligible.leader.replicas.version"
METADATA_FEATURE = "metadata.version"
REPLICATION_SETTINGS = frozenset(
    {
        "auto.create.topics.enable",
        "auto.leader.rebalance.enable",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "controlled.shutdown.enable",
        "controller.quorum.voters",
        "default.replication.factor",
        "flush.messages",
        "flush.ms",
        "inter.broker.protocol.version",
        "leader.imbalance.check.interval.seconds",
        "leader.imbalance.per.broker.percentage",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        "min.insync.replicas",
        "num.partitions",
        "num.replica.fetchers",
        "offsets.topic.replication.factor",
        "process.roles",
        "replica.fetch.wait.max.ms",
        "replica.lag.time.max.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
        "unclean.leader.election.enable",
        "zookeeper.session.timeout.ms",
    }
)
"""The topic and broker settings that affect replication; only these are kept."""


def right_name(setting: str, known: Collection[str] = REPLICATION_SETTINGS) -> str:
    """Return how Kafka spells a setting of replication; "" where it is none.

    >>> right_name("Min.Insync.Replicas"), right_name("min_insync_replicas"), right_name("owner")
    ('min.insync.replicas', 'min.insync.replicas', '')
    """
    name = setting.lower().replace("_", ".").replace("-", ".")
    return name if name in known else ""


SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
"""`DescribeConfigsResponse.ConfigSource` by code."""
OWN, DEFAULT = SOURCES[1], SOURCES[5]


@dataclass(frozen=True, slots=True)
class Setting:
    """Value of a setting as text, and its config source (one of `SOURCES`)."""

    value: str | None
    source: str

    @property
    def is_default(self) -> bool:
        """Whether it is Kafka's default value."""
        return self.source == DEFAULT


@dataclass(frozen=True, slots=True)
class Quorum:
    """The KRaft controller quorum.

    voters, observers: node ids, ascending. Brokers are observers.
    """

    leader: int | None
    leader_epoch: int
    voters: tuple[int, ...]
    observers: tuple[int, ...]


@dataclass(frozen=True)
class Observed:
    """What a running cluster reports beyond a describe output.

    features: finalized features (`metadata.version`) and their levels; disabled ones are absent.
    features_known: whether the cluster reports features, so that an absent one is disabled.
    versions: Kafka version by broker id, for the brokers that could be reached.
    broker_settings: by broker id and Kafka's setting name; only `REPLICATION_SETTINGS`.
    topic_settings: by topic and Kafka's setting name, defaults included.
    down: brokers with replicas that are not registered or fenced.
    """

    mode: str
    cluster_id: str = ""
    quorum: Quorum | None = None
    features: Mapping[str, int] = field(default_factory=dict)
    features_known: bool = False
    versions: Mapping[int, str] = field(default_factory=dict)
    broker_settings: Mapping[int, Mapping[str, Setting]] = field(default_factory=dict)
    topic_settings: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    bootstrap_servers: str = ""
    command_config: str | None = None
    down: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require(self.mode in ("kraft", "zookeeper"), "mode", self.mode, "kraft or zookeeper")
        _require(_is(self.cluster_id, str), "cluster_id", self.cluster_id, "a printable text")
        _require(
            self.quorum is None or isinstance(self.quorum, Quorum),
            "quorum",
            self.quorum,
            "a Quorum",
        )
        for name, kind, value_kind in _FIELDS:
            mapping = getattr(self, name)
            _require(isinstance(mapping, Mapping), name, mapping, "a mapping")
            for key, value in mapping.items():
                _require(_is(key, kind), name, key, f"{_WORDS[kind]} as keys")
                _require(_is(value, value_kind), name, value, f"{_WORDS[value_kind]} as values")
            object.__setattr__(self, name, FrozenMap(mapping))
        for name in ("broker_settings", "topic_settings"):
            for settings in getattr(self, name).values():
                for key, value in settings.items():
                    _require(_is(key, str), name, key, "names of settings")
                    _require(isinstance(value, Setting), name, value, "settings")
                    texts = (value.value or "", value.source)
                    _require(all(_is(text, str) for text in texts), name, value, "printable texts")
            frozen = {key: FrozenMap(inner) for key, inner in getattr(self, name).items()}
            object.__setattr__(self, name, FrozenMap(frozen))
        down = self.down
        ids = isinstance(down, tuple | list) and all(_is(broker, int) for broker in down)
        _require(ids, "down", down, "a tuple of broker ids")
        object.__setattr__(self, "down", tuple(down))
        # Both are put into shell scripts.
        servers, path = self.bootstrap_servers, self.command_config
        valid = servers == "" or (isinstance(servers, str) and looks_like_addresses(servers))
        _require(valid, "bootstrap_servers", servers, "host:9092, or several separated by commas")
        if servers:
            # Without the spaces and line breaks that may stand beside a comma.
            plain = ",".join(map(str, parse_addresses(servers)))
            object.__setattr__(self, "bootstrap_servers", plain)
        _require(
            path is None or (isinstance(path, str) and path.isprintable()),
            "command_config",
            path,
            "the path of a properties file, without control characters",
        )

    @property
    def eligible_leader_replicas(self) -> bool | None:
        """Whether KIP-966 is enabled; None if not reported."""
        if self.mode == "zookeeper":
            return False
        return self.features.get(ELR_FEATURE, 0) > 0 if self.features_known else None

    def broker_values(self, name: str) -> dict[int, str]:
        """Return the values of a setting by broker id, where known."""
        return {
            broker: settings[name].value or ""
            for broker, settings in self.broker_settings.items()
            if name in settings
        }

    def is_topic_override(self, topic: str, name: str) -> bool | None:
        """Whether a setting is set on the topic itself; None if unknown."""
        setting = self.topic_settings.get(topic, {}).get(name)
        return None if setting is None else setting.source == OWN

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `Observed.from_dict` reads it back."""
        return {
            "mode": self.mode,
            "cluster_id": self.cluster_id,
            "quorum": None if self.quorum is None else asdict(self.quorum),
            "features": dict(self.features),
            "features_known": self.features_known,
            "versions": {str(broker): version for broker, version in self.versions.items()},
            "broker_settings": {
                str(broker): _settings_to_dict(settings)
                for broker, settings in self.broker_settings.items()
            },
            "topic_settings": {
                topic: _settings_to_dict(settings)
                for topic, settings in self.topic_settings.items()
            },
            "bootstrap_servers": self.bootstrap_servers,
            "command_config": self.command_config,
            "down": list(self.down),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Observed:
        """Return the object that `to_dict` wrote."""
        quorum = document["quorum"]
        return cls(
            mode=str(document["mode"]),
            cluster_id=str(document["cluster_id"]),
            quorum=quorum
            and Quorum(
                leader=None if quorum["leader"] is None else _whole(quorum["leader"]),
                leader_epoch=_whole(quorum["leader_epoch"]),
                voters=tuple(map(_whole, quorum["voters"])),
                observers=tuple(map(_whole, quorum["observers"])),
            ),
            features={str(name): _whole(level) for name, level in document["features"].items()},
            features_known=bool(document["features_known"]),
            versions=_by_broker(document["versions"], str),
            broker_settings=_by_broker(document["broker_settings"], _settings),
            topic_settings={
                str(key): _settings(rows) for key, rows in document["topic_settings"].items()
            },
            bootstrap_servers=str(document.get("bootstrap_servers", "")),
            command_config=document.get("command_config"),
            down=tuple(map(_whole, document.get("down", ()))),
        )


# Field of Observed, the type of its keys and of its values.
_FIELDS: tuple[tuple[str, type, type], ...] = (
    ("features", str, int),
    ("versions", int, str),
    ("broker_settings", int, Mapping),
    ("topic_settings", str, Mapping),
)
_WORDS: dict[type, str] = {str: "printable texts", int: "whole numbers", Mapping: "mappings"}


def _is(value: object, kind: type) -> bool:
    """Whether a value is of a type; a bool is no number, and a text has one line."""
    printable = not isinstance(value, str) or value.isprintable()
    return isinstance(value, kind) and not isinstance(value, bool) and printable


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{shown(value)} is not a whole number")
    return value


def _by_broker(rows: Mapping[str, Any], read: Callable[[Any], _Value]) -> dict[int, _Value]:
    """Return what a saved cluster has of each broker, by id."""
    ids = [whole_number(key, MAX_ID) for key in rows]
    if None in ids or len({*ids}) < len(ids):
        raise ValueError("not broker ids")
    return {int(key): read(value) for key, value in rows.items()}


def _require(condition: bool, name: str, value: object, expected: str) -> None:
    if not condition:
        raise InputError(f"observed: {name} has {shown(value)}; give {expected}")


def _settings_to_dict(settings: Mapping[str, Setting]) -> dict[str, list[str | None]]:
    return {name: [setting.value, setting.source] for name, setting in settings.items()}


def _settings(rows: Mapping[str, Any]) -> dict[str, Setting]:
    return {
        str(name): Setting(None if value is None else str(value), str(source))
        for name, (value, source) in rows.items()
    }
