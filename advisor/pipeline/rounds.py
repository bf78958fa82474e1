"""Rounds of blocks: sampling stops after the first whose interval is narrow enough.

Which rounds there are follows from plan, years and seed, never from the engine. Short rounds are
runs of their own; the later ones add blocks to the last. So the rows of every round are those of a
run of that many years. A limit in seconds ends a round early.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.errors import InputError, shown
from advisor.formatting import as_given, significant
from advisor.pipeline.sampling import ShouldStop, never
from advisor.reliability.results.sampled import ALL_DONE, NARROW, TIME_UP
from advisor.reliability.sampler.block import Row
from advisor.reliability.sampler.estimators import history_of
from advisor.reliability.sampler.intervals import loss_chance
from advisor.reliability.sampler.plan import (
    FEWEST_BLOCKS,
    Block,
    Plan,
    cut_into_blocks,
    years_per_block,
)

Sample = Callable[[Sequence[Block], bool, ShouldStop], list[Row]]
"""Runs blocks until `should_stop`; the flag says whether to keep the finished ones.

Returns the rows of the blocks before the first unfinished one.
"""

BUT_FOR_RARE = "the interval is narrow enough but for failures too rare to occur in them"
"""Added to the reason why sampling stopped."""

# The first round takes one core an eighth of a second, the next one four times as long.
_FIRST_SHARE = 256
_LONGER = 4
# What fits in the time left, by the last round's speed, and how much more it has to be.
_SURELY = 0.8
_WORTHWHILE = 1.3


@dataclass(frozen=True)
class Stop:
    """When to stop sampling.

    relative_width: width of the 95 % interval of the loss probability, as a part of its value.
    seconds: limit on the wall-clock time since this object was created.
    clumping, largest_weight, failure_rates: as in the plan.
    """

    relative_width: float | None = None
    seconds: float | None = None
    clumping: float | None = None
    largest_weight: float | None = None
    failure_rates: tuple[float, ...] = ()
    begun: float = field(default_factory=lambda: time.monotonic())

    def __post_init__(self) -> None:
        _check("relative_width", self.relative_width, "such as 0.2 for 20 % of the value")
        _check("seconds", self.seconds, "such as 60 for a minute")

    def of(self, plan: Plan) -> Stop:
        """Return the same rule for the intervals of a plan."""
        return replace(
            self,
            clumping=plan.clumping,
            largest_weight=plan.largest_weight,
            failure_rates=plan.unforced_failures_per_year,
        )

    @property
    def given(self) -> bool:
        """Whether sampling may stop before all years are done."""
        return self.relative_width is not None or self.seconds is not None

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit; infinite without a limit."""
        if self.seconds is None:
            return math.inf
        return self.seconds - (time.monotonic() - self.begun)

    def is_narrow(self, rows: Sequence[Row]) -> bool:
        """Whether the interval of these rows is narrow enough."""
        return self.relative_width is not None and self.width(rows) <= self.relative_width

    def width(self, rows: Sequence[Row]) -> float:
        """Return the interval's width relative to the loss probability; infinite without losses."""
        if not any(row.lost_years for row in rows):
            return math.inf
        years = sum(row.years for row in rows)
        sampling = self.clumping, self.largest_weight, self.failure_rates
        chance = loss_chance(history_of(rows), years, *sampling)
        return (chance.high - chance.low) / chance.value


def sample_in_rounds(
    sample: Sample, plan: Plan, years: float, seed: int, stop: Stop
) -> tuple[list[Row], tuple[Block, ...], str]:
    """Sample in rounds until the interval is narrow enough, the time is up, or all years are done.

    Returns rows and blocks, those of a run of the finished years, and why sampling stopped.
    """
    whole = cut_into_blocks(plan, years, seed)
    if not stop.given:
        return sample(whole, True, never), whole, ALL_DONE
    # Only reads the checkpoint, so that one of another run is rejected at once.
    sample(whole, True, lambda _done: True)
    run = _Rounds(sample, plan, whole, stop)
    why = run.short_rounds() or run.whole_rounds()
    if why != NARROW and replace(stop, failure_rates=()).is_narrow(run.rows):
        why = f"{why}; {BUT_FOR_RARE}"
    elif why != NARROW and stop.relative_width is not None:
        why = f"{why}; {_too_wide(stop.width(run.rows), stop.relative_width)}"
    return run.rows, run.blocks, why


