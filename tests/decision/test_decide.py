"""Decisions about one topic, with an evaluator whose numbers are plain."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.decision import Depth, Measured, Requirements, Setting, decide_topic, rule
from advisor.decision.comparison import REFUSED, Sensitivity, choice_of, compare
from advisor.decision.evaluator import LOSSES, MINUTES
from advisor.decision.verdict import Action
from advisor.errors import InputError
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload
from fake_evaluator import MODEL, FakeEvaluator, question, usual

QUICK = Depth(draws=False, sensitivity=False, others=False)


def decided(requirements: Requirements | None = None, **topic: object) -> Action:
    """Decide about a topic at the card's middle values only."""
    asked = question(**topic)  # type: ignore[arg-type]
    return decide_topic(asked, FakeEvaluator(), requirements, depth=QUICK)


def pair(setting: Setting | None) -> tuple[int, int] | None:
    """RF and min ISR, or None."""
    return None if setting is None else (setting.replication_factor, setting.min_insync_replicas)


@pytest.mark.parametrize(
    ("today", "set_to", "severity"),
    [
        ((3, 2), None, "ok"),
        ((3, 1), (3, 2), "critical"),
        ((3, 3), (3, 2), "critical"),
        ((2, 1), (3, 2), "critical"),
        ((1, 1), (3, 2), "critical"),
        ((4, 3), None, "ok"),
        ((4, 2), None, "ok"),
    ],
)
def test_what_is_set(today: tuple[int, int], set_to: tuple[int, int] | None, severity: str) -> None:
    """The rule's choice at the card's values, and how urgent the change is."""
    action = decided(replication_factor=today[0], min_isr=today[1])
    assert (pair(action.set_to), action.severity) == (set_to, severity)


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1e4)), min_size=16, max_size=16),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 6),
    st.booleans(),
    st.floats(0, 1e5),
    st.sampled_from([None, 1e-9, 1e-3, 0.5]),
)
def test_never_fewer_replicas_and_never_less_for_kafkas_own(
    table: list[tuple[float, float]],
    factor: int,
    min_isr: int,
    brokers: int,
    internal: bool,
    price: float,
    limit: float | None,
) -> None:
    """Whatever settings cost, a price says and a goal asks for."""
    if factor > brokers:
        factor = brokers

    def amounts(setting: Setting, _: object) -> tuple[float, float]:
        return table[hash(setting.key[:2]) % len(table)]

    limits = {} if limit is None else {"loss_probability_per_year": limit}
    asked = question(factor, min_isr, brokers, internal=internal)
    requirements = Requirements(limits, minutes_per_loss=price)
    after = decide_topic(asked, FakeEvaluator(amounts), requirements, depth=QUICK).after
    assert after.replication_factor >= factor
    assert after == asked.today or after.replication_factor >= min(3, brokers)
    if internal and brokers >= 3:
        assert after.replication_factor >= 3
        assert after.min_insync_replicas >= 2


def test_a_change_that_is_not_urgent_is_a_warning() -> None:
    """Losses below ten times the floor, and writes that outlast a restart."""

    def amounts(setting: Setting, _: object) -> tuple[float, float]:
        return {1: (0.009, 10.0), 2: (0.001, 20.0), 3: (0.001, 400.0)}[setting.min_insync_replicas]

    action = decide_topic(question(3, 1), FakeEvaluator(amounts), depth=QUICK)
    assert (pair(action.set_to), action.severity) == ((3, 2), "warning")


def test_numbers_of_an_action_are_whole() -> None:
    """Losses and minutes of today's and the new setting, with what no setting prevents."""
    action = decided(replication_factor=3, min_isr=1)
    assert (action.loss_today, action.refused_today) == usual(action.today, MODEL)
    assert (action.loss_after, action.refused_after) == usual(action.after, MODEL)
    assert action.floor.losses_per_year == pytest.approx(0.002)
    assert action.floor.minutes_without_writes_per_year == pytest.approx(21.0)
    beyond = action.floor.beyond_settings("write_unavailability")
    by = action.floor.by_settings("write_unavailability", action.refused_today / 525_600.0)
    assert beyond == pytest.approx(21.0 / 525_600.0)
    assert by == pytest.approx(0.0, abs=1e-12)


def test_the_price_of_a_loss_decides() -> None:
    """Metrics whose loss is as bad as ten minutes keep min ISR 1, an archive gets min ISR 3."""
    assert decided(Requirements(minutes_per_loss=10.0), min_isr=1).set_to is None
    assert pair(decided(Requirements(minutes_per_loss=1e6), min_isr=2).set_to) == (3, 3)


