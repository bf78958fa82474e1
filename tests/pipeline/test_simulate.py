"""`simulate`: identical results for every engine, partitioning and interruption."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate
from advisor.errors import AdvisorError, InputError, MissingExtraError
from advisor.pipeline import checkpoints, sampling
from advisor.pipeline import simulate as simulate_module
from advisor.pipeline.parcels import Job, Runner, rows_of
from advisor.progress import progress_bar
from advisor.reliability import measure_table
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import (
    Block,
    Plan,
    Splitting,
    cut_into_blocks,
    years_per_block,
)
from advisor.reliability.sampler.plan_reader import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTER = Cluster.uniform(6, 3)
CONFIG = Config(replication_factor=3, min_insync_replicas=2)
LOAD = Workload(partitions=8, records_per_second=80.0)
MODEL = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 10.0, "minutes": 60.0},
            "destroyed": {"per_year": 1.0, "hours": 24.0, "shape": 2.0},
        },
        "rack": {"network": {"per_year": 2.0, "minutes": 120.0}},
    }
)
PLAN = plan_for(CLUSTER, CONFIG, MODEL, LOAD)
BLOCKS = cut_into_blocks(PLAN, 96, seed=11)


def nothing(_: object) -> None:
    """Show no progress."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Rows of the blocks, run in this process."""
    return [run_block(PLAN, block) for block in BLOCKS]


def run(**options: Any) -> dict[str, Any]:
    """Simulate and return the result after a round trip through JSON."""
    result = simulate(CLUSTER, CONFIG, MODEL, LOAD, 96, 11, **options).to_dict()
    return json.loads(json.dumps(result))


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_partitioning_changes_nothing(
    spark: "SparkSession", rows: list[Row], partitions: int
) -> None:
    """Spark gives the same rows bit for bit, for any number of partitions."""
    found = sampling.sample_in_session(spark, PLAN, BLOCKS, None, nothing, partitions=partitions)
    assert found == rows


@pytest.mark.parametrize("partitions", [1, 3])
def test_partitioning_changes_no_retrials(spark: "SparkSession", partitions: int) -> None:
    """Paths that split are the same on Spark and here, for any number of partitions."""
    plan = replace(PLAN, splitting=Splitting((10.0,) * PLAN.replicas, 1.0))
    here = sampling.sample_locally(plan, BLOCKS, None, nothing)
    found = sampling.sample_in_session(spark, plan, BLOCKS, None, nothing, partitions=partitions)
    assert found == here
    assert sum(row.cycles[0] for row in here) > 0.0


def test_workers_leave_their_imports_out_of_garbage_collections(spark: "SparkSession") -> None:
    """What a worker has imported is frozen after its first task; its next tasks see that."""

    def frozen(plan: Plan, block: Block) -> Row:
        return run_block(plan, block)._replace(events=gc.get_freeze_count())

    for _ in range(2):
        found = sampling.sample_in_session(spark, PLAN, BLOCKS[:8], None, nothing, runner=frozen)
    assert max(row.events for row in found) > 10_000


