"""How blocks are handed to Spark: waves, and their tasks."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from advisor import Cluster, Config, Workload, load_model
from advisor.pipeline import fleet, sampling
from advisor.pipeline.parcels import Job, Record, cut_into_parcels
from advisor.reliability.sampler.plan import cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

PLAN = plan_for(
    Cluster.uniform(3), Config(replication_factor=3), load_model("three_az_cloud"), Workload()
)
BLOCKS = cut_into_blocks(PLAN, 96, seed=11)


@pytest.mark.parametrize("longest", [2, 8, 100])
def test_waves_grow_and_hold_every_block_once(longest: int) -> None:
    """Each is twice as long as the last until the longest, so that few cores wait."""
    parcels = cut_into_parcels([Job.of(PLAN, BLOCKS)], {}, seconds=0.0)
    waves = [*fleet._waves(parcels, 2, longest)]
    assert [block for wave in waves for one in wave for block in one.spans[0].blocks] == [*BLOCKS]
    lengths = [len(wave) for wave in waves]
    assert lengths[:-1] == [min(2 * 2**n, longest) for n in range(len(lengths) - 1)]
    assert lengths[-1] <= longest


def test_a_longer_wave_has_no_more_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task costs its Python worker some time, however many blocks it runs."""
    begun: list[tuple[int, int]] = []

    def noted(*given: Any) -> list[Record]:
        begun.append((len(given[2]), given[4]))
        return []

    ignored = dict.fromkeys(("addJobTag", "removeJobTag"), lambda _tag: None)
    context = SimpleNamespace(defaultParallelism=1, master="local", **ignored)
    monkeypatch.setattr(fleet, "_run_wave", noted)
    session: Any = SimpleNamespace(sparkContext=context)
    blocks = [replace(BLOCKS[0], index=index) for index in range(30)]
    sampling.sample_in_session(session, PLAN, blocks, None, lambda _rows: None)
    assert begun == [(8, 8), (16, 8), (6, 6)]
