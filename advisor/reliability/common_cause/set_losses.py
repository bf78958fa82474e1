"""When one replica set loses: what the combination of all sets is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from advisor.reliability.common_cause.outage_class import (
    Losses,
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
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.solver.first_passage import FirstLoss
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


class YearlyLosses(NamedTuple):
    """How often a year each transition of a chain happens and loses.

    flux, at_once, early, any_tail (transitions,): that it happens; loses by itself; by a power
        failure within the flush window after it; or drops one unreplicated tail or more.
    alone (counts + 1, states): share of each state by how many brokers were struck alone since
        nothing was out.
    healthy: share of time in which nothing is out.
    by_name (names,): how often a year transitions of each rate happen.
    """

    flux: Vector
    at_once: Vector
    early: Vector
    any_tail: Vector
    alone: Vector
    healthy: float
    by_name: Vector


class SharableLosses(NamedTuple):
    """Losses of one set that other sets may share.

    per_year (kinds,).
    mechanism (kinds,): index among the mechanisms.
    """

    kinds: list[tuple[str, str, OutageClass]]
    per_year: Vector
    mechanisms: list[str]
    mechanism: IntArray


@dataclass(frozen=True, eq=False)
class SetLosses:
    """When one partition on one replica set loses records; equal only to itself.

    first: starting healthy; its probability is that of a loss within a year.
    per_year: loss events a year, by the mechanism that triggers them.
    shared: those of them that other sets may share, per year.
    tails: those of them that drop an unreplicated tail.
    picked: those of them by events that pick brokers by chance.
    replacement_hours: mean time until a destroyed broker is replaced; 0 if none is destroyed.
    visits: how often a year the set comes into each.
    out: share of time in which any of its replicas is out or not in sync.
    struck: those of its losses in which all of its racks fail at once while nothing is out.
    """

    first: FirstLoss
    per_year: Mapping[str, float]
    shared: Losses = field(default_factory=dict)
    tails: Mapping[str, float] = field(default_factory=dict)
    picked: Mapping[str, PickedLosses] = field(default_factory=dict)
    replacement_hours: float = 0.0
    visits: Mapping[OutageClass, float] = field(default_factory=dict)
    out: float = 0.0
    struck: Mapping[str, StruckLosses] = field(default_factory=dict)

    @property
    def tails_of_sites(self) -> dict[str, float]:
        """Tails by mechanisms that strike a broker, a rack or all; no brokers by chance."""
        return {name: often for name, often in self.tails.items() if name not in self.picked}

    @cached_property
    def sharable(self) -> SharableLosses:
        """What other sets may share, as arrays."""
        kinds = list(self.shared)
        mechanisms = list(dict.fromkeys(kind[0] for kind in kinds))
        number = {name: place for place, name in enumerate(mechanisms)}
        return SharableLosses(
            kinds,
            np.array([*self.shared.values()]),
            mechanisms,
            np.array([number[kind[0]] for kind in kinds], dtype=np.int64),
        )

    def of_transitions(
        self,
        chain: TransitionArrays,
        classes: OutageClasses,
        repair_classes: OutageClasses,
        rates_per_hour: Mapping[str, float],
        destruction: Mapping[str, float],
        yearly: YearlyLosses,
    ) -> SetLosses:
        """Add what other sets may share in the losses of a chain.

        classes, repair_classes: of the chain's states, for losses by failures and for those by
            repairs.
        destruction: share of each mechanism in what destroys brokers.
        """
        rates = np.array([rates_per_hour[name] for name in chain.rate_names])
        at_once = lost_in_any_case(chain, yearly.flux, yearly.at_once)
        shared = shared_loss_rates(
            chain,
            classes,
            repair_classes,
            destruction,
            rates,
            at_once,
            yearly.early,
            yearly.alone,
        )
        replicas = sum(rack.size for rack in next(filter(None, classes[0]), ()))
        none_struck_alone = yearly.alone[0, chain.source]
        return replace(
            self,
            shared=shared,
            picked=picked_losses(
                chain,
                replicas,
                rates * HOURS_PER_YEAR,
                yearly.by_name,
                yearly.at_once,
                yearly.any_tail,
            ),
            replacement_hours=table().mean_hours(table().replacement, rates_per_hour),
            visits=visits(chain, classes, yearly.flux),
            out=1.0 - yearly.healthy,
            struck=struck_losses(chain, classes, rates, at_once * none_struck_alone),
        )


@lru_cache(maxsize=4096)
def first_only(losses: SetLosses, hazard_per_year: float, tails: bool) -> SetLosses:
    """Yearly losses except tails, scaled to the rate of first losses; topics share the result.

    Losses cluster: one is soon followed by others. The chain gives the hazard of the first of
    them, provided that it counts no tails.
    """
    certain = {name: flux - losses.tails.get(name, 0.0) for name, flux in losses.per_year.items()}
    total = math.fsum(certain.values())
    share = min(hazard_per_year / total, 1.0) if total > 0 and not tails else 1.0
    return replace(
        losses,
        per_year={mechanism: max(flux, 0.0) * share for mechanism, flux in certain.items()},
        shared={key: flux * share for key, flux in losses.shared.items()},
        tails={},
        struck={name: struck.scaled(share) for name, struck in losses.struck.items()},
        picked={name: picked.scaled(share) for name, picked in losses.picked.items()},
    )


@lru_cache(maxsize=4096)
def sharing_apart(one: SetLosses, other: SetLosses) -> float:
    """How much two estimates of what other sets may share differ, in losses a year."""
    return math.fsum(
        abs(one.shared.get(kind, 0.0) - other.shared.get(kind, 0.0))
        for kind in one.shared.keys() | other.shared.keys()
    )
