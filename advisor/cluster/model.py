"""What is known of a cluster: its brokers, their racks, and its topics with their replicas.

Everything here is a value: frozen, hashable, picklable, and right by construction. What cannot
be (a broker in the ISR that holds no replica) is refused when it is built; what is merely odd (a
minimum ISR above the replication factor, a partition without a leader) is kept as it was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from itertools import pairwise
from typing import Any

from advisor.cluster.frozen import FrozenMap
from advisor.cluster.observed import Observed
from advisor.cluster.racks import rack_mapping
from advisor.errors import InputError

TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")

INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"}
)
"""Topics that Kafka makes for itself (`common.internals.Topic`, and tiered storage's)."""


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _ids(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values)) or "(none)"


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: who has its replicas, and which of them were in sync when it was described.

    Parameters
    ----------
    index : int
        The partition's number, from 0.
    leader : int or None
        Broker id; None when the partition has no leader.
    replicas : tuple of int
        Broker ids in assignment order; while a reassignment runs, those being added included.
    isr : tuple of int
        Broker ids of the in-sync replicas, a subset of `replicas`; may be empty (KIP-966).
    elr, last_known_elr : tuple of int or None
        Eligible leader replicas (KIP-966); None when the tool did not report them.
    adding, removing : tuple of int
        Broker ids of a reassignment that is running (KIP-455); empty when none is.
    leader_epoch : int or None
        How often a leader was chosen, from 0; None when the source does not tell.

    Raises
    ------
    InputError
        If an id is not a whole number from 0, a replica is listed twice, or the leader or an
        in-sync or eligible replica is not among the replicas.
    """

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int | None = None

    def __post_init__(self) -> None:
        for name in ("replicas", "isr", "elr", "last_known_elr", "adding", "removing"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        if not _is_id(self.index):
            raise InputError(f"a partition is numbered {self.index!r}; numbers start at 0")
        if not self.replicas:
            raise InputError(f"partition {self.index} has no replicas")
        held = set(self.replicas)
        for label, ids in self._lists():
            for broker in ids:
                if not _is_id(broker):
                    raise InputError(
                        f"partition {self.index} has {broker!r} in {label}, "
                        "which is not a broker id (a whole number from 0)"
                    )
            if len(set(ids)) < len(ids):
                raise InputError(
                    f"partition {self.index} lists a broker twice in {label} {_ids(ids)}"
                )
            if label in ("Isr", "Elr", "Leader") and not held.issuperset(ids):
                for broker in ids:
                    if broker not in held:
                        raise InputError(
                            f"partition {self.index} has broker {broker} as {label} "
                            f"but not in its Replicas {_ids(self.replicas)}"
                        )

    def _lists(self) -> list[tuple[str, tuple[int, ...]]]:
        lists = (
            ("Replicas", self.replicas),
            ("Leader", () if self.leader is None else (self.leader,)),
            ("Isr", self.isr),
            ("Elr", self.elr),
            ("LastKnownElr", self.last_known_elr),
            ("Adding Replicas", self.adding),
            ("Removing Replicas", self.removing),
        )
        return [(label, ids) for label, ids in lists if ids]

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment of this partition is running."""
        return bool(set(self.replicas) & {*self.adding, *self.removing})

    @property
    def replication_factor(self) -> int:
        """Replicas that stay when a running reassignment is over, as `kafka-topics.sh` counts."""
        return len(self.held)

    @property
    def held(self) -> tuple[int, ...]:
        """The replicas without those that a running reassignment is still adding."""
        if not self.adding:
            return self.replicas
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    def brokers(self) -> frozenset[int]:
        """Every broker id that this partition mentions."""
        # The leader and those in sync or eligible are among the replicas.
        others = (*(self.last_known_elr or ()), *self.adding, *self.removing)
        return frozenset((*self.replicas, *others))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `load_cluster` reads it back."""
        return {
            "index": self.index,
            "leader": self.leader,
            "replicas": list(self.replicas),
            "isr": list(self.isr),
            "elr": None if self.elr is None else list(self.elr),
            "last_known_elr": None if self.last_known_elr is None else list(self.last_known_elr),
            "adding": list(self.adding),
            "removing": list(self.removing),
            "leader_epoch": self.leader_epoch,
        }


@dataclass(frozen=True)
class Topic:
    """One topic: its partitions, in order, and the settings that were given for it.

    Parameters
    ----------
    name : str
        The topic's name.
    partitions : tuple of Partition
        At least one; sorted here by number.
    configs : mapping of str to str
        Settings in Kafka's spelling (`min.insync.replicas`), as the tool printed them.
    topic_id : str or None
        The topic's UUID as Kafka prints it (2.8 and later).
    marked_for_deletion : bool
        Whether a deletion is pending (ZooKeeper era).

    Raises
    ------
    InputError
        If a partition is there twice, there is none, or `min.insync.replicas` is no number from 1.
    """

    name: str
    partitions: tuple[Partition, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: str | None = None
    marked_for_deletion: bool = False

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.partitions, key=lambda partition: partition.index))
        object.__setattr__(self, "partitions", ordered)
        object.__setattr__(self, "configs", FrozenMap(self.configs))
        if not isinstance(self.name, str) or not TOPIC_NAME.fullmatch(self.name):
            raise InputError(f"{self.name!r} is not the name of a topic (letters, digits, . _ -)")
        if not ordered:
            raise InputError(f"topic {self.name} has no partitions")
        for one, two in pairwise(ordered):
            if one.index == two.index:
                raise InputError(f"topic {self.name} has partition {one.index} twice")
        stated = self.configs.get("min.insync.replicas")
        if stated is not None and not (stated.isascii() and stated.isdigit() and int(stated) > 0):
            raise InputError(
                f"topic {self.name} has min.insync.replicas={stated}; it is a whole number from 1"
            )

    @property
    def replication_factor(self) -> int:
        """Replication factor of the first partition, which is what `kafka-topics.sh` prints."""
        return self.partitions[0].replication_factor

    @property
    def min_insync_replicas(self) -> int | None:
        """The topic's own `min.insync.replicas`; None when it is not stated."""
        stated = self.configs.get("min.insync.replicas")
        return None if stated is None else int(stated)

    @property
    def internal(self) -> bool:
        """Whether Kafka made this topic for itself."""
        return self.name in INTERNAL_TOPICS

    def __repr__(self) -> str:
        stated = self.min_insync_replicas
        return (
            f"Topic({self.name}: {_count(len(self.partitions), 'partition')}, "
            f"RF {self.replication_factor}, min ISR {stated or 'not stated'})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `load_cluster` reads it back."""
        return {
            "name": self.name,
            "topic_id": self.topic_id,
            "marked_for_deletion": self.marked_for_deletion,
            "configs": dict(self.configs),
            "partitions": [partition.to_dict() for partition in self.partitions],
        }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True, repr=False)
