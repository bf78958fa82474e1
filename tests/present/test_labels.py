"""Labels of numbers, and logarithmic axes."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import advisor
from advisor.advice import Goals
from advisor.formatting import RARER, percents
from advisor.present.labels import (
    as_given_in_words,
    availability,
    between,
    bracketed_interval,
    interval_label,
    once_in_from_probability,
    per_year,
    short,
    time_per_year_label,
)
from advisor.present.nines_axis import loss_label, nines_axis, refused_label
from advisor.present.outcome import tolerance_words
from advisor.present.points import Estimated

SMALL_SIDES = st.one_of(st.just(0.0), st.floats(min_value=1e-40, max_value=1.0))


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (1.0, ("100 % / year", "many times a year", "0 %", "all year")),
        (0.1, ("10 % / year", "once in 9.5 years", "90 %", "36 days/year")),
        (1e-3, ("0.1 % / year", "once in 1,000 years", "99.9 %", "8.8 h/year")),
        (1e-4, ("under 0.05 % / year", RARER, "99.99 %", "53 min/year")),
        (1e-6, ("under 0.05 % / year", RARER, "99.9999 %", "32 s/year")),
        (
            1e-9,
            ("under 0.05 % / year", RARER, "99.9999999 %", "32 ms/year"),
        ),
        (
            1e-16,
            (
                "under 0.05 % / year",
                RARER,
                "16 nines",
                "under 1 ms/year",
            ),
        ),
        (0.0, ("none modelled", "never, as modelled", "100 %, as modelled", "none modelled")),
    ],
)
def test_labels_of_a_probability(probability: float, words: tuple[str, ...]) -> None:
    """Decades from every year to never, as probability, frequency, availability and time."""
    said = (per_year, once_in_from_probability, availability, time_per_year_label)
    assert tuple(say(probability) for say in said) == words


def test_an_interval_writes_a_common_start_once() -> None:
    """The second end omits the words that the first began with."""
    assert (
        interval_label(1e-2, 1e-3, once_in_from_probability)
        == "95 %: once in 99 years to 1,000 years"
    )
    assert (
        interval_label(1e-6, 1e-3, once_in_from_probability) == "95 %: once in 1,000 years or rarer"
    )


def test_an_interval_in_brackets_is_never_empty() -> None:
    """Ends that are both "rarer than", or the same number, leave no pair of brackets behind."""
    assert bracketed_interval(1e-2, 1e-3, once_in_from_probability) == ""
    assert bracketed_interval(1e-3, 1e-2, once_in_from_probability).startswith(" (95 %: once in ")
    assert bracketed_interval(1e-7, 1e-6, once_in_from_probability) == ""


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.6e-7, 1.24e-6, "5 to 39 s/year"),
        (2e-7, 2.1e-6, "6.3 s/year to 1.1 min/year"),
        (1e-13, 1.6e-10, "under 1 ms/year to 5 ms/year"),
        (0.996, 0.999, "all year to all year"),
    ],
)
def test_an_interval_writes_a_common_unit_once(low: float, high: float, words: str) -> None:
    """Only if a number precedes the unit, and both ends have the same."""
    assert interval_label(low, high, time_per_year_label) == f"95 %: {words}"


@pytest.mark.parametrize(
    ("value", "few", "given_as"),
    [
        (0.0136, "0.014", "0.0136"),
        (8.84e-6, "8.8e-6", "8.84e-6"),
        (1478.0, "1,500", "1,478"),
        (999_999.5, "1 million", "1 million"),
        (5e7, "50 million", "50 million"),
        (2.5e9, "2.5 billion", "2.5 billion"),
    ],
)
def test_labels_of_large_numbers(value: float, few: str, given_as: str) -> None:
    """Two digits of a computed number, all digits of a card's; millions as a word."""
    assert short(value) == few
    assert as_given_in_words(value) == given_as


@pytest.mark.parametrize(("probability", "years"), [(0.01, "100"), (0.02, "50"), (0.05, "20")])
def test_tick_labels_of_round_probabilities(probability: float, years: str) -> None:
    """1 % per year is once in 100 years on an axis, not once in 99."""
    assert loss_label(probability).endswith(f"\nonce in {years} years")
    assert loss_label(0.1).endswith("once in 9.5 years")


@given(SMALL_SIDES)
def test_rounding_never_gives_certainty(probability: float) -> None:
    """Nothing below 1 rounds to 100 %, nothing above 0 to "none modelled"."""
    assert (per_year(probability) == "100 % / year") == (probability >= 1)
    assert (per_year(probability) == "none modelled") == (probability == 0)
    assert (availability(probability) == "100 %, as modelled") == (probability == 0)
    assert not availability(probability).startswith("100 %") or probability == 0


@given(st.lists(SMALL_SIDES, min_size=1, max_size=12), st.integers(2, 8))
def test_an_axis_shows_everything_in_order(values: list[float], most: int) -> None:
    """All values are within the limits, better ones higher, zero in a lane above them."""
    axis = nines_axis([Estimated(v, v, v) for v in values], loss_label, most)
    positions = [axis.at(v) for v in sorted(values, reverse=True)]
    assert positions == sorted(positions)
    assert all(axis.bottom <= at <= axis.top for at in positions)
    if 0.0 in values:
        assert axis.border is not None
        assert all(axis.at(v) < axis.border for v in values if v > 0)
    else:
        assert axis.zero is None


