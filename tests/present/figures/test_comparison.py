"""The settings that a recommendation compared: what is said of those of today."""

import pytest

from advisor.advice import recommend
from advisor.cluster import Cluster, Partition, Topic
from advisor.present.figures.comparison import today_words
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12.0}}})


def topic(name: str, partitions: int, min_isr: int) -> Topic:
    held = tuple(Partition(index, 1, (1, 2, 3), (1, 2, 3)) for index in range(partitions))
    return Topic(name, held, {"min.insync.replicas": str(min_isr)})


@pytest.mark.parametrize(
    ("partitions", "words"),
    [
        ((5, 0, 0), "today"),
        ((5, 2, 1), "most partitions today"),
        ((5, 4, 3), "the most frequent today"),
    ],
)
def test_a_minority_is_not_called_most(partitions: tuple[int, int, int], words: str) -> None:
    """The mark of today's setting says whether all, most or just more partitions have it."""
    topics = [topic(f"t{min_isr}", n, min_isr) for min_isr, n in enumerate(partitions, 1) if n]
    cluster = Cluster({1: "a", 2: "b", 3: "c"}, tuple(topics))
    assert today_words(recommend(cluster, CARD)) == words
