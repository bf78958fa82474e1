"""What a person sees while years are sampled: how many, the losses in them, and the time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from advisor.formatting import significant
from advisor.pipeline.rounds import Stop
from advisor.progress import status_bar
from advisor.reliability.sampler.block import Row

_DURATION_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (0.0, "seconds"))


def duration(seconds: float) -> str:
    """Return a time in words, such as "3 hours"."""
    size, unit = next((size, unit) for size, unit in _DURATION_UNITS if seconds >= 2 * size)
    return f"{significant(seconds / (size or 1.0))} {unit}"


@contextmanager
def watched(years: int, stop: Stop) -> Iterator[Watch]:
    """Show how far a sample of so many years is, on a terminal or in a notebook."""
    with status_bar(years, "years") as show:
        yield Watch(show, years, stop)


class Watch:
    """Turns finished blocks into a line of progress, which `show` takes with the years done."""

    def __init__(
        self,
        show: Callable[[int, str], object],
        years: int,
        stop: Stop,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show, self._years, self._stop, self._clock = show, years, stop, clock
        self._rows: dict[int, Row] = {}
        self._most = 0
        # When blocks began to arrive, and how many years there were; those of a checkpoint, which
        # arrive at once, say nothing of the speed.
        self._since: tuple[float, int] | None = None

    def add(self, rows: Sequence[Row]) -> None:
        """Add finished blocks and show the new line."""
        if any(self._is_of_another_round(row) for row in rows):
            self._rows, self._since = {}, None
        self._rows |= {row.block: row for row in rows}
        done = sum(row.years for row in self._rows.values())
        if self._since is None:
            self._since = self._clock(), done
        if done >= self._most and done:
            self._most = done
            self._show(done, self._line(done))

    def _is_of_another_round(self, row: Row) -> bool:
        return self._rows.get(row.block, row).years != row.years

    def _line(self, done: int) -> str:
        rows = [*self._rows.values()]
        lost, width = sum(row.lost_years for row in rows), self._stop.width(rows)
        if lost == 0:
            words = "no loss seen yet"
        else:
            losses = "1 year with a loss" if lost == 1 else f"{lost:,} years with a loss"
            words = f"{losses}, 95 % interval {significant(100 * width)} % of the value wide"
        left = self._seconds_left(done, width)
        return words if math.isinf(left) else f"{words}, about {duration(max(left, 1.0))} left"

    def _seconds_left(self, done: int, width: float) -> float:
        """Return the seconds until the first limit is reached, at the speed so far."""
        assert self._since is not None
        begun, before = self._since
        spent, sampled = self._clock() - begun, done - before
        wanted = float(self._years)
        if self._stop.relative_width is not None and not math.isinf(width):
            # The width falls with the square root of the years.
            wanted = min(wanted, done * (width / self._stop.relative_width) ** 2)
        by_years = max(wanted - done, 0.0) * spent / sampled if sampled and spent else math.inf
        return min(by_years, max(self._stop.seconds_left, 0.0))
