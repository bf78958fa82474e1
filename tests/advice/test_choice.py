"""A setting held against goals: how close it comes to them."""

import pytest

from advisor import Cluster, Config, FailureModel, Goals, Workload, evaluate
from advisor.advice.choice import choose, judged
from advisor.advice.recommendations.reasons import verdict
from advisor.reliability.results.reliability import Reliability

CARD = FailureModel.from_dict(
    {"broker": {"destroyed": {"per_year": 1, "hours": 12}, "lag": {"per_year": 50, "minutes": 60}}}
)
CONFIG = Config(replication_factor=3, min_insync_replicas=2, acks="all")


@pytest.fixture(scope="module")
def result() -> Reliability:
    """One setting, whose goals the tests set around its measures."""
    return evaluate(Cluster.uniform(3, 3), CONFIG, CARD, Workload(partitions=1))


@pytest.mark.parametrize(
    ("loss", "writes", "said"),
    [
        (2.0, 1.05, "Yes, RF 3 with min ISR 2 narrowly meets your goals"),
        (2.0, 1.2, "Yes, RF 3 with min ISR 2 meets your goals"),
        (2.0, 0.95, "No, RF 3 with min ISR 2 narrowly misses your goals"),
        (1.05, 0.95, "No, RF 3 with min ISR 2 narrowly misses your goals"),
        (0.5, 0.95, "No, RF 3 with min ISR 2 misses your goals"),
        (0.5, 2.0, "No, RF 3 with min ISR 2 misses your goals"),
    ],
)
def test_a_measure_next_to_its_goal_is_said_to_be(
    result: Reliability, loss: float, writes: float, said: str
) -> None:
    """Within 10 % of the goal a verdict is narrow, unless another goal is missed by more."""
    goals = Goals(
        loss_probability_per_year=loss * result.loss_probability_per_year,
        write_unavailability=writes * result.write_unavailability,
    )
    choice = choose(CONFIG, result, goals, 1)
    text = verdict(choice, goals)
    assert text.startswith(f"{said}: ")
    assert len(text.split()) <= 25


def test_goals_without_a_measure_are_never_narrow(result: Reliability) -> None:
    """What must be survived is or is not; a limit of 0 has no distance; nor have topics."""
    none = {"loss_probability_per_year": None, "write_unavailability": None}
    for goals in (Goals(**none), Goals(**none, survive="rack"), Goals(write_unavailability=0.0)):
        assert not judged(choose(CONFIG, result, goals, 2), goals).narrow
    near = Goals(**{**none, "write_unavailability": 1.01 * result.write_unavailability})
    choice = choose(CONFIG, result, near, 1)
    assert judged(choice, near).narrow
    assert not judged(choice, near, met=False).narrow
