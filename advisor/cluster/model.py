"""`Cluster`: brokers, racks and topics, an immutable value validated on construction."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from advisor.arguments import names_checked, suggests_names
from advisor.cluster.describe_layouts import LAYOUTS
from advisor.cluster.frozen import FrozenMap
from advisor.cluster.managed_services import SERVICES
from advisor.cluster.observed import Observed, right_name
from advisor.cluster.racks import is_rack, moved, rack_mapping
from advisor.cluster.topic import DISKLESS, TIERED, Topic, check_partitions, is_id
from advisor.errors import InputError, shown
from advisor.formatting import counted
from advisor.parsing import is_unicode
from advisor.rendering import joined, one_line
from advisor.tables import MOST_ROWS, data_frame, html_paragraphs, html_table, more_rows

if TYPE_CHECKING:
    import pandas as pd

_BROKER = ("broker", "rack", "replicas", "leaders", "out_of_sync")
_PARTITION = ("topic", "partition", "leader", "replicas", "isr", "min_insync_replicas")
_MOST_NAMES = 5
_TRUE_OF = {
    # KIP-1150: the broker acknowledges once a batch is in object storage and its place is known.
    DISKLESS: "are diskless: a record is in object storage before it is acknowledged, and the "
    "brokers listed as replicas keep no copy of their own, so that neither replication factor nor "
    "min ISR says what is lost",
    # KIP-405: closed segments are uploaded; what is not is in the replicas' logs alone.
    TIERED: "are tiered: what is uploaded survives the loss of all brokers, so that at most what is"
    " not uploaded yet is lost, the active segment at least",
}
_USUAL_FACTOR = 3
# What the table of sources says of inputs that have no settings, or need not have them.
_NO_SETTINGS = re.compile(
    r"\bn(?:o|or) settings\b|settings where the client prints|prints them, settings"
)
_MIN_ISR = "min.insync.replicas"
MOST_BROKERS = 100_000
"""More than any Kafka cluster has; a larger number is taken for a typo."""


@suggests_names
@dataclass(frozen=True, repr=False)
class Cluster:
    """Brokers with their racks, and the topics on them.

    Parameters
    ----------
    brokers : mapping of int to (str or None)
        Broker id to rack; None if the rack is unknown. At least one broker.
    topics : tuple of Topic, optional
        Topics with their partitions. Default: none.
    kafka_version : str, optional
        Such as "4.1"; None if unknown.
    source : str, optional
        Where the description was read, for messages and reports.
    notes : tuple of str, optional
        What was missing in the source and therefore assumed, one sentence each.
    observed : Observed, optional
        Controller, features and settings of a running cluster; None if not read from one.
    controllers : mapping of int to (str or None), optional
        The voters of the controller quorum: KRaft node id, or ZooKeeper server, to rack; None if
        the rack is unknown. They may stand in racks without brokers. Default: None, unknown.
    mode : {"kraft", "zookeeper"}, optional
        The controller, where a description does not show it. Default: that of the Kafka version.
    eligible_leader_replicas : bool, optional
        Whether eligible leader replicas (KIP-966) are on, where a description does not show it.
        Default: as in a new cluster of the Kafka version.
    layout : str, optional
        Columns of the describe output that was read, a name in `describe_layouts.LAYOUTS`: they
        bound the Kafka version. Default: it was no describe output.
    broker_settings : mapping of str to str, optional
        Settings of every broker by Kafka's name, where a description states them. Default: none.
    replica_bytes : mapping of str to float, optional
        Bytes that a replica of a partition keeps on average, by topic, where they were measured.
        Default: none.
    taken_for : str, optional
        One sentence: which tool or kind of file the description was taken for, and what that has.
        "" if it was not read from a text.
    part : str, optional
        One sentence that says which part of a cluster the description shows. Default: "", all of
        it as far as one sees.
    managed : str, optional
        The managed service that runs the cluster, a name in `managed_services.SERVICES`.
    set_aside : tuple of Topic, optional
        Topics that are not replicated as the model has it (diskless, tiered): neither judged nor
        changed. Those among `topics` are moved here.

    Raises
    ------
    InputError
        If there is no broker, `controllers` is empty, an id or rack is malformed, a topic is
        repeated, a topic has a replica on an unknown broker, or there are more than 100,000 brokers
        or 2,000,000 partitions.

    See Also
    --------
    load_cluster : Reads a cluster from a file, a text or a running cluster.
    Cluster.uniform : Brokers distributed evenly over racks.

    Examples
    --------
    >>> import advisor
    >>> advisor.Cluster(brokers={1: "a", 2: "a", 3: "b"})
    Cluster(3 brokers in 2 racks (a, b))
    >>> advisor.Cluster(brokers={1: "a", 2: "b"}, controllers={1: "a", 2: "b", 9: "c"})
    Cluster(2 brokers in 2 racks (a, b); 3 controllers in 3 racks (a, b, c))
    """

    brokers: Mapping[int, str | None]
    topics: tuple[Topic, ...] = ()
    kafka_version: str | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    observed: Observed | None = None
    controllers: Mapping[int, str | None] | None = None
    mode: str | None = None
    eligible_leader_replicas: bool | None = None
    layout: str | None = None
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    replica_bytes: Mapping[str, float] = field(default_factory=dict)
    taken_for: str = field(default="", compare=False)
    part: str = ""
    managed: str | None = None
    set_aside: tuple[Topic, ...] = ()

    def __post_init__(self) -> None:
        self._check_types()
        if not self.brokers:
            raise InputError("a cluster needs at least one broker")
        if len(self.brokers) > MOST_BROKERS:
            raise InputError(
                f"more than {MOST_BROKERS:,} brokers cannot be examined; leave out those without "
                "replicas"
            )
        object.__setattr__(self, "brokers", _checked_racks(self.brokers, "broker"))
        if self.controllers is not None:
            if not isinstance(self.controllers, Mapping) or not self.controllers:
                raise InputError(
                    f"controllers={shown(self.controllers)}: give the rack of each voter, like "
                    '{1: "a", 2: "b", 3: "c"}, or None if they are unknown'
                )
            object.__setattr__(self, "controllers", _checked_racks(self.controllers, "controller"))
        described = (*self.topics, *self.set_aside)
        classic = tuple(topic for topic in described if topic.storage is None)
        set_aside = tuple(topic for topic in described if topic.storage is not None)
        object.__setattr__(self, "topics", classic)
        object.__setattr__(self, "set_aside", set_aside)
        check_partitions(sum(len(topic.partitions) for topic in described))
        object.__setattr__(self, "notes", tuple(map(one_line, self.notes)))
        object.__setattr__(self, "broker_settings", FrozenMap(self.broker_settings))
        object.__setattr__(self, "replica_bytes", FrozenMap(self.replica_bytes))
        names: set[str] = set()
        brokers = frozenset(self.brokers)
        for topic in described:
            if topic.name in names:
                raise InputError(f"topic {topic.name} is there twice")
            names.add(topic.name)
            for partition in () if topic.brokers() <= brokers else topic.partitions:
                unknown = sorted(partition.brokers() - brokers)
                if unknown:
                    raise InputError(
                        f"partition {topic.name}-{partition.index} names broker {unknown[0]}, "
                        "which is not among the cluster's brokers"
                    )

    def _check_types(self) -> None:
        if not isinstance(self.brokers, Mapping):
            raise InputError(f"brokers={shown(self.brokers)}: give a mapping of ids to racks")
        notes = self.notes
        for name in ("topics", "set_aside"):
            rows = getattr(self, name)
            if not isinstance(rows, tuple | list) or not all(isinstance(t, Topic) for t in rows):
                raise InputError(f"{name}={shown(rows)}: give a tuple of Topic")
        if not isinstance(notes, tuple | list) or not all(map(_is_text, notes)):
            raise InputError(f"notes={shown(notes)}: give a tuple of texts")
        for name in ("source", "taken_for", "part"):
            if not _is_text(getattr(self, name)):
                raise InputError(f"{name}={shown(getattr(self, name))}: give a text")
        if self.observed is not None and not isinstance(self.observed, Observed):
            raise InputError(f"observed={shown(self.observed)}: give an Observed or None")
        version = self.kafka_version
        if version is not None and (not _is_text(version) or not version.isprintable()):
            raise InputError(f'kafka_version={shown(version)}: write it like "4.1"')
        if self.mode not in (None, "kraft", "zookeeper"):
            raise InputError(f"mode={shown(self.mode)} is no controller; write kraft or zookeeper")
        elr = self.eligible_leader_replicas
        if elr is not None and not isinstance(elr, bool):
            raise InputError(f"eligible_leader_replicas={shown(elr)}: write True, False or None")
        self._check_names()

    def _check_names(self) -> None:
        """Reject settings that are no texts, and names that no table has."""
        settings = self.broker_settings
        if not isinstance(settings, Mapping) or not all(
            _is_text(text) and text.isprintable() for row in settings.items() for text in row
        ):
            raise InputError(
                f"broker_settings={shown(settings)}: give a mapping of printable texts"
            )
        sizes = self.replica_bytes
        if not isinstance(sizes, Mapping) or not all(
            _is_text(name) and _is_bytes(size) for name, size in sizes.items()
        ):
            raise InputError(f"replica_bytes={shown(sizes)}: give a mapping of topics to bytes")
        if self.managed is not None and self.managed not in SERVICES:
            names = ", ".join(map(repr, SERVICES))
            raise InputError(f"managed={shown(self.managed)}: write one of {names}, or None")
        if self.layout is not None and self.layout not in LAYOUTS:
            names = ", ".join(map(repr, LAYOUTS))
            raise InputError(f"layout={shown(self.layout)}: write one of {names}, or None")

    @classmethod
    @names_checked
    def uniform(
        cls,
        brokers: int = 6,
        racks: int | None = 3,
        kafka_version: str | None = None,
        controllers: Mapping[int, str | None] | None = None,
    ) -> Cluster:
        """Return brokers 1..n, distributed round robin over racks r1..rk.

        Parameters
        ----------
        brokers : int, default 6
            Number of brokers, at least 1.
        racks : int or None, default 3
            Number of racks, 1 to `brokers`; None if racks are unknown.
        kafka_version : str, optional
            Such as "4.1".
        controllers : mapping of int to (str or None), optional
            Rack of each voter of the controller quorum, as in `Cluster`.

        Returns
        -------
        Cluster
            A cluster without topics.

        Raises
        ------
        InputError
            If a count is out of range, or `controllers` is malformed.

        See Also
        --------
        Cluster.with_racks : Assigns racks to brokers.

        Examples
        --------
        >>> import advisor
        >>> advisor.Cluster.uniform(brokers=6, racks=3)
        Cluster(6 brokers in 3 racks (r1, r2, r3))
        """
        if not is_id(brokers) or brokers < 1:
            raise InputError(
                f"brokers={shown(brokers)}: a cluster has a whole number of brokers from 1"
            )
        if brokers > MOST_BROKERS:
            raise InputError(f"brokers={shown(brokers)}: give at most {MOST_BROKERS:,}")
        if racks is not None and (not is_id(racks) or not 1 <= racks <= brokers):
            raise InputError(
                f"racks={shown(racks)}: give 1 to {brokers} racks, or None for no racks"
            )
        names = {i + 1: None if racks is None else f"r{i % racks + 1}" for i in range(brokers)}
        return cls(
            brokers=names, kafka_version=kafka_version, source="uniform", controllers=controllers
        )

    @cached_property
    def topic_names(self) -> frozenset[str]:
        """The names of all topics."""
        return frozenset(topic.name for topic in self.topics)

    @cached_property
    def racks(self) -> tuple[str, ...]:
        """The known racks, sorted."""
        return tuple(sorted({rack for rack in self.brokers.values() if rack is not None}))

    @property
    def voters_by_rack(self) -> Mapping[str, int] | None:
        """Number of controllers in each rack that has one; None if a controller's is unknown."""
        if self.controllers is None:
            return None
        racks = [rack for rack in self.controllers.values() if rack is not None]
        if len(racks) < len(self.controllers):
            return None
        return FrozenMap(dict(sorted(Counter(racks).items())))

    def topic(self, name: str) -> Topic:
        r"""Return a topic by name.

        Examples
        --------
        >>> import advisor
        >>> text = 'brokers = 2\n[[topic]]\nname = "t"\nreplicas = [[1, 2], [2, 1]]'
        >>> advisor.load_cluster(text).topic("t")
        Topic(t: 2 partitions, RF 2, min ISR not stated)
        """
        for topic in self.topics:
            if topic.name == name:
                return topic
        aside = [topic for topic in self.set_aside if topic.name == name]
        if aside:
            raise InputError(f"topic {name} is set aside. {_set_aside_words(aside)[0]}")
        raise InputError(f"there is no topic {shown(name)} in {self.source or 'this cluster'}")

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What the description was taken for, and what of it is not judged; a sentence each."""
        service = () if self.managed is None else (SERVICES[self.managed].sentence,)
        remarks = (self.taken_for, self._part_words(), *_set_aside_words(self.set_aside), *service)
        remarks += (_observers_words(self.topics), self._assumed_words(), self._misspelt_words())
        return tuple(filter(None, remarks))

    def _assumed_words(self) -> str:
        """Say that min ISR is assumed where the input has no settings."""
        if not _NO_SETTINGS.search(self.taken_for) or _MIN_ISR in self.broker_settings:
            return ""
        unstated = sum(topic.min_insync_replicas is None for topic in self.topics)
        if not unstated:
            return ""
        return (
            f"The min ISR of {counted(unstated, 'topic')} is assumed: 1, Kafka's default. Give the "
            "output of kafka-configs.sh --describe --all --entity-type topics beside it."
        )

    def _misspelt_words(self) -> str:
        """Say which settings of replication Kafka does not know as they are spelled here."""
        topics = Counter(key for topic in self.topics for key in topic.configs)
        names = {key: right_name(key) for key in (*self.broker_settings, *topics)}
        wrong = {key: name for key, name in names.items() if name not in ("", key)}
        if not wrong:
            return ""
        shown_of = [
            f"{key} of " + (counted(topics[key], "topic") if key in topics else "the brokers")
            for key in wrong
        ]
        verb, noun = ("is", "name") if len(wrong) == 1 else ("are", "names")
        return (
            f"{' and '.join(shown_of)} {verb} not applied: Kafka's {noun}, in exactly these "
            f"letters, {verb} {' and '.join(wrong.values())}."
        )

    def _part_words(self) -> str:
        """Say which part is shown, and where more brokers than occur in it would change advice."""
        if not self.part or len(self.brokers) >= _USUAL_FACTOR:
            return self.part
        return (
            f"{self.part} Advice goes up to as many replicas as there are brokers in it, "
            f"{len(self.brokers)}."
        )

    @cached_property
    def has_observers(self) -> bool:
        """Whether a topic has asynchronous copies beside its replicas."""
        return any(topic.has_observers for topic in (*self.topics, *self.set_aside))

    @property
    def elected(self) -> tuple[Topic, ...]:
        """The topics whose partitions have leaders and an ISR: all but the diskless ones."""
        tiered = (topic for topic in self.set_aside if topic.storage == TIERED)
        return (*self.topics, *tiered)

    def with_racks(self, mapping: Mapping[Any, Any]) -> Cluster:
        """Return a copy with other racks, from `{id: rack}` or `{rack: [ids]}`.

        Brokers and controllers that are not named keep their rack. A controller whose id is also a
        broker's moves with that broker if both stood in the same rack. Ids of neither are added as
        brokers.

        Examples
        --------
        >>> import advisor
        >>> advisor.Cluster.uniform(brokers=2, racks=None).with_racks({"a": [1], "b": [2, 3]})
        Cluster(3 brokers in 2 racks (a, b))
        """
        brokers, controllers = moved(self.brokers, self.controllers, rack_mapping(mapping))
        return replace(self, brokers=brokers, controllers=controllers)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, which `load_cluster` reads back: ids are text there.

        Optional fields stand only where they are given, topics that were set aside with the others.

        Examples
        --------
        >>> import advisor
        >>> advisor.Cluster.uniform(brokers=2, racks=2).to_dict()["brokers"]
        {'1': 'r1', '2': 'r2'}
        """
        optional = ("mode", "eligible_leader_replicas", "layout", "managed")
        options = {name: getattr(self, name) for name in optional}
        options["part"] = self.part or None
        options["broker_settings"] = dict(self.broker_settings) or None
        options["replica_bytes"] = dict(self.replica_bytes) or None
        return {
            "kafka_version": self.kafka_version,
            "source": self.source,
            "brokers": {str(broker): rack for broker, rack in self.brokers.items()},
            "controllers": None
            if self.controllers is None
            else {str(voter): rack for voter, rack in self.controllers.items()},
            "topics": [topic.to_dict() for topic in (*self.topics, *self.set_aside)],
            "notes": list(self.notes),
            "observed": None if self.observed is None else self.observed.to_dict(),
            **{name: value for name, value in options.items() if value is not None},
        }

    def to_frame(self, rows: str = "brokers") -> pd.DataFrame:
        r"""Return one line per broker, or per partition.

        Parameters
        ----------
        rows : {"brokers", "partitions"}, default "brokers"
            What a line is about.

        Returns
        -------
        pandas.DataFrame
            Of brokers: indexed by "broker"; columns "rack", "replicas", "leaders" (partitions that
            it leads) and "out_of_sync" (its replicas outside the ISR). Of partitions: indexed by
            "topic" and "partition"; columns "leader", "replicas", "isr" (tuples of broker ids) and
            "min_insync_replicas" (of the topic, None if not stated).

        Raises
        ------
        InputError
            If `rows` is something else.
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        Cluster.to_dict : The whole cluster as plain JSON data.

        Examples
        --------
        >>> import advisor
        >>> cluster = advisor.load_cluster("Topic: t Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1")
        >>> cluster.to_frame()["out_of_sync"].to_dict()
        {1: 0, 2: 1}
        >>> cluster.to_frame("partitions").loc[("t", 0), "isr"]
        (1,)
        """
        if rows == "brokers":
            return data_frame(self._broker_rows(), _BROKER).set_index("broker")
        if rows == "partitions":
            frame = data_frame(self._partition_rows(), _PARTITION)
            return frame.set_index(["topic", "partition"])
        raise InputError(f"rows={shown(rows)}: give 'brokers' or 'partitions'")

    def _broker_rows(self) -> list[tuple[object, ...]]:
        partitions = [p for topic in self.topics for p in topic.partitions]
        replicas = Counter(broker for p in partitions for broker in p.replicas)
        led = Counter(p.leader for p in partitions)
        behind = Counter(b for p in partitions for b in p.replicas if b not in p.isr)
        return [(b, rack, replicas[b], led[b], behind[b]) for b, rack in self.brokers.items()]

    def _partition_rows(self) -> list[tuple[object, ...]]:
        return [
            (topic.name, p.index, p.leader, p.replicas, p.isr, topic.min_insync_replicas)
            for topic in self.topics
            for p in topic.partitions
        ]

    def _repr_html_(self) -> str:
        topics = [
            {
                "topic": topic.name,
                "partitions": len(topic.partitions),
                "RF": topic.replication_factor,
                "min ISR": topic.min_insync_replicas or "not stated",
            }
            for topic in self.topics[:MOST_ROWS]
        ]
        more = more_rows(self.topics, "topics", 'to_frame("partitions")')
        table = html_table(topics, "Topics of the cluster")
        notes = html_paragraphs([more, *self.notes[:MOST_ROWS]])
        return joined(html_paragraphs([repr(self)]), table, notes).text

    def __repr__(self) -> str:
        text = _placed(self.brokers, "broker")
        text += f"; {_placed(self.controllers, 'controller')}" if self.controllers else ""
        if self.topics:
            partitions = sum(len(topic.partitions) for topic in self.topics)
            text += f"; {counted(len(self.topics), 'topic')}, {counted(partitions, 'partition')}"
        text += f"; Kafka {self.kafka_version}" if self.kafka_version else ""
        return f"Cluster({text})"


