"""Share of losses that follow the election of an empty replica under KIP-966.

If the ELR is empty, Kafka elects the last known leader, whatever its disk holds: a replaced broker
that starts while the others are down leads with an empty log.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from advisor.reliability.case import Case, ChainParameters
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import table, transition
from advisor.reliability.measures import replica_set


class LossesByStart(NamedTuple):
    """Loss events per year of one partition, by the kind of transition that triggers them.

    starts: a broker starts or returns while a replica is empty: another one, or its own.
    failures: any other transition, nearly always a failure.
    """

    starts: float
    failures: float


@lru_cache(maxsize=256)
def losses_by_start(pattern: tuple[int, ...], parameters: ChainParameters) -> LossesByStart:
    """Split the loss rate of one replica set, given the rack number of each replica."""
    solved = replica_set.solve(pattern, parameters)
    structure = solved.chain
    per_year = solved.flux * solved.chances.events * HOURS_PER_YEAR
    kinds = [transition(name) for name in structure.rate_names]
    ends = np.array([kind.ends and not kind.copies for kind in kinds], dtype=np.bool_)
    empty = structure.attribution.get(table().replacement.name, np.zeros(structure.states)) > 0
    starts = ends[structure.rate] & empty[structure.source]
    return LossesByStart(math.fsum(per_year[starts]), math.fsum(per_year[~starts]))


def empty_leader_share(case: Case) -> float | None:
    """Share of loss events by a broker start while a replica is empty; None if none can be."""
    config = case.config
    applies = config.eligible_leader_replicas and not config.unclean_leader_election_enable
    if not applies or config.replication_factor == 1:
        return None
    parts = [
        (losses_by_start(pattern, case.chain), sets.partitions)
        for pattern, sets in case.patterns.items()
    ]
    starts = math.fsum(losses.starts * partitions for losses, partitions in parts)
    total = starts + math.fsum(losses.failures * partitions for losses, partitions in parts)
    return starts / total if total else None
