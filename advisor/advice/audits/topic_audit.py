"""One row of an audit: a topic, its settings, its reliability, its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.advice.candidate import Candidate, choose, goals_for
from advisor.advice.deciding import Decision
from advisor.advice.findings.catalogue import BROKEN, Finding
from advisor.advice.goals import Goals
from advisor.advice.phrases import listed
from advisor.advice.tolerance import share_of
from advisor.cluster import Partition, Topic
from advisor.decision import Action
from advisor.decision.verdict import CRITICAL, OK, SEVERITIES
from advisor.decision.words import often, stopped
from advisor.protocol.rules.config import Config

# No leader, writes refused, one in-sync replica left.
_URGENT = ("KRA104", "KRA106", "KRA110")


@dataclass(frozen=True)
class TopicAudit:
    """Audit of one topic, or of its partitions with one replication factor.

    partitions: partitions covered. A topic with several replication factors has one entry for each.
    """

    topic: Topic
    partitions: tuple[int, ...]
    choice: Candidate
    findings: tuple[Finding, ...]
    action: Action

    @property
    def severity(self) -> str:
        """What the decision says of its settings: "critical", "warning" or "ok"."""
        return self.action.severity

    @property
    def ok(self) -> bool:
        """Whether it works, misses no goal, and its settings are not critical."""
        return not self.fails(CRITICAL)

    def fails(self, severity: str) -> bool:
        """Whether it is broken, misses a goal, or has settings of that severity or worse."""
        is_severe = SEVERITIES.index(self.severity) <= SEVERITIES.index(severity)
        return is_severe or bool(self.broken) or not self.choice.meets_all

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
    def advice(self) -> str:
        """What to set, in a few words; "" to keep today's settings."""
        action = self.action
        if action.set_to is None:
            return ""
        if action.set_to.key == action.today.key:
            return "spread its replicas over the racks"
        return f"set {action.set_to}"

    @property
    def sentence(self) -> str:
        """Losses, time without writes, present failures, missed goals, what to set."""
        action = self.action
        clauses = [
            f"{self.topic.name} ({action.today}): {self.severity}, loses records "
            f"{often(action.loss_today)}, stops writes {stopped(action.refused_today)}"
        ]
        if self.broken:
            clauses.append(f"now {listed(self.broken)}")
        if self.choice.unmet:
            clauses.append(f"misses {goals_for(self.choice)}")
        if self.severity != OK:
            clauses.append(self.advice)
        return f"{'; '.join(clauses)}."

    def row(self, intervals: bool = False) -> dict[str, object]:
        """Return one table row; `intervals` adds 95 % intervals, some seconds per row."""
        line: dict[str, object] = {"topic": self.topic.name, "partitions": len(self.partitions)}
        line |= self.choice.row(intervals)
        line["severity"], line["ok"] = self.severity, self.ok
        line["findings"] = " ".join(dict.fromkeys(finding.code for finding in self.findings))
        return line


def audit_topic(topic: Topic, decision: Decision, goals: Goals) -> list[TopicAudit]:
    """Return the audit of a topic on the brokers that hold it, one for each replication factor."""
    config = decision.situation.config_of(topic)
    audits = []
    for factor, partitions in topic.by_replication_factor.items():
        config_of_factor = config
        if factor != config.replication_factor:
            config_of_factor = config.changed(replication_factor=factor)
        choice = _as_it_is(topic, partitions, config_of_factor, decision, goals)
        indexes = tuple(partition.index for partition in partitions)
        findings, action = decision.findings[topic.name], decision.action(topic.name)
        audits.append(TopicAudit(topic, indexes, choice, findings, action))
    return audits


def _as_it_is(
    topic: Topic, partitions: Sequence[Partition], config: Config, decision: Decision, goals: Goals
) -> Candidate:
    """Today's setting of some partitions of a topic, on their replicas and with their load."""
    placement = tuple(partition.held for partition in partitions)
    load = decision.situation.load_of(topic)
    if len(partitions) < load.partitions:
        rate = load.records_per_second * (len(partitions) / load.partitions)
        load = replace(load, partitions=len(partitions), records_per_second=rate)
    reliability = decision.evaluate(config, load, placement)
    racks = dict(decision.situation.cluster.brokers.items())
    racks_known = None not in racks.values()
    rack_share = (
        max(share_of(replicas, racks) for replicas in set(placement)) if racks_known else None
    )
    used = {racks[broker] for replicas in set(placement) for broker in replicas}
    return choose(config, reliability, goals, rack_share, used)
