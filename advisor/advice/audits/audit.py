"""Audit: every topic of a described cluster with its own settings and replicas, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from typing import Any

from advisor import plotting
from advisor.advice.audits.current_state import CurrentState, current_state, state_lines
from advisor.advice.audits.sarif import Changes, changes_since, results_of, sarif_log
from advisor.advice.audits.topic_audit import TopicAudit, audit_topic
from advisor.advice.candidate import goals_words, lost_words
from advisor.advice.deciding import Decided, Decision, Evaluate, evaluated_once
from advisor.advice.findings.catalogue import Finding, by_weight
from advisor.advice.findings.checks import (
    check_cluster,
    check_delivery_timeout,
    check_producer,
    check_replacement,
)
from advisor.advice.findings.owners import owner_of
from advisor.advice.findings.summary import shortened
from advisor.advice.goals import Goals
from advisor.advice.phrases import count_in_words, sentence
from advisor.advice.situation import Situation, check_arguments
from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster import Cluster
from advisor.decision.verdict import CRITICAL, SEVERITIES
from advisor.errors import InputError, shown
from advisor.formatting import significant, time_per_year
from advisor.progress import progress_bar
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.copysets import Chance, Copysets, copysets
from advisor.reliability.evaluate import topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload
from advisor.rendering import joined
from advisor.tables import (
    MOST_ROWS,
    RowTable,
    html_folded,
    html_list,
    html_paragraphs,
    html_table,
    more_rows,
)

WITHOUT_INTERVALS = (
    "These are the card's middle values; advisor evaluate gives 95 % intervals for one setting."
)


@dataclass(frozen=True, repr=False)
class Audit(Decided, RowTable):
    r"""Audit of all topics of a cluster, worst first; returned by `advisor.audit`.

    Texts show at most the thirty worst topics.

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

        severity : {"critical", "warning"}, the least that counts.

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

    def _entries(self) -> tuple[TopicAudit, ...]:
        return self.topics

    def to_dict(self) -> dict[str, Any]:
        r"""Return the audit as plain JSON data.

        Returns
        -------
        dict
            "now", "verdict" (with the action of every topic), "ok", "goals", "model", "topics"
            (rows without intervals), "spread" (copysets), "findings" and "notes".

        See Also
        --------
        to_frame : Only the topics, as a table.
        to_sarif : The findings as SARIF.

        Examples
        --------
        >>> import advisor
        >>> text = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2"
        >>> advisor.audit(text + "\n", "three_az_cloud").to_dict()["model"]
        'three_az_cloud'
        """
        return {
            "now": {"said": list(state_lines(self.now)), **self.now.to_dict()},
            "verdict": self.quick_verdict.to_dict(),
            "ok": self.ok,
            "goals": self.goals.to_dict(),
            "model": self.model.name,
            "topics": self.rows(),
            "spread": spread_numbers(self.copysets),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
        }

    def since(self, accepted: str, source: str = "") -> Changes:
        r"""Return what changed since an accepted audit, whose SARIF log `accepted` is.

        Examples
        --------
        >>> import json
        >>> import advisor
        >>> text = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2\n"
        >>> audit = advisor.audit(text, "three_az_cloud")
        >>> changes = audit.since(json.dumps(audit.to_sarif()))
        >>> changes.new, changes.gone
        ((), ())
        """
        return changes_since(accepted, results_of(self.topics, self.findings), source)

    def to_sarif(self, text: str = "", accepted: str = "") -> dict[str, Any]:
        r"""Return the findings as a SARIF 2.1.0 log, for code scanning and CI.

        Parameters
        ----------
        text : str, optional
            Content of the file that the cluster was read from: findings about a topic then point
            to the first line that names it. Default: to line 1.
        accepted : str, optional
            SARIF log of an accepted audit: each result then says whether it is new. Default: none.

        Returns
        -------
        dict
            The log, ready for ``json.dump``: a rule for each code that was found (and KRA001 for a
            missed goal, KRA002 and KRA003 for settings to change) with its help text, and a result
            for each finding, with level "error" (does not work at present, misses a goal, critical
            settings), "warning" (risk, or other settings cost less) or "note". Its properties have
            the severity of its topic.

        See Also
        --------
        since : What changed since such a log.
        to_dict : All numbers, as plain JSON data.

        Examples
        --------
        >>> import advisor
        >>> text = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2"
        >>> log = advisor.audit(text + "\n", "three_az_cloud").to_sarif()
        >>> log["version"], log["runs"][0]["results"][0]["ruleId"]
        ('2.1.0', 'KRA101')
        """
        new = self.since(accepted).new if accepted else None
        return sarif_log(self.topics, self.findings, self.cluster.source, text, new)

    def explain(self) -> str:
        r"""Return the audit as text: state, verdict, topics, findings, goals, notes.

        Returns
        -------
        str
            Several lines; of more than thirty topics the worst thirty.

        See Also
        --------
        to_frame : All topics.

        Examples
        --------
        >>> import advisor
        >>> text = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2"
        >>> lines = advisor.audit(text + "\n", "three_az_cloud").explain().splitlines()
        >>> [line for line in lines if line.startswith("Goals:")]
        ['Goals: none.']
        """
        lines = [*state_lines(self.now), str(self.quick_verdict), *self.below_verdict]
        lines += [*self._topic_lines(), *_finding_lines(self.findings), self.spread]
        lines.append(self.goals.sentence)
        return "\n".join([*lines, *self.notes[:MOST_ROWS]])

    def plot(self, ax: Any = None) -> Any:
        r"""Draw every topic by durability and write availability, with the goals as lines.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        MissingExtraError
            If matplotlib (extra "report") is not installed.

        See Also
        --------
        to_frame : The numbers.

        Examples
        --------
        >>> import advisor
        >>> from matplotlib.figure import Figure
        >>> text = "Topic: logs Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2"
        >>> audit = advisor.audit(text + "\n", "three_az_cloud")
        >>> audit.plot(Figure().add_subplot()).get_xlabel()
        'write availability, better to the right'
        """
        return plotting.draw("audit", self, ax)

    def __repr__(self) -> str:
        head = [*state_lines(self.now), str(self.quick_verdict), *self.below_verdict]
        return "\n".join([*head, *(f"  {line}" for line in self._topic_lines())])

    def _topic_lines(self) -> list[str]:
        lines = [topic.sentence for topic in self.topics[:MOST_ROWS]]
        return [*lines, *filter(None, [self._more_topics])]

    @property
    def _more_topics(self) -> str:
        return more_rows(self.topics, "topics", "to_frame()")

    def _repr_html_(self) -> str:
        table = html_table([_html_row(t) for t in self.topics[:MOST_ROWS]], "Topics, worst first")
        behind = joined(
            table,
            html_paragraphs([self._more_topics, self.spread]),
            html_list(_finding_lines(self.findings)),
        )
        head = self.quick_verdict.as_html(state_lines(self.now))
        return joined(
            head, html_folded("Every topic with its goals, and the findings", behind)
        ).text


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
    check_arguments(cluster, model, load, goals, kafka_version, producer)
    situation = Situation.read(cluster, load, kafka_version, producer, shared=shared)
    return _audited(situation, model, goals or Goals(), evaluated or topic_evaluator())


