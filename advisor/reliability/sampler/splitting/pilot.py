"""The pilot: a few years that find out how many retrials to begin where a path gets worse.

Above the first level several times as many as keep the number of paths about the same on each
level: 1 over the number of times that a path from the level below gets there. On the first level
enough that all retrials together are a few times the work of the years. Both are per failure
expected while the outages last, which the first run finds without retrials.

Retrials of retrials may have thousands of times as many events as the years. So each run is cut
into parts, each as long as all before it, until another one could take too many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.sampler.block import sample_paths
from advisor.reliability.sampler.plan import Block, Plan, Splitting
from advisor.reliability.sampler.splitting.memory import Paths

Vector = NDArray[np.float64]

# Random numbers of the pilot are those of blocks that no run has.
_FIRST_BLOCK = 2**63
_EVENTS = 20_000.0
_MOST_YEARS = 20_000
_RUNS = 4
# The first part of a run, and how many events a run may have: two or three seconds of one core.
_PARTS = 64
_MOST_EVENTS = 2_500_000.0
# What is copied for a retrial, of each broker and replica, in units of the rest of the work.
_KEPT_BESIDE = 0.02
_FEWEST, _MOST = 1.0, 20.0
# Most paths that get to a level do so by frequent failures and lose nothing: more retrials for all.
_FROM_EACH = 20.0
_LEAST_ON_FIRST, _LEAST = 0.001, 1e-9
# Events of retrials in units of those of the years, and the time that one takes.
_EVENTS_BESIDE = 12.0
_TIMES_AS_LONG = 7.0


class Found(NamedTuple):
    """What the pilot found; 0 losses a year if it saw none."""

    splitting: Splitting
    losses_per_year: float


@dataclass(frozen=True)
class _Run:
    """What was counted with some retrials; the arrays by level."""

    years: float
    main_events: float
    retrial_events: float
    due: float
    risen: Vector
    begun: Vector
    within: Vector

    @classmethod
    def of(cls, paths: Paths, years: float) -> _Run:
        path = paths.path[0]
        counts = [float(path[name]) for name in ("main_events", "retrial_events", "due")]
        risen, begun, within = (
            paths.levels[name].astype(np.float64) for name in ("risen", "begun", "within")
        )
        return cls(years, counts[0], counts[1], counts[2], risen, begun, within)

    def and_of(self, other: _Run) -> _Run:
        """Both together."""
        return _Run(*(getattr(self, name) + getattr(other, name) for name in self.__annotations__))

    @property
    def events(self) -> float:
        """Of all paths."""
        return self.main_events + self.retrial_events

    @property
    def steps_per_year(self) -> float:
        """Events, and a year is a step, too."""
        return self.events / self.years + 1.0


def find_retrials(plan: Plan, seed: int) -> Found:
    """Find how many retrials to begin on each level; the same for the same plan and seed."""
    years = max(1, min(_MOST_YEARS, int(_EVENTS / (1.0 + 2.0 * plan.strikes_per_year))))
    retrials = (0.0,) * plan.replicas
    first_run = run = _run(plan, retrials, seed, 0, years)
    for number in range(1, _RUNS):
        retrials = _better(run, retrials)
        run = _run(plan, retrials, seed, number, years)
    better = _better(run, retrials)
    work = _work(first_run, run, better[0] / max(retrials[0], _LEAST))
    return Found(Splitting(better, work), run.due / run.years)


def _run(plan: Plan, retrials: tuple[float, ...], seed: int, number: int, years: int) -> _Run:
    """Sample years in parts, as long as the events stay few enough."""
    most_events = _MOST_EVENTS / (
        1.0 + _KEPT_BESIDE * (len(plan.racks) + plan.replicas * len(plan.sets))
    )
    spans = max(years, _PARTS)
    hours = HOURS_PER_YEAR * years / spans
    run, sampled, part_spans = None, 0, spans // _PARTS
    for place in range(_PARTS):
        block = Block(seed, _FIRST_BLOCK + number * _PARTS + place, part_spans)
        paths, _ = sample_paths(plan, retrials, block, hours)
        further = _Run.of(paths, part_spans * hours / HOURS_PER_YEAR)
        run = further if run is None else run.and_of(further)
        sampled += part_spans
        part_spans = min(sampled, spans - sampled)
        if part_spans == 0 or run.events * (1.0 + part_spans / sampled) > most_events:
            break
    assert run is not None
    return run


def _better(done: _Run, retrials: tuple[float, ...]) -> tuple[float, ...]:
    """Find retrials from what was counted with others."""
    numbers, rises = [retrials[0]], 0.0
    for level in range(1, len(done.risen)):
        if done.risen[level] > 0:
            rises = done.within[level] / done.risen[level]
        if level > 1:
            arrivals = done.begun[level - 1] / max(done.risen[level], 1.0)
            needed = min(max(arrivals, _FEWEST), _MOST)
            numbers.append(_FROM_EACH * needed / max(rises, _LEAST))
        elif retrials[0] == 0.0:
            numbers[0] = 1.0 / max(rises, _LEAST)
    # Here the main path has the retrials that begin on it above the first level.
    beside = done.retrial_events / max(retrials[0], _LEAST)
    if beside > 0.0:
        numbers[0] = max(_EVENTS_BESIDE * (done.main_events + done.years) / beside, _LEAST_ON_FIRST)
    return tuple(map(float, numbers))


def _work(first: _Run, last: _Run, times: float) -> float:
    """Work of years and retrials together, over that of the years alone, as in the first run.

    Retrials of the first level are begun so many ``times`` as often as in the last run.
    """
    retrials = (last.main_events + times * last.retrial_events) / last.years + 1.0
    beside = max(retrials - first.steps_per_year, 0.0)
    return float(1.0 + _TIMES_AS_LONG * beside / first.steps_per_year)
