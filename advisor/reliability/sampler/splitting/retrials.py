"""Where a path gets worse it splits into retrials, whose next failure is forced; compiled.

A split is one of RESTART (Villen-Altamirano, ITC 13, 1991), with the failure of each retrial forced
(Lewis and Boehm, Nucl. Eng. Des. 77, 1984). The level of a path is the largest number of replicas
of one set that are out or not in sync. Where it rises, retrials begin from this state and end when
it falls below the new level. Each draws its clocks anew, given their ages, so that one of them is
due before the outages that run now should end. It is chosen with probability q, where p is the
probability that it is due by then anyway: so the density of a retrial is R = sum of q / p, over all
that are due by then, times its natural density. With m retrials on average beside the path that
goes on, each of them, and this path too, counts with 1 / (1 + m R) (the balance heuristic of Veach
and Guibas, SIGGRAPH 1995). When the path that goes on is back below the level, it counts in full
again.

m is in proportion to the failures expected while the outages last: a broker that is out for a day
leads to a loss far more often than one that restarts, and is far rarer.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from advisor.reliability.sampler.compiled.fault_kernel import wait
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.splitting.memory import Paths
from advisor.reliability.sampler.splitting.residual_times import (
    chance_within,
    draw_due,
    draw_due_within,
)
from advisor.reliability.solver.jit import called

# Mean times of a copy after which a copy should have ended.
_COPIES_LAST = 2.0
_NONE = -1
# Share of the retrials drawn by natural probability; the others, equally by mechanism.
_NATURAL = 0.5
# Retrials of one split, at most, on average.
_MOST_ON_FIRST, _MOST_ABOVE = 200.0, 100.0


@called
def split(
    rng: Generator, sim: KernelState, paths: Paths, before: int, level: int, soon: float
) -> None:
    """Split the path, whose level has risen from what it was before.

    The forced failure comes within ``soon`` hours; if that is 0, while the outages last.
    """
    path = paths.path[0]
    hours = _outage_hours(sim)
    if soon > 0.0:
        hours = min(hours, soon)
    if hours <= 0.0:
        return
    now, kept, frame = sim.control[0].now, 1.0, paths.frames[path.depth]
    frame.hours, frame.end = hours, now + hours
    within = _set_chances(sim, paths, path.depth)
    if within <= 0.0:
        return
    paths.levels[level].within += within
    most = _MOST_ON_FIRST if path.depth == 0 else _MOST_ABOVE
    mean = min(paths.levels[level].retrials * within, most)
    left = int(mean)
    left += rng.random() < mean - left
    due = sim.control[0].next_strike <= now + hours or sim.control[0].next_renewal <= now + hours
    if due or left > 0:
        _draw_kind(rng, sim, hours)
        kept = 1.0 / (1.0 + mean * _density_ratio(sim, paths, path.depth))
    frame.mean = mean
    frame.floor, frame.level, frame.left = before + 1, level, left
    frame.retrial, frame.factor, frame.main_factor = 0, kept, kept
    path.depth += 1
    if left > 0:
        frame.retrial = 1
        _save(sim, paths, path.depth - 1)
        _begin_retrial(rng, sim, paths)
    weigh(paths)


@called
def split_again(rng: Generator, sim: KernelState, paths: Paths) -> None:
    """Split a path that is still above its level when its outages should have ended.

    Nothing failed meanwhile, so that its weight is what it was.
    """
    path = paths.path[0]
    path.depth -= 1
    split(rng, sim, paths, paths.frames[path.depth].floor - 1, path.level, 0.0)
    weigh(paths)


@called
def leave(rng: Generator, sim: KernelState, paths: Paths, level: int) -> int:
    """End the splits above a level; return the level of the path that is followed now."""
    path = paths.path[0]
    while path.depth > 0 and level < paths.frames[path.depth - 1].floor:
        frame = paths.frames[path.depth - 1]
        if frame.retrial == 1:
            _restore(sim, paths, path.depth - 1)
            if frame.left > 0:
                _begin_retrial(rng, sim, paths)
            else:
                frame.retrial, frame.factor = 0, frame.main_factor
            weigh(paths)
            return int(frame.level)
        path.depth -= 1
    weigh(paths)
    return level


@called
def weigh(paths: Paths) -> None:
    """Set the weight of the path, and when it splits again."""
    path = paths.path[0]
    weight, path.next_split = 1.0, np.inf
    for place in range(path.depth):
        weight *= paths.frames[place].factor
    path.weight = weight
    if path.depth > 0:
        frame = paths.frames[path.depth - 1]
        if frame.retrial == 0 and frame.factor == 1.0:
            path.next_split = frame.end


@called
def _begin_retrial(rng: Generator, sim: KernelState, paths: Paths) -> None:
    """Draw all clocks of failures anew, so that one of them is due during the outages."""
    control, path = sim.control[0], paths.path[0]
    place = path.depth - 1
    frame = paths.frames[place]
    frame.left -= 1
    paths.levels[frame.level].begun += 1
    now, hours = control.now, frame.hours
    chosen, kind = _choose(rng, sim, paths, place)
    control.next_strike, control.drawn_kind = now + wait(rng, control.strikes_per_hour), 0
    if kind != _NONE:
        soon = -math.expm1(-control.strikes_per_hour * hours)
        left = -math.log1p(-soon * rng.random()) / control.strikes_per_hour
        control.next_strike, control.drawn_kind = now + min(left, hours), kind + 1
    for number in range(len(sim.renewals)):
        clock = sim.renewals[number]
        if number == chosen:
            chance = paths.chances[place, number]
            clock.due = min(draw_due_within(rng, sim, number, hours, chance), now + hours)
        elif clock.due != np.inf and clock.since != np.inf:
            clock.due = draw_due(rng, sim, number)
    _play_tournament(sim)
    _draw_kind(rng, sim, hours)
    frame.factor = 1.0 / (1.0 + frame.mean * _density_ratio(sim, paths, place))


@called
def _outage_hours(sim: KernelState) -> float:
    """Hours after which the outages and copies that run now should have ended."""
    control, hours, waiting = sim.control[0], 0.0, 0.0
    copies = control.running_copies > 0
    for i in range(control.running_count):
        clock = sim.clocks[sim.running[i]]
        condition = clock.condition
        if sim.running[i] < len(sim.brokers):
            condition = sim.brokers[sim.running[i]].condition
        copies |= condition == control.replaced_condition
        if clock.due == np.inf:
            waiting += sim.outages[condition].hours
        else:
            hours = max(hours, clock.due - control.now)
    if copies and control.copies_per_hour > 0.0:
        hours += _COPIES_LAST / control.copies_per_hour
    return float(hours + waiting)


@called
def _set_chances(sim: KernelState, paths: Paths, place: int) -> float:
    """Set the probability that each clock is due within a split's hours; return the sum."""
    hours = paths.frames[place].hours
    total = -math.expm1(-sim.control[0].strikes_per_hour * hours)
    for number in range(len(sim.renewals)):
        chance = chance_within(sim, number, hours)
        paths.chances[place, number] = chance
        total += chance
    paths.frames[place].within = total
    return float(total)


