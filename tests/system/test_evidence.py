"""Every number of a shipped card has evidence, and the evidence is consistent."""

import csv
import dataclasses
import datetime
import math
import re
import statistics

import pytest
from scipy.stats import beta, chi2

from advisor import catalog
from advisor.catalog import Evidence, read_evidence
from advisor.errors import ModelError
from advisor.reliability.failures.card import is_asked
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.mechanisms import table

COLUMNS = [field.name for field in dataclasses.fields(Evidence)]
GOOD = {
    "id": "x",
    "quantity": "broker.crash.per_year",
    "value": "2",
    "low": "1",
    "high": "4",
    "unit": "per_year",
    "source": "A study",
    "url": "https://example.org",
    "year": "2020",
    "retrieved": "2026-11-21",
    "verified": "primary",
    "note": "Why.",
}
CARDS = {name: load_model(name) for name in catalog.model_names()}
CITED = {q.evidence for model in CARDS.values() for q in model.quantities.values()}
ROWS = catalog.evidence()
# The nine durations that the note of zone-outage-minutes lists.
ZONE_OUTAGES = (188, 113, 354, 600, 195, 180, 696, 360, 1486)


def write(path, *rows, columns=COLUMNS):
    """Write a table of evidence and return its path."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(rows)
    return path


def references(row):
    """Return the ids that a row's note refers to."""
    return set(re.findall(r"\[([a-z0-9-]+)\]", row.note))


def poisson(count, exposure):
    """Return rate and exact 95 % interval of `count` events in `exposure`."""
    low, high = chi2.ppf(0.025, 2 * count) / 2, chi2.ppf(0.975, 2 * count + 2) / 2
    return count / exposure, low / exposure, high / exposure


def binomial(count, trials):
    """Return share and exact 95 % interval of `count` in `trials`."""
    low = beta.ppf(0.025, count, trials - count + 1)
    return count / trials, low, beta.ppf(0.975, count + 1, trials - count)


def test_a_good_row_is_read(tmp_path):
    """A complete row becomes an Evidence with numbers as numbers."""
    rows = read_evidence(write(tmp_path / "t.csv", GOOD))
    assert rows == {"x": Evidence(**{**GOOD, "value": 2.0, "low": 1.0, "high": 4.0, "year": 2020})}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("nothing", ["", "  "])
def test_a_row_that_lacks_a_field_is_refused(tmp_path, column, nothing):
    """Source, year, retrieved, note and all the others must be there; the error says where."""
    path = write(tmp_path / "t.csv", {**GOOD, "id": "first"}, {**GOOD, column: nothing})
    with pytest.raises(ModelError, match=rf"t\.csv:3: the field '{column}' is empty"):
        read_evidence(path)


def test_an_assumption_needs_no_url(tmp_path):
    """An assumption has no address."""
    row = {**GOOD, "verified": "assumption", "url": ""}
    assert read_evidence(write(tmp_path / "t.csv", row))["x"].url == ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"low": "3"}, "low <= value <= high"),
        ({"high": "1.5"}, "low <= value <= high"),
        ({"low": "-1"}, "0 <= low"),
        ({"value": "nan"}, "low <= value <= high"),
        ({"high": "inf"}, "high, got"),
        ({"value": "two"}, "could not convert"),
        ({"year": "MMXX"}, "invalid literal"),
        ({"retrieved": "yesterday"}, "Invalid isoformat"),
        ({"verified": "surely"}, "verified is 'surely'"),
    ],
)
def test_an_impossible_row_is_refused(tmp_path, change, problem):
    """Numbers out of order, no date, an unknown grade: refused with file and line."""
    path = write(tmp_path / "t.csv", {**GOOD, **change})
    with pytest.raises(ModelError, match=problem) as caught:
        read_evidence(path)
    assert "t.csv:2:" in str(caught.value)


def test_an_id_may_come_once(tmp_path):
    """Two rows of one id would make a citation ambiguous."""
    with pytest.raises(ModelError, match=r"t\.csv:3: the id 'x' comes twice"):
        read_evidence(write(tmp_path / "t.csv", GOOD, GOOD))


def test_a_missing_column_is_refused(tmp_path):
    """A table without a column is refused as a whole."""
    short = {key: value for key, value in GOOD.items() if key != "note"}
    path = write(tmp_path / "t.csv", short, columns=[c for c in COLUMNS if c != "note"])
    with pytest.raises(ModelError, match="the columns must be"):
        read_evidence(path)


