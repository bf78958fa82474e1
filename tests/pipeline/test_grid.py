"""`simulate_grid`: each cell as `simulate` gives it, on every engine and after interruptions."""

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as arrow
import pytest
from pyarrow import parquet

from advisor import Cluster, Config, FailureModel, Workload, load_model, simulate, simulate_grid
from advisor.errors import AdvisorError, InputError
from advisor.pipeline import checkpoints, fleet, grid
from advisor.pipeline.parcels import Job, Record, unpacked
from advisor.pipeline.sampled_grid import SampledGrid
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import Block, Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTERS = {
    "pair": Cluster.uniform(2, 2),
    "small": Cluster.uniform(3, 3),
    "large": Cluster.uniform(12, 3),
}
CONFIGS = {
    "two": Config(replication_factor=2, min_insync_replicas=1),
    "three": Config(replication_factor=3, min_insync_replicas=2),
    "acks 1": Config(replication_factor=3, min_insync_replicas=2, acks=1),
}
MODELS = {
    "cloud": load_model("three_az_cloud"),
    "often": FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 10.0, "minutes": 60.0},
                "destroyed": {"per_year": 1.0, "hours": 24.0, "shape": 2.0},
            }
        }
    ),
}
LOAD = Workload(partitions=12, records_per_second=80.0)
YEARS, SEED = 70, 11


def sampled(**options: Any) -> SampledGrid:
    return simulate_grid(CLUSTERS, CONFIGS, MODELS, LOAD, YEARS, SEED, **options)


def plain(found: SampledGrid) -> Any:
    return json.loads(json.dumps(found.to_dict()))


@pytest.fixture(scope="module")
def here() -> SampledGrid:
    """The grid, sampled in this process."""
    return sampled(engine="local")


def jobs() -> list[Job]:
    found = {}
    for cluster in CLUSTERS.values():
        for config in CONFIGS.values():
            if config.replication_factor <= len(cluster.brokers):
                for model in MODELS.values():
                    plan = plan_for(cluster, config, model, LOAD)
                    job = Job.of(plan, cut_into_blocks(plan, YEARS, SEED))
                    found[job.run] = job
    return [*found.values()]


def rows_of(records: list[Record]) -> dict[tuple[str, int], Row]:
    return {(each.run, row.block): row for each in records for row in unpacked(each)}


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, int], Row]:
    """The row of every block, by run and block, each sampled on its own."""
    return {(job.run, b.index): run_block(job.plan, b) for job in jobs() for b in job.blocks}


def nothing(*_: object) -> None:
    """Show no progress."""


def test_each_cell_is_what_simulate_gives(here: SampledGrid) -> None:
    """The same numbers to the byte, for every cell that can be placed."""
    seen = 0
    for (cluster, config, model), found in here.sampled:
        inputs = CLUSTERS[cluster], CONFIGS[config], MODELS[model]
        alone = simulate(*inputs, LOAD, YEARS, SEED, engine="local")
        assert json.dumps(found.to_dict()) == json.dumps(alone.to_dict())
        assert found == alone
        seen += 1
    assert seen == len(here) - len(here.refused) == 14


def test_a_cell_that_cannot_be_placed_is_refused_alone(here: SampledGrid) -> None:
    """It has one sentence; reading it raises that, and the others are there."""
    refused = {("pair", config, model) for config in ("three", "acks 1") for model in MODELS}
    assert set(here.refused) == refused
    for key, sentence in here.refused.items():
        assert "only 2 broker(s)" in sentence
        assert sentence.count(".") == 1
        with pytest.raises(InputError, match="only 2 broker"):
            here[key]


@pytest.mark.usefixtures("spark")
def test_both_engines_give_the_same(here: SampledGrid) -> None:
    """On Spark and in this process, to the byte."""
    assert plain(sampled(engine="spark")) == plain(here)


@pytest.mark.parametrize("partitions", [1, 2, 4, 7])
def test_partitioning_changes_nothing(
    spark: "SparkSession", rows: dict[tuple[str, int], Row], partitions: int
) -> None:
    """Spark gives the same rows bit for bit, for any number of partitions."""
    found = fleet.run_in_session(spark, jobs(), None, nothing, partitions=partitions)
    assert rows_of(found) == rows


