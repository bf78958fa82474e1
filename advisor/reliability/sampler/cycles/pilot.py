"""The pilot: a few short runs that find out which failures lead to losses.

The first run makes all mechanisms equally likely (balanced failure biasing), and a mechanism that
has struck likelier to strike again. Each run then makes those failures likelier that preceded its
losses (the cross-entropy method, Rubinstein and Kroese, 2004), the more, the more losses it has
seen, and begins more cycles with the failures on which the means depend most (Neyman's allocation).
It goes on until the losses seen show how most of them happen; if too few were seen, it says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.progress import ignore
from advisor.reliability.sampler.block import begun_by, sample_cycles
from advisor.reliability.sampler.cycles.memory import (
    LOST,
    NO_WRITES,
    RECORDS,
    Cycles,
)
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Bias, Block, Plan

Vector = NDArray[np.float64]

# Random numbers of the pilot are those of blocks that no run has.
_FIRST_BLOCK = 2**63
# Runs: the most cycles of each, and its share of all steps. The first finds the steps of a cycle.
# A step changes the sets on a broker; this many steps with few sets take some seconds.
_RUNS = (
    *((2_000, 0.0), (20_000, 0.1), (20_000, 0.1), (40_000, 0.2)),
    *((80_000, 0.25), (160_000, 0.35), (160_000, 0.35)),
)
MOST_RUNS = len(_RUNS)
_FEWEST_CYCLES, _MOST_STEPS, _FEW_SETS = 200, 6_000_000, 12.0
_ENOUGH_RUNS = 4
_PLAIN = 0.2
# This many effective losses end the pilot. With fewer than the least in its last run, it may have
# missed how most losses happen, and intervals may be too narrow.
_ENOUGH_EFFECTIVE, _LEAST_EFFECTIVE = 200.0, 20.0
# Weight of what a run has seen against what was known: with 1, one lucky loss would mislead.
_LEARNED = 0.5
# The bias is for these objectives; those never reached are left out.
_RARE = (LOST, RECORDS)
# Of each probability: as it is, the same for all, and the rest as losses have it. Of those that
# follow a kind, some as losses have it after any kind: after a kind that seldom leads to a
# loss, the pilot may have seen none.
_NATURAL, _EVEN, _AFTER_ANY = 0.15, 0.1, 0.5
_REPEATED = 0.6


class Found(NamedTuple):
    """What the pilot found; 0 losses a year if it saw none."""

    bias: Bias
    losses_per_year: float


@dataclass(frozen=True)
class _Knowledge:
    """What leads to losses, as far as it is known.

    natural (kinds,): probability of each kind.
    beginning (kinds,): which kind begins cycles that lose.
    following (kinds, kinds): which kind comes next in them, by the rarest one before.
    after_any (kinds,): which kind comes next in them, whatever came before.
    effective: effective number of losses of the last run, (sum w)^2 / sum w^2.
    """

    natural: Vector
    beginning: Vector
    following: Vector
    after_any: Vector
    overlaps: float = 1.0
    effective: float = 0.0
    steps: float = 1.0
    outages: float = 0.0

    @property
    def bias(self) -> Bias:
        """A bias that makes what is known to lead to losses likelier, and nothing impossible."""
        followed = (1.0 - _AFTER_ANY) * self.following + _AFTER_ANY * self.after_any
        return Bias(
            beginning=tuple(self._mixed(self.beginning).tolist()),
            following=tuple(tuple(self._mixed(row).tolist()) for row in followed),
            plain=_PLAIN,
            overlaps=self.overlaps,
            finds_losses=self.effective >= _LEAST_EFFECTIVE,
            steps=self.steps,
            outages=self.outages,
        )

    def _mixed(self, from_losses: Vector) -> Vector:
        natural = _NATURAL * self.natural + _EVEN * _even(self.natural)
        mixed: Vector = natural + (1.0 - _NATURAL - _EVEN) * from_losses
        return mixed

    def and_of(self, run: Cycles, events: int) -> _Knowledge:
        """Add what a run has seen."""
        reached = [name for name in _RARE if run.means[name] > 0.0]
        cycles = float(run.cycle[0]["done"])
        # If none had any, it may still be one in as many.
        overlaps = min((float(run.cycle[0]["overlaps"]) or 1.0) / cycles, 1.0)
        outages = _effective(run, NO_WRITES) if run.means[NO_WRITES] > 0.0 else 0.0
        knowledge = replace(
            self, overlaps=overlaps, effective=0.0, steps=events / cycles, outages=outages / cycles
        )
        if not reached:
            return knowledge
        scores = np.sum([run.scores[name] / float(run.means[name]) for name in reached], axis=0)
        return replace(
            knowledge,
            beginning=self.beginning + _LEARNED * (self._spread_of(run) - self.beginning),
            following=_learned(self.following, scores),
            after_any=_learned(self.after_any[None], scores.sum(axis=0)[None])[0],
            effective=_effective(run, reached[0]),
        )

    def _spread_of(self, run: Cycles) -> Vector:
        """Share the cycles so that the means of all objectives are known equally well."""
        begun_cycles = np.maximum(np.array(self.bias.beginning) * run.cycle[0]["done"], 1.0)
        shares = np.zeros(len(self.natural))
        for squares, mean in zip(run.second_moments, run.means / run.cycle[0]["done"], strict=True):
            if mean > 0.0:
                shares += squares / begun_cycles / mean**2
        shares = self.natural * np.sqrt(shares)
        total = math.fsum(shares)
        return shares / total if total > 0.0 else self.beginning


def _effective(cycles: Cycles, objective: int) -> float:
    """Effective number of times that an objective was reached."""
    mean = float(cycles.means[objective])
    return float(mean**2 / (cycles.second_moments[objective] @ cycles.base**2))


def find_bias(plan: Plan, seed: int, note: Callable[[int], object] = ignore) -> Found:
    """Find a bias for a plan; the same for the same plan and seed.

    note: takes the runs that are done since the last call; at most `MOST_RUNS`.
    """
    knowledge = _nothing_known(plan)
    each_step = 1.0 + len(plan.sets) * plan.replicas / len(plan.racks) / _FEW_SETS
    affordable = _RUNS[0][0] / each_step
    for number, (most_cycles, share) in enumerate(_RUNS):
        if number > 0:
            affordable = share * _MOST_STEPS / (knowledge.steps * each_step)
        cycles = max(int(min(most_cycles, affordable)), _FEWEST_CYCLES)
        bias, block = knowledge.bias, Block(seed, _FIRST_BLOCK + number, 1)
        cycles_run, control = sample_cycles(plan, bias, begun_by(bias, cycles), block)
        knowledge = knowledge.and_of(cycles_run, int(control["events"]))
        note(1)
        if number + 1 >= _ENOUGH_RUNS and knowledge.effective >= _ENOUGH_EFFECTIVE:
            break
    per_cycle = float(cycles_run.means[LOST] / cycles_run.cycle[0]["done"])
    return Found(knowledge.bias, per_cycle * plan.strikes_per_year)


def _nothing_known(plan: Plan) -> _Knowledge:
    """All kinds are equally likely to lead to a loss, and to repeat."""
    rates = new_state(plan).strikes["per_hour"]
    natural = rates / rates.sum()
    even = _even(natural)
    again = _REPEATED * np.eye(len(natural)) + (1.0 - _REPEATED) * even
    never = natural == 0.0
    again[:, never] = 0.0
    again[never] = even
    return _Knowledge(natural, even, again, even)


def _learned(shares: Vector, seen: Vector) -> Vector:
    """Replace a part of each row that was seen."""
    learned, sums = shares.copy(), seen.sum(axis=-1)
    was_seen = sums > 0.0
    learned[was_seen] += _LEARNED * (seen[was_seen] / sums[was_seen][:, None] - learned[was_seen])
    return learned


def _even(natural: Vector) -> Vector:
    happens = natural > 0.0
    even: Vector = happens / np.count_nonzero(happens)
    return even