class Cluster:
    """Brokers with their racks, and the topics on them.

    Parameters
    ----------
    brokers : mapping of int to (str or None)
        Broker id to rack; None where the rack is not known. At least one broker.
    topics : tuple of Topic
        May be empty.
    kafka_version : str or None
        Such as "4.1"; None when the source does not tell.
    source : str
        Where this was read, for messages and reports.
    notes : tuple of str
        What the source does not tell and was therefore assumed, one sentence each.
    observed : Observed or None
        What a running cluster tells beside this; None when it was not asked.

    Raises
    ------
    InputError
        If there is no broker, an id or rack is malformed, two topics have one name, or a topic
        names a broker that is not there.

    Examples
    --------
    >>> Cluster(brokers={1: "a", 2: "a", 3: "b"})
    Cluster(3 brokers in 2 racks (a, b))
    """

    brokers: Mapping[int, str | None]
    topics: tuple[Topic, ...] = ()
    kafka_version: str | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    observed: Observed | None = None

    def __post_init__(self) -> None:
        if not self.brokers:
            raise InputError("a cluster needs at least one broker")
        for broker, rack in self.brokers.items():
            if not _is_id(broker):
                raise InputError(f"{broker!r} is not a broker id; ids are whole numbers from 0")
            if rack is not None and (not isinstance(rack, str) or not rack.strip()):
                raise InputError(f"broker {broker} has the rack {rack!r}; give a name or None")
        object.__setattr__(self, "brokers", FrozenMap(dict(sorted(self.brokers.items()))))
        object.__setattr__(self, "topics", tuple(self.topics))
        object.__setattr__(self, "notes", tuple(self.notes))
        names: set[str] = set()
        known = frozenset(self.brokers)
        for topic in self.topics:
            if topic.name in names:
                raise InputError(f"topic {topic.name} is there twice")
            names.add(topic.name)
            for partition in topic.partitions:
                missing = sorted(partition.brokers() - known)
                if missing:
                    raise InputError(
                        f"partition {topic.name}-{partition.index} names broker {missing[0]}, "
                        "which is not among the cluster's brokers"
                    )

    @classmethod
    def uniform(
        cls, brokers: int = 6, racks: int | None = 3, kafka_version: str | None = None
    ) -> Cluster:
        """Return brokers 1..n, dealt round robin over the racks r1..rk.

        Parameters
        ----------
        brokers : int
            How many, at least 1.
        racks : int or None
            How many, 1 to `brokers`; None: no rack is known.
        kafka_version : str or None
            Such as "4.1".

        Raises
        ------
        InputError
            If a count is out of its range.
        """
        if not _is_id(brokers) or brokers < 1:
            raise InputError(f"brokers={brokers!r}: a cluster has a whole number of brokers from 1")
        if racks is not None and (not _is_id(racks) or not 1 <= racks <= brokers):
            raise InputError(f"racks={racks!r}: give 1 to {brokers} racks, or None for no racks")
        names = {i + 1: None if racks is None else f"r{i % racks + 1}" for i in range(brokers)}
        return cls(brokers=names, kafka_version=kafka_version, source="uniform")

    @property
    def racks(self) -> tuple[str, ...]:
        """The distinct racks that are known, sorted."""
        return tuple(sorted({rack for rack in self.brokers.values() if rack is not None}))

    def rack_of(self, broker: int) -> str | None:
        """Return the broker's rack, or None where it is not known."""
        if broker not in self.brokers:
            raise InputError(f"broker {broker!r} is not in this cluster")
        return self.brokers[broker]

    def topic(self, name: str) -> Topic:
        """Return the topic of that name."""
        for topic in self.topics:
            if topic.name == name:
                return topic
        raise InputError(f"there is no topic {name!r} in {self.source or 'this cluster'}")

    def with_racks(self, mapping: Mapping[Any, Any]) -> Cluster:
        """Return this cluster with racks from {id: rack} or {rack: [ids]}; new ids are added."""
        return replace(self, brokers={**self.brokers, **rack_mapping(mapping)})

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `load_cluster` reads it back from JSON."""
        return {
            "kafka_version": self.kafka_version,
            "source": self.source,
            "brokers": {str(broker): rack for broker, rack in self.brokers.items()},
            "topics": [topic.to_dict() for topic in self.topics],
            "notes": list(self.notes),
            "observed": None if self.observed is None else self.observed.to_dict(),
        }

    def __repr__(self) -> str:
        known, total = self.racks, len(self.brokers)
        text = _count(total, "broker")
        if known:
            text += f" in {_count(len(known), 'rack')} ({', '.join(known)})"
            unknown = sum(rack is None for rack in self.brokers.values())
            text += f", {unknown} of them in no known rack" if unknown else ""
        else:
            text += ", racks not known"
        if self.topics:
            partitions = sum(len(topic.partitions) for topic in self.topics)
            text += f"; {_count(len(self.topics), 'topic')}, {_count(partitions, 'partition')}"
        text += f"; Kafka {self.kafka_version}" if self.kafka_version else ""
        return f"Cluster({text})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(topic.name)}</td><td>{len(topic.partitions)}</td>"
            f"<td>{topic.replication_factor}</td>"
            f"<td>{topic.min_insync_replicas or 'not stated'}</td></tr>"
            for topic in self.topics
        )
        table = (
            "<table><thead><tr><th>topic</th><th>partitions</th><th>replication_factor</th>"
            f"<th>min_insync_replicas</th></tr></thead><tbody>{rows}</tbody></table>"
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(repr(self))}</p>{table if self.topics else ''}{notes}"
