"""What is asked of the decision about a described cluster: its topics, its plan, what is broken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor.advice.findings.checks import check_topic
from advisor.advice.findings.rule import BROKEN
from advisor.advice.goals import Goals
from advisor.advice.kafka_version import controller_of, version_of
from advisor.advice.migration.moves import plan_moves
from advisor.advice.phrases import first_of
from advisor.advice.tolerance import fatal_racks, share_of, survival
from advisor.advice.topic_settings import config_of, load_of
from advisor.cluster import Cluster, Topic
from advisor.cluster.broker_presence import presence_of
from advisor.decision import (
    Depth,
    Evaluator,
    ExactEvaluator,
    Requirements,
    Setting,
    TopicQuestion,
    Verdict,
    decide_cluster,
)
from advisor.decision.evaluator import DRAWS
from advisor.decision.rule import MINUTES_PER_LOSS
from advisor.decision.settings import Placement, candidate_factor
from advisor.errors import InputError
from advisor.protocol.rules.assignment import Algorithm, assign
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload


def decide(
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    requirements: Requirements | None = None,
    *,
    kafka_version: str | None = None,
    producer: Mapping[str, Any] | None = None,
    topics: Sequence[str] | None = None,
    draws: int = DRAWS,
    depth: Depth | None = None,
    allow_lower_durability: bool = False,
    evaluator: Evaluator | None = None,
) -> Verdict:
    """Decide what every topic of a described cluster should be set to.

    Parameters
    ----------
    cluster : Cluster
    model : FailureModel
    load : Workload, optional
        Traffic of each topic. Default: 1,000 records a second.
    requirements : Requirements, optional
        Goals, and the price of a loss.
    kafka_version : str, optional
        Default: the cluster's, or the newest that fits its description.
    producer : mapping of str to object, optional
        Producer settings. Default: acks="all" and Kafka's defaults.
    topics : sequence of str, optional
        Names of the topics. Default: all.
    draws : int
        How many draws of the card say how sure the choice is.
    depth : Depth, optional
        What is computed; by default everything.
    allow_lower_durability : bool
        Consent to a lower min ISR.
    evaluator : Evaluator, optional
        Default: one that asks `advisor.evaluate`.
    """
    version, _ = version_of(cluster, kafka_version)
    chosen = tuple(cluster.topics) if topics is None else tuple(map(cluster.topic, topics))
    settings = {"acks": "all", **controller_of(cluster, version), **(producer or {})}
    configs = {
        topic.name: _smallest(topic, config_of(topic, version, settings)) for topic in chosen
    }
    planned = _Planned(cluster, chosen, configs)
    questions = [
        TopicQuestion(
            topic=topic.name,
            today=Setting(configs[topic.name], planned.today(topic)),
            load=load_of(topic, load or Workload()),
            brokers=cluster.brokers,
            planned=planned.of(topic),
            internal=topic.internal,
        )
        for topic in chosen
    ]
    asked = requirements or Requirements()
    mode = Config(kafka_version=version, **controller_of(cluster, version)).mode
    return decide_cluster(
        questions,
        evaluator or ExactEvaluator(cluster, model.under(str(mode)), draws, topic_evaluator()),
        asked,
        survives=surviving(asked.survive, cluster),
        allow_lower_durability=allow_lower_durability,
        now=_broken(cluster, chosen, configs),
        depth=depth,
    )


def requirements_of(goals: Goals, minutes_per_loss: float = MINUTES_PER_LOSS) -> Requirements:
    """Return what a user asks of each topic, and the price of a loss, for the decision.

    Goals are held against whole measures there.

    >>> goals = Goals(loss_probability_per_year=None, write_unavailability=1e-4, survive="rack")
    >>> requirements_of(goals).limits
    {'write_unavailability': 0.0001}
    """
    return Requirements(goals.limits, goals.survive, minutes_per_loss)


def _smallest(topic: Topic, config: Config) -> Config:
    """The settings with the smallest RF of the topic's partitions, as which a mixed one counts."""
    factor = min(partition.replication_factor for partition in topic.partitions)
    return (
        config if factor == config.replication_factor else config.changed(replication_factor=factor)
    )