def test_waves_change_nothing(
    spark: "SparkSession", rows: dict[tuple[str, int], Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job or several give the same rows, and each says how much is left."""
    monkeypatch.setattr(fleet, "_PARCELS_PER_CORE_IN_WAVE", 1)
    monkeypatch.setattr("advisor.pipeline.parcels.SECONDS_PER_PARCEL", 0.02)
    monkeypatch.setattr(fleet, "cut_into_parcels", lambda jobs, done: cut(jobs, done, seconds=0.02))
    left: list[float] = []
    found = fleet.run_in_session(spark, jobs(), None, lambda _records, rest: left.append(rest))
    assert rows_of(found) == rows
    assert len(left) > 3
    assert left == sorted(left, reverse=True)
    assert left[-1] == pytest.approx(0.0, abs=1e-9)


cut = fleet.cut_into_parcels


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_killed_worker_changes_nothing(
    spark: "SparkSession",
    rows: dict[tuple[str, int], Row],
    tmp_path: Path,
    checkpoint: bool,
) -> None:
    """A Python worker killed within a block is replaced, and rows and files are the same."""
    where, marker = tmp_path / "blocks", tmp_path / "killed"

    def once(plan: Plan, block: Block) -> Row:
        if block.index == 5 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return run_block(plan, block)

    kept_in = str(where) if checkpoint else None
    found = fleet.run_in_session(spark, jobs(), kept_in, nothing, partitions=3, runner=once)
    assert marker.exists()
    assert rows_of(found) == rows
    if checkpoint:
        assert rows_of(checkpoints.read_records(str(where), jobs(), nothing)) == rows


def test_an_interrupted_grid_resumes(
    rows: dict[tuple[str, int], Row],
    here: SampledGrid,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What is finished is kept and not run again, and the result is identical."""
    monkeypatch.setattr(fleet, "cut_into_parcels", lambda jobs, done: cut(jobs, done, seconds=0.02))
    where, ran = tmp_path / "blocks", []

    def interrupted(plan: Plan, block: Block) -> Row:
        if len(ran) == 100:
            raise KeyboardInterrupt
        ran.append(block)
        return run_block(plan, block)

    def some(jobs: Any, folder: Any, advance: Any, say: Any) -> list[Record]:
        return fleet.run_locally(jobs, folder, advance, say, runner=interrupted)

    monkeypatch.setattr(grid, "ENGINES", {**grid.ENGINES, "local": some})
    with pytest.raises(KeyboardInterrupt, match="keeps the finished blocks"):
        sampled(engine="local", checkpoint=where)
    kept = rows_of(checkpoints.read_records(str(where), jobs(), nothing))
    assert 0 < len(kept) <= 100
    assert kept.items() <= rows.items()
    again: list[tuple[str, int]] = []

    def noting(plan: Plan, block: Block) -> Row:
        row = run_block(plan, block)
        again.append((row.plan, row.block))
        return row

    found = fleet.run_locally(jobs(), str(where), nothing, runner=noting)
    assert rows_of(found) == rows
    assert sorted(again) == sorted(set(rows) - set(kept))
    monkeypatch.undo()
    assert plain(sampled(engine="local", checkpoint=where)) == plain(here)


def test_damaged_files_are_sampled_again(here: SampledGrid, tmp_path: Path) -> None:
    """A file that is torn, or in which a byte changed, is named, and the result is the same."""
    where = tmp_path / "blocks"
    sampled(engine="local", checkpoint=where)
    files = sorted(where.glob("*.parquet"))
    assert len(files) > 1
    content = files[0].read_bytes()
    files[0].write_bytes(content[: len(content) // 2])
    said: list[str] = []
    found = sampled(engine="local", checkpoint=where, progress=said.append)
    assert plain(found) == plain(here)
    assert any(str(files[0]) in sentence and "damaged" in sentence for sentence in said)
    assert files[0].read_bytes() == content


def test_records_without_a_digest_are_sampled_again(here: SampledGrid, tmp_path: Path) -> None:
    """A whole file whose records have no digest, or one of other rows, is not trusted."""
    where = tmp_path / "blocks"
    sampled(engine="local", checkpoint=where)
    one, other, *_ = sorted(where.glob("*.parquet"))
    parquet.write_table(parquet.read_table(one).drop_columns(["digest"]), one)
    table = parquet.read_table(other)
    place = table.column_names.index("digest")
    parquet.write_table(
        table.set_column(place, "digest", arrow.array(["0" * 64] * len(table))), other
    )
    said: list[str] = []
    found = sampled(engine="local", checkpoint=where, progress=said.append)
    assert plain(found) == plain(here)
    (sentence,) = [text for text in said if "damaged" in text]
    assert str(one) in sentence
    assert str(other) in sentence


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_checkpoint_of_another_fleet_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    """Of another seed, years or inputs, or not ours at all."""
    if engine == "spark":
        request.getfixturevalue("spark")
    where = tmp_path / "blocks"
    cluster, config, model = CLUSTERS["small"], CONFIGS["three"], MODELS["often"]
    simulate_grid(cluster, config, model, LOAD, 40, 1, "local", checkpoint=where)
    for years, seed, load in ((40, 2, LOAD), (80, 1, LOAD), (40, 1, Workload())):
        with pytest.raises(InputError, match="another seed"):
            simulate_grid(cluster, config, model, load, years, seed, engine, checkpoint=where)
    other = tmp_path / "other"
    other.mkdir()
    parquet.write_table(arrow.table({"block": [1]}), other / "block-00000001.parquet")
    with pytest.raises(InputError, match="not a directory of finished blocks"):
        simulate_grid(cluster, config, model, LOAD, 40, 1, engine, checkpoint=other)


def test_a_checkpoint_of_one_sample_serves_a_fleet(tmp_path: Path) -> None:
    """Its blocks are those of a cell with the same inputs, and are not run again."""
    cluster, config, model = CLUSTERS["small"], CONFIGS["three"], MODELS["often"]
    simulate(cluster, config, model, LOAD, 40, 1, "local", checkpoint=tmp_path)
    files = sorted(tmp_path.iterdir())
    simulate_grid(cluster, config, model, LOAD, 40, 1, "local", checkpoint=tmp_path)
    assert sorted(tmp_path.iterdir()) == files


def test_equal_cells_are_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names for the same cluster cost one sample, and both have the result."""
    given: list[int] = []

    def counting(jobs: Any, *rest: Any) -> list[Record]:
        given.append(len(jobs))
        return fleet.run_locally(jobs, *rest)

    monkeypatch.setattr(grid, "ENGINES", {"local": counting})
    twins = {"a": Cluster.uniform(3), "b": Cluster.uniform(3)}
    found = simulate_grid(twins, CONFIGS["three"], MODELS["often"], years=5, engine="local")
    assert (given, len(found)) == ([1], 2)
    one, other = (each for _, each in found.sampled)
    assert one.to_dict() == other.to_dict()


def test_names_come_from_what_is_given(tmp_path: Path) -> None:
    """Of files, sizes, settings and cards; numbered where two would be the same."""
    described = tmp_path / "prod.txt"
    described.write_text("Topic: t Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2\n")
    config = Config(replication_factor=1, min_insync_replicas=1)
    found = simulate_grid(
        [described, Cluster.uniform(3), Cluster.uniform(3), Cluster.uniform(1, None)],
        [config, config.changed(acks=1)],
        ["three_az_cloud", load_model("three_az_cloud")],
        years=2,
        engine="local",
    )
    assert [*found.clusters] == ["prod", "3 brokers, 3 racks", "3 brokers, 3 racks 3", "1 broker"]
    assert [*found.configs] == ["RF 1, min ISR 1, acks all", "RF 1, min ISR 1, acks 1"]
    assert [*found.models] == ["three_az_cloud", "three_az_cloud 2"]
    assert len(found) == len([*found]) == 16


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("clusters", [], "give one or more"),
        ("clusters", {1: CLUSTERS["small"]}, "1 is not a name"),
        ("clusters", [7], "give a Cluster"),
        ("configs", ["three"], "give a Config"),
        ("configs", {}, "give one or more"),
        ("models", [CONFIGS["three"]], "give a FailureModel"),
        ("models", "three_az_clod", "Did you mean three_az_cloud"),
        ("load", 7, "give a Workload"),
        ("years", 0, "years=0"),
        ("years", 1e14, "at most about"),
        ("seed", -1, "seed=-1"),
        ("engine", "flink", "'spark', 'local'"),
        ("checkpoint", 7, "the path of a folder"),
        ("progress", 7, "give a function"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, argument: str, value: Any, said: str
) -> None:
    """The message names the argument and says what to give."""
    monkeypatch.setattr(grid, "ENGINES", {})
    given = {"clusters": CLUSTERS, "configs": CONFIGS, "models": MODELS, "engine": "local"}
    with pytest.raises(Exception, match=said) as caught:
        simulate_grid(**{**given, argument: value})
    assert isinstance(caught.value, AdvisorError)


def test_an_unknown_cell_has_a_suggestion(here: SampledGrid) -> None:
    """A name that is not there is answered with the one that may be meant."""
    with pytest.raises(InputError, match=r"no cluster is called 'smal'\. Did you mean small\?"):
        here["smal", "three", "cloud"]
    with pytest.raises(InputError, match="give the names of a cluster, a configuration and a card"):
        here["small"]
    assert ("small", "three", "cloud") in here
    assert ("pair", "three", "cloud") in here
    assert ("smal", "three", "cloud") not in here


def test_every_form_of_the_result_has_every_cell(here: SampledGrid) -> None:
    """Frame, text, HTML and plain data have the cells in order, refused ones too."""
    frame = here.to_frame()
    names = [tuple(row) for row in frame[["cluster", "config", "model"]].to_numpy().tolist()]
    assert [*dict.fromkeys(names)] == [*here]
    one = frame[(frame["cluster"] == "small") & (frame["model"] == "cloud")]
    three = one[(one["config"] == "three") & (one["measure"] == "write_unavailability")]
    assert three["value"].item() == here["small", "three", "cloud"].write_unavailability.value
    assert three["seen"].item() == here["small", "three", "cloud"].write_unavailability.seen
    assert (frame["refused"] != "").sum() == len(here.refused)
    page = here._repr_html_()
    for text in (page, repr(here)):
        for key in here:
            assert all(name in text for name in key)
        assert "14 cells sampled, 70 years each" in text
        assert "Kafka cannot place 4" in text
    assert len(here.to_dict()["cells"]) == len(here) == 18


def test_a_fleet_of_refused_cells_says_so() -> None:
    """Without a cell that can be placed nothing is sampled, and the result says why."""
    found = simulate_grid(CLUSTERS["pair"], CONFIGS["three"], "three_az_cloud", engine="local")
    assert len(found) == len(found.refused) == 1
    assert found.summary.startswith("0 cells sampled: 1 cluster, 1 configuration, 1 card")
    assert found.summary.endswith("; Kafka cannot place 1.")
