"""Parcels: every block in one of them, spread by cost, and rows packed without losing a bit."""

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from advisor import Cluster, Config, Workload, load_model
from advisor.errors import InputError
from advisor.pipeline.parcels import (
    Job,
    Parcel,
    Record,
    blocks_and_years,
    cut_into_parcels,
    packed,
    packed_plan,
    run_parcel,
    unpacked,
)
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

CARD = load_model("three_az_cloud")


def job(brokers: int, partitions: int, years: int, factor: int = 3) -> Job:
    config = Config(replication_factor=factor, min_insync_replicas=2)
    plan = plan_for(Cluster.uniform(brokers, 3), config, CARD, Workload(partitions=partitions))
    return Job.of(plan, cut_into_blocks(plan, years, seed=3))


# The dearest takes more than a thousand times as long as the cheapest.
FLEET = [job(3, 1, 500), job(3, 2, 500, 2), job(6, 12, 20_000), job(60, 300, 600_000)]


def blocks_of(parcels: list[Parcel]) -> list[tuple[str, int]]:
    return [(s.run, block.index) for parcel in parcels for s in parcel.spans for block in s.blocks]


def cost(job: Job) -> float:
    return job.seconds_per_block * len(job.blocks)


def test_every_block_is_in_one_parcel() -> None:
    """Blocks that are done are in none, all others in one."""
    wanted = {(one.run, block.index) for one in FLEET for block in one.blocks}
    found = blocks_of(cut_into_parcels(FLEET, {}))
    assert len(found) == len(set(found))
    assert set(found) == wanted
    rng = random.Random(5)
    done = {one.run: {b.index for b in one.blocks if rng.random() < 0.4} for one in FLEET}
    left = blocks_of(cut_into_parcels(FLEET, done))
    assert len(left) == len(set(left))
    assert set(left) == {(run, n) for run, n in wanted if n not in done[run]}


def test_costs_are_spread_evenly() -> None:
    """Where cells differ a thousandfold, no parcel is far above the mean."""
    assert max(map(cost, FLEET)) > 1000 * min(map(cost, FLEET))
    parcels = cut_into_parcels(FLEET, {}, seconds=0.2)
    dearest_block = max(one.seconds_per_block for one in FLEET)
    costs = [parcel.seconds for parcel in parcels]
    assert math.fsum(costs) == pytest.approx(math.fsum(map(cost, FLEET)))
    assert max(costs) <= 0.2 + dearest_block
    # Each set of rules leaves at most one parcel that is not full.
    rules = {(one.plan.replicas, one.plan.constants) for one in FLEET}
    assert sum(1 for each in costs if each < 0.2) <= len(rules)


def test_blocks_beyond_two_parcels_come_first() -> None:
    """The dearest first; the others by their rules, so that tables are filled once."""
    parcels = cut_into_parcels(FLEET, {}, seconds=0.01)
    first = [parcel for parcel in parcels if parcel.seconds > 0.02]
    assert first
    assert first == sorted(first, key=lambda parcel: -parcel.seconds) == parcels[: len(first)]
    rules = {one.run: (one.plan.replicas, one.plan.constants) for one in FLEET}
    order = [rules[parcel.spans[0].run] for parcel in parcels[len(first) :]]
    changes = sum(1 for one, other in pairwise(order) if one != other)
    assert changes == len(set(order)) - 1


def test_the_order_of_the_jobs_changes_nothing() -> None:
    """The same parcels, whatever the order of clusters, configurations and cards."""
    assert cut_into_parcels(FLEET, {}) == cut_into_parcels(FLEET[::-1], {})


def test_a_parcel_gives_the_rows_of_its_blocks() -> None:
    """Records hold the rows of `run_block`, every bit of them."""
    small = [job(3, 2, 40), job(6, 3, 50)]
    parcels = cut_into_parcels(small, {small[0].run: {3, 4}}, seconds=0.02)
    plans = {one.run: packed_plan(one.plan) for one in small}
    records = [record for parcel in parcels for record in run_parcel(parcel, plans)]
    found = {(record.run, row.block): row for record in records for row in unpacked(record)}
    for one in small:
        for block in one.blocks:
            if one is small[0] and block.index in (3, 4):
                assert (one.run, block.index) not in found
            else:
                assert found.pop((one.run, block.index)) == run_block(one.plan, block)
    assert found == {}
    for record in records:
        years = [(row.block, row.years) for row in unpacked(record)]
        assert blocks_and_years(record) == years


def row(block: int, number: float) -> Row:
    causes, outages = (number, -0.0, 5e-324), (math.inf, 1 / 3)
    return Row(block, 7, "run-1", 2**62, number, 0.1, 3, 4, 5, causes, outages)


def test_packing_keeps_every_bit() -> None:
    """Also of numbers that are neither small nor round, infinite or minus zero."""
    rows = [row(block, math.pi * 10.0**block) for block in range(5)]
    again = unpacked(Record("run-1", 0, 5, packed(rows)))
    assert list(map(repr, again)) == list(map(repr, rows))


@pytest.mark.parametrize("change", ["cut", "flip", "more"])
def test_a_damaged_record_is_refused(change: str) -> None:
    """A record that is cut, or in which a byte differs, has no rows."""
    content = packed([row(0, 1.0)])
    middle = len(content) // 2
    flipped = bytes([content[middle] ^ 1])
    wrong = {
        "cut": content[:middle],
        "flip": content[:middle] + flipped + content[middle + 1 :],
        "more": content,
    }[change]
    blocks = 2 if change == "more" else 1
    with pytest.raises(InputError, match="damaged"):
        unpacked(Record("run-1", 0, blocks, wrong))


def test_equal_plans_are_one_run() -> None:
    """Plans are told from each other by what they hold, not by where they came from."""
    one, other = job(3, 1, 100), job(3, 1, 100)
    assert one.plan is not other.plan
    assert (one.run, hash(one.plan)) == (other.run, hash(other.plan))
    changed = replace(one.plan, retained_records=1.0)
    assert Job.of(changed, one.blocks).run != one.run
    assert hash(changed) != hash(one.plan)
