"""The KRaft controller quorum: majorities, and placement over zones.

Without a majority of the voters no leader is elected, no ISR changes and no topic is created;
partitions with a live leader and ISR keep working. Sources: Kafka's ``raft`` module (KIP-595),
KIP-853, and Kafka's operations guide (three or five controllers).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

from advisor.errors import ConfigError


def majority(voters: int) -> int:
    """Smallest number of voters that is a majority.

    Raises ConfigError if there are no voters.
    """
    if voters < 1:
        raise ConfigError(f"{voters} controllers cannot decide anything; Kafka needs at least 1")
    return voters // 2 + 1


def tolerated(voters: int) -> int:
    """Number of voter failures that a quorum tolerates: 0 of 1 or 2, 1 of 3 or 4, 2 of 5."""
    return voters - majority(voters)


def quorum_survives(voters: Collection[int], lost: Collection[int]) -> bool:
    """Whether the remaining voters are a majority."""
    distinct = set(voters)
    return len(distinct - set(lost)) >= majority(len(distinct))


def fatal_zones(zone_of: Mapping[int, str], zones_lost: int = 1) -> tuple[tuple[str, ...], ...]:
    """Sets of so many zones whose loss stops the quorum, from the zone of each voter."""
    zones = sorted(set(zone_of.values()))
    return tuple(
        lost
        for lost in combinations(zones, zones_lost)
        if not quorum_survives(zone_of, [voter for voter in zone_of if zone_of[voter] in lost])
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Placement of voters over zones, and how many voters or zones may fail, in any combination."""

    voters: int
    zones: int
    per_zone: tuple[int, ...]
    tolerates_voters: int
    tolerates_zones: int


def spread(per_zone: Collection[int]) -> Spread:
    """Failures that a placement tolerates, from the number of voters in each zone."""
    fullest = tuple(sorted((count for count in per_zone if count), reverse=True))
    voters = sum(fullest)
    needed = majority(voters)
    zones = 0
    while zones < len(fullest) and voters - sum(fullest[: zones + 1]) >= needed:
        zones += 1
    return Spread(voters, len(fullest), fullest, tolerated(voters), zones)


def even_spread(voters: int, zones: int) -> Spread:
    """Round-robin placement; no other tolerates the loss of more zones."""
    if zones < 1:
        raise ConfigError(f"zones={zones}: voters must stand somewhere")
    return spread([(voters + zones - 1 - zone) // zones for zone in range(zones)])


def spread_table(
    voters: Collection[int] = (1, 3, 5), zones: Collection[int] = (1, 2, 3)
) -> tuple[Spread, ...]:
    """Best placement for each number of voters and zones; two zones never tolerate a loss."""
    return tuple(even_spread(n, z) for n in voters for z in zones)
