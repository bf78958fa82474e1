"""One row of an audit: a topic, its settings, its reliability, its findings."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.advice.beyond_settings import decided_words
from advisor.advice.choice import BRIEF_GOALS, Choice, goals_for
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.rule import BROKEN
from advisor.advice.phrases import every, listed
from advisor.cluster import Topic
from advisor.formatting import time_per_year


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
        """What did not work when described: "2 of 3 partitions without a leader"."""
        broken = [f for f in self.findings if f.rule.weight == BROKEN]
        return tuple(f.detail.rstrip(".") for f in broken)

    @property
    def missed(self) -> str:
        """What is broken and which goals are missed: "losses, writes"; "" if neither."""
        return ", ".join([*self.broken, *(BRIEF_GOALS[goal] for goal in self.choice.unmet)])

    @property
    def sentence(self) -> str:
        """Expected losses and refused writes, and missed goals, in one sentence."""
        r = self.choice.reliability
        text = (
            f"{self.topic.name} ({self.choice.name}): an acknowledged record is lost "
            f"{every(r.mean_years_to_loss)}, writes are refused "
            f"{time_per_year(r.write_unavailability)}{decided_words(r)}"
        )
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