@called
def _even_shares(paths: Paths, place: int) -> tuple[float, float]:
    """Share of the retrials that each kind without clock gets, and each clock that can be due."""
    path, clocks = paths.path[0], 0
    for number in range(paths.chances.shape[1]):
        clocks += paths.chances[place, number] > 0.0
    if clocks == 0:
        return 1.0 / max(path.kinds_without_clocks, 1), 0.0
    mechanisms = path.mechanisms_with_clocks
    ways = path.kinds_without_clocks + mechanisms
    return 1.0 / ways, mechanisms / ways / clocks


@called
def _choose(rng: Generator, sim: KernelState, paths: Paths, place: int) -> tuple[int, int]:
    """Choose what fails during the outages: a clock, or a kind without clock."""
    strikes, hours = sim.control[0].strikes_per_hour, paths.frames[place].hours
    of_kind, of_clock = _even_shares(paths, place)
    soon = -math.expm1(-strikes * hours) / max(strikes, 1e-300)
    within, natural = paths.frames[place].within, rng.random() < _NATURAL
    x, chosen, kind = rng.random(), _NONE, _NONE
    for number in range(len(sim.strikes)):
        rate = sim.strikes[number].per_hour
        if rate > 0.0 and x >= 0.0:
            x -= rate * soon / within if natural else of_kind
            chosen, kind = _NONE, number
    for number in range(paths.chances.shape[1]):
        chance = paths.chances[place, number]
        if chance > 0.0 and x >= 0.0:
            x -= chance / within if natural else of_clock
            chosen, kind = number, _NONE
    return chosen, kind