@pytest.mark.usefixtures("spark")
def test_both_engines_give_the_same_result() -> None:
    """The whole result is the same on Spark and in this process."""
    assert run(engine="spark") == run(engine="local")


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_killed_worker_changes_nothing(
    spark: "SparkSession", rows: list[Row], tmp_path: Path, checkpoint: bool
) -> None:
    """A Python worker killed within a block is replaced, and rows and files are the same."""
    where = tmp_path / "blocks"
    marker = tmp_path / "killed"

    def once(plan: Plan, block: Block) -> Row:
        if block.index == 5 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return run_block(plan, block)

    found = sampling.sample_in_session(
        *(spark, PLAN, BLOCKS, str(where) if checkpoint else None, nothing),
        partitions=4,
        runner=once,
    )
    assert marker.exists()
    assert found == rows
    if checkpoint:
        job = Job.of(PLAN, BLOCKS)
        kept = rows_of(job, checkpoints.read_records(str(where), [job], nothing))
        assert kept == dict(enumerate(rows))
        assert len(list(where.iterdir())) == len(rows)


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_an_interrupted_run_resumes(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[Row],
    tmp_path: Path,
    engine: str,
) -> None:
    """Neither engine reruns the blocks of a checkpoint, and the result is identical."""
    where = str(tmp_path / "blocks")
    if engine == "spark":
        spark = request.getfixturevalue("spark")
        sampling.sample_in_session(spark, PLAN, BLOCKS[::2], where, nothing)
        monkeypatch.setattr(sampling, "run_block", only(BLOCKS[1::2]))
        assert sampling.sample_locally(PLAN, BLOCKS, where, nothing) == rows
        assert (
            sampling.sample_in_session(spark, PLAN, BLOCKS, where, nothing, runner=only([])) == rows
        )
    else:
        monkeypatch.setattr(sampling, "run_block", only(BLOCKS[:9]))
        with pytest.raises(KeyboardInterrupt):
            sampling.sample_locally(PLAN, BLOCKS, where, nothing)
        assert len(list(Path(where).glob("*.parquet"))) == 9
        monkeypatch.setattr(sampling, "run_block", only(BLOCKS[9:]))
        assert sampling.sample_locally(PLAN, BLOCKS, where, nothing) == rows
    monkeypatch.undo()
    assert run(engine="local", checkpoint=where) == run(engine="local")


def test_an_interrupt_says_what_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a checkpoint how to go on; without one that nothing is kept. Both are interrupts."""
    monkeypatch.setattr(sampling, "run_block", only(BLOCKS[:9]))
    where = tmp_path / "blocks"
    with pytest.raises(KeyboardInterrupt, match=rf"^Interrupted; {where} keeps the finished blo"):
        run(engine="local", checkpoint=where)
    assert len(list(where.iterdir())) == 9
    with pytest.raises(KeyboardInterrupt, match=r"^Interrupted, and nothing is kept; name a fold"):
        run(engine="local")


@pytest.mark.parametrize("step", ["plan_for", "with_method"])
def test_an_interrupt_before_the_first_block_says_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    """A pilot, or the compiler that it waits for, may take longer than a person does."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate_module, step, interrupted)
    where = tmp_path / "blocks"
    with pytest.raises(KeyboardInterrupt, match=rf"^Interrupted; {where} keeps the finished blo"):
        run(engine="local", checkpoint=where)
    with pytest.raises(KeyboardInterrupt, match=r"^Interrupted, and nothing is kept; name a fold"):
        run(engine="local")


def test_an_interrupt_while_the_time_is_announced_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between planning and sampling, too."""

    def interrupted(_sentence: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate_module, "ANNOUNCE_FROM_S", 0.0)
    with pytest.raises(KeyboardInterrupt, match=r"^Interrupted, and nothing is kept; name a fold"):
        run(engine="local", progress=interrupted)


def only(blocks: Sequence[Block]) -> Runner:
    """Run these blocks, and stop at any other."""

    def runner(plan: Plan, block: Block) -> Row:
        if block not in blocks:
            raise KeyboardInterrupt
        return run_block(plan, block)

    return runner


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_checkpoint_of_another_run_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    """A checkpoint of another seed, years or inputs is rejected."""
    if engine == "spark":
        request.getfixturevalue("spark")
    where = tmp_path / "blocks"
    simulate(CLUSTER, CONFIG, MODEL, LOAD, 40, 1, engine="local", checkpoint=where)
    before = sorted(path.name for path in where.iterdir())
    for years, seed, load in ((40, 2, LOAD), (80, 1, LOAD), (40, 1, Workload())):
        with pytest.raises(InputError, match="another seed"):
            simulate(CLUSTER, CONFIG, MODEL, load, years, seed, engine, checkpoint=where)
    assert sorted(path.name for path in where.iterdir()) == before


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    """A file, or unrelated Parquet, is rejected and left unchanged."""
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(InputError, match="not a directory of finished blocks"):
        run(engine="local", checkpoint=file)
    assert file.read_text() == "mine"
    (tmp_path / "x.parquet").write_text("no parquet")
    with pytest.raises(InputError, match="not a directory of finished blocks"):
        run(engine="local", checkpoint=tmp_path)


def test_an_empty_path_is_no_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would be the folder that the process happens to be in."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="checkpoint='': give the path of a folder"):
        run(engine="local", checkpoint="")


def test_an_error_in_a_worker_is_one_sentence(spark: "SparkSession") -> None:
    """An error in a worker arrives as the same error, without Spark's traceback."""

    def refuse(_: Plan, block: Block) -> Row:
        raise AdvisorError(f"block {block.index} is outside this model")

    with pytest.raises(AdvisorError, match=r"^block \d+ is outside this model$"):
        sampling.sample_in_session(spark, PLAN, BLOCKS[:2], None, nothing, runner=refuse)


