"""Audits of described clusters: each topic with its own settings on its own brokers."""

import json
import random
import re

import pytest

from advisor.advice import Goals, audit
from advisor.advice.audits.copyset_spread import spread_numbers, spread_words
from advisor.advice.findings.summary import grouped
from advisor.advice.phrases import (
    count_in_words,
    dominant,
    first_of,
    how_often,
    listed,
    sentence,
)
from advisor.advice.topic_settings import config_of, load_of
from advisor.catalog import model_names
from advisor.cluster import Cluster, Partition, Topic
from advisor.formatting import capital, significant
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.copysets import copysets
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.measures.replica_set import measure
from advisor.reliability.results.assumptions import OUTSIDE_EVERY_CARD, assumptions
from advisor.reliability.results.explanation import MOST_WORDS
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict(
    {"broker": {"destroyed": {"per_year": 1, "hours": 12}}, "rack": {"destroyed": {"per_year": 1}}}
)
SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
EASY = Goals(loss_probability_per_year=1e-2, write_unavailability=1e-2)

LOOSE = Goals(loss_probability_per_year=1.0, write_unavailability=1.0)


def topic(name: str, *replicas: tuple[int, ...], **configs: str) -> Topic:
    partitions = tuple(Partition(i, r[0], r, r) for i, r in enumerate(replicas))
    return Topic(name, partitions, {k.replace("_", "."): v for k, v in configs.items()})


GOOD = topic("good", (1, 2, 3), (4, 5, 6), min_insync_replicas="2")
SINGLE = topic("single", (1,), min_insync_replicas="1")
ONE_RACK = topic("one-rack", (1, 4), min_insync_replicas="1")
TWO_RACKS = topic("two-racks", (1, 2), min_insync_replicas="1")


def test_topics_are_ordered_by_records_lost() -> None:
    """Topics that meet the same goals are ordered by the records they lose, most first."""
    four = (GOOD, TWO_RACKS, SINGLE, ONE_RACK)
    found = audit(Cluster(SIX, four), CARD, goals=LOOSE)
    assert found.ok
    lost = [t.choice.reliability.acked_records_lost_per_year for t in found.topics]
    assert lost == sorted(lost, reverse=True)
    assert [t.topic.name for t in found.topics] == ["single", "one-rack", "two-racks", "good"]


def test_order_is_broken_then_distance_then_count_then_losses() -> None:
    """Broken first, then by distance to missed goals, their number, and the records lost."""
    dead = Topic("dead", (Partition(0, None, (1, 2, 3), (1,)),), {"min.insync.replicas": "2"})
    strict = topic("strict", (1, 2, 3), min_insync_replicas="3")
    loose = topic("loose", (1, 2, 3), min_insync_replicas="1")
    every = (GOOD, SINGLE, strict, loose, dead)

    def order(**goals: object) -> list[str]:
        limits = {"loss_probability_per_year": None, "write_unavailability": None, **goals}
        found = audit(Cluster(SIX, every), CARD, goals=Goals(**limits))
        met = [t.ok for t in found.topics]
        assert met == sorted(met)
        return [t.topic.name for t in found.topics]

    # What loses most stands last of those that miss it, where writes alone are asked for.
    assert order(write_unavailability=1e-3) == ["dead", "strict", "single", "loose", "good"]
    assert order(loss_probability_per_year=1e-2) == ["dead", "single", "loose", "good", "strict"]
    assert order(survive="rack") == ["dead", "single", "loose", "strict", "good"]


def test_the_actual_placement_is_evaluated() -> None:
    """Two replicas in one rack lose more than two in two racks, with the same settings."""
    found = {t.topic.name: t for t in audit(Cluster(SIX, (ONE_RACK, TWO_RACKS)), CARD).topics}
    together = found["one-rack"].choice.reliability.loss_probability_per_year
    apart = found["two-racks"].choice.reliability.loss_probability_per_year
    assert together > 2 * apart


