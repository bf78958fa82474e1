"""Migration from the present to the recommended setting: plan, commands and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property

from advisor.advice.candidate import Candidate
from advisor.advice.deciding import Decision
from advisor.advice.migration.plan import DEFAULT_THROTTLE, MigrationPlan, make_plan, with_flush
from advisor.advice.migration.planned_changes import PlannedChanges
from advisor.advice.migration.target_settings import lowered_min_isr
from advisor.advice.situation import Situation
from advisor.advice.tolerance import ToleranceRow, tolerance_table
from advisor.cluster import Cluster
from advisor.decision import Verdict
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload
from advisor.rendering import FileText


class MigrationMixin(ABC):
    """Plan, commands and files of a `Recommendation`, which documents the attributes."""

    situation: Situation
    model: FailureModel
    decision: Decision
    whole_cluster: bool
    allow_lower_durability: bool

    @property
    @abstractmethod
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    @abstractmethod
    def load(self) -> Workload:
        """Traffic of all topics in question together."""

    @property
    @abstractmethod
    def topics(self) -> tuple[str, ...]:
        """Names of the topics in question."""

    @property
    @abstractmethod
    def best(self) -> Candidate:
        """The setting that most topics should have."""

    @property
    @abstractmethod
    def quick_verdict(self) -> Verdict:
        """What every topic should be set to."""

    @property
    @abstractmethod
    def _flush_advised(self) -> bool:
        """Whether flushing every second is the remedy for the goals that are missed."""

    @cached_property
    def plan(self) -> MigrationPlan:
        """The migration of each topic to what the verdict sets it to, and its rollback.

        What lowers durability is held back unless it is allowed.
        """
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        topics = None if self.whole_cluster else self.topics
        if not self.topics:
            return make_plan(self.cluster, self.best.config, self.load, throttle, topics)
        planned, held_back = self._planned
        return make_plan(
            self.cluster, self.best.config, self.load, throttle, topics, planned, held_back
        )

    @cached_property
    def _planned(self) -> tuple[PlannedChanges, tuple[str, ...]]:
        """What the plan changes, and what it leaves out until that is allowed."""
        actions = {
            action.topic: action
            for action in self.quick_verdict.actions
            if action.set_to is not None
        }
        changed, held_back = [], []
        for topic in self.situation.topics:
            if topic.name not in actions:
                continue
            action = actions[topic.name]
            lowered = lowered_min_isr(topic, action.after.config)
            if lowered and action.today.guarded and not self.allow_lower_durability:
                held_back.append(lowered)
            else:
                changed.append(action)
        targets = {action.topic: action.after.config for action in changed}
        moves = tuple(move for action in changed for move in self.decision.moves(action))
        planned = PlannedChanges.to(self.cluster, targets, moves)
        unguarded = frozenset(action.topic for action in changed if not action.today.guarded)
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
        if not self._flush_advised:
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


def rendered_files(result: MigrationMixin) -> dict[str, FileText]:
    """Return the files of a recommendation as they are written; the text of each is in `files`."""
    plan = result._with_remedy
    return {**plan.written, **plan.rendered_scripts}
