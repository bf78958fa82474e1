"""Verdicts of clusters and single topics: what is said, in how many words, about which topics."""

import json
from dataclasses import replace

import pytest

from advisor.decision import Depth, Requirements, Setting, TopicQuestion, decide_cluster
from advisor.decision.words import sure_sentence
from advisor.reliability.failures import mechanisms
from fake_evaluator import FakeEvaluator, question
from six_topics import QUICK, SIX, amounts, drawn_verdict, verdict


def test_a_cluster_of_six_topics() -> None:
    """What to do, which topics lose records or stop writes, and the worst topic afterwards."""
    answer = verdict(*SIX)
    assert str(answer) == (
        "Change 4 of 6 topics to RF 3, min ISR 2, acks=all.\n"
        "__consumer_offsets (RF 1) loses records every 8.9 months; payments and clickstream "
        "(min ISR 1) every 16 to 18 years. audit (min ISR 3) stops writes 7.7 hours a year. After "
        "the change the worst topic loses records every 270 years and stops writes 34 minutes a "
        "year."
    )
    assert len(str(answer).split()) <= 60
    assert [(a.topic, a.severity) for a in answer.actions] == [
        ("__consumer_offsets", "critical"),
        ("payments", "critical"),
        ("clickstream", "critical"),
        ("audit", "critical"),
        ("__transaction_state", "ok"),
        ("orders", "ok"),
    ]
    assert [action.topic for action in answer.actions if action.held_back] == ["audit"]
    assert answer.severity == "critical"


def test_the_sentences_below() -> None:
    """What no setting prevents, the price at which it pays, and what is held back."""
    below = verdict(*SIX).below
    lost_disks = mechanisms.words("broker.destroyed")
    assert below[0] == (
        f"No setting prevents a loss every 270 years ({lost_disks}) and 17 of the 34 minutes a "
        "year."
    )
    assert "Min ISR 2 pays if a loss outweighs 4.8 hours without writes." in below
    assert "Held back, because it lowers min ISR from 3 to 2: audit." in below


def test_a_prompt_shows_sentences_only() -> None:
    """What Python shows for a verdict: headline, text and the sentences below, no placements."""
    answer = verdict(*SIX)
    assert repr(answer).splitlines() == [answer.headline, answer.text, *answer.below]


@pytest.mark.parametrize("size", range(1, 7))
def test_few_words_for_up_to_six_topics(size: int) -> None:
    """At most 60 words, 25 of them in the headline, whatever topics there are and is broken."""
    names = ["__consumer_offsets", "a" * 249, "c.d.e", "f", "g", "h"]
    kinds = [(1, 1, "all"), (2, 1, "all"), (3, 3, "all"), (3, 1, "all"), (3, 1, 1), (3, 2, "all")]
    topics = [
        question(factor, least, topic=name, acks=acks)
        for name, (factor, least, acks) in zip(names, kinds, strict=True)
    ][:size]
    broken = tuple(f"{name}: 2 of 3 partitions have no leader, no broker is up" for name in names)
    for now in ((), broken[:1], broken[:3], (" ".join(["word"] * 40),)):
        answer = verdict(*topics, now=now)
        assert len(answer.headline.split()) <= 25
        assert len(str(answer).split()) <= 60


def test_what_is_broken_comes_first() -> None:
    """Before what to change."""
    answer = verdict(SIX[4], now=("orders: 2 of 12 partitions have no leader",))
    assert answer.headline == (
        "Broken now: orders: 2 of 12 partitions have no leader. Keep RF 3, min ISR 2, acks=all."
    )
    assert answer.now == ("orders: 2 of 12 partitions have no leader",)


def test_the_price_is_said_with_draws_and_without() -> None:
    """At the middle values, so that taking draws does not change the sentence."""
    evaluator, depth = FakeEvaluator(), Depth(sensitivity=False, others=False)
    drawn = decide_cluster([SIX[4]], evaluator, depth=depth)
    middle = decide_cluster([SIX[4]], evaluator, depth=QUICK)
    sentence = "Min ISR 2 pays if a loss outweighs 92 minutes without writes."
    assert sentence in middle.below
    assert f"How sure: {drawn.confidence}. {sentence}" in drawn.below
    assert drawn.choice is not None
    assert drawn.choice.break_even_minutes is not None
    assert drawn.choice.break_even_minutes.low < 92 < drawn.choice.break_even_minutes.high


