"""The verdict on one evaluated setting, which is taken for today's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.decision.comparison import Requirements, compare
from advisor.decision.decide import Depth, decide_topic, floor_of, verdict_of
from advisor.decision.evaluator import DRAWS, ExactEvaluator
from advisor.decision.settings import Placement, Setting, TopicQuestion
from advisor.decision.verdict import Floor, Verdict
from advisor.protocol.rules.config import Config

if TYPE_CHECKING:
    from advisor.reliability.results.reliability import Reliability


def verdict_of_reliability(
    result: Reliability,
    requirements: Requirements | None = None,
    *,
    current: Config | None = None,
    placement: Placement | None = None,
    draws: int = DRAWS,
    depth: Depth | None = None,
) -> Verdict:
    """Decide about the setting that `evaluate` was asked about, as if it ran today.

    requirements: goals, and the price of a loss.
    current: what runs today instead.
    placement: replicas of each partition; by default as Kafka places a new topic.
    draws: how many draws of the card say how sure the choice is.
    depth: what is computed; by default everything.

    >>> import advisor
    >>> config = advisor.Config(replication_factor=3, min_insync_replicas=3)
    >>> result = advisor.evaluate(advisor.Cluster.uniform(3), config, "three_az_cloud")
    >>> quick = Depth(draws=False, sensitivity=False, others=False)
    >>> print(verdict_of_reliability(result, draws=0, depth=quick).headline)
    Set RF 3, min ISR 2, acks=all.
    """
    question, evaluator = _asked(result, current or result.config, placement, draws)
    return verdict_of([decide_topic(question, evaluator, requirements, depth=depth)], [question])


def floor_of_reliability(
    result: Reliability, *, placement: Placement | None = None, draws: int = 0
) -> Floor:
    """Return what no setting with as many replicas prevents of the measures of a result.

    placement: replicas of each partition; by default as Kafka places a new topic.
    draws: how many draws of the card the floor is computed in as well.

    >>> import advisor
    >>> card = advisor.FailureModel.from_dict(
    ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
    ... )
    >>> config = advisor.Config(replication_factor=3, min_insync_replicas=3)
    >>> result = advisor.evaluate(advisor.Cluster.uniform(3), config, card)
    >>> floor = floor_of_reliability(result)
    >>> measure = "write_unavailability"
    >>> floor.beyond_settings(measure) < floor.by_settings(measure, result.write_unavailability)
    True
    """
    question, evaluator = _asked(result, result.config, placement, draws)
    return floor_of(compare(question, evaluator, Requirements()), evaluator, draws > 0)


def _asked(
    result: Reliability, config: Config, placement: Placement | None, draws: int
) -> tuple[TopicQuestion, ExactEvaluator]:
    """The question about a result's setting, and who answers it."""
    today = Setting(config, placement)

    def planned(replication_factor: int) -> Placement | None:
        return placement if replication_factor == today.replication_factor else None

    brokers = result.cluster.brokers
    question = TopicQuestion("", today, result.load, brokers, planned)
    return question, ExactEvaluator(
        result.cluster, result.model.under(str(result.config.mode)), draws
    )
