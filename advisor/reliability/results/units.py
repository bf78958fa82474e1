"""Names and units of the measures that `evaluate` and `simulate` give."""

from __future__ import annotations

from advisor.errors import InputError

UNITS = {
    "loss_probability_per_year": "probability",
    "loss_events_per_year": "events/year",
    "mean_years_to_loss": "years",
    "acked_records_lost_per_year": "records/year",
    "write_unavailability": "fraction of time",
    "read_unavailability": "fraction of time",
    "write_stalled": "fraction of time",
    "records_refused_per_year": "records/year",
    "records_dropped_per_year": "records/year",
}

MEASURES = tuple(UNITS)

FRACTIONS = tuple(name for name, unit in UNITS.items() if not unit.endswith(("year", "years")))
"""Measures that cannot exceed 1."""


def check_measure(name: str) -> None:
    """Refuse a name that is no measure.

    Raises
    ------
    InputError
        With the names that there are.
    """
    if name not in MEASURES:
        raise InputError(f"{name!r} is no measure; there are: {', '.join(MEASURES)}")
