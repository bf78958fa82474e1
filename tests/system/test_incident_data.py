"""The table of public incidents is complete, and the counts that evidence quotes come from it."""

import csv
import re
import statistics
from urllib.parse import urlsplit

import pytest

from advisor import catalog

COLUMNS = [
    *("id", "kind", "date", "organisation", "system", "version", "title", "url", "event"),
    *("trigger", "family", "scope", "brokers_together", "duration_minutes", "write_unavailable"),
    *("acknowledged_lost", "loss_amount", "settings", "settings_would_change", "mechanism"),
    *("outcome", "modelled", "gap", "verified"),
]
ALLOWED = {
    "kind": {"incident", "bug"},
    "family": {
        *("common-cause", "control-plane", "gray", "in-card", "operator", "planned-change"),
        *("software-bug", "unknown"),
    },
    "scope": {
        *("control-plane", "mirror", "one-broker", "several-brokers", "software"),
        *("whole-cluster", "zone"),
    },
    "write_unavailable": {"yes", "no"},
    "acknowledged_lost": {"yes", "no", "unknown"},
    "settings_would_change": {"yes", "partly", "no", "unknown"},
    "outcome": {"writes stopped", "records lost", "both", "neither"},
    "modelled": {"yes", "partly", "no"},
    "verified": {"primary", "secondary"},
}
# Of the cards' language; a mechanism that the code does not have yet is named here first.
MECHANISMS = {
    *("broker.crash", "broker.power", "broker.destroyed", "broker.lag", "broker.restart"),
    *("broker.gray", "rack.network", "rack.power", "rack.destroyed", "cluster.power"),
    "cluster.destroyed",
    *("cluster.crash", "cluster.rollout", "cluster.disk_full", "cluster.wiped"),
    "cluster.controller",
}
PATH = catalog.data_path("incidents.csv")
with PATH.open(encoding="utf-8", newline="") as lines:
    TABLE = csv.DictReader(lines, strict=True)
    ROWS = list(TABLE)
OUTAGES = [r for r in ROWS if r["kind"] == "incident" and r["write_unavailable"] == "yes"]


def test_the_columns_are_as_documented():
    """The table has these columns, and data/README.md explains each."""
    assert TABLE.fieldnames == COLUMNS
    readme = (catalog.data_dir() / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## incidents.csv")[2].partition("\n## ")[0]
    assert {f"`{column}`" for column in COLUMNS} <= set(re.findall(r"`\w+`", section))


def test_ids_are_unique():
    """An id names one row."""
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 67


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_row_is_well_formed(row):
    """Words of the vocabulary, a length in minutes, an address, a short statement of the event."""
    assert None not in row
    for column, allowed in ALLOWED.items():
        assert row[column] in allowed, column
    assert not row["duration_minutes"] or float(row["duration_minutes"]) > 0
    assert not row["url"] or urlsplit(row["url"]).scheme in ("http", "https")
    assert row["title"]
    assert 10 < len(row["event"]) < 120
    assert set(filter(None, row["mechanism"].split(";"))) <= MECHANISMS


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_judgement_is_explained(row):
    """What is modelled names its mechanism; what is not, or in part, says what is missing."""
    assert bool(row["mechanism"]) == (row["modelled"] != "no")
    assert bool(row["gap"]) == (row["modelled"] != "yes")


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_outcome_sums_up_writes_and_records(row):
    """`outcome` follows from whether writes stopped and whether acknowledged records are gone."""
    expected = {
        (True, True): "both",
        (True, False): "writes stopped",
        (False, True): "records lost",
        (False, False): "neither",
    }
    stopped, lost = row["write_unavailable"] == "yes", row["acknowledged_lost"] == "yes"
    assert row["outcome"] == expected[stopped, lost]


def test_most_write_outages_are_modelled():
    """At least 85 % of the incidents that stopped writes are modelled, in full or in part."""
    modelled = [row for row in OUTAGES if row["modelled"] in ("yes", "partly")]
    assert len(modelled) >= 0.85 * len(OUTAGES)


def test_evidence_quotes_the_counts_of_the_table():
    """Length and families of the write outages in failure_rates.csv are those of the table."""
    evidence = catalog.evidence()
    lengths = [float(row["duration_minutes"]) for row in OUTAGES if row["duration_minutes"]]
    low, middle, high = statistics.quantiles(lengths, n=4)
    length = evidence["incidents-outage-minutes"]
    assert (length.low, length.value, length.high) == (low, middle, high)

    def share(*families):
        return sum(row["family"] in families for row in OUTAGES) / len(OUTAGES)

    whole, several = (
        sum(row["scope"] == scope for row in OUTAGES)
        for scope in ("whole-cluster", "several-brokers")
    )
    assert (whole, several) == (15, 10)
    assert evidence["incidents-whole-cluster"].value == whole / (whole + several)
    control = [r for r in ROWS if r["kind"] == "incident" and r["family"] == "control-plane"]
    kraft = sum(row["version"] == "KRaft" for row in control)
    assert evidence["incidents-control-plane"].value == 1 - kraft / len(control)

    shares = evidence["incidents-family-shares"]
    assert shares.value == pytest.approx(share("common-cause"), rel=0.01)
    assert shares.low == pytest.approx(share("control-plane"), rel=0.01)
    assert shares.high == pytest.approx(share("common-cause", "control-plane"), rel=0.01)
