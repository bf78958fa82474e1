"""Audit: every topic of a described cluster with its own settings and replicas, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from advisor.advice.arguments import check_arguments, check_producer_settings
from advisor.advice.audits.audit_views import AuditViews
from advisor.advice.audits.copyset_spread import spread_words
from advisor.advice.audits.current_state import CurrentState, current_state
from advisor.advice.audits.topic_audit import Evaluate, TopicAudit, audit_topic
from advisor.advice.deciding import Decision, evaluated_once
from advisor.advice.findings.catalogue import Finding, by_weight
from advisor.advice.findings.checks import (
    check_cluster,
    check_delivery_timeout,
    check_producer,
    check_replacement,
)
from advisor.advice.findings.known_bugs import check_version
from advisor.advice.findings.missing_brokers import check_missing
from advisor.advice.findings.owners import owner_of
from advisor.advice.goals import Goals
from advisor.advice.phrases import sentence
from advisor.advice.situation import Situation
from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster import Cluster
from advisor.decision.verdict import CRITICAL, SEVERITIES
from advisor.errors import InputError, shown
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

    Order: topics that do not work at present, then those with critical settings, then the others;
    ties by what losses and time without writes cost.

    Attributes
    ----------
    situation : Situation
        The cluster, its version, controller and traffic.
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
    decision : Decision
        What every topic should be set to.
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
    True
    >>> print(result.quick_verdict.headline)
    Keep RF 2, min ISR 1, acks=all.
    >>> [finding.code for finding in result.topics[0].findings]
    ['KRA107', 'KRA101']
    """

    situation: Situation
    model: FailureModel
    goals: Goals
    topics: tuple[TopicAudit, ...]
    general: tuple[Finding, ...]
    now: CurrentState
    copysets: Copysets
    decision: Decision
    notes: tuple[str, ...] = field(default=())

    _INTERVALS = False

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.situation.cluster

    @property
    def ok(self) -> bool:
        """Whether nothing is broken or critical, and no topic misses a goal."""
        return not self.fails()

    def fails(self, severity: str = CRITICAL) -> bool:
        r"""Return whether a topic is broken, misses a goal, or has settings that bad.

        Parameters
        ----------
        severity : {"critical", "warning"}
            The least severity that counts.

        Returns
        -------
        bool
            What `ok` denies, for "critical".

        Raises
        ------
        InputError
            If it is neither.

        See Also
        --------
        verdict : What to set.

        Examples
        --------
        >>> import advisor
        >>> text = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3"
        >>> dear = advisor.Goals(minutes_per_loss=40_320)  # four weeks
        >>> result = advisor.audit(text + "\n", "three_az_cloud", goals=dear)
        >>> result.fails(), result.fails("warning")
        (False, True)
        """
        if severity not in SEVERITIES[:-1]:
            raise InputError(f"severity={shown(severity)}: give critical or warning")
        return any(topic.fails(severity) for topic in self.topics)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: broken, then risks, then notes; within these, worst topic first."""
        return by_weight([*self.general, *(f for topic in self.topics for f in topic.findings)])

    @property
    def spread(self) -> str:
        """Copysets, scatter width and the probability of a loss by them, in sentences."""
        return spread_words(self.copysets)


@names_checked
def audit(
    cluster: Cluster | Sources,
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
    cluster : Cluster, str, path or list
        Cluster with topics; texts or paths are read by `advisor.load_cluster`.
    model : FailureModel, str or path
        Failure and repair rates; a card's name or path is read by `advisor.load_model`.
    load : Workload, optional
        Traffic written to each topic; the number of partitions is the topic's own. Default: 1,000
        records per second.
    goals : Goals, optional
        Limits for each topic separately, and the price of a loss. Default: no limits.
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
    recommend : Choose settings, with the commands.
    evaluate : Evaluate one setting.

    Examples
    --------
    >>> import advisor
    >>> cluster = advisor.load_cluster(
    ...     "Topic: logs Partition: 0 Leader: 1 Replicas: 1 Isr: 1\n"
    ...     "Topic: orders Partition: 0 Leader: 1 Replicas: 1,2,3 Isr: 1,2,3\n"
    ... )
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> result = advisor.audit(cluster, model)
    >>> [(topic.topic.name, topic.severity) for topic in result.topics]
    [('logs', 'critical'), ('orders', 'ok')]
    """
    cluster, model = cluster_of(cluster), model_of(model)
    check_arguments(cluster, model, load, goals, kafka_version)
    check_producer_settings(producer)
    goals = goals or Goals()
    situation = Situation.read(cluster, load, kafka_version, producer, shared=shared)
    once = evaluated_once(evaluated or topic_evaluator())
    decision = Decision(situation, model, goals.requirements, evaluated=once)
    audits: list[TopicAudit] = []
    with progress_bar(len(cluster.topics), " topics", "Auditing") as done:
        for topic in situation.topics:
            config, own = situation.config_of(topic), situation.load_of(topic)
            action = decision.action(topic.name)
            audits += audit_topic(topic, cluster, config, model, own, goals, action, once)
            done(1)
    audits.sort(key=_worst_first)
    assumed = dict.fromkeys(a for t in audits for a in t.choice.reliability.assumptions)
    producing = Config(kafka_version=situation.version, **situation.settings)
    stated = situation.stated_version
    now = current_state(cluster, situation.version)
    return Audit(
        situation=situation,
        model=model,
        goals=goals,
        topics=tuple(audits),
        general=(
            *check_missing(now.presence),
            *check_cluster(cluster, situation.version),
            *(check_version(stated, situation.mode) if stated else ()),
            *_of_results(audits, situation, goals, check_producer(producing, model)),
        ),
        now=now,
        copysets=copysets(
            (p.held for t in cluster.topics for p in t.partitions), len(cluster.brokers)
        ),
        decision=decision,
        notes=(*situation.notes, *map(sentence, assumed), *cluster.notes),
    )


def _of_results(
    audits: Sequence[TopicAudit],
    situation: Situation,
    goals: Goals,
    producer: Iterator[Finding],
) -> Iterator[Finding]:
    """Yield the findings about replacements, the producer and its timeout."""
    yield from _once(audits, lambda r, topic: check_replacement(r, goals, topic))
    yield from producer
    names, is_given = situation.cluster.topic_names, situation.load_is_given
    # What Kafka and frameworks write is none of the producers that a user configures.
    users = [audited for audited in audits if owner_of(audited.topic.name, names) is None]
    yield from _once(
        users,
        lambda r, topic: check_delivery_timeout(r, goals, topic=topic, load_is_given=is_given),
    )


def _once(
    audits: Sequence[TopicAudit], check: Callable[[Reliability, str], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield the findings of a check once, for the worst topic that it applies to."""
    for topic in audits:
        findings = list(check(topic.choice.reliability, topic.topic.name))
        if findings:
            yield from findings
            return


def _worst_first(audited: TopicAudit) -> tuple[object, ...]:
    action, choice = audited.action, audited.choice
    return (
        *audited.urgency,
        SEVERITIES.index(audited.severity),
        -len(choice.unmet),
        -action.cost_today,
        -choice.reliability.acked_records_lost_per_year,
        audited.topic.name,
        audited.partitions,
    )
