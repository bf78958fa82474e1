"""Each topic as it is and as the plan leaves it, both audited in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.advice.audits.topic_audit import Evaluate, TopicAudit, audit_topic
from advisor.advice.choice import GOAL_WORDS, Choice
from advisor.advice.goals import Goals
from advisor.advice.kafka_version import controller_of
from advisor.advice.phrases import first_of, listed
from advisor.advice.topic_settings import config_of, load_of
from advisor.cluster import Cluster, Topic
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_environment import Replicas
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

_PRODUCER = (
    "retries",
    "delivery_timeout_ms",
    "request_timeout_ms",
    "linger_ms",
    "enable_idempotence",
    "max_in_flight_requests_per_connection",
)


@dataclass(frozen=True)
class TopicChange:
    """A topic as it is and as the plan leaves it.

    Attributes
    ----------
    today, planned : tuple of TopicAudit
        One for each replication factor of its partitions.
    """

    today: tuple[TopicAudit, ...]
    planned: tuple[TopicAudit, ...]

    @property
    def name(self) -> str:
        """Name of the topic."""
        return self.planned[0].topic.name

    @property
    def changes(self) -> bool:
        """Whether the plan changes the topic's settings or replicas."""
        before, after = self.today[0].topic, self.planned[0].topic
        held = [[p.held for p in topic.partitions] for topic in (before, after)]
        return held[0] != held[1] or dict(before.configs) != dict(after.configs)

    def row(self) -> dict[str, Any]:
        """Return today's and the planned setting, and the goals that either misses."""
        return {
            "topic": self.name,
            "partitions": len(self.planned[0].topic.partitions),
            "today": setting_words(self.today),
            "today_misses": list(unmet(self.today)),
            "planned": setting_words(self.planned),
            "planned_misses": list(unmet(self.planned)),
            "changes": self.changes,
        }


def setting_words(audits: Sequence[TopicAudit]) -> str:
    """Return "RF 3, min ISR 2", with "or" between settings of different partitions."""
    configs = [audit.choice.config for audit in audits]
    words = (f"RF {c.replication_factor}, min ISR {c.min_insync_replicas}" for c in configs)
    return " or ".join(dict.fromkeys(words))


def unmet(audits: Sequence[TopicAudit]) -> tuple[str, ...]:
    """Return the goals that any of the audits misses."""
    return tuple(dict.fromkeys(goal for audit in audits for goal in audit.choice.unmet))


@dataclass(frozen=True)
class Auditor:
    """Audits topics with the settings of some producers, and their share of a load.

    Attributes
    ----------
    cluster : Cluster
    model : FailureModel
    load : Workload
        Of all topics together.
    goals : Goals
    partitions : int
        Partitions that share the load.
    evaluated : callable
        `evaluate` for one topic after another; what is the same today and as planned once.
    """

    cluster: Cluster
    model: FailureModel
    load: Workload
    goals: Goals
    partitions: int
    evaluated: Evaluate = field(default_factory=lambda: _evaluated_once(topic_evaluator()))

    def audit(self, topic: Topic, producer: Config) -> tuple[TopicAudit, ...]:
        """Return the audits of a topic, on its brokers and with its settings.

        Parameters
        ----------
        topic : Topic
        producer : Config
            Settings of the producers, and the Kafka version.
        """
        stated = {name: getattr(producer, name) for name in _PRODUCER if name in producer.explicit}
        version = producer.kafka_version
        settings = {"acks": producer.acks, **stated, **controller_of(self.cluster, version)}
        share = self.load.records_per_second * len(topic.partitions) / self.partitions
        load = replace(load_of(topic, self.load), records_per_second=share)
        config = config_of(topic, version, settings)
        question = (topic, self.cluster, config, self.model, load, self.goals)
        return tuple(audit_topic(*question, self.evaluated))


def _evaluated_once(evaluated: Evaluate) -> Evaluate:
    """Evaluate the same settings, load and replicas once; cluster and card never change."""
    known: dict[tuple[Config, Workload, tuple[Replicas, ...]], Reliability] = {}

    def found(
        cluster: Cluster,
        config: Config,
        model: FailureModel,
        load: Workload,
        placement: tuple[Replicas, ...],
    ) -> Reliability:
        key = config, load, placement
        if key not in known:
            known[key] = evaluated(cluster, config, model, load, placement=placement)
        return known[key]

    return found


def shortfall(changes: Sequence[TopicChange], best: Choice) -> str:
    """Return which topics miss a goal after the plan that the setting meets elsewhere; "" for none.

    Their replicas lie differently, or more of them are kept.
    """
    missing: dict[tuple[str, ...], list[str]] = {}
    for change in changes:
        more = tuple(goal for goal in unmet(change.planned) if goal not in best.unmet)
        if more:
            missing.setdefault(more, []).append(change.name)
    sentences = []
    for goals, names in missing.items():
        miss = "misses" if len(names) == 1 else "miss"
        plural = "s" if len(goals) > 1 else ""
        words = listed([GOAL_WORDS[goal] for goal in goals])
        sentences.append(
            f"After the change {first_of(names)} still {miss} the goal{plural} for {words}."
        )
    return " ".join(sentences)
