"""`Recommendation`: the best setting, the settings compared, the reasons, the commands."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from advisor import plotting
from advisor.advice.audits.current_state import CurrentState, current_state
from advisor.advice.audits.state_words import state_lines
from advisor.advice.choice import Choice
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import (
    check_cluster,
    check_delivery_timeout,
    check_producer,
    check_replacement,
)
from advisor.advice.findings.known_bugs import check_version
from advisor.advice.findings.missing_brokers import check_missing
from advisor.advice.goals import Goals
from advisor.advice.migration.target_settings import in_words
from advisor.advice.recommendations import reasons
from advisor.advice.recommendations.cost_words import cost_words
from advisor.advice.recommendations.loss_story import LossStories
from advisor.advice.recommendations.migration_mixin import MigrationMixin
from advisor.advice.recommendations.remedies import Remedy, cheapest, softer_goals
from advisor.advice.recommendations.topic_changes import shortfall
from advisor.advice.recommendations.what_helps import what_helps
from advisor.advice.tolerance import rack_rule
from advisor.advice.topic_settings import partition_bytes
from advisor.cluster import Cluster
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import is_large
from advisor.reliability.workload import Workload
from advisor.rendering import joined
from advisor.tables import RowTable, html_list, html_table, html_verdict


@dataclass(frozen=True, repr=False)
class Recommendation(MigrationMixin, LossStories, RowTable):
    """The settings that meet the goals at least cost, or the best compromise.

    Attributes
    ----------
    cluster : Cluster
    model : FailureModel
    load : Workload
    goals : Goals
    choices : tuple of Choice
        All settings compared, best first.
    current : Choice or None
        The present settings, if known.
    topics : tuple of str
        Names of the topics that the commands change.
    notes : tuple of str
        Assumptions and omissions, one sentence each.
    stated_version : str
        The Kafka version that the user or the cluster states; "" if it was assumed.
    whole_cluster : bool
        Whether the goals are those of all topics, so that the files set the brokers' defaults too;
        False if topics were named.
    allow_lower_durability : bool
        Whether commands and files may lower a topic's min ISR or the producers' acks.

    See Also
    --------
    advisor.recommend : Makes one.
    advisor.Goals : The limits.

    Examples
    --------
    >>> import advisor
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
    >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
    >>> len(advice.choices)
    4
    """

    cluster: Cluster
    model: FailureModel
    load: Workload
    goals: Goals
    choices: tuple[Choice, ...]
    current: Choice | None = None
    topics: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    stated_version: str = ""
    whole_cluster: bool = True
    allow_lower_durability: bool = False

    _INTERVALS = True

    @property
    def best(self) -> Choice:
        """The recommended setting.

        Returns
        -------
        Choice
            With ``config``, ``reliability``, ``meets`` (goal to bool), ``meets_all``, ``name``.

        See Also
        --------
        table : All settings compared.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> advice.best.config.replication_factor
        1
        """
        return self.choices[0]

    @property
    def verdict(self) -> str:
        """The best setting: yes, no or doubtful, losses, downtime, cause; at most 25 words."""
        met = self.best.meets_all and not shortfall(self.topic_changes, self.best)
        return reasons.verdict(self.best, self.goals, met)

    @property
    def no_setting_changes(self) -> str:
        """What causes beyond settings add, in one sentence."""
        return ""

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the plan lowers, which goals are missed, and the risks taken; a sentence each."""
        missing = reasons.shortfall(self.best, self.goals, self.rack_rule, self.choices)
        risks = reasons.risk_words(self.best, self.choices)
        topics = shortfall(self.topic_changes, self.best)
        return tuple(filter(None, [in_words(self.plan.lowered), missing, risks, topics]))

    @property
    def below_verdict(self) -> tuple[str, ...]:
        """What is beyond settings, caveats, and the numbers with their intervals; a line each."""
        return (*self.caveats, *reasons.numbers(self.best))

    @cached_property
    def now(self) -> CurrentState:
        """What was out of sync when the cluster was described, and what the next failure does."""
        return current_state(self.cluster, self.best.config.kafka_version)

    @cached_property
    def remedies(self) -> tuple[str, ...]:
        """What would meet the goals that are missed, one sentence each; some evaluations."""
        if self.best.meets_all:
            return ()
        remedy = self._remedy
        softer = softer_goals(self.best, self.goals)
        return tuple(filter(None, ["" if remedy is None else remedy.said, softer]))

    @property
    def what_helps(self) -> tuple[str, ...]:
        """What reduces the losses and the time without writes that the setting leaves."""
        return tuple(map(str, what_helps(self.best.reliability)))

    @cached_property
    def _remedy(self) -> Remedy | None:
        # Larger chains take minutes each.
        if self.best.meets_all or is_large(self.best.reliability.states):
            return None
        question = (self.cluster, self.model, self.load, self.goals)
        return cheapest(self.best, evaluate, *question)

    @property
    def _flush_advised(self) -> bool:
        return self._remedy is not None and self._remedy.flushes

    @property
    def tolerances(self) -> str:
        """How many brokers may fail, for data, writes and reads, in one sentence."""
        return reasons.tolerances(self.best)

    @property
    def rack_rule(self) -> str:
        """What these racks allow when one of them is lost, in one sentence."""
        mode = str(self.best.config.mode)
        return rack_rule(self.cluster.brokers, mode, self.cluster.controllers)

    @property
    def why(self) -> tuple[str, ...]:
        """The main cause of loss, and what similar settings would do, one sentence each."""
        why = reasons.reasons(self.best, self.choices, self.cluster.brokers)
        each = partition_bytes(self._chosen, self.load)
        cost = cost_words(self.best, self.plan.moves, each)
        return (*why, cost, *filter(None, [self.plan.crowded]))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about cluster, version, replaced brokers, producers, and what is recommended."""
        producer = self.current or self.best
        stated, mode = self.stated_version, str(self.best.config.mode)
        producing = tuple(check_producer(producer.config, self.model))
        return (
            *(risk for risk in self.risks_taken if risk.rule not in {f.rule for f in producing}),
            *check_missing(self.now.presence),
            *check_cluster(self.cluster),
            *(check_version(stated, mode) if stated else ()),
            *check_replacement(self.best.reliability, self.goals),
            *producing,
            *check_delivery_timeout(self.best.reliability, self.goals, self._refused_by_timeout),
        )

    @property
    def risks_taken(self) -> tuple[Finding, ...]:
        """What an audit calls a risk of the recommended setting."""
        words = "as recommended here, {}"
        return tuple(replace(r, detail=words.format(r.detail)) for r in self.best.risks)

    @property
    def _refused_by_timeout(self) -> dict[int, float]:
        """Refused records a year that the best setting decides, by ``delivery.timeout.ms``."""
        return {
            choice.config.delivery_timeout_ms: choice.reliability.records_refused_per_year
            for choice in self.choices
            if choice.name == self.best.name and choice.config.delivery_timeout_ms is not None
        }

    def _entries(self) -> tuple[Choice, ...]:
        return self.choices

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain JSON data.

        Returns
        -------
        dict
            State when it was described ("now"), verdict, the best and the present setting with
            intervals, each topic's present and planned setting, reasons, goals, load, notes,
            findings, what the plan lowers, commands and files (none if it lowers durability and
            may not), and all settings compared ("choices", without intervals).

        See Also
        --------
        to_frame : The settings compared as a pandas DataFrame.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> advice.to_dict()["best"]["name"]
        'RF 1, min.insync.replicas 1, acks=all'
        """
        return {
            "now": {"said": list(state_lines(self.now)), **self.now.to_dict()},
            "verdict": self.verdict,
            "no_setting_changes": self.no_setting_changes,
            "caveats": list(self.caveats),
            "meets_all_goals": self.best.meets_all,
            "remedies": list(self.remedies),
            "what_helps": list(self.what_helps),
            "best": self.best.to_dict(),
            "current": None if self.current is None else self.current.to_dict(),
            "topics": [change.row() for change in self.topic_changes],
            "tolerates": asdict(self.best.reliability.tolerates),
            "rack_rule": self.rack_rule,
            "why": list(self.why),
            "likeliest_loss": [
                {"config": config.to_dict(), **asdict(story)}
                for config, story in self.likeliest_losses
            ],
            "goals": self.goals.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            "lowers_durability": list(self.plan.lowered),
            "commands": [] if self.refused else self.commands(),
            "rollback": [] if self.refused else list(self.plan.rollback),
            "files": {} if self.refused else self.files(),
            "choices": self.rows(intervals=False),
        }

    def report(self, path: str | os.PathLike[str]) -> Any:
        """Write the recommendation as one self-contained HTML file.

        Parameters
        ----------
        path : str or os.PathLike
            File to write. An existing file is replaced.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        InputError
            If the file cannot be written.
        MissingExtraError
            If matplotlib or jinja2 (extra "report") is not installed.

        See Also
        --------
        advisor.present.write_report : The same, with an audit or a sampled result in the page.

        Examples
        --------
        >>> import advisor, pathlib, tempfile
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = advice.report(pathlib.Path(folder, "report.html")).read_text()
        >>> "<svg" in page
        True
        """
        return plotting.draw("report", self, path)

    def plot(self, ax: Any = None) -> Any:
        """Draw durability against write availability of all settings compared.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes for the Pareto chart. Default: a new figure, which also has the curves over
            replication factor and min ISR.

        Returns
        -------
        matplotlib.axes.Axes or list of them
            The axes drawn on.

        Raises
        ------
        MissingExtraError
            If matplotlib (extra "report") is not installed.

        See Also
        --------
        report : The charts in an HTML page.

        Examples
        --------
        >>> import advisor
        >>> from matplotlib.figure import Figure
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> advice.plot(Figure().add_subplot()).get_xlabel()
        'write availability, better to the right'
        """
        return plotting.draw("recommendation", self, ax)

    def explain(self) -> str:
        """Return verdict, tolerated failures, reasons and assumptions as text.

        Returns
        -------
        str
            One sentence per line.

        See Also
        --------
        report : The same and more as an HTML page.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> advice.explain().splitlines()[-7]
        'The rack of no broker is known, so nothing can be said about losing one.'
        """
        parts = [*state_lines(self.now), self.verdict, *self.below_verdict]
        if self.current is not None and self.current.config != self.best.config:
            parts.append(f"Today: {reasons.verdict(self.current, self.goals)}")
        parts += [
            *self.remedies,
            *self.what_helps,
            self.tolerances,
            self.rack_rule,
            *self.why,
            *self.notes,
        ]
        return "\n".join(parts)

    def __repr__(self) -> str:
        below = *self.below_verdict, self.tolerances, *self.why
        return "\n".join([*state_lines(self.now), self.verdict, *below])

    def _repr_html_(self) -> str:
        rows = [choice.short_row() for choice in self.choices]
        head = html_verdict(
            self.verdict, *self.below_verdict, *state_lines(self.now), self.tolerances
        )
        table = html_table(rows, "Settings compared, best first")
        return joined(head, html_list(self.why), table).text
