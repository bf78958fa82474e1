"""The chart of an audit: what its key and its words say of goals."""

import pytest

from advisor.advice import Goals, audit
from advisor.cluster import Cluster, Partition, Topic
from advisor.present.figures.topics import plot_audit
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12.0}}})
CLUSTER = Cluster(
    {1: "a", 2: "b", 3: "c"},
    (
        Topic("alone", (Partition(0, 1, (1,), (1,)),), {"min.insync.replicas": "1"}),
        Topic("well", (Partition(0, 1, (1, 2, 3), (1, 2, 3)),), {"min.insync.replicas": "2"}),
    ),
)


@pytest.mark.parametrize(
    ("goals", "named", "grey"),
    [
        (Goals(), 0, 0),
        (Goals(survive="broker"), 2, 0),
        (Goals(loss_probability_per_year=1e-9), 2, 1),
    ],
)
def test_goals_are_in_the_key_only_where_they_are_given(
    goals: Goals, named: int, grey: int
) -> None:
    """Two entries, and the grey area only where a line of a goal is drawn."""
    ax = plot_audit(audit(CLUSTER, CARD, goals=goals))
    figure = ax.get_figure()
    assert figure is not None
    key = [text.get_text() for text in figure.texts]
    assert sum("goal" in words for words in key if "grey" not in words) == named
    assert sum("grey" in words for words in key) == grey
    assert len(key) == 2 + grey
    assert [text.get_text() for text in ax.texts][:1] == ["alone"]
    dots = [line for line in ax.lines if line.get_marker() in ("o", "D")]
    markers = {line.get_marker(): len(line.get_xdata()) for line in dots}
    unmet = 2 if goals.limits else 1
    assert markers == {"o": 2 - unmet, "D": unmet}
