"""Checkpoints: finished blocks are kept one by one, and damaged ones are sampled again."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as arrow
import pytest
from pyarrow import parquet

from advisor import Cluster, Config, FailureModel, Workload, simulate
from advisor.errors import AdvisorError, InputError
from advisor.pipeline import checkpoints, sampling
from advisor.pipeline.parcels import Job, Record, Runner, packed, rows_of
from advisor.progress import Notify, ignore
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import Block, Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTER = Cluster.uniform(3, 3)
CONFIG = Config(replication_factor=3, min_insync_replicas=2)
LOAD = Workload(partitions=4, records_per_second=80.0)
MODEL = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 10.0, "minutes": 60.0},
            "destroyed": {"per_year": 1.0, "hours": 24.0, "shape": 2.0},
        }
    }
)
PLAN = plan_for(CLUSTER, CONFIG, MODEL, LOAD)
BLOCKS = cut_into_blocks(PLAN, 96, seed=11)
JOB = Job.of(PLAN, BLOCKS)
TORN = "block-00000003.parquet"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Rows of the blocks, run in this process."""
    return [run_block(PLAN, block) for block in BLOCKS]


@pytest.fixture
def kept(rows: list[Row], tmp_path: Path) -> Path:
    """Return a checkpoint with every block."""
    folder = tmp_path / "blocks"
    folder.mkdir()
    for row in rows:
        checkpoints.write_records(str(folder), [record_of(row)], by_block=True)
    return folder


def record_of(row: Row) -> Record:
    """Return a row as a checkpoint has it."""
    return Record(row.plan, row.block, 1, packed([row]))


def read_rows(where: str, notify: Notify = ignore) -> dict[int, Row]:
    """Return the rows that a checkpoint has, read in this process."""
    return rows_of(JOB, checkpoints.read_records(where, [JOB], notify))


def only(blocks: Sequence[Block]) -> Runner:
    """Run these blocks, and fail at any other."""

    def runner(plan: Plan, block: Block) -> Row:
        if block not in blocks:
            raise AdvisorError(f"block {block.index} is not to be run")
        return run_block(plan, block)

    return runner


def cut_in_half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_last_byte(content: bytes) -> bytes:
    return content[:-1]


def empty(_content: bytes) -> bytes:
    return b""


def with_a_flipped_bit(content: bytes) -> bytes:
    return bytes([*content[:40], content[40] ^ 1, *content[41:]])


@pytest.mark.parametrize("damage", [cut_in_half, without_last_byte, empty, with_a_flipped_bit])
@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_damaged_block_is_named_and_sampled_again(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[Row],
    kept: Path,
    engine: str,
    damage,
) -> None:
    """Only the damaged block is run; the rows are the same, and its file is whole again."""
    whole = (kept / TORN).read_bytes()
    (kept / TORN).write_bytes(damage(whole))
    said: list[str] = []
    if engine == "spark":
        found = sampling.sample_in_session(
            request.getfixturevalue("spark"),
            *(PLAN, BLOCKS, str(kept), ignore),
            notify=said.append,
            runner=only([BLOCKS[3]]),
        )
    else:
        monkeypatch.setattr(sampling, "run_block", only([BLOCKS[3]]))
        found = sampling.sample_locally(PLAN, BLOCKS, str(kept), ignore, said.append)
    assert found == rows
    assert said == [f"{kept / TORN} is damaged; its block is sampled again."]
    assert (kept / TORN).read_bytes() == whole


@pytest.mark.parametrize("digest", ["absent", "of other values"])
@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_block_without_a_valid_digest_is_sampled_again(
    request: pytest.FixtureRequest, rows: list[Row], kept: Path, engine: str, digest: str
) -> None:
    """A whole file with other numbers (negative hours) changes no result, on any file system."""
    table = parquet.read_table(kept / TORN)
    place = table.column_names.index("rows")
    other = arrow.array([record_of(rows[3]._replace(hours=-1e9)).rows])
    changed = table.set_column(place, table.schema.field("rows"), other)
    if digest == "absent":
        changed = changed.drop_columns(["digest"])
    parquet.write_table(changed, kept / TORN)
    said: list[str] = []
    if engine == "spark":
        session = request.getfixturevalue("spark")
        records = checkpoints.read_records_with_spark(session, f"file://{kept}", [JOB], said.append)
        found = rows_of(JOB, records)
    else:
        found = read_rows(str(kept), said.append)
    assert found == {row.block: row for row in rows if row.block != 3}
    (sentence,) = said
    assert sentence.endswith(f"/{TORN} is damaged; its block is sampled again.")


