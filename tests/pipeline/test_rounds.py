"""Sampling stops when the interval is narrow enough or the time is up, at the end of a round."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advisor import Cluster, Config, FailureModel, simulate
from advisor.errors import InputError
from advisor.formatting import significant
from advisor.pipeline import rounds, sampling
from advisor.pipeline.rounds import BUT_FOR_RARE, Stop, sample_in_rounds
from advisor.reliability.results.sampled import ALL_DONE, NARROW, TIME_UP
from advisor.reliability.sampler.block import Row
from advisor.reliability.sampler.plan import Block, cut_into_blocks, years_per_block
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.workload import Workload

CLUSTER = Cluster.uniform(6, 3)
CONFIG = Config(replication_factor=2, min_insync_replicas=1)
MODEL = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}})
PLAN = plan_for(CLUSTER, CONFIG, MODEL, Workload())
BLOCK = years_per_block(PLAN)
SEED = 3


def run(years: float, **options: Any) -> tuple[dict[str, Any], Any]:
    """Simulate: the result after a round trip through JSON, and the result."""
    found = simulate(CLUSTER, CONFIG, MODEL, years=years, seed=SEED, **options)
    return json.loads(json.dumps(found.to_dict())), found


class Sampler:
    """An engine that loses a record in so many of a million years, and notes what it ran.

    With a clock, each block takes as long as its share of a block of whole size, in seconds.
    """

    def __init__(self, per_million: int = 0) -> None:
        self.per_million, self.now = per_million, 0.0
        self.ran: list[tuple[int, int, bool]] = []

    def __call__(
        self, blocks: Sequence[Block], keep: bool, enough: Callable[[int], bool]
    ) -> list[Row]:
        found: list[Row] = []
        for block in blocks:
            if enough(len(found)):
                break
            self.now += block.years / BLOCK
            lost = block.years * self.per_million // 1_000_000
            zeros = (0.0, 0.0, 0, 0, 0, (), ())
            found.append(Row(block.index, block.years, "", lost, *zeros))
        self.ran.append((len(found), sum(row.years for row in found), keep))
        return found


def rounds_of(sampler: Sampler, years: int, **limits: float) -> tuple[int, int, str]:
    """Years and blocks of the result, which are those of a run of as many years; and why."""
    stop = Stop(**limits)
    rows, blocks, why = sample_in_rounds(sampler, PLAN, years, SEED, stop)
    done = sum(block.years for block in blocks)
    assert blocks == cut_into_blocks(PLAN, done, SEED)
    assert [(row.block, row.years) for row in rows] == [(b.index, b.years) for b in blocks]
    return done, len(blocks), why


@pytest.mark.usefixtures("spark")
def test_a_narrow_interval_stops_both_engines_at_the_same_block() -> None:
    """The same bytes from Spark and here, and from a call with the years that were done."""
    limits = {"years": 1e7, "relative_width": 0.2}
    here, found = run(engine="local", **limits)
    there, on_spark = run(engine="spark", **limits)
    assert here == there
    assert (found.why, on_spark.why) == (NARROW, NARROW)
    assert found == on_spark
    assert found.years < 1e7
    assert run(found.years, engine="local") == (here, found)
    lost = found.loss_probability_per_year
    assert (lost.high - lost.low) / lost.value <= 0.2


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_when_the_time_is_up_the_result_is_that_of_a_shorter_run(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """How many years were done is said, and the numbers are those of a call with as many."""
    if engine == "spark":
        request.getfixturevalue("spark")
    data, found = run(1e9, engine=engine, seconds=0.4)
    assert found.why == TIME_UP
    assert f"{found.years:,} years simulated" in repr(found)
    assert repr(found).count("Stopped after these years: time is up.") == 1
    assert found.years < 1e8
    assert run(found.years, engine="local")[0] == data


def test_without_a_rule_all_years_are_done() -> None:
    """A narrow interval stops nothing unless that was asked; nothing is said of stopping."""
    sampler = Sampler(per_million=1_000_000)
    assert rounds_of(sampler, 100 * BLOCK) == (100 * BLOCK, 100, ALL_DONE)
    assert sampler.ran == [(100, 100 * BLOCK, True)]
    assert "Stopped" not in repr(run(100, engine="local")[1])


def test_the_rounds_grow_from_small_blocks_to_twice_as_many_whole_ones() -> None:
    """Short rounds are four times as long as the last; whole blocks are run once and kept."""
    sampler = Sampler()
    assert rounds_of(sampler, 100 * BLOCK, relative_width=1.0)[2].startswith(ALL_DONE)
    look, *short, first, second, last = sampler.ran
    assert look == (0, 0, True)
    years = [done for _, done, _ in short]
    assert years[0] == 32 * (BLOCK // 256)
    assert all(after == 4 * before for before, after in itertools.pairwise(years))
    assert not any(keep for *_, keep in short)
    assert [first, second, last] == [
        (32, 32 * BLOCK, True),
        (32, 32 * BLOCK, True),
        (36, 36 * BLOCK, True),
    ]


@pytest.mark.parametrize("width", [0.5, 0.1, 0.03, 0.02])
def test_sampling_stops_after_the_first_narrow_round(width: float) -> None:
    """The round before was too wide, and the last one is narrow enough."""
    sampler = Sampler(per_million=1_000)
    done, _, why = rounds_of(sampler, 100 * BLOCK, relative_width=width)
    assert why == NARROW

    def width_after(years: int) -> float:
        return Stop().width([Row(0, years, "", years // 1000, 0.0, 0.0, 0, 0, 0, (), ())])

    assert width_after(done) <= width
    before = done // 4 if done <= 32 * BLOCK else done // 2
    assert done == 32 * (BLOCK // 256) or width_after(before) > width


@pytest.mark.parametrize(
    "years", [31, 33, 5_000, 17 * BLOCK + 1, 33 * BLOCK - 7, 100 * BLOCK + 3, 64 * BLOCK]
)
@pytest.mark.parametrize("seconds", [0.001, 0.3, 5.0, 30.0, 40.5, 70.5, 200.0])
def test_whatever_the_limits_the_blocks_are_those_of_a_run(
    monkeypatch: pytest.MonkeyPatch, years: int, seconds: float
) -> None:
    """A run is cut into the same blocks as one of the years done; it ends at most a block late."""
    sampler = Sampler()
    # Not the module itself: threads of other tests may read the clock in this process.
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: sampler.now))
    done, _, why = rounds_of(sampler, years, seconds=seconds)
    assert done > 0
    assert sampler.now <= max(seconds, 32.0 / 256.0) + 1.0
    assert (why == ALL_DONE) == (done == years)
    # The short rounds and what does not fit take the rest.
    assert done >= min(years, 0.3 * seconds * BLOCK)


def test_without_losses_no_interval_is_narrow() -> None:
    """An upper bound is as wide as its value, whatever the years; it is not an interval."""
    assert Stop().width([Row(0, 10**9, "", 0, 0.0, 0.0, 0, 0, 0, (), ())]) == math.inf
    why = rounds_of(Sampler(), 40 * BLOCK, relative_width=5.0)[2]
    assert (
        why == f"{ALL_DONE}; no loss was seen, so that its interval is not narrow; give more years"
    )


def test_a_width_that_was_not_reached_is_said() -> None:
    """When the years end first, what is printed has the width reached and the one asked for."""
    _, found = run(500, engine="local", method="crude", relative_width=0.01)
    lost = found.loss_probability_per_year
    width = significant((lost.high - lost.low) / lost.value)
    words = f"the interval of the loss probability is {width} of its value wide, not 0.01 as asked"
    assert found.why == f"{ALL_DONE}; {words}; give more years"
    assert f"Stopped after these years: {found.why}." in repr(found).splitlines()
    assert found.why in found.explain()


@pytest.mark.parametrize(
    ("per_year", "why"), [(0.0, NARROW), (1e-3, f"{ALL_DONE}; {BUT_FOR_RARE}")]
)
def test_failures_too_rare_for_the_years_keep_the_interval_wide(per_year: float, why: str) -> None:
    """The rule stops by the interval of the result; else all years are done, and it says why."""
    disks = {"destroyed": {"per_year": 1.0, "hours": 12.0}}
    rare = {"power": {"per_year": per_year, "minutes": 20.0}}
    model = FailureModel.from_dict({"broker": {**disks, **rare}})
    options: dict[str, Any] = {"engine": "local", "method": "splitting", "relative_width": 0.3}
    found = simulate(Cluster.uniform(2, 2), CONFIG, model, years=2_000, **options)
    assert found.why == why
    lost = found.loss_probability_per_year
    assert (lost.high - lost.low <= 0.3 * lost.value) == (why == NARROW)
    assert lost.high < 1.3 * lost.value + 2 * per_year
    assert ("Stopped after these years: " + why in repr(found)) == (why != ALL_DONE)


def test_a_checkpoint_of_another_run_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with short rounds, which are not kept."""
    run(64, engine="local", checkpoint=tmp_path)

    def refuse(*_: object) -> Row:
        raise AssertionError("a block was run")

    monkeypatch.setattr(sampling, "run_block", refuse)
    with pytest.raises(InputError, match="another seed"):
        run(1e7, engine="local", checkpoint=tmp_path, relative_width=0.5)


def test_a_checkpoint_does_not_change_when_it_stops(tmp_path: Path) -> None:
    """A run that goes on from kept blocks stops where one without them does."""
    years = 33 * BLOCK // 100
    limits = {"years": years, "relative_width": 1e-3, "engine": "local"}
    alone, _ = run(**limits)
    assert run(**limits, checkpoint=tmp_path)[0] == alone
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 32
    kept[7].unlink()
    assert run(**limits, checkpoint=tmp_path)[0] == alone


@pytest.mark.parametrize("name", ["relative_width", "seconds"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "1", 10**400])
def test_a_limit_is_a_number_above_zero(name: str, value: object) -> None:
    """Anything else is refused, with the name and what to give, before the cluster is read."""
    with pytest.raises(InputError, match=rf"^{name}=.*: give a number above 0, such as "):
        simulate("no such file", CONFIG, MODEL, engine="local", **{name: value})
