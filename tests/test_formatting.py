"""Formatting of numbers, durations and intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.formatting import as_given, interval, significant, time_per_year, years


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (178487.06, "180,000"),
        (5.591e-6, "5.6e-6"),
        (0.0456, "0.046"),
        (999_999.0, "1,000,000"),
    ],
)
def test_two_digits(value, said):
    """Two significant digits, thousands separators, an exponent only for extreme values."""
    assert significant(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (120.0, "120"),
        (1500.0, "1,500"),
        (0.0136, "0.0136"),
        (1e-4, "0.0001"),
        (1e-6, "1e-6"),
        (5e7, "50,000,000"),
        (1234567.0, "1,234,570"),
        (1e18, "1e+18"),
        (0.1 + 0.2, "0.3"),
    ],
)
def test_input_values_keep_their_digits(value, said):
    """Up to six digits, thousands separators, an exponent only for extreme values."""
    assert as_given(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.inf, "never"),
        (6 / 8760, "6 hours"),
        (3.5 / 365, "3.5 days"),
        (4 / 12, "4 months"),
        (1.0, "1 year"),
        (999_999.9, "1 million years"),
        (3.4e9, "3.4 billion years"),
        (2.1e16, "2.1e+16 years"),
    ],
)
def test_spans_of_years(value, said):
    """From hours to beyond trillions."""
    assert years(value) == said


@pytest.mark.parametrize(
    ("fraction", "said"),
    [
        (1.0, "all the time"),
        (0.001, "8.8 hours a year"),
        (1e-4, "53 minutes a year"),
        (1e-6, "32 seconds a year"),
        (1e-9, "less than a second a year"),
        (119.96 / 525_600, "2 hours a year"),
        (1 / 525_600, "1 minute a year"),
        (59.97 / 60 / 525_600, "1 minute a year"),
        (2 / 365, "2 days a year"),
    ],
)
def test_time_in_a_year(fraction, said):
    """A fraction of time is formatted as time per year."""
    assert time_per_year(fraction) == said


def test_an_interval_says_its_unit_once():
    """A common unit is written once; identical ends give an empty text."""
    assert interval("140 years", "3,400 years") == " (95 %: 140 to 3,400 years)"
    assert interval("54 million years", "4 billion years") == (
        " (95 %: 54 million years to 4 billion years)"
    )
    assert interval("440,000 years", "4 million years") == (
        " (95 %: 440,000 years to 4 million years)"
    )
    assert interval("never", "never") == ""
    assert interval("2 years", "never") == " (95 %: 2 years to never)"


@given(st.floats(1e-300, 1e300))
def test_rounding_error_is_bounded(value):
    """The rounding error is at most half of the second digit."""
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=0.0501)
