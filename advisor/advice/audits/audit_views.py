"""Views of an audit: text, notebook, plain data, SARIF, chart."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from advisor import plotting
from advisor.advice.audits.baseline import Changes, changes_since
from advisor.advice.audits.copyset_spread import spread_numbers
from advisor.advice.audits.current_state import CurrentState
from advisor.advice.audits.sarif import results_of, sarif_log
from advisor.advice.audits.state_words import state_lines
from advisor.advice.audits.topic_audit import TopicAudit
from advisor.advice.candidate import goals_words, lost_words
from advisor.advice.deciding import Decided
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.summary import shortened
from advisor.advice.goals import Goals
from advisor.cluster import Cluster
from advisor.formatting import time_per_year
from advisor.reliability.common_cause.copysets import Copysets
from advisor.reliability.failures.failure_model import FailureModel
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


class AuditViews(Decided, RowTable):
    """Mixin with the views of an `Audit`. Texts show at most the thirty worst topics."""

    model: FailureModel
    goals: Goals
    topics: tuple[TopicAudit, ...]
    now: CurrentState
    copysets: Copysets
    notes: tuple[str, ...]

    @property
    @abstractmethod
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    @abstractmethod
    def ok(self) -> bool:
        """Whether every topic meets every goal and nothing is broken at present."""

    @property
    @abstractmethod
    def findings(self) -> tuple[Finding, ...]:
        """All findings, heaviest first."""

    @property
    @abstractmethod
    def spread(self) -> str:
        """Copysets, scatter width and the probability of a loss by them, in sentences."""

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
        r"""Return what changed since an audit that was accepted.

        Parameters
        ----------
        accepted : str
            Content of the SARIF file of the accepted audit.
        source : str, optional
            Where it was read, for messages.

        Returns
        -------
        Changes
            With `new`, `gone`, `accepted` and `fails`.

        Raises
        ------
        InputError
            If it is no SARIF log of this advisor.

        See Also
        --------
        to_sarif : Writes such a log.

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


def _finding_lines(findings: tuple[Finding, ...]) -> list[str]:
    """Return the findings, one for topics in the same state, and the first ten of each rule."""
    lines = []
    for first, topics, more in shortened(findings):
        lines.append(f"{first.code} {topics + ': ' if topics else ''}{first.detail}")
        lines += [more] if more else []
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