@dataclass(frozen=True)
class _Planned:
    """The replicas that the emitted plan would create, for the candidates' RF and for others.

    A partition with more replicas than the candidates keeps them; the others are counted.
    """

    cluster: Cluster
    topics: tuple[Topic, ...]
    configs: Mapping[str, Config]

    def today(self, topic: Topic) -> Placement:
        """The replicas that hold the topic, as many of each partition as of the smallest."""
        factor = self._factor(topic)
        return tuple(partition.held[:factor] for partition in topic.partitions)

    def of(self, topic: Topic) -> Callable[[int], Placement]:
        """RF to replicas."""
        usual = candidate_factor(self._factor(topic), len(self.cluster.brokers))

        def planned(factor: int) -> Placement:
            if factor == usual:
                return self._usual[topic.name]
            return self._after((topic,), {topic.name: factor})[topic.name]

        return planned

    def _factor(self, topic: Topic) -> int:
        return self.configs[topic.name].replication_factor or 1

    @cached_property
    def _usual(self) -> Mapping[str, Placement]:
        """The replicas of all topics with the RF of their candidates, moved in one plan."""
        brokers = len(self.cluster.brokers)
        factors = {t.name: candidate_factor(self._factor(t), brokers) for t in self.topics}
        return self._after(self.topics, factors)

    def _after(self, topics: Sequence[Topic], factors: Mapping[str, int]) -> dict[str, Placement]:
        missing = presence_of(self.cluster).missing
        moves = plan_moves(
            topics, self.cluster.brokers, factors, self.cluster.topics, avoided=missing
        )
        after = {(move.topic, move.partition): move.after for move in moves}
        return {
            topic.name: tuple(
                after.get((topic.name, p.index), p.held)[: factors[topic.name]]
                for p in topic.partitions
            )
            for topic in topics
        }


def surviving(survive: str | None, cluster: Cluster) -> Callable[[Setting], bool] | None:
    """Return whether a setting neither loses records nor stops writes when a rack or broker fails.

    None if nothing is to be survived.

    Raises
    ------
    InputError
        If a rack is to be survived and that of a broker is unknown.
    """
    if survive is None:
        return None
    if survive == "rack" and None in cluster.brokers.values():
        raise InputError(
            'survive="rack" needs the rack of every broker: give the racks (--racks), or ask for '
            'survive="broker".'
        )

    def survives(setting: Setting) -> bool:
        share = 1
        if survive == "rack":
            placed = setting.placement or _as_kafka_places(setting, cluster)
            share = max(share_of(replicas, cluster.brokers) for replicas in set(placed))
            racks = {cluster.brokers[broker] for replicas in placed for broker in replicas}
            if fatal_racks(cluster.controllers, racks):
                return False
        after = survival(share, setting.config)
        return after.without_loss and after.writable

    return survives


def _as_kafka_places(setting: Setting, cluster: Cluster) -> Collection[tuple[int, ...]]:
    brokers = dict(cluster.brokers)
    factor = setting.replication_factor
    kraft = setting.config.mode == "kraft"
    algorithm: Algorithm = "striped" if kraft else "rack_alternated"
    placed = assign(brokers, len(brokers), factor, algorithm=algorithm)
    return [tuple(replicas) for replicas in placed.values()]


def _broken(
    cluster: Cluster, topics: Sequence[Topic], configs: Mapping[str, Config]
) -> tuple[str, ...]:
    """What does not work at this moment, a text for each topic."""
    broken = []
    for topic in topics:
        findings = check_topic(topic, cluster, configs[topic.name])
        details = [f.detail.rstrip(".") for f in findings if f.rule.weight == BROKEN]
        if details:
            broken.append(f"{topic.name}: {first_of(details)}")
    return tuple(broken)
