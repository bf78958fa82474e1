"""The measured cost of `flush.messages=1`: complete, dated, and plausible."""

import csv
import datetime

import pytest

from advisor.catalog import data_path

DEFAULT, EACH = "Kafka's default (never)", "1"
MEASURES = {
    "throughput_records_per_second",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with data_path("flush_cost.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_both_settings_have_every_measure(rows: list[dict[str, str]]) -> None:
    """One row for each setting and measure, from five runs or more, low to high."""
    found = [(row["flush_messages"], row["measure"]) for row in rows]
    assert sorted(found) == sorted((s, m) for s in (DEFAULT, EACH) for m in MEASURES)
    for row in rows:
        assert int(row["runs"]) >= 5
        assert 0 < float(row["low"]) <= float(row["median"]) <= float(row["high"])


def test_conditions_are_stated(rows: list[dict[str, str]]) -> None:
    """Each row says when, on which Kafka and disk, and how busy the host was."""
    for row in rows:
        assert all(row[name] for name in ("kafka", "replication", "how", "disk", "cores"))
        assert datetime.date.fromisoformat(row["date"]) <= datetime.date.today()
        assert float(row["fsync_ms"]) > 0
        assert float(row["load_median"]) >= 0
    assert len({(row["date"], row["kafka"], row["fsync_ms"]) for row in rows}) == 1


def test_a_flush_for_each_record_costs_something(rows: list[dict[str, str]]) -> None:
    """Less throughput in every run, and more latency by the median, than without."""
    table = {(row["flush_messages"], row["measure"]): row for row in rows}
    sent = "throughput_records_per_second"
    assert float(table[EACH, sent]["high"]) < float(table[DEFAULT, sent]["low"])
    for name in MEASURES - {sent}:
        assert float(table[EACH, name]["median"]) > float(table[DEFAULT, name]["median"])
