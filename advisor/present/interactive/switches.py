"""Other topics, failure models and Kafka versions that a page without a kernel switches to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product

from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError
from advisor.present.interactive.controls import EVERY_ACKS, NEW_TOPIC, SMALL_REPLICAS
from advisor.present.interactive.neighbourhood import Neighbourhood
from advisor.present.second_process import SecondProcess
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS

MOST_TOPICS = 6
"""Topics of a cluster on a page; each is computed for every card."""


def switchable(cluster: Cluster, first: Iterable[str] = ()) -> list[str]:
    """Return the topics to switch to: those named first, then the cluster's; none of Kafka's own.

    Topics of so many partitions that they take long are left out.
    """
    small = {
        topic.name
        for topic in cluster.topics
        if not topic.internal and len(topic.partitions) <= MANY_PARTITIONS
    }
    named = dict.fromkeys([*first, *(topic.name for topic in cluster.topics)])
    return [name for name in named if name in small][:MOST_TOPICS]


class Elsewhere:
    """Curves of other topics, cards and versions; a second process begins with the latter two.

    Parameters
    ----------
    around : Neighbourhood
        Remembers what is computed; its initial card is computed for every topic.
    topics : sequence of str
        Names of topics; the initial one and `NEW_TOPIC` are always there.
    cards : sequence of str
        Names of cards.
    versions : sequence of str
        Kafka versions, for the initial topic and card.
    acks : sequence of str
        What the initial topic has for each card; other topics have the initial acks.
    """

    def __init__(
        self,
        around: Neighbourhood,
        topics: Sequence[str],
        cards: Sequence[str],
        versions: Sequence[str] = (),
        acks: Sequence[str] = EVERY_ACKS,
    ) -> None:
        start = _start(around)
        every = dict.fromkeys([start["topic"], NEW_TOPIC, *topics])
        others = [name for name in cards if name != start["card"] and _readable(name)]
        self.around = around
        self._asked = [{**start, "topic": t, "card": card} for card in others for t in every]
        for card, other in product(others, acks):
            if other != start["acks"]:
                self._asked.append({**start, "card": card, "acks": other})
        for version in versions:
            if version != start["kafka_version"]:
                self._asked.append({**start, "kafka_version": version})
        self._topics = [{**start, "topic": t} for t in every if t != start["topic"]]
        asked = around.forgetful()
        self._second = SecondProcess([partial(asked.answer, values) for values in self._asked])

    def computed(self) -> list[dict[str, str]]:
        """Return a setting of each curve, when all are computed."""
        try:
            for values in self._topics:
                self.around.answer(values)
            for answer in self._second.results():
                self.around.keep(answer)
        finally:
            self._second.stop()
        return [*self._topics, *self._asked]

    def stop(self) -> None:
        """End the second process."""
        self._second.stop()


def _start(around: Neighbourhood) -> dict[str, str]:
    """Return the initial setting, with no more replicas than take little time."""
    start = around.chosen
    if int(start["replication_factor"]) <= SMALL_REPLICAS:
        return start
    return {**start, "replication_factor": str(SMALL_REPLICAS), "min_insync_replicas": "2"}


def _readable(card: str) -> bool:
    try:
        load_model(card)
    except AdvisorError:
        return False
    return True