def test_one_topic_before_and_after() -> None:
    """A change says both; without a name it is about the setting."""
    lost_disks = mechanisms.words("broker.destroyed")
    assert str(verdict(SIX[5])) == (
        "Change payments to RF 3, min ISR 2, acks=all.\n"
        "Today it loses records every 16 years and stops writes 17 minutes a year; after the "
        f"change it loses records every 270 years ({lost_disks}; no setting prevents it) and "
        "stops writes 34 minutes a year."
    )
    assert verdict(question(3, 1, topic="")).headline == "Set RF 3, min ISR 2, acks=all."


def test_what_is_kept() -> None:
    """One topic, several with the same setting, and several with different ones."""
    assert verdict(SIX[4]).headline == "Keep RF 3, min ISR 2, acks=all."
    assert verdict(SIX[4], SIX[1]).headline == "Keep RF 3, min ISR 2, acks=all."
    cheap = Requirements(minutes_per_loss=250.0)
    two = verdict(SIX[4], question(3, 1, topic="logs"), requirements=cheap)
    assert two.headline == "Keep the settings of both topics."
    assert two.text.startswith("logs loses records every 16 years (")
    assert two.text.endswith(" and orders stops writes 34 minutes a year.")


def test_different_targets() -> None:
    """The headline names the one that most topics get."""
    wide = question(4, 4, topic="wide")
    answer = verdict(SIX[3], SIX[5], wide)
    assert answer.headline == "Change all 3 topics to RF 3, min ISR 2, acks=all in most cases."


def test_replicas_that_only_move() -> None:
    """Spread over the racks, with the settings that the topic has."""

    def crowded(setting: Setting, numbers: object) -> tuple[float, float]:
        losses, minutes = amounts(setting, numbers)
        return losses + 0.2 * (setting.placement == ((1, 4, 2),)), minutes

    plain = question()
    today = Setting(plain.today.config, ((1, 4, 2),))
    asked = TopicQuestion("orders", today, plain.load, plain.brokers, plain.planned)
    answer = decide_cluster([asked], FakeEvaluator(crowded), depth=QUICK)
    assert answer.headline == "Spread the replicas of orders over the racks; keep its settings."


@pytest.mark.parametrize(
    ("racks", "sentence"),
    [
        ("a", "All brokers stand in one rack: what strikes it reaches every copy."),
        ("ab", "With two racks, losing one can stop writes."),
        ("abc", ""),
    ],
)
def test_racks_limit_what_settings_can_do(racks: str, sentence: str) -> None:
    """The same setting has another reason on one rack, two and three."""
    text = verdict(question(racks=racks)).text
    assert text.endswith(sentence)
    assert ("rack" in text) is bool(sentence)


def test_no_topic() -> None:
    """A cluster without topics has a verdict as well."""
    answer = verdict()
    assert (str(answer), answer.choice, answer.floor) == (
        "There is no topic to decide about.",
        None,
        None,
    )


def test_a_price_of_nothing_and_certain_losses_have_words() -> None:
    """No number of the text is infinite, and none divides by 0."""

    def never(setting: Setting, _: object) -> tuple[float, float]:
        return 0.0, 0.0 if setting.min_insync_replicas < 3 else 5.0

    for formula in (never, lambda *_: (float("inf"), 10.0)):
        answer = decide_cluster([SIX[4], SIX[5]], FakeEvaluator(formula), depth=QUICK)
        assert "inf" not in str(answer)
        assert "nan" not in str(answer)


def test_topics_of_one_class_share_a_choice() -> None:
    """The same setting on racks in the same way is decided once; each topic has its own numbers."""
    topics = [question(3, 1, topic=f"t{n}", partitions=n) for n in range(1, 9)]
    evaluator = FakeEvaluator(amounts)
    answer = decide_cluster(topics, evaluator, depth=QUICK)
    assert len({id(action.choice) for action in answer.actions}) == 1
    assert {action.topic for action in answer.actions} == {f"t{n}" for n in range(1, 9)}
    # Four settings for the class, two for each other topic.
    assert len(evaluator.asked) == 3 + 2 * 7
    # It is decided for the largest topic, and for no other.
    dearest = [text for text in evaluator.asked if "min ISR 3" in text]
    assert dearest == ["middle RF 3, min ISR 3, acks=all of 8"]


