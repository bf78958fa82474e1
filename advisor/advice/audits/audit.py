"""Audit: every topic of a described cluster with its own settings and replicas, worst first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from advisor.advice.arguments import check_arguments, check_producer_settings
from advisor.advice.audits.audit_views import AuditViews
from advisor.advice.audits.audit_words import audit_verdict, failing_lines
from advisor.advice.audits.copyset_spread import spread_words
from advisor.advice.audits.current_state import CurrentState, current_state
from advisor.advice.audits.topic_audit import Evaluate, TopicAudit, audit_topic
from advisor.advice.beyond_settings import (
    goals_sentence,
    rest_of_topics,
)
from advisor.advice.choice import decided_measures
from advisor.advice.findings.catalogue import Finding, by_weight
from advisor.advice.findings.checks import (
    check_cluster,
    check_delivery_timeout,
    check_producer,
    check_replacement,
)
from advisor.advice.findings.known_bugs import check_version
from advisor.advice.findings.missing_brokers import check_missing
from advisor.advice.goals import Goals, decades_short
from advisor.advice.kafka_version import controller_note, controller_of, version_of
from advisor.advice.phrases import first_of, sentence
from advisor.advice.topic_settings import (
    amount_of,
    config_of,
    kept_for_ever,
    load_of,
    topics_under_load,
)
from advisor.arguments import cluster_of, model_of, names_checked
from advisor.cluster import Cluster, Topic
from advisor.formatting import as_given
from advisor.progress import progress_bar
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.copysets import Copysets, copysets
from advisor.reliability.evaluate import topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

WITHOUT_INTERVALS = (
    "These values have no 95 % intervals, which would take hours for hundreds of topics; "
    "advisor evaluate computes them for one setting."
)


@dataclass(frozen=True, repr=False)
class Audit(AuditViews):
    r"""Audit of all topics of a cluster, worst first; returned by `advisor.audit`.

    Order: topics that do not work at present, then topics that miss a goal, by how far, then the
    others; ties by records lost, then by time without writes.

    Attributes
    ----------
    cluster : Cluster
    model : FailureModel
    goals : Goals
        Limits that the topics were compared with.
    topics : tuple of TopicAudit
        One entry per topic and replication factor, worst first.
    general : tuple of Finding
        Findings about the cluster and the producers.
    now : CurrentState
        What was out of sync when the cluster was described, and what the next failure would do.
    copysets : Copysets
        Sets of brokers that hold every replica of some partition.
    notes : tuple of str
        Assumptions, one sentence each.

    See Also
    --------
    advisor.audit : Makes one.
    advisor.Goals : The limits.

    Examples
    --------
    >>> import advisor
    >>> cluster = advisor.load_cluster(
    ...     "Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    ...     "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    ... )
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> result = advisor.audit(cluster, model)
    >>> result.ok
    False
    >>> print(result.verdict.split("; worst")[0])
    No, 1 of 1 topic misses your goals
    >>> [finding.code for finding in result.topics[0].findings]
    ['KRA107', 'KRA101', 'KRA304']
    """

    cluster: Cluster
    model: FailureModel
    goals: Goals
    topics: tuple[TopicAudit, ...]
    general: tuple[Finding, ...]
    now: CurrentState
    copysets: Copysets
    notes: tuple[str, ...] = field(default=())

    _INTERVALS = False

    @property
    def ok(self) -> bool:
        """Whether every topic meets every goal and nothing is broken at present."""
        return all(topic.ok for topic in self.topics)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: broken, then risks, then notes; within these, worst topic first."""
        return by_weight([*self.general, *(f for topic in self.topics for f in topic.findings)])

    @property
    def verdict(self) -> str:
        """Yes or no, and losses and refused writes of the worst topics, in at most 25 words."""
        return audit_verdict(self.topics, self.goals)

    @property
    def no_setting_changes(self) -> str:
        """One sentence on losses and outages beyond settings, for the most affected topic."""
        return rest_of_topics([topic.choice.reliability for topic in self.topics])

    @property
    def below_verdict(self) -> tuple[str, ...]:
        """A line on causes beyond settings, and one per topic that is broken or misses goals."""
        return tuple(filter(None, (self.no_setting_changes, *failing_lines(self.topics))))

    @property
    def goals_sentence(self) -> str:
        """The goals, and whether they apply to the part that settings decide."""
        if not self.topics:
            return self.goals.sentence
        return goals_sentence(self.goals, self.topics[0].choice.reliability)

    @property
    def spread(self) -> str:
        """Copysets, scatter width and the probability of a loss by them, in sentences."""
        return spread_words(self.copysets)