def test_a_topic_has_the_numbers_that_evaluate_gives() -> None:
    """The audit's measures are those of evaluate with the topic's settings and replicas."""
    load = Workload(records_per_second=10)
    found = audit(Cluster(SIX, (GOOD,)), CARD, load, kafka_version="4.1")
    (judged,) = found.topics
    config = config_of(GOOD, "4.1", {"acks": "all"})
    r = evaluate(Cluster(SIX), config, CARD, load_of(GOOD, load), placement=((1, 2, 3), (4, 5, 6)))
    ours = judged.choice.reliability
    assert ours.loss_probability_per_year == r.loss_probability_per_year
    assert ours.write_unavailability == r.write_unavailability
    assert ours.acked_records_lost_per_year == r.acked_records_lost_per_year


def test_ok_needs_met_goals_and_nothing_broken() -> None:
    """A topic is ok if it meets the goals and nothing is broken at present."""
    assert audit(Cluster(SIX, (GOOD,)), CARD, goals=EASY).ok
    assert not audit(Cluster(SIX, (GOOD, SINGLE)), CARD, goals=EASY).ok
    dead = Topic("dead", (Partition(0, None, (1, 2, 3), (1,)),), {"min.insync.replicas": "2"})
    found = audit(Cluster(SIX, (dead,)), CARD, goals=EASY)
    assert found.topics[0].choice.meets_all
    assert not found.ok
    assert found.verdict.startswith("No, 1 of 1 topic misses your goals; worst: ")
    assert found.below_verdict[1] == (
        "In trouble when this was described: dead (1 of 1 partition without a leader)."
    )
    assert found.topics[0].missed == "1 of 1 partition without a leader"
    assert "now 1 of 1 partition without a leader" in found.topics[0].sentence
    assert "missed: 1 of 1 partition" in found._repr_html_()


def test_partitions_of_each_replication_factor_have_their_own_entry() -> None:
    """Partitions with different replication factors get a row each, and share the load."""
    mixed = topic("mixed", (1, 2, 3), (4, 5, 6), (1,), min_insync_replicas="1")
    found = audit(Cluster(SIX, (mixed,)), CARD, Workload(records_per_second=30.0))
    parts = {t.partitions: t.choice for t in found.topics}
    assert parts.keys() == {(0, 1), (2,)}
    assert parts[2,].config.replication_factor == 1
    assert parts[2,].reliability.load.records_per_second == pytest.approx(10.0)
    assert parts[0, 1].reliability.load.records_per_second == pytest.approx(20.0)


def test_retention_is_the_topics_own() -> None:
    """retention.ms of a topic counts; if it is unset, unlimited or compacted, the load's does."""
    base = Workload(retention_hours=50.0)
    assert load_of(topic("t", (1,), retention_ms="7200000"), base).retention_hours == 2.0
    assert load_of(topic("t", (1,)), base).retention_hours == 50.0
    assert load_of(topic("t", (1,), retention_ms="-1"), base).retention_hours == 50.0
    compacted = topic("t", (1,), retention_ms="7200000", cleanup_policy="compact")
    assert load_of(compacted, base).retention_hours == 50.0


@pytest.mark.parametrize("endless", ["-1", str(2**63 - 1), "1" + 400 * "0", "1" + 5000 * "0"])
def test_unlimited_retention_uses_that_of_the_load(endless: str) -> None:
    """A huge retention.ms, of any number of digits, counts as -1, and a note says so."""
    kept = topic("kept", (1,), retention_ms=endless)
    assert load_of(kept, Workload(retention_hours=50.0)).retention_hours == 50.0
    gone = topic("gone", (1,), retention_ms=str(10**12))
    notes = audit(Cluster(SIX, (kept, gone)), CARD).notes
    said = "Records that retention.ms keeps forever were assumed to be kept 168 hours: kept."
    assert [note for note in notes if "retention" in note] == [said]


def test_survival_of_a_rack_uses_the_actual_placement() -> None:
    """survive="rack" uses the actual replicas, not where Kafka would place them."""
    bad = topic("bad", (1, 4, 2), min_insync_replicas="2")
    goals = Goals(loss_probability_per_year=None, write_unavailability=None, survive="rack")
    found = {t.topic.name: t.ok for t in audit(Cluster(SIX, (GOOD, bad)), CARD, goals=goals).topics}
    assert found == {"good": True, "bad": False}


