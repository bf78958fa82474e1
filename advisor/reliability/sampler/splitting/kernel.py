"""Years whose paths split where they get worse, compiled: one of RESTART's splits.

The main path is never cut: it goes through all years. What happens on any path counts with the
weight that the path has then. The level of a path is the largest number of replicas of one set that
are out or not in sync. Where it rises, retrials begin from this state, and end when it falls below
the new level, so that the main path alone begins years (Villen-Altamirano, ITC 13, 1991).

The failure of each retrial is forced (Lewis and Boehm, Nucl. Eng. Des. 77, 1984): it draws its
clocks anew, given their ages, so that one of them is due before the outages that run now should
end. That clock is chosen with probability q, where p is the probability that it is due by then
anyway: so the density of a retrial is R = sum of q / p, over all that are due by then, times its
natural density. With m retrials on average beside the path that goes on, each of them, and this
path too, counts with 1 / (1 + m R) (the balance heuristic of Veach and Guibas, SIGGRAPH 1995); when
the path that goes on is back below the level, it counts in full again. m is in proportion to the
failures expected while the outages last.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.failures.times import time_distribution as kinds
from advisor.reliability.sampler.compiled import kernel
from advisor.reliability.sampler.compiled import memory_layout as layout
from advisor.reliability.sampler.compiled.fault_kernel import draw, next_event, wait
from advisor.reliability.sampler.compiled.kernel import is_well
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.partition_kernel import (
    account_for_all,
    all_known,
    apply_event,
)
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.splitting import memory
from advisor.reliability.sampler.splitting.memory import Paths
from advisor.reliability.solver.jit import called, entry, inlined

# A time T of age a has more than x left with probability S(a + x) / S(a), where S is the survival
# function of its distribution. Draws are exact: by rejection, or by inversion of S.
_WEIBULL, _LOGNORMAL, _GAMMA = kinds.WEIBULL, kinds.LOGNORMAL, kinds.GAMMA
_FIXED, _EMPIRICAL = kinds.FIXED, kinds.EMPIRICAL
_ROOT_2 = math.sqrt(2.0)
_TRIES = 20
_HALVINGS = 160
_TERMS = 5000
_EXACT = 1e-15
_CLOSE = 4e-16
# Below, the difference of two survival probabilities has too few digits left.
_LEAST_CHANCE = 1e-9
_LEAST_SURVIVAL = 1e-6


@called
def survival(sim: KernelState, number: int, hours: float) -> float:
    """Probability that a time of a distribution is longer."""
    distribution = sim.distributions[number]
    kind, scale, parameter = distribution.kind, distribution.scale, distribution.parameter
    if hours <= 0.0:
        return 1.0
    if kind == _FIXED:
        return 1.0 if hours < scale else 0.0
    if kind == _WEIBULL:
        return math.exp(-((hours / scale) ** parameter))
    if kind == _LOGNORMAL:
        return 0.5 * math.erfc(math.log(hours / scale) / (parameter * _ROOT_2))
    if kind == _GAMMA:
        return _upper_gamma(parameter, hours / scale)
    if kind == _EMPIRICAL:
        start, end, longer = distribution.start, distribution.end, 0
        for place in range(start, end):
            longer += scale * sim.values[place] > hours
        return float(longer / (end - start))
    return math.exp(-hours / scale)


@called
def _upper_gamma(shape: float, x: float) -> float:
    """Regularized upper incomplete gamma function (Numerical Recipes, 6.2)."""
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        term = total = 1.0 / shape
        for n in range(1, _TERMS):
            term *= x / (shape + n)
            total += term
            if term < _EXACT * total:
                break
        return max(1.0 - front * total, 0.0)
    b = x + 1.0 - shape
    c, d = np.inf, 1.0 / b
    fraction = d
    for n in range(1, _TERMS):
        a = -n * (n - shape)
        b += 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        fraction *= c * d
        if abs(c * d - 1.0) < _EXACT:
            break
    return front * fraction


@called
def chance_within(sim: KernelState, number: int, hours: float) -> float:
    """Probability that the clock of a mechanism is due within some hours, given its age.

    0 where it does not run, and where it is too small to be computed: such a clock is left as it
    is.
    """
    clock, now = sim.renewals[number], sim.control[0].now
    if clock.due == np.inf or clock.since == np.inf:
        return 0.0
    if sim.distributions[clock.distribution].kind == _FIXED:
        return 1.0 if clock.due <= now + hours else 0.0
    age = now - clock.since
    alive = survival(sim, clock.distribution, age)
    if alive < _LEAST_SURVIVAL:
        return 0.0
    chance = 1.0 - survival(sim, clock.distribution, age + hours) / alive
    return chance if chance > _LEAST_CHANCE else 0.0


@called
def draw_due(rng: Generator, sim: KernelState, number: int) -> float:
    """Draw anew when a clock is due, given its age."""
    clock, now = sim.renewals[number], sim.control[0].now
    age = now - clock.since
    if (
        sim.distributions[clock.distribution].kind == _FIXED
        or survival(sim, clock.distribution, age) < _LEAST_SURVIVAL
    ):
        return float(clock.due)
    for _ in range(_TRIES):
        duration = draw(rng, sim, clock.distribution)
        if duration > age:
            return float(clock.since + duration)
    longest_hours = sim.distributions[clock.distribution].scale
    chance = rng.random()
    while _passed(sim, clock.distribution, age, longest_hours) < chance:
        longest_hours *= 2.0
    return float(now + _invert(sim, clock.distribution, age, longest_hours, chance))


@called
def draw_due_within(
    rng: Generator, sim: KernelState, number: int, hours: float, chance: float
) -> float:
    """Draw when a clock is due, given its age and that it is so within hours, by a chance."""
    clock, now = sim.renewals[number], sim.control[0].now
    if sim.distributions[clock.distribution].kind == _FIXED:
        return float(clock.due)
    age, chance = now - clock.since, chance * rng.random()
    if sim.distributions[clock.distribution].kind == _WEIBULL:
        weibull = sim.distributions[clock.distribution]
        scale, shape = weibull.scale, weibull.parameter
        scaled = (age / scale) ** shape - math.log1p(-chance)
        return float(max(clock.since + scale * scaled ** (1.0 / shape), now))
    return float(now + _invert(sim, clock.distribution, age, hours, chance))


@called
def _passed(sim: KernelState, distribution: int, age: float, hours: float) -> float:
    """Probability that a time of some age ends within some hours."""
    return 1.0 - survival(sim, distribution, age + hours) / survival(sim, distribution, age)


@called
def _invert(
    sim: KernelState, distribution: int, age: float, longest: float, chance: float
) -> float:
    """Invert `_passed`: the hours, below ``longest``, within which a time ends with ``chance``.

    Bisection, with linear interpolation at every second step.
    """
    alive, shortest, low, high = (
        survival(sim, distribution, age),
        0.0,
        0.0,
        _passed(sim, distribution, age, longest),
    )
    for turn in range(_HALVINGS):
        middle = 0.5 * (shortest + longest)
        if turn % 2 == 0 and low < chance < high:
            middle = shortest + (longest - shortest) * (chance - low) / (high - low)
        passed = 1.0 - survival(sim, distribution, age + middle) / alive
        if abs(passed - chance) <= _CLOSE:
            return float(middle)
        if passed < chance:
            shortest, low = middle, passed
        else:
            longest, high = middle, passed
        if longest - shortest <= _EXACT * longest:
            break
    return float(longest)


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
    now, factor, frame = sim.control[0].now, 1.0, paths.frames[path.depth]
    frame.hours, frame.end = hours, now + hours
    within = _set_chances(sim, paths, path.depth)
    if within <= 0.0:
        return
    paths.levels[level].within += within
    most_retrials = _MOST_ON_FIRST if path.depth == 0 else _MOST_ABOVE
    mean = min(paths.levels[level].retrials * within, most_retrials)
    retrials = int(mean)
    retrials += rng.random() < mean - retrials
    due = sim.control[0].next_strike <= now + hours or sim.control[0].next_renewal <= now + hours
    if due or retrials > 0:
        _draw_kind(rng, sim, hours)
        factor = 1.0 / (1.0 + mean * _density_ratio(sim, paths, path.depth))
    frame.mean = mean
    frame.floor, frame.level, frame.left = before + 1, level, retrials
    frame.retrial, frame.factor, frame.main_factor = 0, factor, factor
    path.depth += 1
    if retrials > 0:
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
    failing_clock, kind = _choose(rng, sim, paths, place)
    control.next_strike, control.drawn_kind = now + wait(rng, control.strikes_per_hour), 0
    if kind != _NONE:
        soon = -math.expm1(-control.strikes_per_hour * hours)
        wait_hours = -math.log1p(-soon * rng.random()) / control.strikes_per_hour
        control.next_strike, control.drawn_kind = now + min(wait_hours, hours), kind + 1
    for number in range(len(sim.renewals)):
        clock = sim.renewals[number]
        if number == failing_clock:
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
    x, clock, kind = rng.random(), _NONE, _NONE
    for number in range(len(sim.strikes)):
        rate = sim.strikes[number].per_hour
        if rate > 0.0 and x >= 0.0:
            x -= rate * soon / within if natural else of_kind
            clock, kind = _NONE, number
    for number in range(paths.chances.shape[1]):
        chance = paths.chances[place, number]
        if chance > 0.0 and x >= 0.0:
            x -= chance / within if natural else of_clock
            clock, kind = number, _NONE
    return clock, kind


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
        left_child, right_child = 2 * place, 2 * place + 1
        left_child = left_child - clocks if left_child >= clocks else sim.earliest[left_child]
        right_child = right_child - clocks if right_child >= clocks else sim.earliest[right_child]
        right_is_due_first = sim.renewals[right_child].due < sim.renewals[left_child].due
        sim.earliest[place] = right_child if right_is_due_first else left_child
    first = sim.earliest[1] if clocks > 1 else 0
    sim.control[0].next_renewal = sim.renewals[first].due


@called
def _save(sim: KernelState, paths: Paths, place: int) -> None:
    """Save the state of the cluster at a split."""
    paths.control[place, 0] = sim.control[0]
    _copy(sim.outages, paths.outages[place])
    _copy(sim.brokers, paths.brokers[place])
    _copy(sim.copies, paths.copies[place])
    _copy(sim.clocks, paths.clocks[place])
    _copy(sim.running, paths.running[place])
    _copy(sim.renewals, paths.renewals[place])
    _copy(sim.earliest, paths.earliest[place])
    _copy(sim.sets, paths.sets[place])
    _copy(paths.level_of, paths.saved_level_of[place])
    _copy_rows(sim.gaps, paths.gaps[place])
    _copy_rows(sim.attribution, paths.attribution[place])
    for level in range(len(paths.levels)):
        paths.saved_levels[place, level] = paths.levels[level].sets


@called
def _restore(sim: KernelState, paths: Paths, place: int) -> None:
    """Restore the state of the cluster at a split."""
    sim.control[0] = paths.control[place, 0]
    paths.path[0].counted_until = sim.control[0].now
    _copy(paths.outages[place], sim.outages)
    _copy(paths.brokers[place], sim.brokers)
    _copy(paths.copies[place], sim.copies)
    _copy(paths.clocks[place], sim.clocks)
    _copy(paths.running[place], sim.running)
    _copy(paths.renewals[place], sim.renewals)
    _copy(paths.earliest[place], sim.earliest)
    _copy(paths.sets[place], sim.sets)
    _copy(paths.saved_level_of[place], paths.level_of)
    _copy_rows(paths.gaps[place], sim.gaps)
    _copy_rows(paths.attribution[place], sim.attribution)
    for level in range(len(paths.levels)):
        paths.levels[level].sets = paths.saved_levels[place, level]


@inlined
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for i in range(len(source)):
        target[i] = source[i]


@inlined
def _copy_rows(source: NDArray[Any], target: NDArray[Any]) -> None:
    for row in range(source.shape[0]):
        for column in range(source.shape[1]):
            target[row, column] = source[row, column]


_LONGEST_WAIT = 10.0 * HOURS_PER_YEAR
_TAKEN = -1


def _years(rng: Generator, table: Table, sim: KernelState, paths: Paths) -> int:
    """Advance through all years that are left, and all retrials."""
    control = sim.control[0]
    while True:
        if control.event_pending == 0:
            code = _take_next(rng, table, sim, paths)
            if code != _TAKEN:
                return code
        if not all_known(table, sim):
            return layout.MISSING
        control.event_pending = 0
        control.new_losses = 0
        for i in range(control.touched_count):
            apply_event(rng, table, sim, sim.touched[i])
            _set_level(table, sim, paths, sim.touched[i])
        control.touched_count = 0
        if control.counted != 0:
            _collect(sim, paths)
        if control.new_losses > 0:
            _note_loss(sim, paths)
        if is_well(sim):
            control.lost_since_healthy = 0
        _follow_level(rng, sim, paths)


@inlined
def _take_next(rng: Generator, table: Table, sim: KernelState, paths: Paths) -> int:
    """Take the next event of this path."""
    control = sim.control[0]
    while True:
        if control.phase == 2 and is_well(sim):
            control.phase = 0
            control.years_left -= 1
        if control.phase == 0:
            if control.years_left == 0:
                _finish(table, sim, paths)
                return layout.FINISHED
            control.year_end = control.now + control.span_hours
            control.lost_this_year = 0
            control.phase = 1
        until = control.year_end
        if control.phase == 2:
            until += _LONGEST_WAIT
        next_split = paths.path[0].next_split
        if next_event(rng, table, sim, min(until, next_split)):
            break
        if next_split < until:
            split_again(rng, sim, paths)
            continue
        if control.phase == 2:
            return layout.NEVER_RECOVERED
        control.phase = 2
    control.event_pending = 1
    _be_at_risk(sim, paths)
    return _TAKEN


@inlined
def _be_at_risk(sim: KernelState, paths: Paths) -> None:
    """Count the time since the last event, unless all is yet to be healthy after a loss."""
    control, path = sim.control[0], paths.path[0]
    if control.lost_since_healthy == 0:
        path.at_risk += path.weight * (control.now - path.counted_until)
    path.counted_until = control.now


@inlined
def _follow_level(rng: Generator, sim: KernelState, paths: Paths) -> None:
    """End retrials, or split the path, by its level after an event."""
    path = paths.path[0]
    if path.depth > 0 and paths.frames[0].retrial == 1:
        path.retrial_events += 1
    else:
        path.main_events += 1
    level = len(paths.levels) - 1
    while level > 0 and paths.levels[level].sets == 0:
        level -= 1
    before, path.level = path.level, level
    if path.depth > 0 and level < paths.frames[path.depth - 1].floor:
        path.level = leave(rng, sim, paths, level)
    elif level > before:
        paths.levels[level].risen += 1
        split(rng, sim, paths, before, level, sim.control[0].flush_hours)


@inlined
def _set_level(table: Table, sim: KernelState, paths: Paths, s: int) -> None:
    """Count the replicas of a set that are out or not in sync."""
    state, replicas_out = table.states[sim.sets[s].state], 0
    replicas = sim.slots.shape[1]
    for slot in range(replicas):
        condition = sim.brokers[sim.slots[s, slot]].condition
        if condition != WELL or state.absent >> slot & 1:
            replicas_out += 1
    level = max(replicas_out, replicas - state.in_sync)
    if level != paths.level_of[s]:
        paths.levels[paths.level_of[s]].sets -= 1
        paths.levels[level].sets += 1
        paths.level_of[s] = level


@called
def _collect(sim: KernelState, paths: Paths) -> None:
    """Move what was counted to the totals, by the weight that the path has now."""
    control, weight = sim.control[0], paths.path[0].weight
    if control.counted & layout.TOTALS_COUNTED:
        for row in range(sim.totals.shape[0]):
            for column in range(sim.totals.shape[1]):
                paths.totals[row, column] += weight * sim.totals[row, column]
                sim.totals[row, column] = 0.0
    if control.counted & layout.OUTAGES_COUNTED:
        for place in range(len(sim.outages_by_length)):
            paths.outages_by_length[place] += weight * sim.outages_by_length[place]
            sim.outages_by_length[place] = 0.0
    control.counted = 0


@called
def _note_loss(sim: KernelState, paths: Paths) -> None:
    """Count a moment at which one or more partitions lost something."""
    control, path = sim.control[0], paths.path[0]
    weight = path.weight
    path.loss_moments += 1
    if control.phase == 1 and control.lost_this_year == 0:
        path.due += weight
    control.lost_this_year = 1
    if control.lost_since_healthy == 0:
        control.lost_since_healthy = 1
        paths.totals[layout.FIRST_LOSSES, control.cause] += weight
        path.lost += 1
        path.weights += weight
        path.squares += weight * weight
        path.largest = max(path.largest, weight)


@called
def _finish(table: Table, sim: KernelState, paths: Paths) -> None:
    """Account for the time since the last event of the main path."""
    account_for_all(table, sim)
    if sim.control[0].counted != 0:
        _collect(sim, paths)
    _be_at_risk(sim, paths)


run = entry(_years, (*kernel.COMPILED, kernel, memory))
"""Advance through the years that are left. Returns as the ``run`` of the compiled years does."""