@called
def _density_ratio(sim: KernelState, paths: Paths, place: int) -> float:
    """Density of these clocks in retrials over their natural density: R above."""
    control = sim.control[0]
    hours, within, density = paths.frames[place].hours, paths.frames[place].within, 0.0
    end = control.now + hours
    of_kind, of_clock = _even_shares(paths, place)
    if control.next_strike <= end and control.drawn_kind != 0:
        rate = sim.strikes[control.drawn_kind - 1].per_hour / control.strikes_per_hour
        soon = -math.expm1(-control.strikes_per_hour * hours)
        density += _NATURAL / within + (1.0 - _NATURAL) * of_kind / (rate * soon)
    for number in range(paths.chances.shape[1]):
        chance = paths.chances[place, number]
        if chance > 0.0 and sim.renewals[number].due <= end:
            density += _NATURAL / within + (1.0 - _NATURAL) * of_clock / chance
    return density


@called
def _draw_kind(rng: Generator, sim: KernelState, hours: float) -> None:
    """Draw what the next event without clock is, if it comes within some hours."""
    control = sim.control[0]
    if control.drawn_kind != 0 or control.next_strike > control.now + hours:
        return
    x, last = rng.random() * control.strikes_per_hour, _NONE
    for number in range(len(sim.strikes)):
        rate = sim.strikes[number].per_hour
        if rate > 0.0 and x >= 0.0:
            x -= rate
            last = number
    control.drawn_kind = last + 1


@called
def _play_tournament(sim: KernelState) -> None:
    """Play the whole tournament for the clock that is due first."""
    clocks = len(sim.renewals)
    if clocks == 0:
        return
    for place in range(clocks - 1, 0, -1):
        one, other = 2 * place, 2 * place + 1
        one = one - clocks if one >= clocks else sim.earliest[one]
        other = other - clocks if other >= clocks else sim.earliest[other]
        later = sim.renewals[other].due < sim.renewals[one].due
        sim.earliest[place] = other if later else one
    first = sim.earliest[1] if clocks > 1 else 0
    sim.control[0].next_renewal = sim.renewals[first].due


@called
def _save(sim: KernelState, paths: Paths, place: int) -> None:
    """Save the state of the cluster at a split."""
    paths.control[place, 0] = sim.control[0]
    for i in range(len(sim.outages)):
        paths.outages[place, i] = sim.outages[i]
    for i in range(len(sim.brokers)):
        paths.brokers[place, i] = sim.brokers[i]
    for i in range(len(sim.copies)):
        paths.copies[place, i] = sim.copies[i]
    for i in range(len(sim.clocks)):
        paths.clocks[place, i] = sim.clocks[i]
        paths.running[place, i] = sim.running[i]
    for i in range(len(sim.renewals)):
        paths.renewals[place, i] = sim.renewals[i]
        paths.earliest[place, i] = sim.earliest[i]
    for s in range(len(sim.sets)):
        paths.sets[place, s] = sim.sets[s]
        paths.saved_level_of[place, s] = paths.level_of[s]
        for gap in range(sim.gaps.shape[1]):
            paths.gaps[place, s, gap] = sim.gaps[s, gap]
        for cause in range(sim.attribution.shape[1]):
            paths.attribution[place, s, cause] = sim.attribution[s, cause]
    for level in range(len(paths.levels)):
        paths.saved_levels[place, level] = paths.levels[level].sets


@called
def _restore(sim: KernelState, paths: Paths, place: int) -> None:
    """Restore the state of the cluster at a split."""
    sim.control[0] = paths.control[place, 0]
    paths.path[0].counted_until = sim.control[0].now
    for i in range(len(sim.outages)):
        sim.outages[i] = paths.outages[place, i]
    for i in range(len(sim.brokers)):
        sim.brokers[i] = paths.brokers[place, i]
    for i in range(len(sim.copies)):
        sim.copies[i] = paths.copies[place, i]
    for i in range(len(sim.clocks)):
        sim.clocks[i] = paths.clocks[place, i]
        sim.running[i] = paths.running[place, i]
    for i in range(len(sim.renewals)):
        sim.renewals[i] = paths.renewals[place, i]
        sim.earliest[i] = paths.earliest[place, i]
    for s in range(len(sim.sets)):
        sim.sets[s] = paths.sets[place, s]
        paths.level_of[s] = paths.saved_level_of[place, s]
        for gap in range(sim.gaps.shape[1]):
            sim.gaps[s, gap] = paths.gaps[place, s, gap]
        for cause in range(sim.attribution.shape[1]):
            sim.attribution[s, cause] = paths.attribution[place, s, cause]
    for level in range(len(paths.levels)):
        paths.levels[level].sets = paths.saved_levels[place, level]
