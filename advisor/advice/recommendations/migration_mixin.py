"""Migration from the present to the recommended setting: plan, commands and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

from advisor.advice.audits.topic_audit import TopicAudit
from advisor.advice.choice import Choice
from advisor.advice.goals import Goals
from advisor.advice.migration.plan import DEFAULT_THROTTLE, MigrationPlan, make_plan, with_flush
from advisor.advice.migration.target_settings import check_allowed
from advisor.advice.recommendations.topic_changes import Auditor, TopicChange, unmet
from advisor.advice.tolerance import ToleranceRow, tolerance_table
from advisor.advice.topic_settings import topics_under_load
from advisor.cluster import Cluster, Topic
from advisor.progress import progress_bar
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload
from advisor.rendering import FileText


class MigrationMixin(ABC):
    """Plan, commands and files of a `Recommendation`, which documents the attributes."""

    cluster: Cluster
    model: FailureModel
    load: Workload
    goals: Goals
    current: Choice | None
    topics: tuple[str, ...]
    whole_cluster: bool
    allow_lower_durability: bool

    @property
    @abstractmethod
    def best(self) -> Choice:
        """The recommended setting."""

    @property
    @abstractmethod
    def _flush_advised(self) -> bool:
        """Whether flushing every second is the remedy for the goals that are missed."""

    @cached_property
    def plan(self) -> MigrationPlan:
        """The migration to the recommended setting, and its rollback.

        A topic with more replicas than recommended keeps them and its settings.
        """
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        topics = None if self.whole_cluster else self.topics
        today = None if self.current is None else self.current.config
        return make_plan(self.cluster, self.best.config, self.load, throttle, topics, today)

    @cached_property
    def _chosen(self) -> list[Topic]:
        names = set(self.topics)
        return [topic for topic in self.cluster.topics if topic.name in names]

    @cached_property
    def _auditor(self) -> Auditor:
        partitions = sum(len(topic.partitions) for topic in topics_under_load(self._chosen))
        return Auditor(self.cluster, self.model, self.load, self.goals, partitions)

    def _today(self, topic: Topic) -> tuple[TopicAudit, ...]:
        producer = self.best if self.current is None else self.current
        return self._auditor.audit(topic, producer.config)

    @cached_property
    def topic_changes(self) -> tuple[TopicChange, ...]:
        """Each selected topic as it is and as the plan leaves it, those that miss goals first."""
        after = {topic.name: topic for topic in self.plan.after}
        changes = []
        with progress_bar(len(self._chosen), " topics", "Topics today and as planned") as done:
            for topic in self._chosen:
                planned = self._auditor.audit(after[topic.name], self.best.config)
                changes.append(TopicChange(self._today(topic), planned))
                done(1)
        return tuple(sorted(changes, key=lambda change: (not unmet(change.today), change.name)))

    @property
    def refused(self) -> tuple[str, ...]:
        """What the plan would lower without permission; if any, it writes no commands and files."""
        return () if self.allow_lower_durability else self.plan.lowered

    def commands(self) -> list[str]:
        """Return the shell lines that make the change, comments included.

        Returns
        -------
        list of str
            Checks, changes and verification, in order. The files that they name are in `files`;
            the rollback is ``plan.rollback``.

        Raises
        ------
        InputError
            If they would lower durability and `allow_lower_durability` is not set.

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
        check_allowed(self.plan.lowered, self.allow_lower_durability)
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

        Raises
        ------
        InputError
            If they would lower durability and `allow_lower_durability` is not set.

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
    check_allowed(result.plan.lowered, result.allow_lower_durability)
    plan = result._with_remedy
    return {**plan.written, **plan.rendered_scripts}