def test_a_placement_is_used_unchanged() -> None:
    """An explicit placement is used as it is, one partition per entry."""
    placed = [(1, 2, 3), (1, 2, 3), (4, 5, 6)]
    found = simulate(CLUSTER, CONFIG, MODEL, LOAD, 8, engine="local", placement=placed)
    assert found.load.partitions == 3
    with pytest.raises(InputError, match="broker 9"):
        simulate(CLUSTER, CONFIG, MODEL, LOAD, 8, engine="local", placement=[(1, 2, 9)])


@pytest.mark.parametrize(("patience", "engine"), [(1e9, "local"), (0.0, "spark")])
def test_the_quickest_engine_depends_on_the_length_of_the_run(
    monkeypatch: pytest.MonkeyPatch, patience: float, engine: str
) -> None:
    """What is done before Spark has started runs here, with the same result."""
    here = simulate_module.ENGINES["local"]
    used: list[str] = []

    def noting(name: str) -> simulate_module.Engine:
        return lambda *asked: used.append(name) or here(*asked)

    monkeypatch.setattr(simulate_module, "ENGINES", {n: noting(n) for n in ("spark", "local")})
    monkeypatch.setattr(simulate_module, "QUICKER_HERE_S", patience)
    assert run(engine="quickest") == run(engine="local")
    assert used == [engine, "local"]


def test_an_unknown_engine_is_refused() -> None:
    """The error lists the engines."""
    with pytest.raises(InputError, match="'spark', 'local'"):
        run(engine="flink")


