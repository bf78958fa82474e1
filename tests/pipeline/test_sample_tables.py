"""`write_samples`: tables that sum up to what was sampled, and the documented queries."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from advisor import Cluster, Config, Workload, load_model, simulate, simulate_grid, write_samples
from advisor.errors import InputError
from advisor.pipeline import sample_tables
from advisor.pipeline.sampled_grid import SampledGrid
from advisor.reliability import measure_table
from advisor.reliability.results.sampled import Sampled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
CARD = load_model("three_az_cloud")
CLUSTERS = {
    "even": Cluster.uniform(6, 3),
    # Two brokers of three in one rack: sets span one, two or three racks.
    "uneven": Cluster(brokers={1: "a", 2: "a", 3: "a", 4: "a", 5: "b", 6: "c"}),
    "tiny": Cluster.uniform(2, 2),
}
CONFIGS = {
    "safe": Config(replication_factor=3, min_insync_replicas=2),
    "acks 0": Config(replication_factor=3, min_insync_replicas=2, acks=0),
}
LOAD = Workload(partitions=20, records_per_second=100.0)
PLACED = [(1, 2, 3), (1, 2, 5), (1, 5, 6), (2, 5, 6)]
KEY = ("cluster", "config", "model")


@pytest.fixture(scope="module")
def grid() -> SampledGrid:
    return simulate_grid(CLUSTERS, CONFIGS, CARD, LOAD, 400, 5, "local")


@pytest.fixture(scope="module")
def tables(
    grid: SampledGrid, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table of the grid."""
    folder = write_samples(grid, tmp_path_factory.mktemp("tables") / "samples")
    return {name: parquet.read_table(folder / name).to_pylist() for name in sample_tables._COLUMNS}


def of_cell(rows: list[dict[str, Any]], key: tuple[str, ...]) -> list[dict[str, Any]]:
    return [row for row in rows if tuple(row[name] for name in KEY) == key]


def sampled(grid: SampledGrid) -> Iterator[tuple[tuple[str, ...], Sampled]]:
    found = list(grid.sampled)
    assert len(found) == 4
    yield from found


def test_cells_have_their_settings(
    grid: SampledGrid, tables: dict[str, list[dict[str, Any]]]
) -> None:
    """One row for each cell; one that cannot be placed says why and has no numbers."""
    assert [tuple(row[name] for name in KEY) for row in tables["cells"]] == [*grid]
    for row in tables["cells"]:
        config = CONFIGS[row["config"]]
        assert row["replication_factor"] == config.replication_factor
        assert row["min_insync_replicas"] == config.min_insync_replicas
        assert row["acks"] == str(config.acks)
        key = row["cluster"], row["config"], row["model"]
        assert row["refused"] == grid.refused.get(key)
        assert (row["years"], row["seed"]) == ((None, None) if row["refused"] else (400, "5"))


def test_estimates_are_those_of_the_result(
    grid: SampledGrid, tables: dict[str, list[dict[str, Any]]]
) -> None:
    """Each with its interval, bit for bit."""
    for key, found in sampled(grid):
        rows = {row["measure"]: row for row in of_cell(tables["estimates"], key)}
        assert len(rows) == len(measure_table.names())
        for name in measure_table.names():
            row, estimate = rows[name], found.estimate(name)
            ends = estimate.value, estimate.low, estimate.high
            assert (row["value"], row["low"], row["high"]) == ends
            assert row["seen"] is estimate.seen
            assert row["seen"] or row["value"] in (row["low"], row["high"])
    assert {row["seen"] for row in tables["estimates"]} == {True, False}


def test_mechanisms_sum_up_to_causes_and_measures(
    grid: SampledGrid, tables: dict[str, list[dict[str, Any]]]
) -> None:
    """By mechanism they are the causes, and in all what was seen."""
    for key, found in sampled(grid):
        causes = {name: defaultdict[str, float](float) for name in measure_table.names()}
        for row in of_cell(tables["mechanisms"], key):
            causes[row["measure"]][row["mechanism"]] += row["value"]
        for name in measure_table.names():
            assert causes[name] == pytest.approx(found.causes.get(name, {}), rel=1e-12)
            if name in ("loss_probability_per_year", "mean_years_to_loss"):
                continue
            estimate = found.estimate(name)
            whole = estimate.value if estimate.seen else 0.0
            assert math.fsum(causes[name].values()) == pytest.approx(whole, rel=1e-12)
    assert {row["measure"] for row in tables["mechanisms"]} >= {
        "write_unavailability",
        "records_refused_per_year",
        "records_dropped_per_year",
    }