@names_checked
def audit(
    cluster: Cluster | str | PathLike[str],
    model: FailureModel | str | PathLike[str],
    load: Workload | None = None,
    goals: Goals | None = None,
    kafka_version: str | None = None,
    producer: Mapping[str, Any] | None = None,
    evaluated: Evaluate | None = None,
    shared: bool = False,
) -> Audit:
    r"""Evaluate every topic with its own settings, on the brokers that hold its replicas.

    Parameters
    ----------
    cluster : Cluster, str or path
        Cluster with topics; a text or path is read by `advisor.load_cluster`.
    model : FailureModel, str or path
        Failure and repair rates; a card's name or path is read by `advisor.load_model`.
    load : Workload, optional
        Traffic written to each topic; the number of partitions is the topic's own. Default: 1,000
        records per second.
    goals : Goals, optional
        Limits for each topic separately. Default: ``Goals()``.
    kafka_version : str, optional
        Kafka version, such as "4.1". Default: the cluster's, or the newest that fits its
        description.
    producer : mapping of str to object, optional
        Producer settings as in `Config`. Default: acks="all" and Kafka's defaults.
    evaluated : callable, optional
        Replacement for `advisor.evaluate`, with the same arguments. Default: that, but for the
        first losses of topics that are like many others, which are fitted to theirs.
    shared : bool, default False
        Whether `load` is that of all topics together, as for `recommend`: the partitions of all
        topics but Kafka's own share it, and each of Kafka's own carries as much.

    Returns
    -------
    Audit
        Topics worst first, with findings.

    Raises
    ------
    AdvisorError
        If Kafka refuses the settings, or if a goal needs racks that are unknown.

    See Also
    --------
    recommend : Find settings that meet goals.
    evaluate : Evaluate one setting.

    Examples
    --------
    >>> import advisor
    >>> cluster = advisor.load_cluster(
    ...     "Topic: logs\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    ...     "\tTopic: logs\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    ... )
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> result = advisor.audit(cluster, model, goals=advisor.Goals(write_unavailability=0.01))
    >>> result.topics[0].missed
    'losses'
    """
    cluster, model = cluster_of(cluster), model_of(model)
    check_arguments(cluster, model, load, goals, kafka_version)
    check_producer_settings(producer)
    goals = goals or Goals()
    version, note = version_of(cluster, kafka_version)
    notes = [text for text in (note, controller_note(cluster, version)) if text]
    load_of_topic = _loads(cluster, load, shared)
    if load is None:
        load = Workload()
        notes.append(f"No load was given: {amount_of(load)} to each topic were assumed.")
    settings = {"acks": "all", **controller_of(cluster, version), **(producer or {})}
    if "acks" not in (producer or {}):
        notes.append("Producers were assumed to use acks=all.")
    endless = [topic.name for topic in cluster.topics if kept_for_ever(topic)]
    if endless:
        hours = as_given(load.retention_hours)
        notes.append(
            f"Records that retention.ms keeps forever were assumed to be kept {hours} hours: "
            f"{first_of(endless)}."
        )
    evaluated = evaluated or topic_evaluator()
    audits: list[TopicAudit] = []
    with progress_bar(len(cluster.topics), " topics", "Auditing") as done:
        for topic in cluster.topics:
            config, own = config_of(topic, version, settings), load_of_topic(topic)
            audits += audit_topic(topic, cluster, config, model, own, goals, evaluated)
            done(1)
    audits.sort(key=lambda topic: _worst_first(topic, goals))
    assumed = dict.fromkeys(a for t in audits for a in t.choice.reliability.assumptions)
    producing = Config(kafka_version=version, **settings)
    stated = bool(kafka_version or cluster.kafka_version)
    known_bugs = check_version(version, str(producing.mode)) if stated else ()
    now = current_state(cluster, version)
    return Audit(
        cluster=cluster,
        model=model,
        goals=goals,
        topics=tuple(audits),
        general=(
            *check_missing(now.presence),
            *check_cluster(cluster),
            *known_bugs,
            *_of_results(audits, goals, check_producer(producing, model)),
        ),
        now=now,
        copysets=copysets(
            (p.held for t in cluster.topics for p in t.partitions), len(cluster.brokers)
        ),
        notes=(*notes, *map(sentence, assumed), *cluster.notes),
    )


def _loads(cluster: Cluster, load: Workload | None, shared: bool) -> Callable[[Topic], Workload]:
    """Return the load of each topic: all of it, or if a given one is shared, by its partitions."""
    partitions = sum(len(topic.partitions) for topic in topics_under_load(cluster.topics))

    def load_of_topic(topic: Topic) -> Workload:
        own = load_of(topic, load or Workload())
        share = len(topic.partitions) / partitions if shared and load is not None else 1.0
        return replace(own, records_per_second=own.records_per_second * share)

    return load_of_topic


def _of_results(
    audits: Sequence[TopicAudit], goals: Goals, producer: Iterator[Finding]
) -> Iterator[Finding]:
    """Yield the findings about replacements, the producer and its timeout."""
    yield from _once(audits, lambda r, topic: check_replacement(r, goals, topic))
    yield from producer
    users = [each for each in audits if not each.topic.internal]
    yield from _once(users, lambda r, topic: check_delivery_timeout(r, goals, topic=topic))


def _once(
    audits: Sequence[TopicAudit], check: Callable[[Reliability, str], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield the findings of a check once, for the worst topic that it applies to."""
    for topic in audits:
        findings = list(check(topic.choice.reliability, topic.topic.name))
        if findings:
            yield from findings
            return


def _worst_first(audited: TopicAudit, goals: Goals) -> tuple[object, ...]:
    choice, r = audited.choice, audited.choice.reliability
    measures = decided_measures(r)
    return (
        *audited.urgency,
        choice.meets_all,
        # Goals of survival are met or missed, and have no distance.
        -decades_short(goals, measures),
        -len(choice.unmet),
        -r.acked_records_lost_per_year,
        -measures.get("loss_probability_per_year", math.inf),
        -r.write_unavailability,
        audited.topic.name,
        audited.partitions,
    )
