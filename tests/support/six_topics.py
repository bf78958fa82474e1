"""The verdict on six topics, about what three zones give, without a failure model."""

from advisor.decision import Depth, Setting, TopicQuestion, Verdict, decide_cluster
from fake_evaluator import FakeEvaluator, question

QUICK = Depth(draws=False, sensitivity=False, others=False)


def amounts(setting: Setting, _: object) -> tuple[float, float]:
    """About what three zones give: losses a year and minutes without writes."""
    factor, least, acks, _unclean = setting.key
    if acks != "all":
        return 1 / 3, 17.0
    return {
        (1, 1): (1 / 0.74, 152.0),
        (2, 1): (1 / 18, 22.0),
        (3, 1): (1 / 16, 16.9),
        (3, 2): (1 / 270, 33.8),
        (3, 3): (1 / 271, 462.0),
        (4, 4): (1 / 300, 600.0),
    }.get((factor, least), (1 / 300, 28.0))


SIX = [
    question(1, 1, topic="__consumer_offsets", internal=True, partitions=50),
    question(3, 2, topic="__transaction_state", internal=True, partitions=50),
    question(3, 3, topic="audit", partitions=3),
    question(2, 1, topic="clickstream", partitions=24),
    question(3, 2, topic="orders"),
    question(3, 1, topic="payments", partitions=6),
]


def verdict(*questions: TopicQuestion, now: tuple[str, ...] = (), **options: object) -> Verdict:
    """Decide about topics at the middle values."""
    return decide_cluster(
        questions,
        FakeEvaluator(amounts),
        depth=QUICK,
        now=now,
        **options,  # type: ignore[arg-type]
    )


def drawn_verdict(*questions: TopicQuestion, now: tuple[str, ...] = ()) -> Verdict:
    """Decide about topics with draws, what to measure, and everything else."""
    return decide_cluster(questions, FakeEvaluator(), now=now)