def _checked_racks(racks: Mapping[int, str | None], noun: str) -> FrozenMap[int, str | None]:
    """Return ids and racks in order of the ids."""
    for node, rack in racks.items():
        if not is_id(node):
            raise InputError(f"{shown(node)} is not a {noun} id; ids are whole numbers from 0")
        if rack is not None and not is_rack(rack):
            raise InputError(
                f"{noun} {node} has the rack {shown(rack)}; give a name or None; it is printable"
            )
    return FrozenMap(dict(sorted(racks.items())))


def _is_bytes(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_unicode(value)


def _placed(racks: Mapping[int, str | None], noun: str) -> str:
    """Return how many nodes stand in which racks, in words."""
    text = counted(len(racks), noun)
    names = sorted({rack for rack in racks.values() if rack is not None})
    if not names:
        return f"{text}, racks not known"
    unknown = sum(rack is None for rack in racks.values())
    text += f" in {counted(len(names), 'rack')} ({', '.join(names)})"
    return text + (f", {unknown} of them in no known rack" if unknown else "")


def _set_aside_words(topics: Sequence[Topic]) -> tuple[str, ...]:
    """Say what is true of topics that are not judged, a sentence for each kind."""
    sentences = []
    for storage, true_of in _TRUE_OF.items():
        names = [topic.name for topic in topics if topic.storage == storage]
        if names:
            more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
            listed = ", ".join(names[:_MOST_NAMES])
            sentences.append(
                f"Not judged, and not touched by any plan: {listed}{more}. They {true_of}."
            )
    return tuple(sentences)


def _observers_words(topics: Sequence[Topic]) -> str:
    """Say that observers are not judged as replicas; "" if no topic has any."""
    observed = [topic for topic in topics if topic.has_observers]
    if not observed:
        return ""
    brokers = sorted({b for topic in observed for p in topic.partitions for b in p.observers})
    more = f" and {len(brokers) - _MOST_NAMES:,} more" if len(brokers) > _MOST_NAMES else ""
    more_topics = f" and {len(observed) - 1:,} more topics" if len(observed) > 1 else ""
    return (
        f"Observers of {observed[0].name}{more_topics} (broker{'s' * (len(brokers) > 1)} "
        f"{', '.join(map(str, brokers[:_MOST_NAMES]))}{more}) are asynchronous copies: outside the "
        "ISR by design, they neither acknowledge nor are elected, and do not count as replicas. If "
        "they are promoted, writes stop for less time than said here: no other setting is weighed."
    )