def test_acks_1_and_unclean_elections_are_advised_away() -> None:
    """Neither is a candidate; the price may say otherwise where they save clearly more."""
    for options in ({"acks": 1}, {"unclean_leader_election_enable": True}):
        action = decided(**options)
        assert (pair(action.set_to), action.severity) == ((3, 2), "critical")
        assert "all" in str(action.set_to)

    def amounts(setting: Setting, _: object) -> tuple[float, float]:
        return (0.5, 1.0) if setting.config.acks == 1 else (0.1, 500.0)

    cheap = Requirements(minutes_per_loss=10.0)
    action = decide_topic(question(acks=1), FakeEvaluator(amounts), cheap, depth=QUICK)
    assert action.set_to is None


def test_kafkas_own_topics_never_get_less() -> None:
    """RF 3 and min ISR 2 at least with three brokers, whatever a loss costs."""
    cheap = Requirements(minutes_per_loss=0.0)
    assert pair(decided(cheap, min_isr=1, internal=True).set_to) == (3, 2)
    assert pair(decided(cheap, min_isr=1).set_to) is None
    on_two_brokers = decided(cheap, replication_factor=1, min_isr=1, brokers=2, internal=True)
    assert pair(on_two_brokers.set_to) == (2, 1)


def test_a_lower_min_isr_is_held_back_without_consent() -> None:
    """3 to 2 is shown and held back; consent, or a min ISR above RF that comes down, is not."""
    asked, evaluator = question(3, 3), FakeEvaluator()
    assert decide_topic(asked, evaluator, depth=QUICK).held_back
    assert not decide_topic(asked, evaluator, allow_lower_durability=True, depth=QUICK).held_back
    assert not decided(replication_factor=2, min_isr=5).held_back
    assert not decided(replication_factor=3, min_isr=1).held_back


@pytest.mark.parametrize(("acks", "held_back"), [("all", True), (1, False), (0, False)])
def test_a_min_isr_that_no_producer_waits_for_is_not_lowered(acks: object, held_back: bool) -> None:
    """Without acks=all min ISR 3 guards nothing, so that acks=all with min ISR 2 lowers nothing."""
    action = decided(min_isr=3, acks=acks)
    assert pair(action.set_to) == (3, 2)
    assert action.held_back == held_back


class ImpatientEvaluator(FakeEvaluator):
    """Failed sends of a thousand a year, fewer the longer producers try."""

    def middle(self, setting: Setting, load: Workload) -> Measured:
        """Return the measures at the card's values."""
        measured = super().middle(setting, load)
        timeout_ms = setting.config.delivery_timeout_ms
        assert timeout_ms is not None
        refused = 1000.0 * 120_000 / timeout_ms
        return replace(measured, values={**measured.values, REFUSED: refused})


@pytest.mark.parametrize(
    ("limit", "timeout_ms", "state"),
    [(1000, None, "met"), (300, 600_000, "met"), (100, 1_800_000, "met"), (50, None, "out")],
)
@pytest.mark.parametrize("min_isr", [1, 2])
def test_a_goal_for_failed_sends_is_judged_with_patient_producers(
    limit: float, timeout_ms: int | None, state: str, min_isr: int
) -> None:
    """The shortest timeout that meets it is set, before any further replica; else today's stays."""
    wanted = Requirements({REFUSED: limit})
    action = decide_topic(question(3, min_isr), ImpatientEvaluator(), wanted, depth=QUICK)
    (goal,) = action.goals
    assert goal.state.startswith(state)
    assert pair(action.after) == (3, 2)
    if min_isr == 2:
        assert (action.set_to is None) == (timeout_ms is None)
    if timeout_ms is not None:
        assert action.after.config.delivery_timeout_ms == timeout_ms
        assert str(action.after).endswith(f"delivery.timeout.ms={timeout_ms}")


def test_replicas_that_share_a_rack_are_spread() -> None:
    """The same setting on better replicas is a change of its own, and moves them."""
    asked = question()
    crowded = Setting(asked.today.config, ((1, 4, 2),))

    def amounts(setting: Setting, _: object) -> tuple[float, float]:
        extra = 0.1 if setting.placement == crowded.placement else 0.0
        return usual(setting, MODEL)[0] + extra, usual(setting, MODEL)[1]

    asked = replace(asked, today=crowded)
    action = decide_topic(asked, FakeEvaluator(amounts), depth=QUICK)
    assert action.set_to is not None
    assert (action.moves, action.set_to.placement) == (True, ((1, 2, 3),))
    assert not decided(min_isr=1).moves