def test_local_needs_neither_spark_nor_arrow() -> None:
    """The base dependencies are enough for engine="local"."""
    hidden = ("pyspark", "pyarrow", "pandas", "tqdm", "matplotlib")
    code = f"""
import sys
for name in {hidden!r}:
    sys.modules[name] = None
from advisor import Cluster, Config, FailureModel, simulate
model = FailureModel.from_dict({{"broker": {{"destroyed": {{"per_year": 1.0, "hours": 1.0}}}}}})
config = Config(replication_factor=1)
print(simulate(Cluster.uniform(1, 1), config, model, years=100, engine="local").years)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "100\n", "")


def test_without_arrow_a_checkpoint_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without pyarrow the error says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="spark"):
        run(engine="local", checkpoint=tmp_path / "blocks")


def test_progress_is_shown_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """There is a progress bar on a terminal, and no output elsewhere."""
    with progress_bar(2, "years") as advance:
        advance(1)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr("advisor.progress._SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar(2, "years") as advance:
        advance(1)
    assert "/2.00" in capfd.readouterr().err


def test_every_form_of_a_result_names_every_measure() -> None:
    """Frame, HTML and explanation have all nine measures."""
    found = simulate(CLUSTER, CONFIG, MODEL, LOAD, 8, engine="local")
    names = list(found.to_dict()["measures"])
    assert list(found.to_frame().index) == names
    assert len(names) == 9
    for name in names:
        assert name in found._repr_html_()
        assert name in found.explain()
        assert found.interval(name) == (found.estimate(name).low, found.estimate(name).high)
    with pytest.raises(InputError, match="no measure"):
        found.interval("durability")


@pytest.mark.parametrize("years", [1e99, 10**14])
def test_too_many_years_are_rejected(years: float) -> None:
    """More than twelve days of one core is rejected immediately, with the maximum."""
    with pytest.raises(InputError, match=r"at most about [0-9,]+, which take one core 12 days"):
        simulate(CLUSTER, CONFIG, MODEL, LOAD, years, engine="local")


def test_run_time_is_proportional_to_blocks() -> None:
    """The estimated time is proportional to the number of blocks."""
    blocks = cut_into_blocks(PLAN, 100 * years_per_block(PLAN), seed=1)
    assert len(blocks) == 100
    assert {block.years for block in blocks} == {years_per_block(PLAN)}


@pytest.mark.parametrize(("slow", "said"), [(0.0, 1), (1e9, 0)])
def test_long_runs_are_announced(monkeypatch: pytest.MonkeyPatch, slow: float, said: int) -> None:
    """Only runs of more than a few seconds are announced."""
    monkeypatch.setattr(simulate_module, "ANNOUNCE_FROM_S", slow)
    told: list[str] = []
    simulate(CLUSTER, CONFIG, MODEL, LOAD, 96, engine="local", progress=told.append)
    assert len(told) == said
    assert all(sentence.startswith("Sampling 96 years takes about ") for sentence in told)


STILL = MODEL.with_values({name: 0.0 for name in MODEL.quantities if name.endswith("per_year")})


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_zero_rates_give_exact_zeros(acks: str | int) -> None:
    """With all rates zero, sampled and exact results are exactly zero, without bounds."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks=acks)
    exact = evaluate(CLUSTER, config, STILL, LOAD)
    found = simulate(CLUSTER, config, STILL, LOAD, 96, engine="local")
    for name in measure_table.names():
        assert found.interval(name) == (getattr(exact, name),) * 2
        assert str(found.estimate(name)) == ("never" if name == "mean_years_to_loss" else "none")
        assert "cannot happen" in found.estimate(name).method
    for result in (exact, found):
        assert result.summary.endswith(", writes never refused.")
        assert "nothing acknowledged" in result.summary or "no modelled data" in result.summary
    assert "none" not in found.summary
    assert "Causes of" not in exact.explain()


def test_zero_rates_with_writes_always_refused() -> None:
    """A configuration that rejects all writes does so without failures."""
    config = Config(kafka_version="3.6", replication_factor=1, min_insync_replicas=2, acks="all")
    exact = evaluate(CLUSTER, config, STILL, LOAD)
    found = simulate(CLUSTER, config, STILL, LOAD, 96, engine="local")
    assert exact.write_unavailability == found.write_unavailability.value == 1.0
    # At the end of a block, producers are still retrying.
    trying = found.blocks * config.delivery_timeout_ms / 1000.0 * LOAD.records_per_second
    refused = found.records_refused_per_year.value + trying / found.years
    assert refused == pytest.approx(exact.records_refused_per_year)
    assert found.loss_events_per_year.high == 0.0


def test_years_without_events_are_limited_too() -> None:
    """A year without events takes as long as one with one event, so the limits apply."""
    still = plan_for(CLUSTER, CONFIG, STILL, LOAD)
    brokers = len(CLUSTER.brokers)
    once_in_two = STILL.with_values({"broker.crash.per_year": 0.5 / brokers})
    assert years_per_block(still) == years_per_block(plan_for(CLUSTER, CONFIG, once_in_two, LOAD))
    assert len(cut_into_blocks(still, 100 * years_per_block(still), seed=1)) == 100
    with pytest.raises(InputError, match="at most about"):
        simulate(CLUSTER, CONFIG, STILL, LOAD, 1e99, engine="local")
