"""One row of an audit: a topic, its settings, its reliability, its findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from advisor.advice.choice import BRIEF_GOALS, Choice, choose, goals_for
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import check_topic
from advisor.advice.findings.rule import BROKEN
from advisor.advice.goals import Goals
from advisor.advice.phrases import listed
from advisor.advice.tolerance import share_of
from advisor.cluster import Cluster, Partition, Topic
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.explanation import verdict
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

Evaluate = Callable[..., Reliability]
# No leader, writes refused, one in-sync replica left.
_URGENT = ("KRA104", "KRA106", "KRA110")


@dataclass(frozen=True)
class TopicAudit:
    """Audit of one topic, or of its partitions with one replication factor.

    Attributes
    ----------
    topic : Topic
    partitions : tuple of int
        Partitions covered. A topic with several replication factors has one entry for each.
    choice : Choice
        Settings, reliability, and the goals that are met.
    findings : tuple of Finding
        About the whole topic.
    """

    topic: Topic
    partitions: tuple[int, ...]
    choice: Choice
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether every goal is met and no finding is of weight "broken"."""
        return self.choice.meets_all and not self.broken

    @property
    def broken(self) -> tuple[str, ...]:
        """Present failures, such as "2 of 3 partitions without a leader"."""
        broken = [f for f in self.findings if f.rule.weight == BROKEN]
        return tuple(f.detail.rstrip(".") for f in broken)

    @property
    def urgency(self) -> tuple[bool, ...]:
        """Sort key: first topics without a leader, then refused writes, then single copies."""
        codes = {f.code for f in self.findings}
        return tuple(code not in codes for code in _URGENT)

    @property
    def missed(self) -> str:
        """Present failures and missed goals: "losses, writes"; "" if none."""
        return ", ".join([*self.broken, *(BRIEF_GOALS[goal] for goal in self.choice.unmet)])

    @property
    def sentence(self) -> str:
        """Verdict, present failures and missed goals, in one sentence."""
        text = f"{self.topic.name}: {verdict(self.choice.reliability.outlook).rstrip('.')}"
        if self.broken:
            text += f"; now {listed(self.broken)}"
        if self.choice.unmet:
            text += f"; misses {goals_for(self.choice)}"
        return f"{text}."

    def row(self, intervals: bool = False) -> dict[str, object]:
        """Return one table row; `intervals` adds 95 % intervals, some seconds per row."""
        line: dict[str, object] = {"topic": self.topic.name, "partitions": len(self.partitions)}
        line |= self.choice.row(intervals)
        line["ok"] = self.ok
        line["findings"] = " ".join(dict.fromkeys(finding.code for finding in self.findings))
        return line


def audit_topic(
    topic: Topic,
    cluster: Cluster,
    config: Config,
    model: FailureModel,
    load: Workload,
    goals: Goals,
    evaluated: Evaluate = evaluate,
) -> list[TopicAudit]:
    """Return the audit of one topic on the brokers that hold it, an entry per replication factor.

    Parameters
    ----------
    topic : Topic
    cluster : Cluster
    config : Config
        Settings of the topic and its producers; the replication factor is read from the partitions.
    model : FailureModel
    load : Workload
        Traffic of the topic, over all of its partitions.
    goals : Goals
    evaluated : callable
        Replacement for `advisor.evaluate`, with the same arguments.
    """
    findings = tuple(check_topic(topic, cluster, config))
    parts: dict[int, list[Partition]] = {}
    for partition in topic.partitions:
        parts.setdefault(partition.replication_factor, []).append(partition)
    audits = []
    for factor, members in parts.items():
        own = config
        if factor != config.replication_factor:
            own = config.changed(replication_factor=factor)
        choice = _evaluated(cluster, members, own, model, load, goals, evaluated)
        audits.append(TopicAudit(topic, tuple(p.index for p in members), choice, findings))
    return audits


def _evaluated(
    cluster: Cluster,
    members: Sequence[Partition],
    config: Config,
    model: FailureModel,
    load: Workload,
    goals: Goals,
    evaluated: Evaluate,
) -> Choice:
    held = tuple(p.held for p in members)
    fraction = len(members) / load.partitions
    part = replace(
        load, partitions=len(members), records_per_second=load.records_per_second * fraction
    )
    reliability = evaluated(cluster, config, model, part, placement=held)
    racks = dict(cluster.brokers.items())
    racks_known = None not in racks.values()
    rack_share = max(share_of(replicas, racks) for replicas in set(held)) if racks_known else None
    return choose(config, reliability, goals, rack_share)