def test_assumptions_are_noted() -> None:
    """Without load, version and acks the notes state the assumptions; with them they do not."""
    notes = " ".join(audit(Cluster(SIX, (GOOD,)), CARD).notes)
    assert "version" in notes
    assert "No load was given" in notes
    assert "acks=all" in notes
    told = audit(
        Cluster(SIX, (GOOD,)), CARD, Workload(), kafka_version="4.1", producer={"acks": "all"}
    )
    elr, *said, outside = told.notes
    assert "(KIP-966) and KRaft are assumed" in elr
    assert outside == f"{capital(OUTSIDE_EVERY_CARD)}."
    known = assumptions(Cluster(SIX, (GOOD,)), Config(replication_factor=3), CARD)
    assert said == [f"{capital(text)}." for text in known[:-1]]
    assert [text for text in said if "if your operators elect another replica sooner" in text]


def test_text_and_html_of_an_audit() -> None:
    """Verdict first, one sentence per topic, every finding, and HTML that escapes names."""
    found = audit(Cluster(SIX, (GOOD, SINGLE)), CARD, goals=EASY)
    assert found.verdict.startswith("No, 1 of 2 topics misses your goals; worst: data loss once in")
    assert "Goals missed by: single." in found.below_verdict
    assert repr(found).splitlines()[0] == found.verdict
    assert "KRA204 single" in found.explain()
    assert "<strong>No, 1 of 2 topics" in found._repr_html_()
    table = found.table()
    assert table["topic"].tolist() == ["single", "good"]
    assert table["ok"].tolist() == [False, True]
    assert json.loads(json.dumps(found.to_dict()))["ok"] is False
    for topics, goals, head in (
        ((GOOD,), EASY, "Yes, the only topic meets your goals"),
        ((GOOD, TWO_RACKS), LOOSE, "Yes, all 2 topics meet your goals"),
        ((SINGLE, ONE_RACK), Goals(), "No, 2 of 2 topics miss your goals"),
        ((SINGLE,), EASY, "No, 1 of 1 topic misses your goals"),
    ):
        found = audit(Cluster(SIX, topics), CARD, goals=goals)
        assert found.verdict.startswith(f"{head}; worst: ")
        assert len(found.verdict.split()) <= 25
        assert found.below_verdict[0].startswith("Causes beyond settings ")
    both = audit(Cluster(SIX, (SINGLE, ONE_RACK)), CARD, goals=Goals())
    assert both.below_verdict[1] == "Goals missed by: single and one-rack."


@pytest.mark.parametrize("card", model_names())
def test_yes_is_of_the_middle_values_where_a_card_has_ranges(card: str) -> None:
    """No random draws are counted, most of which may miss the goals."""
    found = audit(Cluster(SIX, (GOOD, TWO_RACKS)), load_model(card), goals=LOOSE)
    assert found.verdict.startswith(
        "Yes, all 2 topics meet your goals at the card's middle values; worst: "
    )
    assert len(found.verdict.split()) <= MOST_WORDS
    assert re.search(r"\((main cause: )?[a-z -]+\)", found.verdict)


def test_findings_are_ordered_by_weight_and_merged() -> None:
    """Findings are ordered by weight; those that differ only in the topic are one line."""
    dead = Topic("dead", (Partition(0, None, (1, 2, 3), (1,)),), {"min.insync.replicas": "2"})
    alike = [topic(f"t{i}", (1, 2), min_insync_replicas="1") for i in range(8)]
    found = audit(Cluster(SIX, (dead, *alike)), CARD).findings
    weights = [finding.rule.weight for finding in found]
    assert found[0].code == "KRA104"
    assert weights == sorted(weights, key=("broken", "risk", "note").index)
    lines = {f.code: topics for f, topics in grouped(found)}
    assert lines["KRA104"] == "dead"
    assert lines["KRA101"] == "t0, t1, t2, t3, t4 and 3 more"


def test_goals_as_a_sentence() -> None:
    """Every limit is in the sentence; without any it says "none"."""
    assert Goals().sentence == (
        "Goals: at most a 1 in 1 million chance of data loss a year and writes refused at most 53 "
        "minutes a year."
    )
    told = Goals(read_unavailability=1e-3, records_refused_per_year=7, survive="rack").sentence
    for words in ("reads refused at most", "at most 7 failed sends", "when one rack is lost"):
        assert words in told
    nothing = Goals(loss_probability_per_year=None, write_unavailability=None)
    assert nothing.sentence == "Goals: none."


