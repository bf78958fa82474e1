"""`Recommendation`: the best setting, the settings compared, the reasons, the commands."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from advisor import plotting
from advisor.advice.choice import Choice
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import check_cluster, check_producer, check_replacement
from advisor.advice.findings.known_bugs import check_version
from advisor.advice.goals import Goals
from advisor.advice.migration.plan import DEFAULT_THROTTLE, Plan, make_plan
from advisor.advice.phrases import count
from advisor.advice.recommendations import reasons
from advisor.advice.recommendations.loss_story import Story, tell
from advisor.advice.tolerance import ToleranceRow, rack_rule, tolerance_table
from advisor.cluster import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload
from advisor.tables import RowTable, html_list, html_table, html_verdict


@dataclass(frozen=True, repr=False)
class Recommendation(RowTable):
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
        """What is lost and refused, what of it settings decide, and which goals are missed."""
        missing = reasons.shortfall(self.best, self.goals, self.rack_rule)
        text = reasons.verdict(self.best, self.where)
        return f"{text} {missing}" if missing else text

    @property
    def where(self) -> str:
        """The cluster in words: "your six brokers in three racks"."""
        brokers = count(len(self.cluster.brokers), "broker")
        racks = len(self.cluster.racks)
        return f"your {brokers}" + (f" in {count(racks, 'rack')}" if racks else "")

    @property
    def tolerances(self) -> str:
        """How many brokers may fail, for data, writes and reads, in one sentence."""
        return reasons.tolerances(self.best)

    @property
    def rack_rule(self) -> str:
        """What these racks allow when one of them is lost, in one sentence."""
        return rack_rule(self.cluster.brokers, str(self.best.config.mode))

    @property
    def why(self) -> tuple[str, ...]:
        """The main cause of loss, and what similar settings would do, one sentence each."""
        return reasons.reasons(self.best, self.choices, self.cluster.brokers)

    @cached_property
    def stories(self) -> tuple[tuple[Config, Story], ...]:
        """An example of a loss for the recommended and the present settings; seconds each."""
        configs = [self.best.config, *([self.current.config] if self.current else [])]
        return tuple((config, tell(config)) for config in dict.fromkeys(configs))

    @cached_property
    def plan(self) -> Plan:
        """The migration to the recommended setting, and its rollback."""
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        return make_plan(self.cluster, self.best.config, self.load, throttle, self.topics)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about cluster, version, replaced brokers and the present or best producer."""
        producer = self.current or self.best
        stated, mode = self.stated_version, str(self.best.config.mode)
        return (
            *check_cluster(self.cluster),
            *(check_version(stated, mode) if stated else ()),
            *check_replacement(self.best.reliability),
            *check_producer(producer.config, self.model, self._refused_by_timeout),
        )

    @property
    def _refused_by_timeout(self) -> dict[int, float]:
        """Refused records a year that the best setting decides, by ``delivery.timeout.ms``."""
        return {
            choice.config.delivery_timeout_ms: choice.reliability.by_settings(
                "records_refused_per_year"
            )
            for choice in self.choices
            if choice.name == self.best.name and choice.config.delivery_timeout_ms is not None
        }

    def commands(self) -> list[str]:
        """Return the shell lines that make the change, comments included.

        Returns
        -------
        list of str
            Checks, changes and verification, in order. The files that they name are in `files`;
            the rollback is ``plan.rollback``.

        See Also
        --------
        files : The files that the lines need.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> load = advisor.Workload(partitions=1)
        >>> advice = advisor.recommend(cluster, model, load, kafka_version="4.1")
        >>> print(advice.commands()[0])
        BS=${BS:-localhost:9092}   # your brokers
        >>> advice.commands()[-1]
        'kafka-topics.sh --bootstrap-server $BS --describe --topic my-topic'
        """
        return self.plan.lines

    def files(self) -> dict[str, str]:
        """Return the files that belong to the commands.

        Returns
        -------
        dict of str to str
            File name to content: the commands and the rollback as scripts, reassignment and
            election JSON if replicas move, properties for brokers and producers, Strimzi
            resources.

        See Also
        --------
        commands : The shell lines.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> for name in sorted(advice.files()):
        ...     print(name)
        commands.sh
        kafka-topics.yaml
        librdkafka.properties
        producer.properties
        rollback.sh
        server.properties
        """
        return {**self.plan.files, **self.plan.scripts}

    def tolerance_table(self) -> tuple[ToleranceRow, ...]:
        """Return the effect of losing a rack by RF and min ISR; empty if a rack is unknown."""
        return tolerance_table(self.cluster.brokers, kafka_version=self.best.config.kafka_version)

    def _entries(self) -> tuple[Choice, ...]:
        return self.choices

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain JSON data.

        Returns
        -------
        dict
            Verdict, the best and the present setting with intervals, reasons, goals, load, notes,
            findings, commands, files, and all settings compared ("choices", without intervals).

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
            "verdict": self.verdict,
            "meets_all_goals": self.best.meets_all,
            "best": self.best.to_dict(),
            "current": None if self.current is None else self.current.to_dict(),
            "tolerates": asdict(self.best.reliability.tolerates),
            "rack_rule": self.rack_rule,
            "why": list(self.why),
            "goals": self.goals.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            "commands": self.commands(),
            "rollback": list(self.plan.rollback),
            "files": self.files(),
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
            If matplotlib, jinja2 or ipywidgets (extra "notebook") is not installed.

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
            If matplotlib (extra "notebook") is not installed.

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
        >>> advice.explain().splitlines()[2]
        'The rack of no broker is known, so nothing can be said about losing one.'
        """
        parts = [self.verdict, self.tolerances, self.rack_rule, *self.why, *self.notes]
        if self.current is not None and self.current.config != self.best.config:
            parts.insert(1, f"Today: {reasons.verdict(self.current, self.where)}")
        return "\n".join(parts)

    def __repr__(self) -> str:
        return "\n".join([self.verdict, self.tolerances, *self.why])

    def _repr_html_(self) -> str:
        rows = [choice.short_row() for choice in self.choices]
        head = html_verdict(self.verdict, self.tolerances)
        return f"{head}{html_list(self.why)}{html_table(rows)}"
