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


def curves_elsewhere(
    around: Neighbourhood,
    topics: Sequence[str],
    cards: Sequence[str],
    versions: Sequence[str] = (),
    acks: Sequence[str] = EVERY_ACKS,
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return a setting of each curve of other topics, and of each of other cards and versions.

    Parameters
    ----------
    around : Neighbourhood
        Its initial card is computed for every topic.
    topics : sequence of str
        Names of topics; the initial one and `NEW_TOPIC` are always there.
    cards : sequence of str
        Names of cards.
    versions : sequence of str
        Kafka versions, for the initial topic and card.
    acks : sequence of str
        What the initial topic has for each card; other topics have the initial acks.
    """
    start = _start(around)
    every = dict.fromkeys([start["topic"], NEW_TOPIC, *topics])
    first = first_of_cards(around, cards)
    others = [{**values, "topic": t} for values in first for t in every]
    for values, other in product(first, acks):
        if other != start["acks"]:
            others.append({**values, "acks": other})
    for version in versions:
        if version != start["kafka_version"]:
            others.append({**start, "kafka_version": version})
    return [{**start, "topic": t} for t in every if t != start["topic"]], others


def first_of_cards(around: Neighbourhood, cards: Sequence[str]) -> list[dict[str, str]]:
    """Return the initial setting with each other card that can be read; these get intervals."""
    start = _start(around)
    return [{**start, "card": name} for name in cards if name != start["card"] and _readable(name)]


class Elsewhere:
    """Computes `curves_elsewhere`; a second process begins with other cards and versions.

    Parameters
    ----------
    around : Neighbourhood
        Remembers what is computed.
    topics, cards, versions, acks : sequences of str
        As `curves_elsewhere` takes them.
    """

    def __init__(
        self,
        around: Neighbourhood,
        topics: Sequence[str],
        cards: Sequence[str],
        versions: Sequence[str] = (),
        acks: Sequence[str] = EVERY_ACKS,
    ) -> None:
        self.around = around
        self._topics, self._others = curves_elsewhere(around, topics, cards, versions, acks)
        asked = around.forgetful()
        self._second = SecondProcess(
            [partial(asked.answer, values) for values in self._others]
            + [partial(asked.with_intervals, values) for values in first_of_cards(around, cards)]
        )

    def computed(self) -> list[dict[str, str]]:
        """Return a setting of each curve, when all are computed."""
        try:
            for values in self._topics:
                self.around.answer(values)
            for answer in self._second.results():
                self.around.keep(answer)
        finally:
            self._second.stop()
        return [*self._topics, *self._others]

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
