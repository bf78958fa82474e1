"""The pilot: a few years that find out how many retrials to begin where a path gets worse.

Above the first level several times as many as keep about as many paths on each level: 1 over the
number of times that one from the level below gets there. On the first level so many that all
retrials are a few times the work of the years themselves. All by the failures expected while the
outages last, which the first run finds out without retrials.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.reliability.sampler.plan import Block, Plan, Splitting
from advisor.reliability.sampler.splitting.block import sample
from advisor.reliability.sampler.splitting.memory import Paths

# Random numbers of the pilot are those of blocks that no run has.
_FIRST_BLOCK = 2**63
_EVENTS = 20_000.0
_MOST_YEARS = 20_000
_RUNS = 4
_FEWEST, _MOST = 1.0, 20.0
# Of those that get to a level, most do so by frequent failures, and lose nothing.
_FROM_EACH = 20.0
_LEAST_ON_FIRST, _LEAST = 0.001, 1e-9
# Events of retrials in units of those of the years, and the time that one takes.
_EVENTS_BESIDE = 12.0
_TIMES_AS_LONG = 7.0


class Found(NamedTuple):
    """What the pilot found.

    Attributes
    ----------
    splitting : Splitting
    losses_per_year : float
        Of years with a loss; 0 if it saw none.
    """

    splitting: Splitting
    losses_per_year: float


def find_retrials(plan: Plan, seed: int) -> Found:
    """Find how many retrials to begin on each level.

    Returns
    -------
    Found
        The same for the same plan and seed.
    """
    years = max(1, min(_MOST_YEARS, int(_EVENTS / (1.0 + 2.0 * plan.strikes_per_year))))
    retrials = (0.0,) * plan.replicas
    work = 0.0
    for number in range(_RUNS):
        paths, _ = sample(plan, retrials, Block(seed, _FIRST_BLOCK + number, years))
        retrials, work = _better(paths, retrials, years)
    return Found(Splitting(retrials, work), float(paths.path[0]["due"]) / years)


def _better(
    paths: Paths, retrials: tuple[float, ...], years: int
) -> tuple[tuple[float, ...], float]:
    """Find retrials from what was counted with others, and the work of all by that of the years."""
    levels, path = paths.levels, paths.path[0]
    found, each = [retrials[0]], 0.0
    for level in range(1, len(levels)):
        if levels["risen"][level] > 0:
            each = float(levels["within"][level] / levels["risen"][level])
        if level > 1:
            needed = levels["begun"][level - 1] / max(levels["risen"][level], 1)
            wanted = min(max(needed, _FEWEST), _MOST)
            found.append(_FROM_EACH * wanted / max(each, _LEAST))
        elif retrials[0] == 0.0:
            found[0] = 1.0 / max(each, _LEAST)
    # A year is a step, too.
    main = float(path["main_events"]) + years
    beside = float(path["retrial_events"]) / max(retrials[0], _LEAST)
    if beside > 0.0:
        found[0] = max(_EVENTS_BESIDE * main / beside, _LEAST_ON_FIRST)
    return tuple(map(float, found)), float(1.0 + _TIMES_AS_LONG * path["retrial_events"] / main)
