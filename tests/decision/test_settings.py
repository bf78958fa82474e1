"""Which settings of a topic are compared."""

import pytest

from advisor.decision.settings import beside, candidates
from fake_evaluator import question


def pairs(**topic: object) -> list[tuple[int, int]]:
    """RF and min ISR of a topic's candidates, in order."""
    settings = candidates(question(**topic))  # type: ignore[arg-type]
    return [(s.replication_factor, s.min_insync_replicas) for s in settings]


@pytest.mark.parametrize(
    ("today", "brokers", "factor"),
    [(1, 6, 3), (2, 6, 3), (3, 6, 3), (4, 6, 4), (1, 2, 2), (1, 1, 1)],
)
def test_as_many_replicas_as_today_and_at_least_three(
    today: int, brokers: int, factor: int
) -> None:
    """Three where there are three brokers, two where there are two, and never fewer than today."""
    settings = pairs(replication_factor=today, min_isr=1, brokers=brokers)
    assert {pair[0] for pair in settings} == {factor}
    assert sorted(pair[1] for pair in settings) == list(range(1, factor + 1))


def test_the_usual_min_isr_comes_first() -> None:
    """Of equal settings the rule takes RF - 1, then fewer, and RF last."""
    assert [pair[1] for pair in pairs(replication_factor=4)] == [3, 2, 1, 4]


def test_candidates_acknowledge_by_all_and_elect_cleanly() -> None:
    """Whatever the topic has today; what else its producers set stays."""
    today = question(acks=1, unclean_leader_election_enable=True, delivery_timeout_ms=60_000)
    for setting in candidates(today):
        assert setting.config.acks == "all"
        assert setting.config.unclean_leader_election_enable is False
        assert setting.config.delivery_timeout_ms == 60_000


def test_rules_of_the_kafka_version() -> None:
    """Before 0.8.2 there is no min ISR, and every election is unclean."""
    assert len(pairs(min_isr=1, kafka_version="0.8.2", acks="all")) == 3
    (setting,) = candidates(question(min_isr=1, kafka_version="0.8.1", acks="all"))
    assert setting.config.unclean_leader_election_enable is True


def test_a_min_isr_above_rf_counts_as_the_version_counts_it() -> None:
    """Since 3.7 it is RF; before, every write is refused, and it equals no candidate."""
    newer, older = (question(2, 3, kafka_version=v).today for v in ("4.1", "3.6"))
    assert (newer.key, newer.never_writes) == ((2, 2, "all", False), False)
    assert (older.key, older.never_writes) == ((2, 3, "all", False), True)


def test_what_is_shown_beside_a_setting() -> None:
    """Acks 1, and unclean elections, with the same replicas."""
    chosen = candidates(question(enable_idempotence=True))[0]
    assert [setting.key for setting in beside(chosen)] == [
        (3, 2, 1, False),
        (3, 2, "all", True),
    ]


def test_kafkas_own_topics() -> None:
    """They may have RF 3 and min ISR 2 or more where there are three brokers, else anything."""
    internal = question(internal=True)
    assert [internal.allows(setting) for setting in candidates(internal)] == [True, False, True]
    assert not internal.allows(question(2, 2).today)
    two = question(2, 1, brokers=2, internal=True)
    assert all(map(two.allows, candidates(two)))


def test_topics_on_racks_in_the_same_way_have_one_pattern() -> None:
    """For each replica the place of the first one in its rack."""
    assert question().rack_patterns == question(racks="xyz").rack_patterns == {(0, 1, 2)}
    assert question(racks="aab").rack_patterns == {(0, 0, 2)}
