"""`Recommendation`: what to set, the settings compared, the reasons, the commands."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

from advisor import plotting
from advisor.advice.audits.current_state import CurrentState, current_state, state_lines
from advisor.advice.candidate import Candidate, choose
from advisor.advice.deciding import Decided, Decision, Evaluate, evaluated_once
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import (
    check_cluster,
    check_delivery_timeout,
    check_producer,
    check_replacement,
)
from advisor.advice.goals import Goals
from advisor.advice.migration.moves import Move
from advisor.advice.migration.plan import DEFAULT_THROTTLE, MigrationPlan, make_plan, with_flush
from advisor.advice.migration.planned_changes import PlannedChanges, lowered_min_isr
from advisor.advice.phrases import count_in_words, sentence
from advisor.advice.recommendations.loss_story import Story, likeliest, tell
from advisor.advice.recommendations.remedies import Remedy, cheapest, softer_goals, what_helps
from advisor.advice.situation import (
    Situation,
    check_arguments,
    partition_bytes,
    retained_bytes,
    usual_config,
)
from advisor.advice.tolerance import ToleranceRow, largest_share, rack_rule, tolerance_table
from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster import Cluster
from advisor.cluster.topic import INTERNAL_TOPICS
from advisor.decision import Action, Setting
from advisor.decision.settings import USUAL_REPLICAS
from advisor.errors import expect
from advisor.formatting import capital, significant
from advisor.progress import progress_bar
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT, default
from advisor.reliability.evaluate import evaluate, topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import is_large
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.results.fault_tolerance import tolerance_in_words
from advisor.reliability.workload import Workload
from advisor.rendering import FileText, joined
from advisor.tables import RowTable, html_folded, html_list, html_paragraphs, html_table


@dataclass(frozen=True, repr=False)
class Recommendation(Decided, RowTable):
    """What every topic should be set to, and the plan that gets there.

    Attributes
    ----------
    situation : Situation
        The cluster, its version, controller and traffic.
    model : FailureModel
    goals : Goals
    decision : Decision
        What is asked about every topic.
    today : Config or None
        The present settings, if known.
    whole_cluster : bool
        Whether the plan is for all topics, so that the files set the brokers' defaults too; False
        if topics were named.
    allow_lower_durability : bool
        Whether commands and files may lower a topic's min ISR.

    See Also
    --------
    advisor.recommend : Makes one.
    advisor.Goals : The limits, and the price of a loss.

    Examples
    --------
    >>> import advisor
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
    >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
    >>> advice.verdict.headline
    'Set RF 1, min ISR 1, acks=all.'
    """

    situation: Situation
    model: FailureModel
    goals: Goals
    decision: Decision
    today: Config | None = None
    whole_cluster: bool = True
    allow_lower_durability: bool = False

    _INTERVALS = True

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.situation.cluster

    @property
    def load(self) -> Workload:
        """Traffic of all topics in question together."""
        return self.situation.load

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics in question."""
        return tuple(topic.name for topic in self.situation.topics)

    @cached_property
    def best(self) -> Candidate:
        """The setting that most topics should have, for a topic that Kafka places.

        Returns
        -------
        Candidate
            With ``config``, ``reliability``, ``meets`` (goal to bool), ``meets_all``, ``name``.

        See Also
        --------
        verdict : What each topic should be set to.
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
        # The shortest delivery timeout tried that meets a goal for failed sends, else the longest.
        candidate = self._recommended
        if "records_refused_per_year" not in candidate.unmet:
            return candidate
        for config in _with_longer_delivery_timeout(candidate.config):
            candidate = self._candidate(config)
            if "records_refused_per_year" not in candidate.unmet:
                break
        return candidate

    @cached_property
    def _recommended(self) -> Candidate:
        """The best setting with the delivery timeout that today's producers have."""
        config = self._usual_action.after.config
        if default("retries", config.kafka_version) == 0 and "retries" not in config.explicit:
            config = config.changed(retries=MAX_INT)
        return self._candidate(config)

    @cached_property
    def _usual_action(self) -> Action:
        """That of the setting which most topics get, without Kafka's own; of a new one if none."""
        internal = {topic.name for topic in self.situation.topics if topic.internal}
        actions = [a for a in self.quick_verdict.actions if a.topic not in internal]
        if not actions:
            return self.decision.of_new_topic.at_middle.actions[0]
        topics_of_setting = Counter(action.after.key for action in actions)
        return max(actions, key=lambda action: topics_of_setting[action.after.key])

    @cached_property
    def current(self) -> Candidate | None:
        """The present settings, for a topic that Kafka places; None if not known."""
        return None if self.today is None else self._candidate(self.today)

    @cached_property
    def choices(self) -> tuple[Candidate, ...]:
        """Settings beside each other: the best, then the others by what they cost."""
        factor = self.best.config.replication_factor or 1
        most_replicas = max(min(USUAL_REPLICAS, len(self.cluster.brokers)), factor)
        recommended = self._recommended.config
        configs = dict.fromkeys([recommended, *_with_longer_delivery_timeout(recommended)])
        for factor in range(1, most_replicas + 1):
            configs |= dict.fromkeys(compared(recommended, factor))
        configs.pop(self.best.config)
        price, candidates = self.goals.minutes_per_loss, map(self._candidate, configs)
        return (self.best, *sorted(candidates, key=lambda candidate: candidate.cost(price)))

    def _candidate(self, config: Config) -> Candidate:
        result = self.decision.evaluate(config, self.load)
        share = largest_share(
            self.cluster.brokers, config.replication_factor or 1, str(config.mode)
        )
        retained = retained_bytes(self.situation.topics, self.load, self.cluster.replica_bytes)
        return replace(choose(config, result, self.goals, share), retained_bytes=retained)

    @cached_property
    def now(self) -> CurrentState:
        """What was out of sync when the cluster was described, and what the next failure does."""
        return current_state(self.situation)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Assumptions and omissions, one sentence each."""
        settings = [self.best] if self.current is None else [self.best, self.current]
        assumed = dict.fromkeys(
            words for setting in settings for words in setting.reliability.assumptions
        )
        return (*self.situation.notes, *map(sentence, assumed), *self.cluster.notes)

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
        return cheapest(self.best, evaluate, self.cluster, self.model, self.load, self.goals)

    @property
    def tolerances(self) -> str:
        """How many brokers may fail, for data, writes and reads, in one sentence."""
        return f"{capital(tolerance_in_words(self.best.config))}."

    @property
    def rack_rule(self) -> str:
        """What these racks allow when one of them is lost, in one sentence."""
        return rack_rule(self.cluster.brokers, self.situation.mode, self.cluster.controllers)

    @property
    def why(self) -> tuple[str, ...]:
        """Why each topic changes, what the settings cost, and brokers that get everything."""
        changes = [action for action in self.quick_verdict.actions if action.set_to is not None]
        reasons = (f"{a.topic}: {a.why}" if a.topic else a.why for a in changes)
        measured = self.cluster.replica_bytes
        bytes_of_partition = partition_bytes(self.situation.topics, self.load, measured)
        cost = cost_words(self.best, self.plan.moves, bytes_of_partition)
        return (*reasons, cost, *filter(None, [self.plan.crowded]))

    @cached_property
    def stories(self) -> tuple[tuple[Config, Story], ...]:
        """The fewest faults that lose a record, for best and present settings; seconds each."""
        configs = dict.fromkeys(c.config for c in (self.best, self.current) if c is not None)
        stories = []
        with progress_bar(len(configs), " stories", "Fewest faults") as advance:
            for config in configs:
                stories.append((config, tell(config)))
                advance(1)
        return tuple(stories)

    @cached_property
    def likeliest_losses(self) -> tuple[tuple[Config, Story], ...]:
        """The likeliest way to a loss, for the recommended and the present settings."""
        settings = {c.config: c for c in (self.best, self.current) if c is not None}
        stories = ((config, likeliest(choice.reliability)) for config, choice in settings.items())
        return tuple((config, story) for config, story in stories if story is not None)

    @cached_property
    def plan(self) -> MigrationPlan:
        """The migration of each topic to what the verdict sets it to, and its rollback.

        What lowers durability is held back unless it is allowed.
        """
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        topics = None if self.whole_cluster else self.topics
        planned = self._planned if self.topics else ()
        return make_plan(self.cluster, self.best.config, self.load, throttle, topics, *planned)

    @cached_property
    def _planned(self) -> tuple[PlannedChanges, tuple[str, ...]]:
        """What the plan changes, and what it leaves out until that is allowed."""
        allowed, held_back = [], []
        for topic in self.situation.topics:
            action = self.decision.action(topic.name)
            if action.set_to is None:
                continue
            lowered = lowered_min_isr(topic, action.after.config)
            if lowered and action.today.guarded and not self.allow_lower_durability:
                held_back.append(lowered)
            else:
                allowed.append(action)
        targets = {action.topic: action.after.config for action in allowed}
        moves = tuple(move for action in allowed for move in self.decision.moves(action))
        planned = PlannedChanges.to(self.cluster, targets, moves)
        unguarded = frozenset(action.topic for action in allowed if not action.today.guarded)
        return replace(planned, unguarded=unguarded), tuple(held_back)

    def commands(self) -> list[str]:
        """Return the shell lines that make the change, comments included.

        Returns
        -------
        list of str
            Checks, changes and verification, in order; a comment says what is held back. The files
            that they name are in `files`; the rollback is ``plan.rollback``.

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
        return self._with_remedy.lines

    def files(self) -> dict[str, str]:
        """Return the files that belong to the commands.

        Returns
        -------
        dict of str to str
            File name to content: the commands and the rollback as scripts, reassignment and
            election JSON if replicas move, properties for brokers and producers (also for Spring,
            kafka-python, Sarama and franz-go), Strimzi resources, a rolling restart, and what
            Kubernetes may drain at once. No properties for brokers if topics were named.

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
        kubernetes.yaml
        librdkafka.properties
        producer-franz-go.go
        producer-kafka-python.py
        producer-sarama.go
        producer-spring.yaml
        producer.properties
        rollback.sh
        rolling-restart.sh
        server.properties
        """
        return {name: content.text for name, content in rendered_files(self).items()}

    @property
    def _with_remedy(self) -> MigrationPlan:
        """The plan, with comments that say how to flush where that is the remedy."""
        if self._remedy is None or not self._remedy.flushes:
            return self.plan
        return with_flush(self.plan, self.cluster, self.best.config)

    def tolerance_table(self) -> tuple[ToleranceRow, ...]:
        """Return the effect of losing a rack by RF and min ISR; empty if a rack is unknown.

        Examples
        --------
        >>> import advisor
        >>> advice = advisor.recommend(advisor.Cluster.uniform(3, racks=3), "three_az_cloud")
        >>> advice.tolerance_table()[0].replication_factor
        1
        """
        return tolerance_table(self.cluster.brokers, kafka_version=self.best.config.kafka_version)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about cluster, version, replaced brokers, producers, and what is recommended."""
        producer = self.current or self.best
        producing = tuple(check_producer(producer.config, self.model))
        return (
            *(risk for risk in self.risks_taken if risk.rule not in {f.rule for f in producing}),
            *check_cluster(self.situation),
            *check_replacement(self.best.reliability, self.goals),
            *producing,
            *check_delivery_timeout(
                self.best.reliability,
                self.goals,
                self._refused_by_timeout,
                load_is_given=self.situation.load_is_given,
            ),
        )

    @property
    def risks_taken(self) -> tuple[Finding, ...]:
        """What an audit calls a risk of the recommended setting."""
        words = "as recommended here, {}"
        return tuple(replace(r, detail=words.format(r.detail)) for r in self.best.risks)

    @property
    def _refused_by_timeout(self) -> dict[int, float]:
        """Refused records a year under the best setting, by ``delivery.timeout.ms``."""
        recommended = self._recommended.config
        choices = map(self._candidate, (recommended, *_with_longer_delivery_timeout(recommended)))
        return {
            choice.config.delivery_timeout_ms: choice.reliability.records_refused_per_year
            for choice in choices
            if choice.config.delivery_timeout_ms is not None
        }

    def _entries(self) -> tuple[Candidate, ...]:
        return self.choices

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain JSON data.

        Returns
        -------
        dict
            State when it was described ("now"), verdict (with the action of every topic), the best
            and the present setting with intervals, reasons, goals, load, notes, findings, what the
            plan lowers and what is held back, commands and files, and all settings compared
            ("choices", without intervals).

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
            "verdict": self.quick_verdict.to_dict(),
            "meets_all_goals": self.best.meets_all,
            "remedies": list(self.remedies),
            "what_helps": list(self.what_helps),
            "best": self.best.to_dict(),
            "current": None if self.current is None else self.current.to_dict(),
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
            "held_back": list(self.plan.held_back),
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
        >>> advice.explain().splitlines()[0]
        'Set RF 1, min ISR 1, acks=all.'
        """
        paragraphs = [*state_lines(self.now), str(self.quick_verdict), *self.below_verdict]
        paragraphs += [
            *self.remedies,
            *self.what_helps,
            self.tolerances,
            self.rack_rule,
            *self.why,
            *self.notes,
        ]
        return "\n".join(paragraphs)

    def __repr__(self) -> str:
        head = [*state_lines(self.now), str(self.quick_verdict), *self.below_verdict]
        return "\n".join([*head, self.tolerances, *self.why])

    def _repr_html_(self) -> str:
        rows = [choice.short_row() for choice in self.choices]
        head = self.quick_verdict.as_html(state_lines(self.now))
        table = html_table(rows, "Settings compared, best first")
        why = joined(html_paragraphs([self.tolerances]), html_list(self.why), table)
        return joined(head, html_folded("Why, and the settings compared", why)).text


