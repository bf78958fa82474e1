"""When one replica set loses: what the combination of all sets is made of.

Numbers have a value for each draw of a card on which a chain was solved; one card is one draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from advisor.reliability.common_cause.outage_class import (
    Kind,
    OutageClass,
    OutageClasses,
    TransitionArrays,
    shared_loss_rates,
    visits,
)
from advisor.reliability.common_cause.picked_brokers import PickedLosses, picked_losses
from advisor.reliability.common_cause.struck_losses import (
    StruckLosses,
    lost_in_any_case,
    struck_losses,
)
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.failures.transition_rates import causes_of
from advisor.reliability.solver.generator import IntArray, Vector


class Tails(NamedTuple):
    """Losses of unreplicated tails: records acknowledged by the leader alone.

    per_failure: tails that a failure of the leader may drop. Kafka moves leadership back to the
        preferred leader afterwards, which makes two.
    leaders: the leader is one of the first ``leaders`` replicas of the list: with Kafka nearly
        always the preferred one.
    """

    per_failure: int
    leaders: int


class FirstOfSet(NamedTuple):
    """First loss of one set that starts healthy; probability (draws,): within a year."""

    mean_hours: Vector
    probability: Vector
    method: str


class YearlyLosses(NamedTuple):
    """How often a year the transitions of a chain happen and lose.

    lossy: those that may lose, ascending.
    flux (transitions, draws): that each happens.
    at_once, early, any_tail (lossy, draws): that it loses by itself; by a power failure within the
        flush window after it; or drops one unreplicated tail or more.
    alone (counts + 1, states, draws): share of each state by how many brokers were struck alone
        since nothing was out.
    out (draws,): share of time in which anything is out.
    by_name (names, draws): how often transitions of each rate happen.
    """

    lossy: IntArray
    flux: Vector
    at_once: Vector
    early: Vector
    any_tail: Vector
    alone: Vector
    out: Vector
    by_name: Vector


class Rates(NamedTuple):
    """The rates of a chain, per hour.

    names (names, draws): of the chain's names.
    every: of everything that can happen, in each draw.
    destruction (draws,): share of each mechanism in what destroys brokers.
    """

    names: Vector
    every: Sequence[Mapping[str, float]]
    destruction: Mapping[str, Vector]

    @classmethod
    def of(
        cls,
        names: Vector,
        every: Sequence[Mapping[str, float]],
        destruction: Sequence[Mapping[str, float]],
    ) -> Rates:
        """The rates of some draws."""
        mechanisms = dict.fromkeys(name for drawn in destruction for name in drawn)
        shares = {
            name: np.array([drawn.get(name, 0.0) for drawn in destruction]) for name in mechanisms
        }
        return cls(names, every, shares)

    def causes(self, names: Sequence[str]) -> list[Mapping[str, Any]]:
        """The mechanisms behind each name of a rate, with their shares."""
        return [causes_of(name, self.destruction) for name in names]


class SharedLosses(NamedTuple):
    """Losses of one set that other sets may share; per_year (kinds, draws)."""

    kinds: Sequence[Kind]
    per_year: Vector


@dataclass(frozen=True, eq=False)
class SetLosses:
    """When one partition on one replica set loses records; equal only to itself.

    per_year: loss events a year, by the mechanism that triggers them.
    shared: those of them that other sets may share.
    tails: those of them that drop an unreplicated tail.
    picked: those of them by events that pick brokers by chance.
    replacement_hours: mean time until a destroyed broker is replaced; 0 if none is destroyed.
    visits: how often a year the set comes into each.
    out: share of time in which any of its replicas is out or not in sync.
    struck: those of its losses in which all of its racks fail at once while nothing is out.
    """

    first: FirstOfSet
    per_year: Mapping[str, Vector]
    tails: Mapping[str, Vector] = field(default_factory=dict)
    shared: SharedLosses = field(default_factory=lambda: SharedLosses((), np.zeros((0, 1))))
    picked: Mapping[str, PickedLosses] = field(default_factory=dict)
    replacement_hours: Vector = field(default_factory=lambda: np.zeros(1))
    visits: Mapping[OutageClass, Vector] = field(default_factory=dict)
    out: Vector = field(default_factory=lambda: np.zeros(1))
    struck: Mapping[str, StruckLosses] = field(default_factory=dict)

    @property
    def tails_of_sites(self) -> dict[str, Vector]:
        """Tails by mechanisms that strike a broker, a rack or all; no brokers by chance."""
        return {name: often for name, often in self.tails.items() if name not in self.picked}

    def of(self, draw: int) -> SetLosses:
        """One draw."""

        def here(amounts: Any) -> Any:
            return amounts[..., draw : draw + 1]

        often = here(self.shared.per_year)
        rows = np.flatnonzero(often > 0.0).tolist()
        mean_hours, probability, method = self.first
        return SetLosses(
            first=FirstOfSet(here(mean_hours), here(probability), method),
            per_year={name: here(amount) for name, amount in self.per_year.items()},
            tails={name: here(amount) for name, amount in self.tails.items()},
            shared=SharedLosses([self.shared.kinds[row] for row in rows], often[rows]),
            picked={name: PickedLosses(*map(here, part)) for name, part in self.picked.items()},
            replacement_hours=here(self.replacement_hours),
            visits={racks: here(amount) for racks, amount in self.visits.items()},
            out=here(self.out),
            struck={name: StruckLosses(*map(here, part)) for name, part in self.struck.items()},
        )


def losses_of_chain(
    chain: TransitionArrays,
    classes: OutageClasses,
    repair_classes: OutageClasses,
    first: FirstOfSet,
    by_name: tuple[Vector, Vector],
    year: YearlyLosses,
    rates: Rates,
) -> SetLosses:
    """Put the losses of one set together.

    classes, repair_classes: of the chain's states, for losses by failures and for those by repairs.
    by_name (names, draws): loss events a year, and those that drop a tail, by name of the rate.
    """
    lossy, causes = year.lossy, rates.causes(chain.rate_names)
    at_once = lost_in_any_case(chain, lossy, year.flux, year.at_once)
    shared = shared_loss_rates(
        chain, lossy, classes, repair_classes, causes, rates.names, at_once, year.early, year.alone
    )
    mechanisms, draws = table(), rates.names.shape[1]
    replicas = sum(rack.size for rack in next(filter(None, classes[0]), ()))
    none_struck_alone = year.alone[0, chain.source[lossy]]
    return SetLosses(
        first=first,
        per_year=_by_mechanism(by_name[0], causes),
        tails=_by_mechanism(by_name[1], causes),
        shared=SharedLosses([*shared], np.array([*shared.values()]).reshape(-1, draws)),
        picked=picked_losses(chain, lossy, replicas, year.by_name, year.at_once, year.any_tail),
        replacement_hours=np.array(
            [mechanisms.mean_hours(mechanisms.replacement, drawn) for drawn in rates.every]
        ),
        visits=visits(chain, classes, year.flux),
        out=year.out,
        struck=struck_losses(chain, lossy, classes, rates.names, at_once * none_struck_alone),
    )


def _by_mechanism(amounts: Vector, causes: Sequence[Mapping[str, Any]]) -> dict[str, Vector]:
    """Sum amounts by name of a rate, (names, draws), by mechanism."""
    totals: dict[str, Vector] = {}
    for name in np.flatnonzero(amounts.any(axis=1)).tolist():
        for mechanism, share in causes[name].items():
            totals[mechanism] = totals.get(mechanism, 0.0) + amounts[name] * share
    return totals


def first_only(losses: SetLosses, hazard_per_year: Vector, tails: bool) -> SetLosses:
    """Yearly losses except tails, scaled to first losses: one is soon followed by others."""
    certain = {
        name: np.maximum(flux - losses.tails.get(name, 0.0), 0.0)
        for name, flux in losses.per_year.items()
    }
    total = hazard_per_year * 0.0 + sum(
        flux - losses.tails.get(name, 0.0) for name, flux in losses.per_year.items()
    )
    share = np.ones_like(total)
    if not tails:
        share = np.minimum(hazard_per_year / np.where(total > 0.0, total, np.inf), 1.0)
        share[total <= 0.0] = 1.0
    return replace(
        losses,
        per_year={mechanism: flux * share for mechanism, flux in certain.items()},
        shared=losses.shared._replace(per_year=losses.shared.per_year * share),
        tails={},
        struck={name: struck.scaled(share) for name, struck in losses.struck.items()},
        picked={name: picked.scaled(share) for name, picked in losses.picked.items()},
    )


@lru_cache(maxsize=4096)
def sharing_apart(one: SetLosses, other: SetLosses) -> float:
    """How much two estimates of what other sets may share differ on a card, in losses a year."""
    before, after = (
        dict(zip(losses.shared.kinds, losses.shared.per_year[:, 0].tolist(), strict=True))
        for losses in (one, other)
    )
    return math.fsum(
        abs(before.get(kind, 0.0) - after.get(kind, 0.0)) for kind in before.keys() | after.keys()
    )
