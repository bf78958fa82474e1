"""The evaluator that asks `advisor.evaluate`: the same numbers, the same draws for all settings."""

import math

import pytest

import advisor
from advisor import verdicts
from advisor.decision import Depth, ExactEvaluator, Requirements, decide_topic
from advisor.decision.evaluator import LOSSES, MINUTES, halved_and_doubled
from advisor.decision.settings import Setting, TopicQuestion, candidates

CARD = advisor.FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": {"value": 2.0, "low": 1.0, "high": 5.0}, "minutes": 5.0},
            "destroyed": {"per_year": {"value": 2.0, "low": 0.5, "high": 8.0}, "hours": 99.0},
        }
    }
)
CLUSTER = advisor.Cluster.uniform(3, racks=3)
LOAD = advisor.Workload(partitions=2)


def setting(min_isr: int) -> Setting:
    """RF 3 on all three brokers."""
    config = advisor.Config(replication_factor=3, min_insync_replicas=min_isr)
    return Setting(config, ((1, 2, 3), (2, 3, 1)))


def test_middle_values_are_those_of_evaluate() -> None:
    """Losses are -ln(1 - p), and minutes the share of a year without writes."""
    result = advisor.evaluate(
        CLUSTER, setting(2).config, CARD, LOAD, placement=setting(2).placement
    )
    answer = ExactEvaluator(CLUSTER, CARD, 0).middle(setting(2), LOAD)
    assert answer["loss_probability_per_year"] == result.loss_probability_per_year
    assert answer[LOSSES] == -math.log1p(-result.loss_probability_per_year)
    assert answer[MINUTES] == result.write_unavailability * 525_600
    assert answer.main_cause("loss_probability_per_year") == "broker.destroyed"


def test_draws_are_the_same_for_all_settings() -> None:
    """Each is the result evaluated again on the same cards, of which the numbers are told."""
    evaluator = ExactEvaluator(CLUSTER, CARD, 4)
    cards = [*CARD.draws(4, 0)]
    for least in (1, 3):
        asked = setting(least)
        result = advisor.evaluate(CLUSTER, asked.config, CARD, LOAD, placement=asked.placement)
        again = [result.reevaluate(card).write_unavailability for card in cards]
        drawn = evaluator.drawn(asked, LOAD)["write_unavailability"]
        assert drawn.tolist() == pytest.approx(again, rel=1e-6)
    path = "broker.crash.per_year"
    assert evaluator.drawn_numbers()[path].tolist() == [card[path] for card in cards]


def test_a_changed_number_is_evaluated() -> None:
    """As on a card that has it."""
    evaluator, more = ExactEvaluator(CLUSTER, CARD, 0), {"broker.crash.per_year": 8.0}
    answer, same = evaluator.at(setting(2), LOAD, [more, {}])
    changed = CARD.with_values({"broker.crash.per_year": 8.0})
    right = advisor.evaluate(CLUSTER, setting(2).config, changed, LOAD)
    assert answer["write_unavailability"] == pytest.approx(right.write_unavailability, rel=1e-2)
    middle = evaluator.middle(setting(2), LOAD)
    assert same["write_unavailability"] == pytest.approx(middle["write_unavailability"], rel=1e-9)
    refused = "records_refused_per_year"
    assert answer[refused] == pytest.approx(right.records_refused_per_year, rel=1e-2)


def test_an_almost_certain_loss_has_a_number() -> None:
    """Where the probability is 1 to all digits the mean time to a loss says how often."""
    config = advisor.Config(replication_factor=1)
    load = advisor.Workload(partitions=3000)
    cluster = advisor.Cluster.uniform(30, racks=3)
    often = CARD.with_values({"broker.destroyed.per_year": 4.0})
    answer = ExactEvaluator(cluster, often, 0).middle(Setting(config), load)
    assert answer["loss_probability_per_year"] == 1.0
    assert answer[LOSSES] == pytest.approx(120.0, rel=0.1)


def test_a_card_without_ranges_has_no_draws() -> None:
    """Nothing would differ between them."""
    exact = CARD.with_values({path: CARD[path] for path in CARD.uncertain})
    assert ExactEvaluator(CLUSTER, exact).draws == 0
    assert ExactEvaluator(CLUSTER, CARD, 4).draws == 4


