"""The KRaft controller quorum: majorities, placement over zones, and voting.

A quorum of n voters works while a majority, n // 2 + 1, is alive and connected. Without a majority
no leader is elected, no ISR changes and no topic is created; partitions with a live leader and ISR
keep working.

Sources: ``RaftClient``, ``QuorumState``, ``EpochElection`` and ``UnattachedState`` in Kafka's
``raft`` module (KIP-595), KIP-853 (dynamic quorums), and Kafka's operations guide (three or five
controllers; combined mode is not for critical clusters).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from advisor.errors import ConfigError

NO_VOTE = -1


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
    """Sets of zones whose simultaneous loss stops the quorum.

    zone_of: zone (rack) of each voter.
    zones_lost: number of zones in each set.
    """
    zones = sorted(set(zone_of.values()))
    return tuple(
        lost
        for lost in combinations(zones, zones_lost)
        if not quorum_survives(zone_of, [voter for voter in zone_of if zone_of[voter] in lost])
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Placement of voters over zones.

    tolerates_voters: largest number of voters that may fail, in any combination.
    tolerates_zones: largest number of zones that may fail, in any combination.
    """

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
    """Best placement for each number of voters and zones.

    With two zones no placement tolerates the loss of either zone: one zone holds at least half of
    the voters, so the other has no majority.
    """
    return tuple(even_spread(n, z) for n in voters for z in zones)


def nodes_lost_to_stop(voters: Collection[int], brokers: Collection[int]) -> tuple[int, int]:
    """Fewest nodes whose loss stops the quorum, and the fewest brokers among them.

    In combined mode a node is both controller and broker, so a broker failure is also a controller
    failure. With dedicated controllers the second number is 0.
    """
    needed = tolerated(len(set(voters))) + 1
    dedicated = len(set(voters) - set(brokers))
    return needed, max(0, needed - dedicated)


@dataclass(frozen=True, slots=True)
class Voter:
    """Persistent state of a voter that matters for elections.

    epoch: highest epoch seen.
    voted_for: candidate voted for in that epoch; -1 for none.
    log_epoch, log_end: epoch of the last record of the metadata log, and the log's end offset.
    """

    id: int
    epoch: int = 0
    voted_for: int = NO_VOTE
    log_epoch: int = 0
    log_end: int = 0


def vote(voter: Voter, candidate: Voter) -> tuple[Voter, bool]:
    """Handle a candidate's vote request: (voter afterwards, whether the vote is granted).

    A voter grants one vote per epoch, and only if the candidate's log is at least as up to date:
    by epoch of the last record, then by end offset.
    """
    if candidate.epoch < voter.epoch:
        return voter, False
    if candidate.epoch > voter.epoch:
        voter = replace(voter, epoch=candidate.epoch, voted_for=NO_VOTE)
    up_to_date = (candidate.log_epoch, candidate.log_end) >= (voter.log_epoch, voter.log_end)
    granted = up_to_date and voter.voted_for in (NO_VOTE, candidate.id)
    return (replace(voter, voted_for=candidate.id) if granted else voter), granted


def run_election(voters: Mapping[int, Voter], candidate: int, reached: Collection[int]) -> Election:
    """Run one election: the candidate votes for itself and requests votes in the next epoch."""
    own = voters[candidate]
    after = dict(voters)
    after[candidate] = replace(own, epoch=own.epoch + 1, voted_for=candidate)
    votes = 1
    for other in sorted(set(reached) & set(voters) - {candidate}):
        after[other], granted = vote(after[other], after[candidate])
        votes += granted
    return Election(after, after[candidate].epoch, votes, votes >= majority(len(voters)))


@dataclass(frozen=True, slots=True)
class Election:
    """Result of an election: voters afterwards, its epoch, votes granted, whether it was won."""

    voters: Mapping[int, Voter]
    epoch: int
    votes: int
    won: bool


def can_elect(voters: Mapping[int, Voter], alive: Collection[int]) -> bool:
    """Whether the live voters, all connected to each other, can elect a leader.

    A rejected candidate learns the higher epoch and retries above it, so only the logs and the
    number of votes matter.
    """
    present = [voters[voter] for voter in sorted(set(alive) & set(voters))]
    if len(present) < majority(len(voters)):
        return False
    highest = max(voter.epoch for voter in present)
    same_epoch = {v.id: replace(v, epoch=max(v.epoch, highest)) for v in present}
    table = {**voters, **same_epoch}
    return any(run_election(table, voter.id, same_epoch).won for voter in present)