def _audited(situation: Situation, model: FailureModel, goals: Goals, evaluated: Evaluate) -> Audit:
    """The audit of a cluster that was read: its topics first, then what holds for all of them."""
    cluster, once = situation.cluster, evaluated_once(evaluated)
    decision = Decision(situation, model, goals.requirements, evaluated=once)
    audits: list[TopicAudit] = []
    with progress_bar(len(situation.topics), " topics", "Auditing") as advance:
        for topic in situation.topics:
            audits += audit_topic(topic, decision, goals)
            advance(1)
    audits.sort(key=_worst_first)
    assumed = dict.fromkeys(a for t in audits for a in t.choice.reliability.assumptions)
    producing = Config(kafka_version=situation.version, **situation.settings)
    return Audit(
        situation=situation,
        model=model,
        goals=goals,
        topics=tuple(audits),
        general=(
            *check_cluster(situation),
            *_of_results(audits, situation, goals, check_producer(producing, model)),
        ),
        now=current_state(situation),
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


def _finding_lines(findings: tuple[Finding, ...]) -> list[str]:
    """Return the findings, one for topics in the same state, and the first ten of each rule."""
    lines = []
    for first, topics, how_many_more in shortened(findings):
        lines.append(f"{first.code} {topics + ': ' if topics else ''}{first.detail}")
        lines += [how_many_more] if how_many_more else []
    return lines


def _html_row(audited: TopicAudit) -> dict[str, object]:
    r = audited.choice.reliability
    return {
        "topic": audited.topic.name,
        "partitions": len(audited.partitions),
        "setting": audited.choice.name,
        "a record is lost": lost_words(r),
        "refused a year": time_per_year(r.write_unavailability),
        "severity": audited.severity,
        "set to": audited.advice.removeprefix("set ") or "as it is",
        "goals": goals_words(audited.choice),
        "findings": " ".join(dict.fromkeys(f.code for f in audited.findings)),
    }


def spread_numbers(placement: Copysets) -> dict[str, object]:
    """Return copysets, scatter width and chances of loss by brokers lost at once, as plain data."""
    widths = placement.scatter_width.values()
    return {
        "copysets": len(placement.sets),
        "scatter_width": {
            "mean": placement.mean_scatter_width,
            "least": min(widths, default=0),
            "most": max(widths, default=0),
        },
        "chance_of_loss": {
            str(lost): chance._asdict() for lost, chance in _chances(placement).items()
        },
    }


def spread_words(placement: Copysets) -> str:
    """Return `spread_numbers` in two or three sentences."""
    if not placement.sets:
        return "No partition is placed."
    sets = len(placement.sets)
    shared = significant(placement.mean_scatter_width)
    text = (
        f"The partitions use {sets:,} {'different sets' if sets > 1 else 'set'} of brokers "
        "(copysets); a broker shares partitions with "
        f"{shared} other{'' if shared == '1' else 's'} on average (scatter width)."
    )
    chances = []
    for lost, chance in _chances(placement).items():
        chances.append(f"{_share(chance)} for {count_in_words(lost, 'broker')}")
        # The probability does not decrease with more brokers.
        if chance.low >= 1.0:
            break
    return (
        f"{text} Chance that some partition loses all its copies if random brokers are lost at "
        f"once: {', '.join(chances)}."
    )


@lru_cache(maxsize=8)  # text, page and JSON need the same values
def _chances(placement: Copysets) -> dict[int, Chance]:
    """Return the loss probability for the smallest copyset, and for one and two brokers more."""
    if not placement.sets:
        return {}
    fewest = min(map(len, placement.sets))
    numbers = range(fewest, min(fewest + 2, placement.brokers) + 1)
    return {lost: placement.chance_of_loss(lost) for lost in numbers}


def _share(chance: Chance) -> str:
    if chance.exact or chance.high - chance.low < 0.005:
        return _percent(chance.value)
    return f"{_percent(chance.low)} to {_percent(chance.high)}"


def _percent(probability: float) -> str:
    """Return two digits; "0 %" and "100 %" only for exactly 0 and 1."""
    if probability in (0.0, 1.0):
        return f"{100.0 * probability:.0f} %"
    if probability > 0.99:
        return "over 99 %"
    return f"{significant(100.0 * probability)} %"