def test_results_are_remembered_up_to_a_number() -> None:
    """Each setting is evaluated once; many loads do not fill the memory."""
    calls = []

    def counted(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        return advisor.evaluate(*arguments, **options)  # type: ignore[arg-type]

    evaluator = ExactEvaluator(CLUSTER, CARD, 0, counted)
    loads = [advisor.Workload(partitions=1, records_per_second=float(n)) for n in range(1, 70)]
    for load in (*loads, *loads):
        evaluator.middle(Setting(setting(1).config), load)
    assert len(calls) == len(loads)
    assert len(evaluator._results) == 64


def test_half_and_twice_of_every_number_that_may_be() -> None:
    """Probabilities end at 1, and a rate that follows from a calendar is not changed."""
    model = advisor.load_model("three_az_cloud")
    values = list(halved_and_doubled(model))
    assert {path for path, _ in values} == {p for p, q in model.quantities.items() if q.value}
    for path, value in values:
        assert model.with_values({path: value})[path] == value
        assert value in (0.5 * model[path], 2.0 * model[path], 1.0)
    weekly = model.with_calendar(weekday="tuesday", hour=2, every_weeks=4)
    assert "broker.restart.per_year" not in {path for path, _ in halved_and_doubled(weekly)}


@pytest.mark.parametrize("least", [1, 2])
def test_the_choice_is_the_same_for_1_12_and_120_partitions(least: int) -> None:
    """Partitions that lose at the same moment are one loss: RF 3 and min ISR 2 in three zones."""
    cluster, model = advisor.Cluster.uniform(6, racks=3), advisor.load_model("three_az_cloud")
    evaluator, depth = ExactEvaluator(cluster, model, 0), Depth(False, False, False)
    prices = []
    for partitions in (1, 12, 120):
        today = Setting(advisor.Config(replication_factor=3, min_insync_replicas=least))
        asked = TopicQuestion(
            "orders",
            today,
            advisor.Workload(partitions=partitions),
            cluster.brokers,
            lambda _: None,
        )
        action = decide_topic(asked, evaluator, Requirements(), depth=depth)
        assert action.after.key == (3, 2, "all", False)
        assert action.choice.break_even_minutes is not None
        prices.append(action.choice.break_even_minutes.median)
    # By the sum over partitions it would change a hundred times.
    assert max(prices) < 10 * min(prices)


@pytest.mark.parametrize("card", ["three_az_cloud", "managed_service", "spot_instances"])
def test_one_partition_that_runs_with_min_isr_1_is_set_to_2(card: str) -> None:
    """By the rule: min ISR 1 costs more than the best by ten minutes, and by 10 % of its own.

    The cost of each above the floor is added up by hand; with more partitions it is only larger.
    """
    cluster, model = advisor.Cluster.uniform(6, racks=3), advisor.load_model(card)
    evaluator, load = ExactEvaluator(cluster, model, 0), advisor.Workload(partitions=1)
    settings = [
        Setting(advisor.Config(replication_factor=3, min_insync_replicas=least))
        for least in (1, 2, 3)
    ]
    asked = TopicQuestion("one", settings[0], load, cluster.brokers, lambda _: None)
    action = decide_topic(asked, evaluator, Requirements(), depth=Depth(False, False, False))
    amounts = [evaluator.middle(setting, load) for setting in settings]
    least_losses, least_minutes = (min(a[name] for a in amounts) for name in (LOSSES, MINUTES))
    costs = [a[MINUTES] - least_minutes + 10_080 * (a[LOSSES] - least_losses) for a in amounts]
    assert min(costs) == costs[1]
    assert costs[0] - costs[1] >= max(10.0, 0.1 * costs[0])
    assert action.set_to is not None
    assert action.set_to.key == (3, 2, "all", False)


def test_the_verdict_on_a_result_is_reached_through_the_registry() -> None:
    """Results name what they are; the setting that was evaluated counts as today's."""
    config = advisor.Config(replication_factor=3, min_insync_replicas=3)
    result = advisor.evaluate(CLUSTER, config, CARD, LOAD)
    quick = Depth(draws=False, sensitivity=False, others=False)
    answer = verdicts.verdict_of("reliability", result, draws=0, depth=quick)
    assert str(answer).startswith("Set RF 3, min ISR 1, acks=all.\nToday it ")
    assert answer.actions[0].held_back
    floor = verdicts.verdict_of("floor", result)
    losses = [
        ExactEvaluator(CLUSTER, CARD, 0).middle(asked, LOAD)[LOSSES]
        for asked in candidates(
            TopicQuestion("", Setting(config), LOAD, CLUSTER.brokers, lambda _: None)
        )
    ]
    assert floor.losses_per_year == min(losses)
    whole = result.write_unavailability
    parts = (
        floor.by_settings("write_unavailability", whole),
        floor.beyond_settings("write_unavailability"),
    )
    assert sum(parts) == pytest.approx(whole)
    assert parts[0] > parts[1] > 0.0


def test_what_runs_today_may_be_given() -> None:
    """The result's setting is then one of the candidates."""
    result = advisor.evaluate(CLUSTER, setting(2).config, CARD, LOAD)
    quick = Depth(draws=False, sensitivity=False, others=False)
    today = advisor.Config(replication_factor=1)
    answer = verdicts.verdict_of("reliability", result, current=today, draws=0, depth=quick)
    assert str(answer.actions[0].today).startswith("RF 1, min ISR 1")


def test_nothing_decides_about_an_unknown_kind() -> None:
    """The error names the kind."""
    with pytest.raises(LookupError, match="weather"):
        verdicts.verdict_of("weather")
