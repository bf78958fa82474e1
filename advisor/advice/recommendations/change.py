"""The change from the present to a recommended setting: plan, commands and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

from advisor.advice.choice import Choice
from advisor.advice.migration.plan import DEFAULT_THROTTLE, Plan, make_plan
from advisor.advice.migration.targets import check_allowed
from advisor.cluster import Cluster
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload


class Change(ABC):
    """What a `Recommendation` has to carry it out; it documents the attributes."""

    cluster: Cluster
    model: FailureModel
    load: Workload
    current: Choice | None
    topics: tuple[str, ...]
    whole_cluster: bool
    allow_lower_durability: bool

    @property
    @abstractmethod
    def best(self) -> Choice:
        """The recommended setting."""

    @cached_property
    def plan(self) -> Plan:
        """The migration to the recommended setting, and its rollback."""
        throttle = int(self.model.get("copy.bytes_per_second", DEFAULT_THROTTLE))
        topics = None if self.whole_cluster else self.topics
        today = None if self.current is None else self.current.config
        return make_plan(self.cluster, self.best.config, self.load, throttle, topics, today)

    @property
    def refused(self) -> tuple[str, ...]:
        """What the plan lowers, if that is not allowed: then there are no commands and files."""
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
        return self.plan.lines

    def files(self) -> dict[str, str]:
        """Return the files that belong to the commands.

        Returns
        -------
        dict of str to str
            File name to content: the commands and the rollback as scripts, reassignment and
            election JSON if replicas move, properties for brokers and producers, Strimzi
            resources. No properties for brokers if topics were named.

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
        librdkafka.properties
        producer.properties
        rollback.sh
        server.properties
        """
        check_allowed(self.plan.lowered, self.allow_lower_durability)
        return {**self.plan.files, **self.plan.scripts}