def test_no_flipped_bit_and_no_truncation_changes_a_row(rows: list[Row], kept: Path) -> None:
    """Whatever byte of a file is damaged or missing, its block is read as it was, or not at all."""
    whole = (kept / TORN).read_bytes()
    for path in kept.iterdir():
        if path.name != TORN:
            path.unlink()
    damaged = [whole[:end] for end in range(0, len(whole), 7)]
    for place in range(0, len(whole), 3):
        flipped = whole[place] ^ (1 << place % 8)
        damaged.append(bytes([*whole[:place], flipped, *whole[place + 1 :]]))
    noticed = 0
    for content in damaged:
        (kept / TORN).write_bytes(content)
        try:
            found = read_rows(str(kept))
        except InputError:
            noticed += 1
            continue
        noticed += not found
        assert found in ({}, {3: rows[3]})
    assert noticed > len(damaged) / 4


def test_the_first_of_many_damaged_files_are_named(kept: Path) -> None:
    """One sentence, with three names and the number of the others."""
    for path in kept.iterdir():
        path.write_bytes(b"")
    said: list[str] = []
    assert read_rows(str(kept), said.append) == {}
    (sentence,) = said
    assert sentence.startswith(f"{kept}/block-00000000.parquet, ")
    assert sentence.endswith(f" and {len(BLOCKS) - 3} more are damaged; their blocks are sampled "
                             "again.")  # fmt: skip


def test_without_a_listener_damage_is_a_warning(kept: Path) -> None:
    """`simulate` warns, and gives the same result as without a checkpoint."""
    (kept / TORN).write_bytes(b"PAR1")
    with pytest.warns(UserWarning, match=TORN):
        found = simulate(CLUSTER, CONFIG, MODEL, LOAD, 96, 11, "local", checkpoint=kept)
    again = simulate(CLUSTER, CONFIG, MODEL, LOAD, 96, 11, "local")
    assert found.to_dict() == again.to_dict()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_spark_keeps_finished_blocks_one_by_one(
    spark: "SparkSession", rows: list[Row], tmp_path: Path, scheme: str
) -> None:
    """A wave that fails keeps the blocks finished before; the next run needs the others alone."""
    where = f"{scheme}{tmp_path / 'blocks'}"

    def fails_at_9(plan: Plan, block: Block) -> Row:
        if block.index == 9:
            raise AdvisorError("stop here")
        return run_block(plan, block)

    with pytest.raises(AdvisorError, match=r"^stop here$"):
        sampling.sample_in_session(spark, PLAN, BLOCKS, where, ignore, runner=fails_at_9)
    if scheme:
        records = checkpoints.read_records_with_spark(spark, where, [JOB], ignore)
        kept = rows_of(JOB, records)
    else:
        kept = read_rows(where)
    assert set(range(8)) <= kept.keys()
    assert 9 not in kept
    others = [block for block in BLOCKS if block.index not in kept]
    found = sampling.sample_in_session(
        spark, PLAN, BLOCKS, where, ignore, runner=only(others)
    )  # fmt: skip
    assert found == rows


def test_a_torn_file_of_another_file_system_is_named_too(
    spark: "SparkSession", rows: list[Row], tmp_path: Path
) -> None:
    """Spark reads checkpoints with an address; what it cannot read is sampled again."""
    where = f"file://{tmp_path / 'blocks'}"
    assert sampling.sample_in_session(spark, PLAN, BLOCKS, where, ignore) == rows
    torn = min((tmp_path / "blocks").glob("part-*.parquet"))
    torn.write_bytes(torn.read_bytes()[:100])
    said: list[str] = []
    found = sampling.sample_in_session(spark, PLAN, BLOCKS, where, ignore, notify=said.append)
    assert found == rows
    (sentence,) = said
    assert torn.name in sentence
    assert sentence.endswith(" is damaged; its block is sampled again.")


def test_a_pipe_in_a_checkpoint_is_an_error(kept: Path) -> None:
    """Nothing waits for a pipe."""
    os.mkfifo(kept / "block-00000099.parquet")
    with pytest.raises(InputError, match="pipe"):
        simulate(CLUSTER, CONFIG, MODEL, LOAD, 96, 11, "local", checkpoint=kept)