def goal(requirements: Requirements, **topic: object) -> tuple[Action, str]:
    """The action and the state of its only goal."""
    action = decided(requirements, **topic)
    return action, action.goals[0].state


def test_a_goal_that_the_choice_meets() -> None:
    """Nothing else is evaluated for it."""
    action, state = goal(Requirements({"loss_probability_per_year": 0.01}))
    assert (action.set_to, state, action.goals[0].by) == (None, "met", None)


def test_a_goal_that_another_candidate_meets_is_followed() -> None:
    """A limit on losses that only min ISR 3 keeps chooses it."""
    action, state = goal(Requirements({"loss_probability_per_year": 0.0025}))
    assert (pair(action.set_to), state) == ((3, 3), "met")


def test_a_goal_that_asks_for_more_replicas_gets_them() -> None:
    """A limit on minutes that RF 3 misses at every min ISR chooses RF 4."""
    limits = {"write_unavailability": 20.7 / 525_600.0}
    action, state = goal(Requirements(limits))
    assert (action.set_to and action.set_to.replication_factor, state) == (4, "met")


def test_two_goals_that_no_setting_meets_together() -> None:
    """The one that is missed names the setting that would meet it."""
    limits = {"write_unavailability": 25 / 525_600.0, "loss_probability_per_year": 0.0025}
    action = decided(Requirements(limits), brokers=3)
    states = {outcome.goal: (outcome.state, pair(outcome.by)) for outcome in action.goals}
    assert sorted(state for state, _ in states.values()) == ["met", "missed"]
    assert {by for _, by in states.values()} in ({None, (3, 1)}, {None, (3, 3)})


def test_a_goal_out_of_reach_gives_the_best_that_can_be_had() -> None:
    """Up to RF 5, and it does not change the choice."""
    action, state = goal(Requirements({"loss_probability_per_year": 1e-6}))
    assert (action.set_to, state) == (None, "out of reach")
    assert action.goals[0].best == pytest.approx(-math.expm1(-(0.001 + 0.05 * 0.01)))


def test_a_goal_that_only_todays_setting_meets_keeps_it() -> None:
    """Acks 1 stays where a limit says so, though it is no candidate."""

    def amounts(setting: Setting, _: object) -> tuple[float, float]:
        return (0.5, 1.0) if setting.config.acks == 1 else (0.1, 5.0)

    limits = Requirements({"write_unavailability": 2.0 / 525_600.0})
    evaluator = FakeEvaluator(amounts)
    assert decide_topic(question(acks=1), evaluator, limits, depth=QUICK).set_to is None
    assert decide_topic(question(acks=1), evaluator, depth=QUICK).set_to is not None


def test_goals_are_counted_in_draws() -> None:
    """Met in as many draws as the chosen setting keeps the limit."""
    evaluator, asked = FakeEvaluator(), question()
    limits = {"loss_probability_per_year": 0.003}
    depth = Depth(sensitivity=False, others=False)
    action = decide_topic(asked, evaluator, Requirements(limits), depth=depth)
    sample = evaluator.drawn(asked.today, asked.load)["loss_probability_per_year"]
    (outcome,) = action.goals
    assert (outcome.met_in, outcome.draws) == (int((sample <= 0.003).sum()), 128)
    assert 0 < outcome.met_in < 128


def test_surviving_a_rack_comes_before_the_rule() -> None:
    """Only settings that survive are chosen; where none does, the rule decides."""
    rack = Requirements(survive="rack", minutes_per_loss=10.0)
    asked, evaluator = question(3, 1), FakeEvaluator()

    def two_in_sync(setting: Setting) -> bool:
        return setting.min_insync_replicas == 2

    action = decide_topic(asked, evaluator, rack, survives=two_in_sync, depth=QUICK)
    assert (pair(action.set_to), action.goals[0].state) == ((3, 2), "met")
    action = decide_topic(asked, evaluator, rack, survives=lambda _: False, depth=QUICK)
    assert (pair(action.set_to), action.goals[0].state) == (None, "out of reach")
    action = decide_topic(
        asked, evaluator, rack, survives=lambda s: s.replication_factor == 5, depth=QUICK
    )
    assert action.set_to is not None
    assert action.set_to.replication_factor == 5


