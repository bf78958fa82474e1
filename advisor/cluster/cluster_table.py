"""A cluster as data frames and as a notebook view."""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.cluster.topic import Topic
from advisor.errors import InputError, shown
from advisor.rendering import joined
from advisor.tables import MOST_ROWS, data_frame, html_paragraphs, html_table, more_rows

if TYPE_CHECKING:
    import pandas as pd

_BROKER = ("broker", "rack", "replicas", "leaders", "out_of_sync")
_PARTITION = ("topic", "partition", "leader", "replicas", "isr", "min_insync_replicas")


class ClusterTable(ABC):
    """Mixin: `to_frame` and the notebook view of a cluster."""

    brokers: Mapping[int, str | None]
    topics: tuple[Topic, ...]
    notes: tuple[str, ...]

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
        held = Counter(broker for p in partitions for broker in p.replicas)
        led = Counter(p.leader for p in partitions)
        behind = Counter(b for p in partitions for b in p.replicas if b not in p.isr)
        return [(b, rack, held[b], led[b], behind[b]) for b, rack in self.brokers.items()]

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
