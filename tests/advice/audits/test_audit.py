"""Audits of described clusters: each topic with its own settings on its own brokers."""

import json
import math
import random

import pytest

from advisor.advice import Audit, Goals, audit
from advisor.advice.audits.audit import spread_numbers, spread_words
from advisor.advice.findings.summary import grouped
from advisor.advice.phrases import (
    count_in_words,
    first_of,
    how_often,
    listed,
    sentence,
)
from advisor.advice.situation import config_of, load_of
from advisor.cluster import Cluster, Partition, Topic
from advisor.decision.evaluator import DRAWS
from advisor.decision.verdict import SEVERITIES
from advisor.errors import InputError
from advisor.formatting import capital, significant
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.copysets import copysets
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.measures.replica_set import measure
from advisor.reliability.results.assumptions import OUTSIDE_EVERY_CARD, assumptions
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict(
    {"broker": {"destroyed": {"per_year": 1, "hours": 12}}, "rack": {"destroyed": {"per_year": 1}}}
)
CLOUD = load_model("three_az_cloud")
SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def topic(name: str, *replicas: tuple[int, ...], **configs: str) -> Topic:
    partitions = tuple(Partition(i, r[0], r, r) for i, r in enumerate(replicas))
    return Topic(name, partitions, {k.replace("_", "."): v for k, v in configs.items()})


GOOD = topic("good", (1, 2, 3), (4, 5, 6), min_insync_replicas="2")
SINGLE = topic("single", (1,), min_insync_replicas="1")
ONE_RACK = topic("one-rack", (1, 4), min_insync_replicas="1")
TWO_RACKS = topic("two-racks", (1, 2), min_insync_replicas="1")


def test_topics_are_ordered_by_severity_and_cost() -> None:
    """Critical settings first; among equals what losses and time without writes cost today."""
    found = audit(Cluster(SIX, (GOOD, TWO_RACKS, SINGLE, ONE_RACK)), CLOUD)
    order = [(SEVERITIES.index(t.severity), -t.action.cost_today) for t in found.topics]
    assert order == sorted(order)
    assert found.topics[0].topic.name == "single"
    assert found.topics[-1].topic.name == "good"
    assert [t.severity for t in found.topics if t.topic.name == "good"] == ["ok"]


def test_order_is_broken_then_severity_then_missed_goals() -> None:
    """A topic without a leader stands before critical ones, whatever the goals."""
    dead = Topic("dead", (Partition(0, None, (1, 2, 3), (1,)),), {"min.insync.replicas": "2"})
    strict = topic("strict", (1, 2, 3), min_insync_replicas="3")
    every = (GOOD, SINGLE, strict, dead)
    for goals in (Goals(), Goals(write_unavailability=1e-3), Goals(survive="rack")):
        found = audit(Cluster(SIX, every), CLOUD, goals=goals).topics
        names = [t.topic.name for t in found]
        assert names[0] == "dead"
        assert set(names[1:3]) == {"single", "strict"}
        assert [t.severity for t in found[1:3]] == ["critical", "critical"]
        assert names[3] == "good"


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


def test_ok_needs_met_goals_nothing_critical_and_nothing_broken() -> None:
    """A warning fails only who asks for it; goals are held against whole measures."""
    assert audit(Cluster(SIX, (GOOD,)), CLOUD).ok
    assert not audit(Cluster(SIX, (GOOD, SINGLE)), CLOUD).ok
    never = Goals(loss_probability_per_year=1e-12)
    three = Cluster({1: "a", 2: "b", 3: "c"}, (topic("t", (1, 2, 3), min_insync_replicas="2"),))
    (missing,) = audit(three, CLOUD, goals=never).topics
    assert (missing.severity, missing.choice.unmet, missing.ok) == (
        "ok",
        ("loss_probability_per_year",),
        False,
    )
    dead = Topic("dead", (Partition(0, None, (1, 2, 3), (1,)),), {"min.insync.replicas": "2"})
    found = audit(Cluster(SIX, (dead,)), CLOUD)
    assert (found.topics[0].severity, found.ok) == ("ok", False)
    assert found.quick_verdict.now == ("dead: 1 of 1 partition without a leader",)
    assert found.topics[0].broken == ("1 of 1 partition without a leader",)
    assert "now 1 of 1 partition without a leader" in found.topics[0].sentence


