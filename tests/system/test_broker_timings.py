"""The timings of real brokers are consistent, and agree with Kafka's sources."""

import csv
import datetime

import pytest

from advisor import catalog
from advisor.catalog import data_path

NUMBERS = (
    "partitions",
    "session_timeout_ms",
    "replica_lag_time_max_ms",
    "repetitions",
    "value",
    "low",
    "high",
)
SETTING = ("release", "mode", "partitions", "session_timeout_ms", "replica_lag_time_max_ms")
# Which row of the table an id of failure_rates.csv stands for, and how many ms its unit has.
EVIDENCE = {
    "detection-measured-kraft": ("detection_by_log", "4.3.1", "kraft", 1, 9_000, 1_000),
    "detection-measured-zookeeper": ("detection_by_log", "3.9.2", "zookeeper", 1, 18_000, 1_000),
    "election-measured-kraft": ("election_serving", "4.3.1", "kraft", 1_000, 9_000, 1_000),
    "election-measured-kraft-10000": ("election_serving", "4.3.1", "kraft", 10_000, 9_000, 10_000),
    "election-measured-zookeeper": (
        "election_serving",
        "3.9.2",
        "zookeeper",
        1_000,
        18_000,
        1_000,
    ),
    "election-measured-zookeeper-10000": (
        "election_serving",
        "3.9.2",
        "zookeeper",
        10_000,
        18_000,
        10_000,
    ),
    "restart-measured": ("restart_to_full_isr", "4.3.1", "kraft", 10_000, 9_000, 60_000),
}
MEASURED = "measured, data/broker_timings.csv"


def table():
    with data_path("broker_timings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    return [{**row, **{name: int(row[name]) for name in NUMBERS}} for row in rows]


ROWS = table()


def named(quantity):
    return [row for row in ROWS if row["quantity"] == quantity]


def twins(quantity, other):
    """Return pairs of rows of two quantities in the same setting."""
    others = {tuple(row[name] for name in SETTING): row for row in named(other)}
    for row in named(quantity):
        twin = others.get(tuple(row[name] for name in SETTING))
        if twin is not None:
            yield row, twin


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['quantity']}-{row['release']}")
def test_a_row_is_whole(row):
    """Low, value and high are in order, and no column is empty."""
    assert 0 <= row["low"] <= row["value"] <= row["high"]
    assert row["repetitions"] >= 1
    assert row["unit"] == "ms"
    assert row["how"]
    assert float(row["load"]) >= 0
    assert datetime.date.fromisoformat(row["date"])


def test_no_setting_has_two_rows_of_a_quantity():
    """A quantity and its setting identify one row."""
    keys = [(row["quantity"], *(row[name] for name in SETTING)) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_both_controllers_were_measured_with_one_leader_and_with_ten_thousand():
    """KRaft 3.9, KRaft 4.3 and ZooKeeper are measured, each with three numbers of partitions."""
    found = {(row["release"], row["mode"]) for row in named("election_serving")}
    assert found == {("3.9.2", "kraft"), ("4.3.1", "kraft"), ("3.9.2", "zookeeper")}
    for release, mode in found:
        sizes = {
            row["partitions"]
            for row in named("election_serving")
            if (row["release"], row["mode"]) == (release, mode)
        }
        assert sizes >= {1, 1_000, 10_000}


@pytest.mark.parametrize(
    "row",
    [row for row in named("detection_by_log") if row["partitions"] == 1],
    ids=lambda row: f"{row['release']}-{row['mode']}-{row['session_timeout_ms']}",
)
def test_a_dead_broker_is_noticed_within_its_session(row):
    """Detection takes at least the session timeout less one heartbeat interval.

    KRaft: ``broker.heartbeat.interval.ms``, 2 s by default, a sixth of shorter sessions here.
    ZooKeeper's client pings after a third of the session at the latest.
    """
    session = row["session_timeout_ms"]
    pause = min(2_000, session // 6) if row["mode"] == "kraft" else session // 3
    # ZooKeeper rounds the end of a session up to its tick, which is at most 1 s here.
    tick = 0 if row["mode"] == "kraft" else 1_000
    assert session - pause <= row["value"] <= session + tick


@pytest.mark.parametrize("row", named("isr_shrink"))
def test_a_lagging_follower_leaves_the_isr_after_1_to_1_5_times_the_limit(row):
    """The leader checks each half of ``replica.lag.time.max.ms``; a busy host delays some."""
    limit = row["replica_lag_time_max_ms"]
    # Its last fetch came at most half a second, the longest wait of a fetch, before.
    assert limit - 500 <= row["low"]
    assert row["value"] <= 1.5 * limit


def test_two_readings_of_one_moment_agree():
    """The controller's record and the server's log differ by less than a tenth of a second."""
    pairs = [pair for pair in twins("detection", "detection_by_log") if pair[0]["partitions"] == 1]
    assert pairs
    for record, log in pairs:
        assert abs(record["value"] - log["value"]) < 100


def test_serving_comes_after_the_record():
    """Brokers act on an election or ISR change only after the controller recorded it."""
    steps = [
        ("election_recorded", "election_serving"),
        ("handover_recorded", "handover_serving"),
        ("restart_to_serving", "restart_to_full_isr"),
    ]
    for first, second in steps:
        pairs = list(twins(first, second))
        assert pairs
        for before, after in pairs:
            assert before["value"] <= after["value"]


def test_evidence_that_was_measured_is_what_the_table_says():
    """Evidence that cites the table repeats the right row of it, converted to its unit."""
    found = {id_: row for id_, row in catalog.evidence().items() if row.source == MEASURED}
    assert set(found) == set(EVIDENCE)
    for id_, (quantity, release, mode, partitions, session_ms, per) in EVIDENCE.items():
        wanted = (release, mode, partitions, session_ms)
        (row,) = [row for row in named(quantity) if tuple(row[x] for x in SETTING[:4]) == wanted]
        figures = tuple(row[name] / per for name in ("value", "low", "high"))
        assert (found[id_].value, found[id_].low, found[id_].high) == pytest.approx(figures)
