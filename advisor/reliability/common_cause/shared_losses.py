"""Which losses of different replica sets are one event: those that wait for the same racks.

A set loses when a failure strikes, or somebody comes back, while other replicas are away already.
If these are away because their racks are, all sets that stand in these racks are as weak at the
same time, and lose at the same stroke; if their own brokers are away, the sets of these brokers
are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.common_cause.outage_class import (
    SCOPES,
    Losses,
    OutageClass,
    OutageClasses,
    scope_of,
)
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.flush_window import FlushWindowLosses

Vector = NDArray[np.float64]

# Names of rates at which something ends.
_ENDS = re.compile(r"repair |copy$")
# Each set's own: the end of its copy, and who survives a failure of the site.
_BY_CHANCE = re.compile(r"copy$|cluster\.power [^0]")


def _add(
    found: dict[tuple[str, str, OutageClass], float],
    mechanisms: Sequence[Mapping[str, float]],
    scopes: Sequence[str],
    distinct: Sequence[OutageClass | None],
    name: IntArray,
    weakness: IntArray,
    amounts: Vector,
) -> None:
    """Add losses of who was weak; ``name`` and ``weakness`` are indices into the rest."""
    sums = np.bincount(weakness * len(mechanisms) + name, amounts)
    for code in np.flatnonzero(sums).tolist():
        number, which = divmod(code, len(mechanisms))
        weak = distinct[number]
        if weak is not None:
            for mechanism, share in mechanisms[which].items():
                found[mechanism, scopes[which], weak] += share * float(sums[code])


class Chain(Protocol):
    """What is asked of a chain: its transitions, the names of their rates, and early cuts."""

    @property
    def source(self) -> IntArray:
        """State of each transition."""

    @property
    def target(self) -> IntArray:
        """State that it leads to."""

    @property
    def rate(self) -> IntArray:
        """Index of its rate's name."""

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Names of rates."""

    @property
    def cuts(self) -> FlushWindowLosses:
        """What power loses that goes too early."""


def shared_loss_rates(
    chain: Chain,
    weak: OutageClasses,
    model: FailureModel,
    rates_per_hour: Vector,
    certain: Vector,
    early: Vector,
) -> Losses:
    """Losses of one set that others may have part in, per hour.

    Not those by a failure of the site that some brokers do not survive, nor by the end of a copy:
    who survives, and how long a copy takes, is decided anew for each.

    Parameters
    ----------
    chain : Chain
    weak : Weaknesses
        Of its states.
    model : FailureModel
    rates_per_hour : array, shape (names,)
    certain, early : arrays, shape (transitions,)
        Losses with a transition, and by power that goes soon after it, per hour.
    """
    distinct, number = weak
    states = len(number)
    names = chain.rate_names
    mechanisms = [transition_rates.causes_of(name, model) for name in names]
    ends = np.array([bool(_ENDS.match(name)) for name in names], dtype=bool)
    by_chance = np.array([bool(_BY_CHANCE.match(name)) for name in names], dtype=bool)
    strike = [scope_of(name) for name in names]
    lost = np.flatnonzero((certain > 0) & ~by_chance[chain.rate])
    source = number[chain.source[lost]]
    found: dict[tuple[str, str, OutageClass], float] = defaultdict(float)
    _add(found, mechanisms, strike, distinct, chain.rate[lost], source, certain[lost])
    soon = np.flatnonzero(early)
    name, target = chain.rate[soon], chain.target[soon]
    whole = chain.cuts.per_hour(rates_per_hour, states)[target]
    for scope in SCOPES:
        kept = ends | np.array([other == scope for other in strike], dtype=bool)
        part = chain.cuts.per_hour(np.where(kept, rates_per_hour, 0.0), states)[target]
        amounts = early[soon] * part / whole
        scopes = [scope] * len(names)
        _add(found, mechanisms, scopes, distinct, name, number[target], amounts)
    return dict(found)