def test_who_asks_to_survive_says_what_survives() -> None:
    """Without that the question cannot be answered; wrong prices and goals are refused too."""
    with pytest.raises(InputError, match="survives the loss of a rack"):
        decided(Requirements(survive="rack"))
    for price in (-1.0, math.nan, math.inf, True):
        with pytest.raises(InputError, match="minutes_per_loss"):
            Requirements(minutes_per_loss=price)
    with pytest.raises(InputError, match="no goal"):
        Requirements({"happiness": 1.0})


def test_the_choice_is_counted_in_draws() -> None:
    """Best, kept, regret and break-even are those of the draws, computed by hand."""
    evaluator, asked = FakeEvaluator(), question()
    comparison = compare(asked, evaluator, Requirements())
    choice = choice_of(comparison, evaluator, Requirements())
    losses, minutes = (
        np.stack([evaluator.drawn(s, asked.load)[name] for s in comparison.settings], axis=1)
        for name in (LOSSES, MINUTES)
    )
    cost = minutes + 10_080.0 * losses
    best = cost.min(axis=1)
    assert comparison.chosen == 0
    assert choice.best_in == int((cost[:, 0] == best).sum())
    assert choice.regret.mean == pytest.approx(float((cost[:, 0] - best).mean()))
    places = {s.min_insync_replicas: at for at, s in enumerate(comparison.settings)}
    at_1, at_2, at_3 = (places[number] for number in (1, 2, 3))
    price = (minutes[:, at_2] - minutes[:, at_1]) / (losses[:, at_1] - losses[:, at_2])
    assert choice.break_even_minutes == pytest.approx(
        (float(np.median(price)), price.min(), price.max())
    )
    price = (minutes[:, at_3] - minutes[:, at_2]) / (losses[:, at_2] - losses[:, at_3])
    assert choice.break_even_above == pytest.approx(
        (float(np.median(price)), price.min(), price.max())
    )
    assert choice.runner_up == comparison.settings[at_3]


def test_a_certain_card_has_no_draws() -> None:
    """Without draws the break-even is that of the middle values, and no word says how sure."""
    action = decided()
    assert (action.choice.draws, action.choice.confidence) == (0, "")
    assert action.choice.break_even_minutes is not None
    assert action.choice.break_even_minutes.low == pytest.approx(9.0 / 0.098)


def test_every_setting_has_the_same_draws() -> None:
    """The candidates and today's setting, also where it is no candidate."""
    evaluator = FakeEvaluator()
    decide_topic(question(2, 1), evaluator, depth=Depth(sensitivity=False, others=False))
    drawn = {text for text in evaluator.asked if text.startswith("drawn")}
    assert drawn == {
        "drawn RF 2, min ISR 1, acks=all",
        *(f"drawn RF 3, min ISR {number}, acks=all" for number in (1, 2, 3)),
    }


def sensitive(price: float) -> tuple[Sensitivity, Action]:
    """The topic at a price, and what its choice depends on."""
    evaluator, asked = FakeEvaluator(), question(3, 2)
    requirements = Requirements(minutes_per_loss=price)
    action = decide_topic(asked, evaluator, requirements, depth=Depth(others=False))
    comparison = compare(asked, evaluator, requirements)
    return Sensitivity(comparison, evaluator, requirements), action


def test_the_numbers_that_the_choice_depends_on() -> None:
    """Exactly those whose half or double changes it; none where it is far from a break-even."""
    assert sensitive(10_080.0)[1].choice.depends_on == ()
    # Today's min ISR 2 costs 9 minutes more than min ISR 1 and saves 0.098 losses. It is kept
    # while it exceeds that by less than ten minutes: twice the outages, half the losses.
    asked, action = sensitive(20.0)
    expected = [
        path
        for path, quantity in MODEL.quantities.items()
        for factor in (0.5, 2.0)
        if asked.choices_at([{path: factor * quantity.value}])[0] != asked.comparison.chosen
    ]
    assert action.choice.depends_on == tuple(dict.fromkeys(expected))
    assert set(action.choice.depends_on) == {"broker.crash.per_year", "broker.crash.minutes"}


