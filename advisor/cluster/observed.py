"""What only a running cluster tells of itself: its controller, features and brokers' settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from advisor.cluster.frozen import FrozenMap

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
"""The settings of topics and brokers that replication depends on; of the others none is kept."""

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
"""`DescribeConfigsResponse.ConfigSource` of Kafka's clients, by its number."""
OWN, DEFAULT = SOURCES[1], SOURCES[5]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's value, as text, and where it comes from: one of `SOURCES`."""

    value: str | None
    source: str

    @property
    def is_default(self) -> bool:
        """Whether nobody set it, so that it is Kafka's own default."""
        return self.source == DEFAULT


@dataclass(frozen=True, slots=True)
class Quorum:
    """KRaft's controllers.

    Parameters
    ----------
    leader : int or None
        Id of the active controller; None while there is none.
    leader_epoch : int
    voters, observers : tuple of int
        Node ids, ascending. Brokers observe.
    """

    leader: int | None
    leader_epoch: int
    voters: tuple[int, ...]
    observers: tuple[int, ...]


@dataclass(frozen=True)
class Observed:
    """What only a running cluster tells of itself.

    Parameters
    ----------
    mode : {"kraft", "zookeeper"}
        Which controller decides.
    cluster_id : str
    quorum : Quorum or None
        None under ZooKeeper, and where the cluster did not tell.
    features : mapping of str to int
        Finalized features and their levels, such as `metadata.version`; a feature that is off
        is not among them.
    features_known : bool
        Whether the cluster tells its features, so that one that is not there is off.
    versions : mapping of int to str
        Kafka's version by broker id, as far as a broker could be asked.
    broker_settings : mapping of int to (mapping of str to Setting)
        By broker id and Kafka's name; only `REPLICATION_SETTINGS`.
    topic_settings : mapping of str to (mapping of str to Setting)
        By topic and Kafka's name, those left at their defaults included.
    bootstrap_servers : str
        Where it was asked, as Kafka's tools take it.
    command_config : str or None
        The client properties file that it was asked with; only its path.
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

    def __post_init__(self) -> None:
        for name in ("features", "versions"):
            object.__setattr__(self, name, FrozenMap(getattr(self, name)))
        for name in ("broker_settings", "topic_settings"):
            frozen = {key: FrozenMap(inner) for key, inner in getattr(self, name).items()}
            object.__setattr__(self, name, FrozenMap(frozen))

    @property
    def eligible_leader_replicas(self) -> bool | None:
        """Whether KIP-966 is on; None where the cluster does not tell."""
        if self.mode == "zookeeper":
            return False
        return self.features.get(ELR_FEATURE, 0) > 0 if self.features_known else None

    def broker_values(self, name: str) -> dict[int, str]:
        """Return a setting's value by broker, where it is known."""
        return {
            broker: settings[name].value or ""
            for broker, settings in self.broker_settings.items()
            if name in settings
        }

    def own_value(self, topic: str, name: str) -> bool | None:
        """Whether a topic's setting is its own, not inherited; None where that is not known."""
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
                str(broker): _plain(settings) for broker, settings in self.broker_settings.items()
            },
            "topic_settings": {
                topic: _plain(settings) for topic, settings in self.topic_settings.items()
            },
            "bootstrap_servers": self.bootstrap_servers,
            "command_config": self.command_config,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Observed:
        """Return what `to_dict` wrote.

        Raises
        ------
        AttributeError, KeyError, TypeError, ValueError
            If it is of another form.
        """
        quorum = document["quorum"]
        return cls(
            mode=str(document["mode"]),
            cluster_id=str(document["cluster_id"]),
            quorum=quorum
            and Quorum(
                leader=None if quorum["leader"] is None else int(quorum["leader"]),
                leader_epoch=int(quorum["leader_epoch"]),
                voters=tuple(map(int, quorum["voters"])),
                observers=tuple(map(int, quorum["observers"])),
            ),
            features={str(name): int(level) for name, level in document["features"].items()},
            features_known=bool(document["features_known"]),
            versions={int(key): str(value) for key, value in document["versions"].items()},
            broker_settings={
                int(key): _settings(rows) for key, rows in document["broker_settings"].items()
            },
            topic_settings={
                str(key): _settings(rows) for key, rows in document["topic_settings"].items()
            },
            bootstrap_servers=str(document.get("bootstrap_servers", "")),
            command_config=document.get("command_config"),
        )


def _plain(settings: Mapping[str, Setting]) -> dict[str, list[str | None]]:
    return {name: [setting.value, setting.source] for name, setting in settings.items()}


def _settings(rows: Mapping[str, Any]) -> dict[str, Setting]:
    return {
        str(name): Setting(None if value is None else str(value), str(source))
        for name, (value, source) in rows.items()
    }
