"""From rows of partitions, as most tools print them, to a `Cluster`.

A row has topic, partition, leader, replicas and ISR. What the readers of such rows have in common
is here: rows that contradict each other are refused, and what is missing is said in a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.cluster.completeness import DESCRIBE, part_shown
from advisor.cluster.model import Cluster
from advisor.cluster.racks import MAX_ID
from advisor.cluster.topic import Partition, Topic, check_partitions
from advisor.errors import InputError, shown
from advisor.formatting import counted
from advisor.parsing import whole_number

_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One partition as a tool prints it, and where that stands ("dump.txt:7")."""

    topic: str
    partition: Partition
    where: str


@dataclass
class Rows:
    """What a text has of a cluster, as far as it was read.

    tool: who printed it, for notes ("kcat").
    brokers: the brokers that the tool lists, with their racks: those that run. None: it lists none.
    racks: racks that are known of brokers without a list of those that run.
    """

    tool: str
    rows: list[Row] = field(default_factory=list)
    brokers: dict[int, str | None] | None = None
    racks: dict[int, str] = field(default_factory=dict)
    stated: dict[str, int] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kafka_version: str | None = None

    def cluster(self, source: str) -> Cluster:
        """Return the cluster of the rows."""
        by_topic = self._by_topic()
        if not by_topic:
            raise InputError(
                f"{source}: no partition can be read from this output of {self.tool}; print every "
                f"topic with its partitions, or run {DESCRIBE}"
            )
        check_partitions(len(self.rows))
        topics = tuple(self._topic(name, rows) for name, rows in by_topic.items())
        mentioned = sorted(set().union(*(topic.brokers() for topic in topics)))
        brokers = {**dict.fromkeys(mentioned), **(self.brokers or {})}
        brokers |= {broker: rack for broker, rack in self.racks.items() if broker in brokers}
        if self.brokers is not None:
            self.notes += _absent(sorted(set(mentioned) - set(self.brokers)), self.tool)
        empty = [name for name, number in self.stated.items() if number and name not in by_topic]
        return Cluster(
            brokers=dict(sorted(brokers.items())),
            topics=topics,
            kafka_version=self.kafka_version,
            source=source,
            notes=tuple(self.notes),
            part=part_shown(topics, True, empty, brokers_listed=self.brokers is not None),
        )

    def _by_topic(self) -> dict[str, list[Row]]:
        """Return the rows of each topic, without those that repeat another word for word."""
        first_seen: dict[tuple[str, int], Row] = {}
        by_topic: dict[str, list[Row]] = {}
        repeated = 0
        for row in self.rows:
            first = first_seen.setdefault((row.topic, row.partition.index), row)
            if first is row:
                by_topic.setdefault(row.topic, []).append(row)
            elif first.partition == row.partition:
                repeated += 1
            else:
                raise InputError(
                    f"{row.where}: partition {row.partition.index} of topic {shown(row.topic)} is "
                    f"described otherwise at {first.where}; keep one output in a file"
                )
        if repeated:
            self.notes.append(
                f"{counted(repeated, 'line')} of partitions stood there twice, word for word."
            )
        return by_topic

    def _topic(self, name: str, rows: Sequence[Row]) -> Topic:
        where, count = rows[0].where, self.stated.get(name)
        if count is not None and count < len(rows):
            raise InputError(
                f"{where}: topic {shown(name)} is said to have {counted(count, 'partition')} but "
                f"{len(rows)} can be read; keep one output in a file"
            )
        try:
            return Topic(
                name,
                tuple(row.partition for row in rows),
                self.configs.get(name, {}),
                stated_partitions=None if count == len(rows) else count,
            )
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


def partition_of(
    where: str,
    index: object,
    leader: object,
    replicas: object,
    isr: object,
    elr: tuple[int, ...] | None = None,
    last_known_elr: tuple[int, ...] | None = None,
    *,
    observers: tuple[int, ...] = (),
    offline: tuple[int, ...] = (),
) -> Partition:
    """Return a partition from numbers, digits or lists of them; a leader of -1 or None is none."""
    absent = leader in (None, -1, "-1", "none", "null", "None")
    try:
        partition = Partition(
            index=number_of(index, "partition"),
            leader=None if absent else number_of(leader, "leader"),
            replicas=ids_of(replicas, "replicas"),
            isr=ids_of(isr, "ISR"),
            elr=elr,
            last_known_elr=last_known_elr,
            observers=observers,
            offline=offline,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}; print it again, whole, or run {DESCRIBE}") from None
    if partition.leader is not None and partition.leader not in partition.isr:
        raise InputError(
            f"{where}: partition {partition.index} has the leader {partition.leader}, which is not "
            f"in its ISR; the text is cut or mixed up here"
        )
    return partition


def may_be_cut(row: Row, why: str) -> list[str]:
    """Say that the ISR of the last line may have been longer, unless it has all replicas."""
    if set(row.partition.isr) == set(row.partition.replicas):
        return []
    last = f"{row.topic}-{row.partition.index}"
    return [f"{why}: the ISR of {last} may be cut."]


def number_of(value: object, name: str) -> int:
    """Return a whole number from a number or its digits."""
    number = value if isinstance(value, int) else whole_number(str(value).strip(), MAX_ID)
    if number is None or isinstance(value, bool) or not 0 <= number <= MAX_ID:
        raise InputError(f"{name} {shown(value)} is not a whole number from 0")
    return number


def ids_of(value: object, name: str) -> tuple[int, ...]:
    """Return broker ids from a list, or from a text of numbers and commas or spaces."""
    if isinstance(value, str):
        value = value.replace(",", " ").split()
    if not isinstance(value, list | tuple):
        raise InputError(f"{name} {shown(value)} is not a list of broker ids")
    return tuple(number_of(item, name) for item in value)


def listed_numbers(numbers: Sequence[int]) -> str:
    """Return "1, 2 and 3", at most the first five."""
    names = [str(number) for number in numbers[:_MOST_LISTED]]
    more = len(numbers) - len(names)
    if more:
        return f"{', '.join(names)} and {more} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _absent(brokers: Sequence[int], tool: str) -> list[str]:
    if not brokers:
        return []
    many = len(brokers) > 1
    return [
        f"Broker{'s' * many} {listed_numbers(brokers)} {'have' if many else 'has'} replicas and "
        f"{'are' if many else 'is'} not among the brokers that {tool} lists: down when it ran."
    ]
