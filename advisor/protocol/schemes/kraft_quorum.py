"""Whether the KRaft controllers can still decide: majorities, placement, and the vote itself.

A quorum of n voters works while a majority, n // 2 + 1, is alive and can talk. Without it no leader
is elected, no ISR changes and no topic is created; partitions whose leader and ISR live go on.

Sources: ``RaftClient``, ``QuorumState``, ``EpochElection`` and ``UnattachedState`` in Kafka's
``raft`` module (KIP-595), KIP-853 (voters come and go), and Kafka's operations guide (three or five
controllers; combined mode is not for critical clusters).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from advisor.errors import ConfigError

NO_VOTE = -1


def majority(voters: int) -> int:
    """The least number of voters that can decide.

    Raises
    ------
    ConfigError
        Without voters.
    """
    if voters < 1:
        raise ConfigError(f"{voters} controllers cannot decide anything; Kafka needs at least 1")
    return voters // 2 + 1


def tolerated(voters: int) -> int:
    """How many voters may be lost: 0 of 1 or 2, 1 of 3 or 4, 2 of 5."""
    return voters - majority(voters)


def quorum_survives(voters: Collection[int], lost: Collection[int]) -> bool:
    """Whether the voters that are not lost can still decide."""
    distinct = set(voters)
    return len(distinct - set(lost)) >= majority(len(distinct))


def fatal_zones(zone_of: Mapping[int, str], zones_lost: int = 1) -> tuple[tuple[str, ...], ...]:
    """The sets of zones whose loss, all at once, stops the quorum.

    Parameters
    ----------
    zone_of : mapping of int to str
        Zone (rack) of each voter.
    zones_lost : int
        Size of the sets.
    """
    zones = sorted(set(zone_of.values()))
    return tuple(
        lost
        for lost in combinations(zones, zones_lost)
        if not quorum_survives(zone_of, [voter for voter in zone_of if zone_of[voter] in lost])
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Voters over zones.

    Attributes
    ----------
    voters, zones : int
    per_zone : tuple of int
        Voters in each zone, the fullest first.
    tolerates_voters : int
        Any so many voters may be lost.
    tolerates_zones : int
        Any so many zones may be lost.
    """

    voters: int
    zones: int
    per_zone: tuple[int, ...]
    tolerates_voters: int
    tolerates_zones: int


def spread(per_zone: Collection[int]) -> Spread:
    """What a placement survives; ``per_zone`` counts the voters in each zone."""
    fullest = tuple(sorted((count for count in per_zone if count), reverse=True))
    voters = sum(fullest)
    needed = majority(voters)
    zones = 0
    while zones < len(fullest) and voters - sum(fullest[: zones + 1]) >= needed:
        zones += 1
    return Spread(voters, len(fullest), fullest, tolerated(voters), zones)


def even_spread(voters: int, zones: int) -> Spread:
    """Voters dealt to the zones in turn: no placement survives the loss of more zones."""
    if zones < 1:
        raise ConfigError(f"zones={zones}: voters must stand somewhere")
    return spread([(voters + zones - 1 - zone) // zones for zone in range(zones)])


def spread_table(
    voters: Collection[int] = (1, 3, 5), zones: Collection[int] = (1, 2, 3)
) -> tuple[Spread, ...]:
    """The best placement of each number of voters over each number of zones.

    Over two zones no number survives the loss of either zone: one of them has at least half of
    the voters, and the other then has no majority.
    """
    return tuple(even_spread(n, z) for n in voters for z in zones)


def nodes_lost_to_stop(voters: Collection[int], brokers: Collection[int]) -> tuple[int, int]:
    """The fewest machines whose loss stops the quorum: (machines, brokers among them at least).

    In combined mode a machine is controller and broker at once, so every lost controller takes a
    broker with it, and broker faults count against the quorum. Apart, the second number is 0.
    """
    needed = tolerated(len(set(voters))) + 1
    alone = len(set(voters) - set(brokers))
    return needed, max(0, needed - alone)


@dataclass(frozen=True, slots=True)
class Voter:
    """What a voter keeps on disk, as far as votes go.

    Attributes
    ----------
    id : int
    epoch : int
        The highest it has seen.
    voted_for : int
        In that epoch; -1 for nobody.
    log_epoch, log_end : int
        Epoch of the last record of its metadata log, and its end offset.
    """

    id: int
    epoch: int = 0
    voted_for: int = NO_VOTE
    log_epoch: int = 0
    log_end: int = 0


def vote(voter: Voter, candidate: Voter) -> tuple[Voter, bool]:
    """Answer a candidate's request in its epoch: (the voter afterwards, granted).

    Granted once an epoch, and only to a log that is at least as long: first by epoch of the last
    record, then by end offset.
    """
    if candidate.epoch < voter.epoch:
        return voter, False
    if candidate.epoch > voter.epoch:
        voter = replace(voter, epoch=candidate.epoch, voted_for=NO_VOTE)
    enough = (candidate.log_epoch, candidate.log_end) >= (voter.log_epoch, voter.log_end)
    granted = enough and voter.voted_for in (NO_VOTE, candidate.id)
    return (replace(voter, voted_for=candidate.id) if granted else voter), granted


def stand(voters: Mapping[int, Voter], candidate: int, reached: Collection[int]) -> Election:
    """One candidacy: the next epoch, its own vote, and a request to every voter it reaches."""
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
    """The voters after a candidacy, its epoch, the votes it got, and whether it won."""

    voters: Mapping[int, Voter]
    epoch: int
    votes: int
    won: bool


def can_elect(voters: Mapping[int, Voter], alive: Collection[int]) -> bool:
    """Whether the voters alive, all reaching each other, can agree on a leader.

    A refused candidate learns the others' epoch and stands again above it, so only the logs and
    the number of votes decide.
    """
    present = [voters[voter] for voter in sorted(set(alive) & set(voters))]
    if len(present) < majority(len(voters)):
        return False
    highest = max(voter.epoch for voter in present)
    level = {v.id: replace(v, epoch=max(v.epoch, highest)) for v in present}
    table = {**voters, **level}
    return any(stand(table, voter.id, level).won for voter in present)