@given(st.lists(SMALL_SIDES, min_size=1, max_size=12), st.integers(2, 8))
def test_ticks_are_few_distinct_and_within_the_axis(values: list[float], most: int) -> None:
    """At most the given number of ticks plus the lane, ascending, never above 100 %."""
    axis = nines_axis([Estimated(v, v, v) for v in values], refused_label, most)
    at = [position for position, _ in axis.ticks]
    assert at == sorted(set(at))
    assert at, "an axis without a tick says nothing"
    assert len(at) <= most + 1
    assert all(axis.bottom <= position <= axis.top for position in at)
    assert all(position >= -1e-9 for position in at)


def test_a_tick_keeps_away_from_the_lane_of_zero() -> None:
    """The label of the last decade does not overlap the label of the lane."""
    axis = nines_axis([Estimated(q, q, q) for q in (1e-6, 1e-2, 0.0)], loss_label)
    *others, lane = (position for position, _ in axis.ticks)
    assert lane == axis.zero
    assert lane - max(others) >= 0.15 * (axis.top - axis.bottom)


def test_an_axis_has_no_room_for_more_than_certainty() -> None:
    """Below a probability of 1 there is the padding of the axis and no part of a decade."""
    axis = nines_axis([Estimated(1.0, 1.0, 1.0)], loss_label)
    assert -0.05 <= axis.bottom <= 0.0
    assert axis.at(1.0) == 0.0


def test_an_interval_widens_the_axis() -> None:
    """The axis covers the ends of an interval, not only the value."""
    axis = nines_axis([Estimated(1e-6, 1e-9, 1e-3)], loss_label)
    assert axis.bottom < -math.log10(1e-3)
    assert axis.top > -math.log10(1e-9)


@pytest.mark.parametrize(
    ("hours", "words"), [(12.0, "once in 370 years"), (1e-6, "rarer than once in ")]
)
def test_rare_losses_are_qualified(hours: float, words: str) -> None:
    """Losses that are too rare to observe have no number in the summary."""
    config = advisor.Config(replication_factor=2, min_insync_replicas=1)
    destroyed = {"per_year": 1.0, "hours": hours}
    card = advisor.FailureModel.from_dict({"broker": {"destroyed": destroyed}})
    load = advisor.Workload(record_bytes=1, records_per_second=1e-3)
    result = advisor.evaluate(advisor.Cluster.uniform(2, 2), config, card, load)
    assert (result.mean_years_to_loss > 1e6) == (hours < 1)
    assert words in result.summary


def test_a_setting_that_never_writes_has_no_negative_number() -> None:
    """If no write can succeed, tolerated failures and verdict say so in words."""
    config = advisor.Config(kafka_version="3.6", replication_factor=1, min_insync_replicas=2)
    card = advisor.FailureModel.from_dict({"broker": {"crash": {"per_year": 1, "minutes": 5}}})
    result = advisor.evaluate(advisor.Cluster.uniform(3, 3), config, card)
    assert dict(tolerance_words(result))["while writes go on"] == "not even 0"
    assert "Kafka 3.6 refuses every write" in result.summary


def test_ends_of_many_values_share_their_words() -> None:
    """What both ends begin or end with is written once; one end alone where they are equal."""
    assert between("once in 3 years", "once in 12 years") == "once in 3 to 12 years"
    assert between("once in 3 months", "once in 12 years") == "once in 3 months to 12 years"
    assert between("5 s/year", "39 s/year") == "5 to 39 s/year"
    assert between("17 min/year", "17 min/year") == "17 min/year"
    assert between("", "") == ""
    never = "never, as modelled"
    assert between("once in 3 years", never) == f"once in 3 years to {never}"


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=8))
def test_whole_percents_of_a_whole_add_up(parts: list[float]) -> None:
    """To 100, unless one is too small for a number; none is off by a whole percent."""
    shares = [part / sum(parts) for part in parts]
    words = percents(shares)
    if not all(said[0].isdigit() for said in words):
        return
    numbers = [int(said.split()[0]) for said in words]
    assert sum(numbers) == 100
    assert all(abs(n - 100 * s) < 1 for n, s in zip(numbers, shares, strict=True))


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (1e-6, "at most a 1 in 1 million chance of data loss a year"),
        (0.01, "data loss at most once in 99 years"),
        (0.9, "at most a 90 % chance of data loss a year"),
        (0.0, "no data loss"),
    ],
)
def test_a_goal_for_losses_reads_as_operators_say_it(limit: float, words: str) -> None:
    """Never with an exponent."""
    goals = Goals(loss_probability_per_year=limit, write_unavailability=None)
    assert goals.sentence == f"Goals: {words}."


def test_swings_are_said_in_time_and_chances() -> None:
    """The axis and the words of a tornado have no fractions of time and no exponents."""
    result = advisor.evaluate(
        advisor.Cluster.uniform(brokers=3, racks=3),
        advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all"),
        "single_rack",
        advisor.Workload(partitions=3),
    )
    for measure, unit in (("write_unavailability", "/year"), ("loss_events_per_year", " %")):
        ax = result.tornado(measure).plot()
        ax.figure.canvas.draw()
        ticks = [tick.get_text() for tick in ax.get_xticklabels() if tick.get_text()]
        assert any(unit in tick for tick in ticks)
        assert not any(re.search(r"\de-\d", words) for words in (*ticks, ax.get_xlabel()))
