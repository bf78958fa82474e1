"""Other replication schemes beside the recommended setting, for the report."""

from __future__ import annotations

from typing import Any

from advisor.errors import NotComputedError
from advisor.present.labels import interval_label
from advisor.present.outcome import (
    BETWEEN,
    brief_in_words,
    compared_measures,
    given_up_in_words,
)
from advisor.progress import progress_bar
from advisor.protocol.schemes.rules import ASYNCHRONOUS, MAJORITY, SYNCHRONOUS
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.schemes.comparison import (
    FLUSHED_MAJORITY,
    KAFKA,
    SchemeRow,
    rows_beside,
    scheme_intervals,
)

RECORDS_LOST = "acked_records_lost_per_year"


def schemes_compared_by() -> tuple[str, ...]:
    """Return the measures with a column in the table of schemes."""
    first, *others = compared_measures()
    return (first, RECORDS_LOST, *others)


"""Columns of the table: how often records are lost, how many, and the unavailabilities."""

_SCHEME_WORDS = {
    KAFKA: "Kafka, as recommended",
    SYNCHRONOUS: "Synchronous",
    MAJORITY: "Majority vote",
    FLUSHED_MAJORITY: "Majority vote, flushed",
    ASYNCHRONOUS: "Asynchronous",
}


def schemes_compared(result: Reliability) -> list[dict[str, Any]]:
    """Return a setting beside other replication schemes, one row each, in words.

    Returns
    -------
    list of dict
        "name", "rule", "note" and "measures" (value and interval of each of
        `schemes_compared_by`, of others than Kafka no interval where there are very many
        partitions); empty if the schemes cannot be computed for so many replicas.
    """
    try:
        rows = rows_beside(result)
    except NotComputedError:
        return []
    shown = []
    with progress_bar(len(rows), " schemes", "Other schemes") as done:
        for row in rows:
            shown.append(_scheme_in_words(row, result))
            done(1)
    return shown


def _scheme_in_words(row: SchemeRow, result: Reliability) -> dict[str, Any]:
    if row.name != KAFKA and result.load.partitions > MANY_PARTITIONS:
        measures = (BETWEEN, *schemes_compared_by())
        ranges = {measure: (getattr(row, measure),) * 2 for measure in measures}
    else:
        ranges = scheme_intervals(row, result)
    return {
        "name": _SCHEME_WORDS[row.name],
        "rule": row.rule,
        "note": row.note,
        "measures": [
            records_in_words(row, *ranges[measure])
            if measure == RECORDS_LOST
            else brief_in_words(measure, getattr(row, measure), *ranges[measure])
            for measure in (BETWEEN, *schemes_compared_by()[1:])
        ],
    }


def records_in_words(row: SchemeRow, low: float, high: float) -> tuple[str, str]:
    """Return the mean number of records lost per year, and its interval."""
    if row.records_dropped_per_year:
        return "none is acknowledged", ""
    mean = row.acked_records_lost_per_year
    if mean == 0:
        return given_up_in_words(mean), ""
    ends = interval_label(low, high, given_up_in_words) if low < high else ""
    return given_up_in_words(mean), ends