def compared(config: Config, replication_factor: int) -> Iterator[Config]:
    """Yield what is shown beside a setting at some RF: every min ISR, and acks=1.

    Beyond three replicas, min ISR 1, min ISR equal to RF, and acks=1 are left out: fewer replicas
    do as well or better.
    """
    settings: list[tuple[int, str | int]] = [(1, "all"), (1, 1)]
    if config.rules.min_isr_supported:
        settings += [(min_isr, "all") for min_isr in range(2, replication_factor + 1)]
        if replication_factor > USUAL_REPLICAS:
            settings = [(min_isr, "all") for min_isr in range(2, replication_factor)]
    clean = config.changed(unclean_leader_election_enable=None, enable_idempotence=None)
    if not clean.rules.unclean_only:
        clean = clean.changed(unclean_leader_election_enable=False)
    for min_isr, acks in settings:
        yield clean.changed(
            replication_factor=replication_factor, min_insync_replicas=min_isr, acks=acks
        )


def _with_longer_delivery_timeout(config: Config) -> Iterator[Config]:
    """Yield the same settings with longer delivery timeouts (KIP-91, since 2.1)."""
    yield from (patient.config for patient in Setting(config).more_patient)


def rendered_files(result: Recommendation) -> dict[str, FileText]:
    """Return the files of a recommendation as they are written; the text of each is in `files`."""
    plan = result._with_remedy
    return {**plan.written, **plan.rendered_scripts}


