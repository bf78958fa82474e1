"""`recommend`: what every topic should be set to, and what has to be done for it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from advisor.advice.arguments import check_arguments
from advisor.advice.deciding import Decision, Evaluate, evaluated_once
from advisor.advice.goals import Goals
from advisor.advice.kafka_version import controller_of
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.situation import Situation, usual_config
from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster import Cluster
from advisor.errors import expect
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

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
        current = current.changed(**controller_of(cluster, situation.version))
    decision = Decision(
        *(situation, model, goals.requirements, allow_lower_durability, once),
        new_topic=current,
    )
    usual = usual_config(situation.topics, situation.version)
    if current is None and usual is not None:
        current = usual.changed(**situation.settings)
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
    stated = {name: getattr(current, name) for name in _PRODUCER if name in current.explicit}
    return {"acks": current.acks, **stated}
