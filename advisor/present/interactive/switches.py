"""Other topics, failure models and Kafka versions that a page without a kernel switches to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product

from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError
from advisor.present.interactive.controls import EVERY_ACKS, NEW_TOPIC, SMALL_REPLICAS
from advisor.present.interactive.explorer_model import Answer, ExplorerModel, Values
from advisor.present.second_process import SecondProcess
from advisor.reliability.evaluate import forget_chains, forget_draws
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS

MOST_TOPICS = 6
"""Topics of a cluster on a page; each is computed for every card."""


def switchable(cluster: Cluster, first: Iterable[str] = ()) -> list[str]:
    """Return topics to switch to, those in `first` before others; none internal or huge."""
    small = {
        topic.name
        for topic in cluster.topics
        if not topic.internal and len(topic.partitions) <= MANY_PARTITIONS
    }
    names = dict.fromkeys([*first, *(topic.name for topic in cluster.topics)])
    return [name for name in names if name in small][:MOST_TOPICS]


def curves_elsewhere(
    explorer_model: ExplorerModel,
    topics: Sequence[str],
    cards: Sequence[str],
    versions: Sequence[str] = (),
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return a setting of each curve of other topics, and of each of other cards and versions.

    The first topic has every acks with each card, the others the initial one.
    """
    start = _start(explorer_model)
    topic_names = dict.fromkeys([start["topic"], NEW_TOPIC, *topics])
    first = first_of_cards(explorer_model, cards)
    topics_today = {name: {**explorer_model.of_topic(name), "topic": name} for name in topic_names}
    topics_today[start["topic"]] = {"topic": start["topic"]}
    settings = [{**values, **today} for values in first for today in topics_today.values()]
    for values, acks in product(first, EVERY_ACKS):
        if acks != start["acks"]:
            settings.append({**values, "acks": acks})
    for version in versions:
        if version != start["kafka_version"]:
            settings.append({**start, "kafka_version": version})
    return [
        {**start, **today} for name, today in topics_today.items() if name != start["topic"]
    ], settings


def first_of_cards(explorer_model: ExplorerModel, cards: Sequence[str]) -> list[dict[str, str]]:
    """Return the initial setting with each other readable card; these settings get intervals."""
    start = _start(explorer_model)
    return [{**start, "card": name} for name in cards if name != start["card"] and _readable(name)]


class Elsewhere:
    """Computes `curves_elsewhere`; a second process begins with other cards and versions."""

    def __init__(
        self,
        explorer_model: ExplorerModel,
        topics: Sequence[str],
        cards: Sequence[str],
        versions: Sequence[str] = (),
    ) -> None:
        self.explorer_model = explorer_model
        self._topics, self._others = curves_elsewhere(explorer_model, topics, cards, versions)
        model = explorer_model.without_cache()
        with_intervals = first_of_cards(explorer_model, cards)
        by_card: dict[str, list[dict[str, str]]] = defaultdict(list)
        for values in self._others:
            by_card[values["card"]].append(values)
        self._second = SecondProcess(
            [
                partial(_answers, model, settings, [v for v in with_intervals if v["card"] == card])
                for card, settings in by_card.items()
            ]
        )

    @property
    def any(self) -> bool:
        """Whether there are other curves."""
        return bool(self._topics or self._others)

    def computed(self) -> list[dict[str, str]]:
        """Compute all curves; return one setting of each."""
        try:
            for values in self._topics:
                self.explorer_model.answer(values)
            for answers in self._second.results():
                for answer in answers:
                    self.explorer_model.store(answer)
        finally:
            self._second.stop()
        return [*self._topics, *self._others]

    def stop(self) -> None:
        """End the second process."""
        self._second.stop()


def _answers(
    model: ExplorerModel, settings: Sequence[Values], with_intervals: Sequence[Values]
) -> list[Answer]:
    """Compute curves, and settings with intervals, of one card; then free its chains."""
    answers = [model.answer(values) for values in settings]
    answers += [model.with_intervals(values) for values in with_intervals]
    forget_draws()
    forget_chains()
    return answers


def _start(explorer_model: ExplorerModel) -> dict[str, str]:
    """Return the initial setting, with at most `SMALL_REPLICAS` replicas."""
    start = explorer_model.chosen
    if int(start["replication_factor"]) <= SMALL_REPLICAS:
        return start
    return {**start, "replication_factor": str(SMALL_REPLICAS), "min_insync_replicas": "2"}


def _readable(card: str) -> bool:
    try:
        load_model(card)
    except AdvisorError:
        return False
    return True