def _too_wide(width: float, wanted: float) -> str:
    """Return how wide the interval is, beside the width wanted, and what to do."""
    if math.isinf(width):
        return "no loss was seen, so that its interval is not narrow; give more years"
    return (
        f"the interval of the loss probability is {significant(width)} of its value wide, not "
        f"{as_given(wanted)} as asked; give more years"
    )


class _Rounds:
    """The rounds of one run, with the rows and blocks of the longest run that is finished."""

    def __init__(self, sample: Sample, plan: Plan, whole: tuple[Block, ...], stop: Stop) -> None:
        self._sample, self._plan, self._whole, self._stop = sample, plan, whole, stop
        self.rows: list[Row] = []
        self.blocks: tuple[Block, ...] = ()

    def short_rounds(self) -> str:
        """Sample runs with smaller blocks; return why to stop, or "" to go on with whole blocks."""
        years = max(1, years_per_block(self._plan) // _FIRST_SHARE)
        block_years = sum(block.years for block in self._whole[:FEWEST_BLOCKS]) // FEWEST_BLOCKS
        while years < block_years:
            blocks = cut_into_blocks(self._plan, FEWEST_BLOCKS * years, self._whole[0].seed)
            begun = time.monotonic()
            rows = self._sample(blocks, False, self._is_late_with(blocks))
            self._keep(rows, blocks)
            if len(rows) < len(blocks):
                return TIME_UP
            if self._stop.is_narrow(self.rows):
                return NARROW
            wanted = min(_LONGER * years, block_years)
            spent = max(time.monotonic() - begun, 1e-9)
            fitting = _SURELY * self._stop.seconds_left / spent * years
            if fitting < min(_WORTHWHILE * years, wanted):
                return TIME_UP
            years = wanted if fitting >= wanted else int(fitting)
        return ""

    def whole_rounds(self) -> str:
        """Sample the blocks of the whole run, twice as many in each round; return why to stop."""
        rows: list[Row] = []
        size = FEWEST_BLOCKS
        while True:
            fresh = self._whole[len(rows) : size]
            rows += self._sample(fresh, True, self._is_late_with(fresh))
            self._keep(rows, self._whole)
            if len(rows) < min(size, len(self._whole)):
                return TIME_UP
            if self._stop.is_narrow(self.rows):
                return NARROW
            if len(rows) == len(self._whole):
                return ALL_DONE
            size *= 2

    def _is_late_with(self, blocks: Sequence[Block]) -> ShouldStop:
        """Return a function that stops a round when the time is up and there is a result.

        A single block of one year is a result. Otherwise the first round is finished, however long
        it takes.
        """
        few = blocks[0].years == 1
        return lambda done: self._stop.seconds_left <= 0.0 and bool(self.rows or (few and done))

    def _keep(self, rows: list[Row], blocks: tuple[Block, ...]) -> None:
        """Keep the rows of the first blocks if a run of as many years has these blocks."""
        sampled = blocks[: len(rows)]
        years = sum(block.years for block in sampled)
        if sampled and cut_into_blocks(self._plan, years, sampled[0].seed) == sampled:
            self.rows, self.blocks = list(rows), sampled


def _check(name: str, value: Any, such_as: str) -> None:
    """Check that an optional argument is a positive number; a bool is not a number."""
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value <= sys.float_info.max):
        raise InputError(f"{name}={shown(value)}: give a number above 0, {such_as}, or None")
