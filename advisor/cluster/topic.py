"""`Topic` and `Partition`: immutable values, validated on construction.

Impossible states (an ISR member that is not a replica) are rejected. Unusual but real ones
(min.insync.replicas above the replication factor, no leader) are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

from advisor.cluster.frozen import FrozenMap
from advisor.errors import InputError, shown
from advisor.formatting import counted
from advisor.parsing import whole_number

MAX_ID = 2**31 - 1
MOST_PARTITIONS = 2_000_000
"""Upper limit on the partitions of a cluster, above any known one; their audit takes minutes."""
TOPIC_NAME = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._-]{1,249}")
"""Names that Kafka takes (`common.internals.Topic.validate`): neither "." nor ".."."""

INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"}
)
"""Kafka's internal topics (`common.internals.Topic`, and that of tiered storage)."""


def is_id(value: object) -> bool:
    """Whether a value is a valid broker id: a non-negative integer."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID


def _absent(ids: object) -> bool:
    return ids is None or (type(ids) is tuple and not ids)


_LISTS_OF_IDS = (
    *("replicas", "isr", "elr", "last_known_elr"),
    *("adding", "removing", "observers", "offline"),
)
DISKLESS, TIERED = "diskless", "tiered"
_DISKLESS_SETTINGS = ("diskless.enable", "inkless.enable")
_TIERED_SETTINGS = ("remote.storage.enable", "confluent.tier.enable")


def _ids(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values)) or "(none)"


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its replicas, and their state when it was described.

    replicas: broker ids in assignment order, including those that a reassignment is adding.
    isr: broker ids of the in-sync replicas, a subset of `replicas`; may be empty (KIP-966).
    elr, last_known_elr: eligible leader replicas (KIP-966); None if not reported.
    observers: broker ids of asynchronous copies (Confluent's observers), which are no replicas
        here: they neither acknowledge nor are elected. One that was promoted into the ISR is a
        replica.
    offline: broker ids of replicas and observers that the source reports as offline: the broker is
        down, or the log directory has failed.

    >>> Partition(index=0, leader=1, replicas=(1, 2, 3), isr=(1, 2)).replication_factor
    3
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
    observers: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self._plain():
            self._check()

    def _plain(self) -> bool:
        """Whether a quick look finds nothing unusual: most partitions of large clusters pass it."""
        replicas, isr, leader = self.replicas, self.isr, self.leader
        if not type(replicas) is type(isr) is type(self.adding) is type(self.removing) is tuple:
            return False
        if self.adding or self.removing or self.leader_epoch is not None:
            return False
        if not (_absent(self.observers) and _absent(self.offline)):
            return False
        if not _absent(self.elr) or not _absent(self.last_known_elr):
            return False
        numbers = [self.index, *replicas, *isr]
        if leader is not None:
            numbers.append(leader)
        if set(map(type, numbers)) != {int} or min(numbers) < 0 or max(numbers) > MAX_ID:
            return False
        distinct = set(replicas)
        led = leader is None or leader in distinct
        once = len(distinct) == len(replicas) and len(set(isr)) == len(isr)
        return led and once and bool(replicas) and distinct.issuperset(isr)

    def _check(self) -> None:
        self._freeze_ids()
        if not is_id(self.index):
            raise InputError(
                f"a partition is numbered {shown(self.index)} (index); numbers start at 0"
            )
        if not self.replicas:
            raise InputError(f"partition {self.index} has no replicas")
        replicas = set(self.replicas)
        if replicas.intersection(self.observers):
            raise InputError(
                f"partition {self.index} has broker "
                f"{min(replicas.intersection(self.observers))} both as a replica and as an observer"
            )
        for label, ids in self._labelled_ids():
            if len(set(ids)) < len(ids):
                raise InputError(
                    f"partition {self.index} lists a broker twice in {label} {_ids(ids)}"
                )
            if label in ("Isr", "Elr", "Leader") and not replicas.issuperset(ids):
                for broker in ids:
                    if broker not in replicas:
                        raise InputError(
                            f"partition {self.index} has broker {broker} as {label} "
                            f"but not in its Replicas {_ids(self.replicas)}"
                        )

    def _freeze_ids(self) -> None:
        """Turn the lists of ids into tuples, and reject invalid ids."""
        for name in _LISTS_OF_IDS:
            value = getattr(self, name)
            if value is None and name in ("elr", "last_known_elr"):
                continue
            if not isinstance(value, tuple | list):
                raise InputError(f"{name}={shown(value)}: give a tuple of broker ids")
            object.__setattr__(self, name, tuple(value))
        if self.leader_epoch is not None and not is_id(self.leader_epoch):
            raise InputError(f"leader_epoch={shown(self.leader_epoch)}: give a whole number")
        for label, ids in self._labelled_ids():
            for broker in ids:
                if not is_id(broker):
                    raise InputError(
                        f"partition {shown(self.index)} has {shown(broker)} in {label}, "
                        "which is not a broker id (a whole number from 0)"
                    )

    def _labelled_ids(self) -> list[tuple[str, tuple[int, ...]]]:
        lists = (
            ("Replicas", self.replicas),
            ("Leader", () if self.leader is None else (self.leader,)),
            ("Isr", self.isr),
            ("Elr", self.elr),
            ("LastKnownElr", self.last_known_elr),
            ("Adding Replicas", self.adding),
            ("Removing Replicas", self.removing),
            ("Observers", self.observers),
            ("Offline", self.offline),
        )
        return [(label, ids) for label, ids in lists if ids]

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment of this partition is in progress."""
        return bool(set(self.replicas) & {*self.adding, *self.removing})

    @property
    def healthy(self) -> bool:
        """Whether it has a leader, and all of its replicas are in sync."""
        in_sync = len(self.isr) == len(self.replicas) or set(self.isr).issuperset(self.held)
        return self.leader is not None and in_sync

    @property
    def replication_factor(self) -> int:
        """Number of replicas without those being added, as `kafka-topics.sh` counts."""
        return len(self.held) if self.adding else len(self.replicas)

    @property
    def held(self) -> tuple[int, ...]:
        """The replicas without those that a reassignment is adding."""
        if not self.adding:
            return self.replicas
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    def brokers(self) -> frozenset[int]:
        """Return every broker id in this partition."""
        # Leader, ISR and ELR are subsets of the replicas.
        further = (*(self.last_known_elr or ()), *self.adding, *self.removing, *self.observers)
        return frozenset((*self.replicas, *further))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `load_cluster` reads it back as part of a cluster."""
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
            # What only Confluent's tool prints.
            **({"observers": list(self.observers)} if self.observers else {}),
            **({"offline": list(self.offline)} if self.offline else {}),
        }


@dataclass(frozen=True)
class Topic:
    """One topic: its partitions in order, and its settings.

    partitions: at least one; sorted by index on construction.
    configs: settings by Kafka's name (`min.insync.replicas`), as in the source.
    broken: numbers of further partitions whose described state cannot be (an ISR outside the
        replicas).
    stated_partitions: number of partitions that the topic has, if the source shows fewer of them.

    >>> Topic("orders", (Partition(0, 1, (1, 2, 3), (1, 2, 3)),), {"min.insync.replicas": "2"})
    Topic(orders: 1 partition, RF 3, min ISR 2)
    """

    name: str
    partitions: tuple[Partition, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: str | None = None
    marked_for_deletion: bool = False
    broken: tuple[int, ...] = ()
    stated_partitions: int | None = None

    def __post_init__(self) -> None:
        self._check_types()
        ordered = tuple(sorted(self.partitions, key=lambda partition: partition.index))
        object.__setattr__(self, "partitions", ordered)
        object.__setattr__(self, "configs", FrozenMap(self.configs))
        if not isinstance(self.name, str) or not TOPIC_NAME.fullmatch(self.name):
            raise InputError(
                f"{shown(self.name)} is not the name of a topic (letters, digits, . _ -; not . or "
                "..)"
            )
        if not ordered:
            raise InputError(f"topic {self.name} has no partitions")
        for first, second in pairwise(ordered):
            if first.index == second.index:
                raise InputError(f"topic {self.name} has partition {first.index} twice")
        min_isr = self.configs.get("min.insync.replicas")
        if min_isr is not None and not whole_number(min_isr, 2**31 - 1):
            raise InputError(
                f"topic {self.name} has min.insync.replicas={shown(min_isr)}; "
                "it is a whole number from 1"
            )

    def _check_types(self) -> None:
        rows, configs = self.partitions, self.configs
        if not isinstance(rows, tuple | list) or not all(isinstance(p, Partition) for p in rows):
            raise InputError(f"partitions={shown(rows)}: give a tuple of Partition")
        texts = (*configs.keys(), *configs.values()) if isinstance(configs, Mapping) else (None,)
        if not all(isinstance(text, str) and text.isprintable() for text in texts):
            raise InputError(f"configs={shown(configs)}: give a mapping of printable texts")
        topic_id = self.topic_id
        if topic_id is not None and not (isinstance(topic_id, str) and topic_id.isprintable()):
            raise InputError(f"topic_id={shown(topic_id)}: give a printable text, or None")
        numbers = self.broken
        if not isinstance(numbers, tuple | list) or not all(map(is_id, numbers)):
            raise InputError(f"broken={shown(numbers)}: give a tuple of partition numbers")
        object.__setattr__(self, "broken", tuple(numbers))
        if self.stated_partitions is not None and not is_id(self.stated_partitions):
            raise InputError(
                f"stated_partitions={shown(self.stated_partitions)}: give a whole number, or None"
            )
        if not isinstance(self.marked_for_deletion, bool):
            raise InputError(
                f"marked_for_deletion={shown(self.marked_for_deletion)}: give True or False"
            )

    @property
    def replication_factor(self) -> int:
        """Replication factor of the first partition, as `kafka-topics.sh` prints it."""
        return self.partitions[0].replication_factor

    @cached_property
    def by_replication_factor(self) -> Mapping[int, Sequence[Partition]]:
        """The partitions with each number of replicas; of most topics all have the same."""
        partitions: dict[int, list[Partition]] = {}
        for partition in self.partitions:
            partitions.setdefault(partition.replication_factor, []).append(partition)
        return partitions

    @property
    def min_insync_replicas(self) -> int | None:
        """The topic's `min.insync.replicas`; None if not set on the topic."""
        min_isr = self.configs.get("min.insync.replicas")
        return None if min_isr is None else int(min_isr)

    def brokers(self) -> set[int]:
        """Return every broker id in the partitions."""
        ids = set(chain.from_iterable(partition.replicas for partition in self.partitions))
        for partition in self.partitions:
            if (
                partition.last_known_elr
                or partition.adding
                or partition.removing
                or partition.observers
            ):
                ids |= partition.brokers()
        return ids

    @property
    def storage(self) -> str | None:
        """Where its records are if not in replicas alone: "diskless", "tiered", else None."""
        for storage, names in ((DISKLESS, _DISKLESS_SETTINGS), (TIERED, _TIERED_SETTINGS)):
            if any(self.configs.get(name, "").strip().lower() == "true" for name in names):
                return storage
        return None

    @property
    def has_observers(self) -> bool:
        """Whether asynchronous copies stand beside its replicas."""
        return any(partition.observers for partition in self.partitions)

    @property
    def placed_by_rules(self) -> bool:
        """Whether Confluent's placement constraints decide on its replicas, or it has observers."""
        return self.has_observers or bool(self.configs.get("confluent.placement.constraints"))

    @property
    def internal(self) -> bool:
        """Whether this is one of Kafka's internal topics."""
        return self.name in INTERNAL_TOPICS

    def __repr__(self) -> str:
        min_isr = self.min_insync_replicas
        return (
            f"Topic({self.name}: {counted(len(self.partitions), 'partition')}, "
            f"RF {self.replication_factor}, min ISR {min_isr or 'not stated'})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `load_cluster` reads it back as part of a cluster."""
        partition_count = self.stated_partitions
        return {
            "name": self.name,
            "topic_id": self.topic_id,
            "marked_for_deletion": self.marked_for_deletion,
            **({"broken": list(self.broken)} if self.broken else {}),
            **({} if partition_count is None else {"stated_partitions": partition_count}),
            "configs": dict(self.configs),
            "partitions": [partition.to_dict() for partition in self.partitions],
        }


def check_partitions(number: int) -> None:
    """Refuse a cluster of more partitions than can be examined."""
    if number > MOST_PARTITIONS:
        raise InputError(
            f"more than {MOST_PARTITIONS:,} partitions cannot be examined; describe fewer topics "
            "at a time (--topic takes a regular expression)"
        )
