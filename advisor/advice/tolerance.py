"""Rack failures: how many replicas one takes, and the rule RF >= 2f + 1.

If one event can take f replicas of a partition, no acknowledged record is lost iff min ISR > f,
writes continue iff min ISR <= RF - f, and both together need RF >= 2f + 1. With another broker down
for patching, writes continue iff min ISR <= RF - f - 1, hence RF >= 2f + 2. With two racks, one of
them always holds at least half of the replicas, so no RF gives both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from advisor.errors import InputError
from advisor.protocol.rules.assignment import Algorithm, assign
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.kraft_quorum import fatal_zones
from advisor.protocol.rules.versions import NEWEST_KNOWN

_MOST_ROUNDS = 24


@dataclass(frozen=True)
class Survival:
    """Effect of losing `share` replicas of a partition at once.

    share: largest number of replicas of one partition that the event can take: f.
    without_loss: whether no acknowledged record is lost, whichever replicas are taken.
    writable: whether writes continue, given that every replica was in sync.
    writable_while_patching: whether writes continue with one further broker down.
    """

    share: int
    without_loss: bool
    writable: bool
    writable_while_patching: bool


@dataclass(frozen=True)
class ToleranceRow:
    """Row of the tolerance table: the effect of losing one rack at one RF and min ISR."""

    replication_factor: int
    min_insync_replicas: int
    survival: Survival


def largest_share(
    brokers: Mapping[int, str | None], replication_factor: int, mode: str = "kraft"
) -> int | None:
    """Return the most replicas of one partition in one rack, as Kafka places them; None: not known.

    A KRaft controller cycles through the racks until all replicas are placed, a ZooKeeper-era one
    only until every rack has one.
    """
    if None in brokers.values():
        return None
    return _largest_share(tuple(brokers.items()), replication_factor, mode)


@cache
def _largest_share(
    brokers: tuple[tuple[int, str | None], ...], replication_factor: int, mode: str
) -> int:
    racks = dict(brokers)
    # The ZooKeeper-era algorithm repeats after (brokers - 1) shifts; the KRaft one does not depend
    # on the starting rack. That many rounds cover every case.
    rounds = min(max(1, len(racks) - 1), _MOST_ROUNDS)
    algorithm: Algorithm = "striped" if mode == "kraft" else "rack_alternated"
    placed = assign(racks, len(racks) * rounds, replication_factor, algorithm=algorithm)
    return max(share_of(replicas, racks) for replicas in placed.values())


def least_share(brokers: Mapping[int, str | None], replication_factor: int) -> int:
    """Return the replicas in the fullest rack under the best possible placement."""
    if replication_factor > len(brokers):
        raise InputError(
            f"replication_factor={replication_factor} needs as many brokers; there are only "
            f"{len(brokers)}"
        )
    sizes = Counter(brokers.values())
    share = 1
    while sum(min(size, share) for size in sizes.values()) < replication_factor:
        share += 1
    return share


def share_of(replicas: Sequence[int], brokers: Mapping[int, str | None]) -> int:
    """Return the most of these replicas in one rack; a broker without one is a rack of its own."""
    racks: list[object] = [brokers[broker] for broker in replicas]
    if None in racks:
        places = zip(racks, replicas, strict=True)
        racks = [broker if rack is None else rack for rack, broker in places]
    return 1 if len(set(racks)) == len(racks) else max(map(racks.count, racks))


def survival(share: int, config: Config) -> Survival:
    """Return the effect of losing `share` replicas under a configuration.

    A record acknowledged with acks=all is in at least min ISR logs (KIP-966), else only in one.
    """
    assert config.replication_factor is not None
    copies = config.effective_min_insync_replicas if config.acks == "all" else 1
    copies_left = config.replication_factor - share
    return Survival(
        share=share,
        without_loss=config.acks == "all" and copies > share,
        writable=copies <= copies_left,
        writable_while_patching=copies <= copies_left - 1,
    )


def fatal_racks(
    controllers: Mapping[int, str | None] | None, racks: Collection[str | None]
) -> tuple[str, ...]:
    """Return those of `racks` whose loss leaves no majority of the controllers, where known.

    Without one no leader is elected and no ISR changes: a partition with a replica there takes no
    acks=all write. Losing a rack with controllers alone stops no write at once.
    """
    zone_of = {voter: rack or "" for voter, rack in (controllers or {}).items()}
    return tuple(rack for (rack,) in fatal_zones(zone_of) if rack and rack in racks)


def quorum_words(
    controllers: Mapping[int, str | None] | None, fatal: Sequence[str], mode: str = "kraft"
) -> str:
    """Return what the controllers add to "writes go on"; "" if they outlive every rack."""
    servers = "controllers" if mode == "kraft" else "ZooKeeper servers"
    if not controllers or (None in controllers.values() and not fatal):
        return f", if the {servers} that are left are a majority"
    if not fatal:
        return ""
    voters = f"{list(controllers.values()).count(fatal[0])} of the {len(controllers)} {servers}"
    has = f"which has {voters}" if len(fatal) == 1 else f"each with {voters}"
    return f", unless it is rack {' or '.join(fatal)}, {has}"


def tolerance_table(
    brokers: Mapping[int, str | None], most: int = 5, kafka_version: str = NEWEST_KNOWN
) -> tuple[ToleranceRow, ...]:
    """Return the effect of losing a rack for each RF and min ISR; empty if a rack is unknown."""
    rows = []
    for factor in range(1, min(most, len(brokers)) + 1):
        for min_isr in range(1, factor + 1):
            config = Config(
                kafka_version=kafka_version,
                replication_factor=factor,
                min_insync_replicas=min_isr,
                acks="all",
            )
            share = largest_share(brokers, factor, str(config.mode))
            if share is None:
                return ()
            rows.append(ToleranceRow(factor, min_isr, survival(share, config)))
    return tuple(rows)


def least_replication_factor(
    brokers: Mapping[int, str | None], mode: str = "kraft", patching: bool = False
) -> int | None:
    """Return the smallest RF that keeps data and writes when a rack is lost; None if none does.

    patching: whether another broker is down at the time: RF >= 2f + 2 instead of 2f + 1.
    """
    for factor in range(1, len(brokers) + 1):
        share = largest_share(brokers, factor, mode)
        if share is not None and factor >= 2 * share + (2 if patching else 1):
            return factor
    return None


def rack_rule(
    brokers: Mapping[int, str | None],
    mode: str = "kraft",
    controllers: Mapping[int, str | None] | None = None,
) -> str:
    """Return in one sentence what these racks allow when one of them is lost."""
    racks = {rack for rack in brokers.values() if rack is not None}
    unknown = sorted(broker for broker, rack in brokers.items() if rack is None)
    if unknown:
        if racks:
            names = ", ".join(map(str, unknown))
            subject = f"broker{'s' if len(unknown) > 1 else ''} {names} is not"
        else:
            subject = "no broker is"
        return f"The rack of {subject} known, so nothing can be said about losing one."
    factor = least_replication_factor(brokers, mode)
    if len(racks) == 1:
        return "All brokers are in one rack: losing it takes every replica, whatever the settings."
    if factor is not None:
        share = largest_share(brokers, factor, mode)
        return (
            f"RF {factor} with min ISR {(share or 0) + 1} keeps every acknowledged record and goes "
            f"on writing when any one of the {len(racks)} racks is lost"
            f"{quorum_words(controllers, fatal_racks(controllers, racks), mode)}."
        )
    if len(racks) == 2:
        return (
            "Two racks never give both: one of them holds at least half of the replicas, so "
            "losing it either loses acknowledged records or stops writes; add a third rack."
        )
    return (
        "No replication factor keeps both data and writes when any one rack is lost: one rack "
        "holds too many of the brokers."
    )