def test_an_unquoted_comma_is_refused(tmp_path):
    """A field too many is most often a comma that was not quoted."""
    path = write(tmp_path / "t.csv", GOOD)
    path.write_text(path.read_text().rstrip() + ", and more\n")
    with pytest.raises(ModelError, match="more fields than columns"):
        read_evidence(path)


@pytest.mark.parametrize("name", CARDS)
def test_every_number_of_a_card_is_that_of_its_row(name):
    """Value, low, high, key and unit agree, so that no number drifts from its evidence."""
    for path, quantity in CARDS[name].quantities.items():
        row = ROWS[quantity.evidence]
        product = quantity.minutes_per_year
        assert row.quantity == path
        assert row.unit == ("minutes_per_year" if product else path.rpartition(".")[2])
        said = product or (quantity.value, quantity.low, quantity.high)
        assert said == (row.value, row.low, row.high)


@pytest.mark.parametrize("name", CARDS)
def test_every_number_of_a_card_has_a_range(name):
    """None is given as exact but what is asked for, and none relies on unchecked evidence."""
    for path, quantity in CARDS[name].quantities.items():
        asked = is_asked(path)
        assert quantity.low < quantity.value < quantity.high or asked, path
        assert asked == (path not in CARDS[name].uncertain)
        assert not quantity.evidence.startswith("own:")


@pytest.mark.parametrize("name", CARDS)
def test_every_card_has_the_same_ladder(name):
    """Broker, rack, site, people: in one order, each with the share that strikes all, and a hand.

    One event stands at one place: no card leaves a rung out.
    """
    card = CARDS[name]
    rungs = [entry.name for entry in table().entries]
    assert list(card.mechanisms) == [rung for rung in rungs if rung in card.mechanisms]
    assert set(card.mechanisms) == set(rungs)
    assert {f"cluster.{cause}.all" for cause in ("crash", "rollout", "disk_full", "wiped")} <= set(
        card.quantities
    )
    assert {"operator.hours", "broker.gray.hard"} <= set(card.quantities)
    assert card["broker.restart.overlap"] == 0.0


@pytest.mark.parametrize("name", CARDS)
def test_every_card_says_what_it_is_for(name):
    """A card has a title, which differs from its name, and says when to use it."""
    assert CARDS[name].title not in ("", name)
    assert len(CARDS[name].when_to_use) > 50


def test_no_row_is_idle_and_no_reference_dangles():
    """Every row is cited by a card, or by the note of a row that is; all references lead to one."""
    assert set(ROWS) >= CITED
    reached, fresh = set(), CITED
    while fresh:
        reached |= fresh
        fresh = set().union(*(references(ROWS[id_]) for id_ in fresh)) - reached
        assert fresh <= set(ROWS)
    assert reached == set(ROWS)


@pytest.mark.parametrize("id_", ROWS)
def test_a_row_is_dated_and_traceable(id_):
    """Published before it was retrieved, on the web or in our own data unless it is a judgement."""
    row = ROWS[id_]
    assert row.year <= datetime.date.fromisoformat(row.retrieved).year
    if row.source.startswith(("measured, data/", "counted, data/")):
        assert catalog.data_path(row.url.removeprefix("data/")).is_file()
        return
    assert row.url.startswith(("https://", "http://")) != (row.verified == "assumption")


@pytest.mark.parametrize("id_", [id_ for id_, row in ROWS.items() if row.verified == "assumption"])
def test_an_assumption_is_wide(id_):
    """An assumption spans at least a factor of four, as data/README.md says."""
    assert ROWS[id_].high >= 4 * ROWS[id_].low