def test_draws_are_taken_for_the_worst_classes() -> None:
    """Up to a number of chains; the others say that they were left out."""
    depth = Depth(sensitivity=False, others=False)
    evaluator = FakeEvaluator(amounts)
    answer = decide_cluster(SIX, evaluator, depth=depth, most_chains=5)
    drawn = [action.topic for action in answer.actions if action.choice.draws]
    assert drawn == ["__consumer_offsets"]
    assert answer.undrawn == 5
    assert any("not computed for 5 topics" in sentence for sentence in answer.below)
    every = decide_cluster(SIX, FakeEvaluator(amounts), depth=depth)
    assert every.undrawn == 0
    assert all(action.choice.draws == 128 for action in every.actions)


def test_the_least_confident_choice_is_the_verdicts() -> None:
    """And only it says what it depends on."""
    depth = Depth(others=False)
    answer = decide_cluster(
        [question(3, 2, topic="sure"), question(2, 2, topic="unsure", brokers=2)],
        FakeEvaluator(),
        Requirements(minutes_per_loss=50_000.0),
        depth=depth,
    )
    shares = {a.topic: a.choice.kept_in / a.choice.draws for a in answer.actions}
    least = min(answer.actions, key=lambda action: action.choice.kept_in)
    assert shares["sure"] != shares["unsure"]
    assert answer.choice is least.choice
    assert answer.confidence == least.choice.confidence
    assert answer.choice.measure_next
    others = [a.choice.depends_on for a in answer.actions if a.choice is not answer.choice]
    assert others == [None]


def test_the_topics_of_the_least_sure_choice_are_named() -> None:
    """Where others are surer; alone, or with all as sure, no topic is named."""
    actions = drawn_verdict(*SIX).actions
    choices = [
        replace(action.choice, draws=128, kept_in=100 if action.topic == "audit" else 128)
        for action in actions
    ]
    drawn = [
        replace(action, choice=choice) for action, choice in zip(actions, choices, strict=True)
    ]
    least = min(choices, key=lambda choice: choice.kept_in)
    assert "likely (audit), else sure." in sure_sentence(least, drawn)
    assert "How sure: likely." in sure_sentence(least, [a for a in drawn if a.topic == "audit"])
    assert "How sure: sure." in sure_sentence(choices[-1], [drawn[-1], drawn[-1]])


def test_what_a_choice_depends_on_is_named() -> None:
    """Two numbers of the card by name, more or none in words."""
    choice = verdict(SIX[4]).choice
    assert choice is not None
    unsure = replace(choice, draws=128, kept_in=40)
    for paths, words_of_numbers in (
        (("broker.crash.per_year", "flush.seconds"), "broker.crash.per_year and flush.seconds"),
        (None, "numbers of the card that differ between clusters"),
    ):
        sentence = sure_sentence(replace(unsure, depends_on=paths))
        assert sentence.startswith(f"How sure: it depends on {words_of_numbers}. Min ISR 2 pays")


def test_a_verdict_is_plain_data() -> None:
    """It can be written as JSON, with every action."""
    data = json.loads(json.dumps(verdict(*SIX).to_dict(), allow_nan=False))
    assert data["actions"][0]["topic"] == "__consumer_offsets"
    assert data["headline"] == verdict(*SIX).headline


def test_what_is_infinite_is_a_word_in_data() -> None:
    """JSON has no infinite number: certain losses, and a higher min ISR that no price pays."""

    def lossless(setting: Setting, _: object) -> tuple[float, float]:
        return 0.0, 10.0 * setting.min_insync_replicas

    def certain(setting: Setting, _: object) -> tuple[float, float]:
        return float("inf"), 10.0 * setting.min_insync_replicas

    free, lost = (
        json.loads(
            json.dumps(
                decide_cluster([SIX[4]], FakeEvaluator(formula), depth=QUICK).to_dict(),
                allow_nan=False,
            )
        )
        for formula in (lossless, certain)
    )
    assert free["choice"]["pays_to_minutes"] == "infinite"
    assert free["choice"]["break_even_above"]["high"] == "infinite"
    assert free["actions"][0]["loss_today"] == 0.0
    assert lost["actions"][0]["loss_today"] == "infinite"
    assert lost["floor"]["losses_per_year"] == "infinite"
