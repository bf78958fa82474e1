"""How many losses come because a replaced, empty broker leads while others still hold the records.

With eligible leader replicas (KIP-966) a broker that starts after an unclean shutdown leaves the
ELR. Where all of its members did, nobody is left to elect but the last known leader, and Kafka
takes it whatever its disk holds. A destroyed broker that is replaced, and started, while the
others are away leads with an empty log then, and those that come back throw theirs away.
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
    """Loss events of one partition, per year, by what sets them off.

    Attributes
    ----------
    starts : float
        Set off by a broker that starts, or comes back, beside a destroyed one that has not copied
        the log yet, or that is itself replaced.
    failures : float
        Everything else, nearly all of it set off by failures.
    """

    starts: float
    failures: float


@lru_cache(maxsize=256)
def losses_by_start(pattern: tuple[int, ...], parameters: ChainParameters) -> LossesByStart:
    """Divide the losses of one replica set.

    Parameters
    ----------
    pattern : tuple of int
        Rack number of each replica.
    parameters : ChainParameters
    """
    found = replica_set.solve(pattern, parameters)
    structure = found.chain
    events = found.flux * found.events * HOURS_PER_YEAR
    known = [transition(name) for name in structure.rate_names]
    ends = np.array([each.ends and not each.copies for each in known], dtype=np.bool_)
    empty = structure.blame.get(table().replacement.name, np.zeros(structure.states)) > 0
    starts = ends[structure.rate] & empty[structure.source]
    return LossesByStart(math.fsum(events[starts]), math.fsum(events[~starts]))


def empty_leader_share(case: Case) -> float | None:
    """Share of the loss events that is set off by a broker that starts beside an empty replica.

    Returns
    -------
    float or None
        None where it does not apply: without ELR or with unclean elections other replicas lead, a
        single replica has no successor, and what never loses has no shares.
    """
    config = case.config
    applies = config.eligible_leader_replicas and not config.unclean_leader_election_enable
    if not applies or config.replication_factor == 1:
        return None
    found = [
        (losses_by_start(pattern, case.chain), sets.partitions)
        for pattern, sets in case.patterns.items()
    ]
    starts = math.fsum(losses.starts * count for losses, count in found)
    whole = starts + math.fsum(losses.failures * count for losses, count in found)
    return starts / whole if whole else None