def test_a_warning_fails_only_if_asked() -> None:
    """Settings that the rule would change, but that are not critical."""
    calm = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.01, "hours": 12}}})
    loose = topic("loose", (1, 2, 3), min_insync_replicas="1")
    model = calm.with_values({"broker.destroyed.per_year": 0.03})
    found = audit(Cluster(SIX, (loose,)), model, goals=Goals(minutes_per_loss=1e9))
    severity = found.topics[0].severity
    assert found.fails("warning") == (severity != "ok")
    assert found.fails() == (severity == "critical")
    with pytest.raises(InputError, match="critical or warning"):
        found.fails("ok")


def test_words_of_a_topic_are_those_of_its_action() -> None:
    """Settings, losses, minutes and severity come from the decision about the topic."""
    (single,) = audit(Cluster(SIX, (SINGLE,)), CARD).topics
    action = single.action
    assert action.set_to is not None
    assert single.advice == f"set {action.set_to}"
    assert single.sentence.startswith("single (RF 1, min ISR 1, acks=all): critical, loses records")
    assert single.sentence.endswith(f"; set {action.set_to}.")
    assert single.choice.reliability.loss_probability_per_year == pytest.approx(
        -math.expm1(-action.loss_today), rel=1e-9
    )


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
    goals = Goals(survive="rack")
    found = {
        t.topic.name: t.choice.meets_all
        for t in audit(Cluster(SIX, (GOOD, bad)), CARD, goals=goals).topics
    }
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
    found = audit(Cluster(SIX, (GOOD, SINGLE)), CLOUD)
    verdict = found.quick_verdict
    assert verdict.headline == "Change 1 of 2 topics to RF 3, min ISR 2, acks=all."
    assert len(str(verdict).split()) <= 60
    assert repr(found).startswith(str(verdict))
    assert found.explain().startswith(str(verdict))
    assert "KRA204 single" in found.explain()
    assert f">{verdict.headline}<" in found._repr_html_()
    table = found.table()
    assert table["topic"].tolist() == ["single", "good"]
    assert table["severity"].tolist() == ["critical", "ok"]
    assert table["ok"].tolist() == [False, True]
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["ok"] is False
    assert data["verdict"]["headline"] == verdict.headline
    assert [action["severity"] for action in data["verdict"]["actions"]] == ["critical", "ok"]


def test_draws_are_taken_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics, text and data need none; the verdict's confidence does, and has the same words."""
    ranges = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": {"value": 1, "low": 0.5, "high": 2}, "hours": 12}}}
    )
    drawn: list[int] = []
    draws = FailureModel.draws

    def counting(model: FailureModel, number: int, seed: int) -> object:
        drawn.append(number)
        return draws(model, number, seed)

    monkeypatch.setattr(FailureModel, "draws", counting)
    found = audit(Cluster(SIX, (TWO_RACKS,)), ranges)
    for look in (repr, Audit.explain, Audit.to_dict, Audit._repr_html_, Audit.table):
        look(found)
    assert (drawn, found.quick_verdict.confidence) == ([], "")
    assert found.verdict.confidence in ("sure", "likely", "depends")
    assert str(found.verdict) == str(found.quick_verdict)
    assert drawn == [DRAWS]


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
    assert Goals().sentence == "Goals: none."
    limits = {"loss_probability_per_year": 1e-6, "write_unavailability": 1e-4}
    assert Goals(**limits).sentence == (
        "Goals: at most a 1 in 1 million chance of data loss a year and writes refused at most 53 "
        "minutes a year."
    )
    told = Goals(read_unavailability=1e-3, records_refused_per_year=7, survive="rack").sentence
    for words in ("reads refused at most", "at most 7 failed sends", "when one rack is lost"):
        assert words in told


@pytest.mark.parametrize("price", [0, -1.0, math.nan, math.inf, True, "a week", None, 1e13])
def test_a_loss_is_worth_a_number_of_minutes(price: object) -> None:
    """Above 0 and finite; the error says what to give."""
    assert Goals().minutes_per_loss == Goals().requirements.minutes_per_loss == 10_080.0
    with pytest.raises(InputError, match=r"minutes_per_loss=.*as bad as losing records once"):
        Goals(minutes_per_loss=price)  # type: ignore[arg-type]


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
    """Thirty topics with one configuration and two rack patterns need four chains, not 120."""
    rng = random.Random(2)
    apart, together = ((1, 2, 3), (4, 5, 6), (1, 5, 3)), ((1, 4, 2), (3, 6, 5))
    alike = [
        topic(f"t{i}", rng.choice(apart), rng.choice(together), min_insync_replicas="2")
        for i in range(30)
    ]
    measure.cache_clear()
    audit(Cluster(SIX, tuple(alike)), CARD)
    # As they are, and apart with min ISR 1 to 3, of which one is today's.
    assert measure.cache_info().misses == 4