def test_what_to_measure_next_and_where_it_changes_the_choice() -> None:
    """A number that changes the choice within its range, and the value at which it does."""
    asked, action = sensitive(20.0)
    first = action.choice.measure_next[0]
    assert first.path == "broker.crash.per_year"
    assert first.how == MODEL.measurable[first.path] != ""
    assert pair(first.then) == (3, 1)
    assert first.changes_at is not None
    # 0.9 x 5 minutes x rate exceed 20 x 0.098 by ten minutes, the margin of today's setting.
    assert first.changes_at == pytest.approx((10.0 + 20.0 * 0.098) / 4.5, rel=0.01)
    assert asked.choices_at([{first.path: first.changes_at * 1.01}]) != [asked.comparison.chosen]
    assert asked.choices_at([{first.path: first.changes_at * 0.98}]) == [asked.comparison.chosen]
    assert action.choice.measuring_changes_choice
    assert len(action.choice.measure_next) <= 3


def test_what_cannot_be_measured_is_not_named() -> None:
    """A probability of a rare event that decides everything, beside a rate that can be counted."""
    share = {"value": 0.1, "low": 0.001, "high": 1.0}
    card = FailureModel.from_dict(
        {
            "broker": {"crash": {"per_year": {"value": 2, "low": 1, "high": 4}, "minutes": 5}},
            "cluster": {"wiped": {"per_year": 0.01, "brokers": share, "hours": 5}},
        }
    )

    def amounts(setting: Setting, drawn: FailureModel) -> tuple[float, float]:
        losses = drawn["cluster.wiped.brokers"] / setting.min_insync_replicas**3
        return losses, 10.0 * drawn["broker.crash.per_year"] * setting.min_insync_replicas**2

    priced = Requirements(minutes_per_loss=1000.0)
    choice = decide_topic(question(), FakeEvaluator(amounts, card), priced).choice
    assert "cluster.wiped.brokers" in choice.depends_on
    assert [number.path for number in choice.measure_next] == ["broker.crash.per_year"]


def test_where_nothing_changes_the_choice_the_range_is_narrowed() -> None:
    """The numbers that explain most of the cost's range, and none changes the choice."""
    _, action = sensitive(10_080.0)
    assert not action.choice.measuring_changes_choice
    assert [number.path for number in action.choice.measure_next][:2] == [
        "broker.destroyed.per_year",
        "broker.crash.per_year",
    ]
    assert all(number.changes_at is None for number in action.choice.measure_next)


def test_one_more_replica_is_a_factor_on_both_measures() -> None:
    """RF 4 with the better min ISR of two, over the chosen setting; none without a broker."""
    depth = Depth(draws=False, sensitivity=False)
    more = decide_topic(question(), FakeEvaluator(), depth=depth).one_more_replica
    assert more is not None
    assert pair(more.setting) in {(4, 2), (4, 3)}
    after, now = usual(more.setting, MODEL), usual(question().today, MODEL)
    assert more.losses_factor == pytest.approx(after[0] / now[0])
    assert more.minutes_factor == pytest.approx(after[1] / now[1])
    without_spare = decide_topic(question(brokers=3), FakeEvaluator(), depth=depth)
    assert without_spare.one_more_replica is None
    assert [str(other.setting) for other in without_spare.beside] == [
        "RF 3, min ISR 2, acks=1",
        "RF 3, min ISR 2, acks=all, unclean election",
    ]
    assert without_spare.beside[0].losses_factor == pytest.approx(0.101 / 0.003)


def test_the_floor_is_the_least_of_each_draw() -> None:
    """Per measure over the candidates and today's setting, whichever has it in that draw."""
    evaluator, asked = FakeEvaluator(), question(2, 1)
    action = decide_topic(asked, evaluator, depth=Depth(sensitivity=False, others=False))
    comparison = compare(asked, evaluator, Requirements())
    for name in (LOSSES, MINUTES, "write_unavailability"):
        rows = [evaluator.drawn(setting, asked.load)[name] for setting in comparison.settings]
        assert action.floor.drawn[name] == tuple(np.min(rows, axis=0))


def test_how_much_a_loss_takes() -> None:
    """Whole logs in the fake, so that the share is one, and a log's records are lost."""
    action = decided()
    log = question().load.retained_records_per_partition
    assert action.loss_size.share_of_whole_logs == pytest.approx(1.0)
    assert action.loss_size.records_per_loss == pytest.approx(log)


def test_the_price_of_ten_thousand_minutes_is_the_default() -> None:
    """A week."""
    assert Requirements().minutes_per_loss == rule.MINUTES_PER_LOSS == 7 * 24 * 60