def cost_words(choice: Candidate, moves: Sequence[Move], replica_bytes: Mapping[str, float]) -> str:
    """Return the cost of a setting in one sentence; `replica_bytes` by topic, Kafka's own aside."""
    cost = choice.reliability.cost
    copies = sum(move.copies for move in moves)
    of_users = [move for move in moves if move.topic not in INTERNAL_TOPICS]
    loaded = sum(move.copies for move in of_users)
    moved = f"; the change copies {count_in_words(copies, 'replica')}" if copies else ""
    if loaded:
        moved += f", {in_bytes(sum(move.copies * replica_bytes[move.topic] for move in of_users))}"
        moved += " without Kafka's own topics" if loaded < copies else ""
    waiting = (
        f"an acknowledgement waits about {significant(cost.acknowledgement_ms)} ms for followers"
        if choice.config.acks == "all"
        else "an acknowledgement waits for no follower"
    )
    return (
        f"It costs {in_bytes(choice.bytes_stored)} stored and "
        f"{in_bytes(cost.bytes_per_second_between_brokers)}/s to followers, "
        f"{cost.between_racks_text}; {waiting}{moved}."
    )


_PRODUCER = (
    "retries",
    "delivery_timeout_ms",
    "request_timeout_ms",
    "linger_ms",
    "enable_idempotence",
    "max_in_flight_requests_per_connection",
)