def test_outages_are_those_of_the_result(
    grid: SampledGrid, tables: dict[str, list[dict[str, Any]]]
) -> None:
    """By length, in number and a year, and no length twice."""
    for key, found in sampled(grid):
        rows = of_cell(tables["outages"], key)
        listed = tuple((r["from_seconds"], r["to_seconds"], r["outages"]) for r in rows)
        assert listed == found.outages
        for row in rows:
            # A year begins when everything is healthy, so a little more time was simulated.
            per_year = row["outages"] / found.years
            assert 0.9 * per_year < row["outages_per_year"] <= per_year


def test_the_class_of_replica_sets_is_named_where_there_is_one(
    grid: SampledGrid, tables: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """Where sets span different numbers of racks, it is null, and the classes are listed."""
    for key, found in sampled(grid):
        rows = of_cell(tables["replica_sets"], key)
        assert sum(row["partitions"] for row in rows) == found.load.partitions
        racks = rows[0]["racks"] if len(rows) == 1 else None
        assert {row["racks"] for row in of_cell(tables["mechanisms"], key)} == {racks}
        assert {row["racks"] for row in of_cell(tables["outages"], key)} == {racks}
        if key[0] == "even":
            assert racks == 3
    inputs = CLUSTERS["uneven"], CONFIGS["safe"], CARD, LOAD
    placed = simulate(*inputs, 20, engine="local", placement=PLACED)
    folder = write_samples(placed, tmp_path / "samples")
    classes = parquet.read_table(folder / "replica_sets").to_pylist()
    assert [(row["racks"], row["sets"], row["partitions"]) for row in classes] == [
        (1, 1, 1),
        (2, 1, 1),
        (3, 2, 2),
    ]
    assert set(parquet.read_table(folder / "outages")["racks"].to_pylist()) == {None}


def test_one_sample_is_written_like_a_fleet_of_one(tmp_path: Path) -> None:
    """The same rows, under the names that a grid gives without any."""
    inputs = CLUSTERS["even"], CONFIGS["safe"], CARD, LOAD, 60, 5
    one = write_samples(simulate(*inputs, engine="local"), tmp_path / "one")
    fleet = write_samples(simulate_grid(*inputs, engine="local"), tmp_path / "fleet")
    for name in sample_tables._COLUMNS:
        assert parquet.read_table(one / name).equals(parquet.read_table(fleet / name))


def test_many_rows_are_written_in_parts(
    grid: SampledGrid,
    tables: dict[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A fleet is written some rows at once, and none is missing or twice."""
    monkeypatch.setattr(sample_tables, "_ROWS_AT_ONCE", 3)
    folder = write_samples(grid, tmp_path / "samples")
    for name, rows in tables.items():
        assert parquet.read_table(folder / name).to_pylist() == rows


def test_what_is_there_is_not_overwritten(grid: SampledGrid, tmp_path: Path) -> None:
    """An existing folder, a place that cannot be written, and what is no sample are refused."""
    with pytest.raises(InputError, match="is there already"):
        write_samples(grid, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        write_samples(grid, tmp_path / "file" / "samples")
    with pytest.raises(InputError, match="give what simulate or simulate_grid returned"):
        write_samples(CARD, tmp_path / "samples")
    with pytest.raises(InputError, match="the path of a new folder"):
        write_samples(grid, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_documented_queries_answer(
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The code of `docs/fleet.md` runs as it stands, and its answers are those of the result."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert sum("spark.sql(" in block for block in code) == 3
    names: dict[str, Any] = {}
    for block in code:
        exec(block, names)
    grid = names["grid"]
    assert "at_most_minutes_a_year" in capfd.readouterr().out
    for row in names["best"].collect():
        found = {
            key[1]: one.write_unavailability for key, one in grid.sampled if key[0] == row.cluster
        }
        assert found[row.config].high == min(each.high for each in found.values())
        assert row.seen == found[row.config].seen
        ends = row.at_least_minutes_a_year, row.at_most_minutes_a_year
        best = found[row.config]
        assert ends == pytest.approx((best.low * 525600, best.high * 525600))
    of_three = [one for key, one in grid.sampled if key[1].startswith("RF 3")]
    gray = math.fsum(
        row.minutes_a_year for row in names["causes"].collect() if row.mechanism == "broker.gray"
    )
    assert gray > 0.0
    rows = [
        share.value * 525600
        for one in of_three
        for share in one.breakdown.shares
        if (share.measure, share.mechanism) == ("write_unavailability", "broker.gray")
    ]
    assert gray == pytest.approx(math.fsum(rows) / len(of_three))
    for row in names["long_outages"].collect():
        one = grid[row.cluster, row.config, "three_az_cloud"]
        longer = math.fsum(number for start, _, number in one.outages if start >= 120.0)
        assert row.long_a_year == pytest.approx(longer / one.breakdown.span_years)
        assert 0.0 < row.long_a_year < row.all_a_year
    assert spark.version
