"""How sure a met goal is: counted over the same draws that the intervals come from."""

import re
import statistics

import pytest

from advisor import Cluster, Config, FailureModel, Goals, Workload, evaluate, load_model, recommend
from advisor.advice.choice import certainty, choose, draws_kept
from advisor.advice.recommendations import reasons
from advisor.formatting import time_per_year
from advisor.reliability.failures.uncertainty import parameter_draws
from advisor.reliability.patching import without_cluster_wide
from advisor.reliability.results.sensitivity import draws_within

CLUSTER = Cluster.uniform(brokers=3, racks=3)
SETTING = Config(replication_factor=2, min_insync_replicas=2)
CRASHES = {"per_year": {"value": 2.0, "low": 0.2, "high": 40.0}, "minutes": 10.0}
POWER = {"per_year": {"value": 0.1, "low": 0.01, "high": 1.0}, "minutes": 60.0}
CARD = FailureModel.from_dict({"broker": {"crash": CRASHES}, "cluster": {"power": POWER}})


@pytest.fixture(scope="module")
def result():
    return evaluate(CLUSTER, SETTING, CARD)


@pytest.mark.parametrize("times", [0.2, 1.0, 5.0, 1000.0])
def test_draws_that_keep_a_limit_are_those_evaluated_one_by_one(result, times):
    """What is beyond settings, here the site's power, does not count."""
    limit = times * result.write_unavailability
    cards = [without_cluster_wide(card) for card in parameter_draws(CARD, result.states)]
    alone = [evaluate(CLUSTER, SETTING, card).write_unavailability for card in cards]
    expected = sum(value <= limit for value in alone)
    assert draws_within(result, {"write_unavailability": limit}) == (expected, len(cards))
    assert {0.2: expected < 16, 1000.0: expected == 32}.get(times, True)


def test_a_draw_meets_the_goals_only_if_it_meets_each(result):
    writes = {"write_unavailability": result.write_unavailability}
    reads = {"read_unavailability": result.read_unavailability / 3.0}
    both, _ = draws_within(result, writes | reads)
    assert both <= min(draws_within(result, limits)[0] for limits in (writes, reads))


def test_the_sentence_counts_each_goal(result):
    goals = Goals(loss_probability_per_year=0.5, write_unavailability=1e-4)
    said = certainty(choose(SETTING, result, goals, rack_share=None))
    both, draws, losses, writes = map(int, re.findall(r"\d+", said))
    assert (both, draws) == draws_within(result, goals.limits)
    assert losses == 32
    assert writes == both < 32
    one = Goals(loss_probability_per_year=None, write_unavailability=1e-4)
    assert certainty(choose(SETTING, result, one, rack_share=None)) == (
        f"How sure: {writes} of 32 random draws of the card's numbers meet the goal for time "
        f"without writes{'; most draws miss it' if writes < 16 else ''}."
    )


def test_nothing_is_said_without_goals_or_ranges(result):
    none = Goals(loss_probability_per_year=None, write_unavailability=None)
    assert certainty(choose(SETTING, result, none, rack_share=None)) == ""
    sharp = {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
    exact = evaluate(CLUSTER, SETTING, FailureModel.from_dict(sharp))
    assert certainty(choose(SETTING, exact, Goals(), rack_share=None)) == ""


def test_a_recommendation_says_how_sure_it_is():
    advice = recommend(CLUSTER, CARD, Workload(partitions=1))
    assert certainty(advice.best) in advice.below_verdict
    assert "How sure: " in str(advice)


@pytest.mark.parametrize(("times", "doubtful"), [(1.3, True), (4.0, False)])
def test_a_verdict_counts_the_draws_where_most_miss_the_goals(times, doubtful):
    """The value is well below the goal, but half of the draws are twice as high as the value."""
    card = load_model("three_az_cloud")
    config = Config(replication_factor=3, min_insync_replicas=2)
    trio = evaluate(CLUSTER, config, card)
    writes = times * trio.write_unavailability
    goals = Goals(loss_probability_per_year=None, write_unavailability=writes)
    found = choose(config, trio, goals, rack_share=None)
    kept, draws = draws_kept(found)
    assert found.meets_all
    assert (2 * kept < draws == 32) == doubtful
    name = "RF 3 with min ISR 2"
    sure, unsure = (
        f"Yes, {name} meets your goals: ",
        f"Doubtful: {name} meets goals in {kept}/32 draws; ",
    )
    head = unsure if doubtful else sure
    assert reasons.verdict(found, goals).startswith(head)


def test_the_median_of_the_draws_is_said_where_it_is_well_above_the_value():
    """Both causes have long upper tails, so half of the sums exceed the sum of the middles."""
    lopsided = {"value": 2.0, "low": 1.9, "high": 400.0}
    card = FailureModel.from_dict(
        {
            "broker": {"crash": {"per_year": lopsided, "minutes": 10.0}},
            "rack": {"power": {"per_year": lopsided, "minutes": 10.0}},
        }
    )
    found = evaluate(CLUSTER, SETTING, card)
    drawn = [
        evaluate(CLUSTER, SETTING, each).write_unavailability
        for each in parameter_draws(card, found.states)
    ]
    most = statistics.median(drawn)
    assert most > 1.2 * found.write_unavailability
    assert f"; half of the draws exceed {time_per_year(most)} of refused writes" in str(found)
    single = FailureModel.from_dict({"broker": {"crash": CRASHES}})
    assert "half of the draws" not in str(evaluate(CLUSTER, SETTING, single))