@names_checked
def recommend(
    cluster: Cluster | Sources,
    model: FailureModel | str | PathLike[str],
    load: Workload | None = None,
    goals: Goals | None = None,
    current: Config | None = None,
    kafka_version: str | None = None,
    topics: Sequence[str] | None = None,
    allow_lower_durability: bool = False,
    evaluated: Evaluate | None = None,
) -> Recommendation:
    """Choose what every topic should be set to, and write the commands that get there.

    Settings with as many replicas as today, at least three where there are brokers, are compared
    on the same card: chosen is the one with the least minutes without writes and losses, a loss
    counting as `Goals.minutes_per_loss`. More replicas are chosen only if a goal asks for them;
    fewer than today never.

    Parameters
    ----------
    cluster : Cluster, str, path or list
        Brokers, racks and, if described, topics; texts or paths are read by `advisor.load_cluster`.
    model : FailureModel, str or path
        Failure and repair rates; a card's name or path is read by `advisor.load_model`.
    load : Workload, optional
        Traffic of all topics in question together. Default: 1,000 records per second for each
        topic.
    goals : Goals, optional
        The price of a loss, and limits to meet. Default: no limits.
    current : Config, optional
        Settings of today's producers; without topics also those of today's topic. Default:
        acks="all", and the settings that most partitions have.
    kafka_version : str, optional
        Kafka version, such as "4.1". Default: the cluster's, or the newest that fits its
        description.
    topics : sequence of str, optional
        Names of the topics to change. Default: all, and the brokers' defaults.
    allow_lower_durability : bool, default False
        Whether commands and files may lower a topic's min ISR. Otherwise these changes are held
        back, and the others are written.
    evaluated : callable, optional
        Replacement for `advisor.evaluate`, with the same arguments. Default: that, but for the
        first losses of topics that are like many others, which are fitted to theirs.

    Returns
    -------
    Recommendation
        The verdict, the settings compared and the commands.

    Raises
    ------
    AdvisorError
        If a topic does not exist, if a goal needs racks that are unknown, or if Kafka refuses the
        settings.

    See Also
    --------
    audit : Judge the topics that exist.
    evaluate : Evaluate one setting.

    Examples
    --------
    >>> import advisor
    >>> cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
    >>> advice.quick_verdict.headline
    'Set RF 3, min ISR 2, acks=all.'
    >>> advice.best.name
    'RF 3, min.insync.replicas 2, acks=all'
    """
    cluster, model = cluster_of(cluster), model_of(model)
    check_arguments(cluster, model, load, goals, kafka_version)
    expect("current", current, Config | None, "a Config, or None")
    expect("topics", topics, tuple | list | None, "a list of topics' names, or None")
    expect("allow_lower_durability", allow_lower_durability, bool, "True or False")
    goals = goals or Goals()
    producer = _producer_of(current)
    situation = Situation.read(cluster, load, kafka_version, producer, topics)
    once = evaluated_once(evaluated or topic_evaluator())
    if current is not None:
        current = current.changed(**situation.controller)
    decision = Decision(
        *(situation, model, goals.requirements, allow_lower_durability, once),
        new_topic=current,
    )
    usual_setting = usual_config(situation.topics, situation.version)
    if current is None and usual_setting is not None:
        current = usual_setting.changed(**situation.settings)
    return Recommendation(
        situation=situation,
        model=model,
        goals=goals,
        decision=decision,
        today=current,
        whole_cluster=topics is None,
        allow_lower_durability=allow_lower_durability,
    )


def _producer_of(current: Config | None) -> dict[str, object] | None:
    """The producers' settings in a configuration; None without any."""
    if current is None:
        return None
    settings = {name: getattr(current, name) for name in _PRODUCER if name in current.explicit}
    return {"acks": current.acks, **settings}
