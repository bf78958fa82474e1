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

from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.placement import Replicas, place
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import table, transition
from advisor.reliability.measures import replica_set
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload


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
def losses_by_start(
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    brokers_per_rack: float = 1.0,
) -> LossesByStart:
    """Divide the losses of one replica set.

    Parameters
    ----------
    pattern : tuple of int
        Rack number of each replica.
    config, model, load
    brokers : int
        Of the whole cluster.
    brokers_per_rack : float
    """
    asked = (config, model, load, brokers)
    found = replica_set.solved(pattern, *asked, brokers_per_rack=brokers_per_rack)
    structure = found.chain
    events = found.flux * found.events * HOURS_PER_YEAR
    known = [transition(name) for name in structure.rate_names]
    ends = np.array([each.ends and not each.copies for each in known], dtype=np.bool_)
    empty = structure.blame.get(table().replacement.name, np.zeros(structure.states)) > 0
    starts = ends[structure.rate] & empty[structure.source]
    return LossesByStart(math.fsum(events[starts]), math.fsum(events[~starts]))


def empty_leader_share(
    result: Reliability, placement: tuple[Replicas, ...] | None = None
) -> float | None:
    """Which share of a result's loss events is set off by starts beside an empty replica.

    Parameters
    ----------
    result : Reliability
    placement : tuple of tuple of int, optional
        Replicas of each partition, if they are not as Kafka would place them.

    Returns
    -------
    float or None
        None where it does not apply: without ELR or with unclean elections others lead, a single
        replica is replaced by nobody, and what never loses has no shares.
    """
    config = result.config
    applies = config.eligible_leader_replicas and not config.unclean_leader_election_enable
    if not applies or config.replication_factor == 1 or not result.loss_events_per_year:
        return None
    where = place(result.cluster, config, result.load.partitions, placement)
    asked = (config, result.model, result.load, where.brokers, where.brokers_per_rack)
    found = [
        (losses_by_start(pattern, *asked), sets.partitions)
        for pattern, sets in where.replica_set_classes().items()
    ]
    starts = math.fsum(losses.starts * count for losses, count in found)
    return starts / (starts + math.fsum(losses.failures * count for losses, count in found))
