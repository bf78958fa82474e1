"""From the losses of each replica set to the chance that any of them loses.

Sets do not fail independently: one broker, rack or power feed holds replicas of many. So a loss is
counted at its site, the broker, rack or cluster whose failure sets it off: given such a failure,
each set there loses with its own share, independently of the others. For power lost everywhere at
once this is the copyset formula, ``1 - (1 - q)^K`` (Cidon et al., USENIX ATC 2013).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping

from advisor.reliability.placement import Placement, Replicas

Sites = tuple[Hashable, ...]


def rate_of_any_loss(
    fluxes: Mapping[Replicas, Mapping[str, float]],
    rates: Mapping[str, float],
    where: Placement,
    acks: str | int,
) -> float:
    """How often, per year, at least one set loses something.

    Parameters
    ----------
    fluxes : mapping of replicas to mapping of mechanism to float
        Loss events a year of each distinct set, by the mechanism that sets them off.
    rates : mapping of mechanism to float
        How often the mechanism strikes one broker, one rack or the cluster, per year.
    where : Placement
    acks : {"all", 1, 0}
        Partitions on the same replicas lose together, but for the tails of acks=1 and 0: each has
        its own.

    Returns
    -------
    float
        Between the largest set's rate and the sum of all.
    """
    # A change of leader comes with another one back, each with a tail of its own.
    tails = acks != "all"
    chances = 2 if tails else 1
    counts = dict(where.sets) if tails else {}
    nobody: dict[tuple[str, Hashable], float] = defaultdict(float)
    alone = 0.0
    for replicas, causes in fluxes.items():
        for mechanism, flux in causes.items():
            if rates[mechanism] == 0:
                # Set off by the end of a spell that something else began: nothing is shared.
                alone += flux
                continue
            # A tail is lost with its leader, who is the preferred one nearly all the time.
            sites = _sites(mechanism, replicas[:1] if tails else replicas, where)
            share = flux / len(sites) / rates[mechanism] / chances
            unhurt = chances * counts.get(replicas, 1) * math.log1p(-min(share, 1.0 - 1e-12))
            for site in sites:
                nobody[mechanism, site] += unhurt
    return alone + math.fsum(
        -math.expm1(logarithm) * rates[mechanism] for (mechanism, _), logarithm in nobody.items()
    )


def _sites(mechanism: str, replicas: Replicas, where: Placement) -> Sites:
    """The brokers or racks whose failures can strike a set; one site if all fail together."""
    scope = mechanism.split(".")[0]
    if scope == "broker":
        return replicas
    if scope == "rack":
        return tuple(dict.fromkeys(where.rack_of[broker] for broker in replicas))
    return ("cluster",)