def test_phrases() -> None:
    """Counts, lists and frequencies at their edge cases."""
    assert [
        count_in_words(1, "broker"),
        count_in_words(6, "broker"),
        count_in_words(12, "rack"),
    ] == [
        "one broker",
        "six brokers",
        "12 racks",
    ]
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert first_of(list("abcdef")) == "a, b, c, d, e and f"
    assert first_of(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert [sentence(text) for text in ("a b", "A b.", "")] == ["A b.", "A b.", "."]
    assert how_often(0.0) == "never"
    assert how_often(1e-6) == "rarer than once in 2,000 years"
    assert how_often(1.0) == "all the time"
    assert how_often(0.95) == "once in 4 months"
    assert dominant({}) == ""
    assert dominant({"broker.crash": 3.0, "x": 1.0}) == "broker crashes (75 %)"
    assert dominant({"a": 1.0, "b": 1.0, "c": 1.1}) == "c (35 %)"
    assert [significant(x) for x in (0, 178487.06, 5.591e-6, 3.0)] == [
        "0",
        "180,000",
        "5.6e-6",
        "3",
    ]


def test_copysets_are_reported() -> None:
    """Copysets, scatter width and loss probabilities, in sentences and as numbers."""
    found = audit(Cluster(SIX, (GOOD, TWO_RACKS)), CARD)
    # Brokers 1 to 3 and 4 to 6 stand by themselves; losing 1 and 2 is one case of 15.
    assert found.copysets.sets == {frozenset(s) for s in ((1, 2, 3), (4, 5, 6), (1, 2))}
    assert "3 different sets of brokers" in found.spread
    assert "shares partitions with 2 others" in found.spread
    assert "6.7 % for two brokers" in found.spread
    assert found.spread in found.explain()
    assert found.spread in found._repr_html_()
    numbers = found.to_dict()["spread"]
    assert numbers["copysets"] == 3
    assert numbers["scatter_width"] == {"mean": 2.0, "least": 2, "most": 2}
    assert numbers["chance_of_loss"]["2"]["value"] == pytest.approx(1 / 15)
    # With three lost: 1 and 2 with any of the other four, or 4, 5 and 6.
    assert numbers["chance_of_loss"]["3"]["value"] == pytest.approx(5 / 20)


def test_a_loss_probability_that_is_not_exact_has_bounds() -> None:
    """With many copysets on many brokers the probability is given as bounds that hold it."""
    rng = random.Random(5)
    found = copysets([rng.sample(range(1, 61), 3) for _ in range(4000)], 60)
    chances = spread_numbers(found)["chance_of_loss"]
    assert chances["4"]["low"] == chances["4"]["high"]
    assert chances["5"]["low"] < chances["5"]["value"] < chances["5"]["high"]
    low = f"{100 * chances['5']['low']:.2g} %"
    assert f"{low} to 100 % for five brokers" in spread_words(found)
    assert "use 1 set of brokers (copysets); a broker shares partitions with 1 other on" in (
        spread_words(copysets([(1, 2)], 2))
    )
    assert spread_words(copysets([], 3)) == "No partition is placed."


def test_only_the_first_certain_loss_is_reported() -> None:
    """If two lost brokers always lose a partition, three and four are not reported."""
    said = spread_words(copysets([(1, 2), (1, 3), (2, 3)], 3))
    assert said.endswith("brokers are lost at once: 100 % for two brokers.")


def test_equal_topics_are_solved_once() -> None:
    """Thirty topics with one configuration and two rack patterns need two chains, not sixty."""
    rng = random.Random(2)
    apart, together = ((1, 2, 3), (4, 5, 6), (1, 5, 3)), ((1, 4, 2), (3, 6, 5))
    alike = [
        topic(f"t{i}", rng.choice(apart), rng.choice(together), min_insync_replicas="2")
        for i in range(30)
    ]
    measure.cache_clear()
    audit(Cluster(SIX, tuple(alike)), CARD)
    assert measure.cache_info().misses == 2