@pytest.mark.parametrize(
    ("id_", "expected"),
    [
        ("ford-2010-node", (12 / 4.3,) * 3),
        ("ford-2010-rack", (1 / 10.2,) * 3),
        ("google-2008-machines", (1000 / 1800, 1000 / 2400, 1000 / 1800)),
        ("google-2008-racks", (20 / (1800 / 50), 20 / (1800 / 40), 20 / (1800 / 80))),
        ("google-2008-power-unit", (750 / 1800, 500 / 1800, 1000 / 1800)),
        ("linkedin-2017-broker-deaths", (365 / 1800, 365 / 10000, 365 / 1800)),
        ("tiered-2015-node-loss", (12 * 0.01, 1 / 10, 12 * 0.01)),
        ("aws-us-east-1-power", poisson(5, 88)),
        ("aws-zone-power", poisson(11, 1000)),
        ("aws-zone-network", poisson(2, 1000)),
        ("zones-together", poisson(2, 35)),
        ("honeycomb-kafka-incidents", poisson(3, 8.1)),
        ("alibaba-2023-fail-slow", poisson(304, 248_000 * 10 / 12)),
        ("incidents-whole-cluster", binomial(15, 25)),
        ("incidents-control-plane", binomial(7, 8)),
        ("nirs-2025-fire", poisson(2, 640)),
        ("cloud-region-power", poisson(1, 800)),
        ("yandex-kafka-sla-writing", ((1 - 0.9995) * 525_600,) * 3),
        ("yandex-kafka-sla-reading", ((1 - 0.9999) * 525_600,) * 3),
        ("nops-spot-terminations", (12 * 0.05, 12 * 0.025, -12 * math.log(1 - 0.2))),
        ("cluster-rollout-managed", (15.8 * 6 / 31, 0.4, 50)),
        ("cluster-controller-managed", (15.8 * 9 / 31, 0.6, 80)),
        ("zone-outage-minutes", (statistics.fmean(ZONE_OUTAGES), 113, 1486)),
        (
            "zone-power",
            (
                math.sqrt(poisson(11, 1000)[0] * poisson(5, 88)[0]),
                poisson(11, 1000)[1],
                poisson(5, 88)[2],
            ),
        ),
        (
            "zone-power-minutes",
            (
                statistics.fmean(ZONE_OUTAGES),
                min(ZONE_OUTAGES),
                statistics.fmean([*ZONE_OUTAGES, ROWS["google-2023-paris"].value]),
            ),
        ),
        ("zone-network", (math.sqrt(0.002 * 0.5), 0.002, 0.5)),
        (
            "two-zones-power",
            (
                math.sqrt(ROWS["zone-power"].value * ROWS["uptime-2022-site-power"].value),
                ROWS["zone-power"].low,
                ROWS["uptime-2022-site-power"].high,
            ),
        ),
        (
            "zone-not-returning",
            (
                math.sqrt(ROWS["aws-2011-volumes-lost"].value * ROWS["power-not-returning"].value),
                0.0003,
                ROWS["power-not-returning"].high,
            ),
        ),
        ("aiven-2019-availability", ((1 - 0.99997) * 525_600,) * 3),
        (
            "sla-write-budget",
            ((1 - 0.9999) * 525_600, (1 - 0.99997) * 525_600, (1 - 0.999) * 525_600),
        ),
        ("aws-2026-uae-strike", poisson(1, 1000)),
        ("ovh-2021-fire", poisson(1, 320)),
        (
            "uptime-2022-site-power",
            (
                math.sqrt(math.log(0.8) * math.log(0.2)) / 3 * 0.43,
                -math.log(1 - 0.2) / 3 * 0.43,
                -math.log(1 - 0.8) / 3 * 0.43,
            ),
        ),
        ("eia-2017-interruption-minutes", (470 / 1.4, 120 / 1.0, 470 / 1.4)),
        ("aws-msk-restart", (math.sqrt(5 * 15), 5, 15)),
        ("rack-network-metal", (1 / 10.2, 0.05, 20 / 36)),
        ("rack-network-metal-minutes", (math.sqrt(60 * 360), 60, 360)),
        ("power-not-returning", ((0.005 + 0.01) / 2, 0.005, 0.01)),
        ("flush-linux", (30 + 5, 5, 60)),
        ("detection-kraft", (ROWS["detection-measured-kraft"].value / 9, (9 - 2) / 9, 10.075 / 9)),
        (
            "detection-zookeeper",
            (ROWS["detection-measured-zookeeper"].value / 18, (18 - 18 / 3) / 18, (18 + 3) / 18),
        ),
        (
            "election-kafka",
            (
                math.sqrt(
                    ROWS["election-measured-kraft"].value
                    * ROWS["election-measured-kraft-10000"].value
                ),
                0.05,
                5,
            ),
        ),
    ],
)
def test_the_arithmetic_of_a_note_holds(id_, expected):
    """What the note derives from the source is the row's number, to the two digits it is given."""
    row = ROWS[id_]
    # Two significant digits: the worst rounding is half a unit of the second, 0.5 in 10.
    assert (row.value, row.low, row.high) == pytest.approx(expected, rel=0.05)
