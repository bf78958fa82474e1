"""What a single event may take with it: the rule RF >= 2f + 1, for the racks at hand.

If one event can take f replicas of a partition, then no acknowledged record is lost iff
min ISR > f, writes go on iff min ISR <= RF - f, and both at once need RF >= 2f + 1. With another
broker down for patching, writes go on iff min ISR <= RF - f - 1: RF >= 2f + 2. With two racks one
of them always holds half of the replicas, so that no RF gives both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from advisor.errors import InputError
from advisor.protocol.rules.assignment import Algorithm, assign
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import NEWEST_KNOWN

_MOST_ROUNDS = 24


@dataclass(frozen=True)
class Survival:
    """What happens when one event takes `share` replicas of a partition.

    Attributes
    ----------
    share : int
        Most replicas of one partition that the event can take: f.
    without_loss : bool
        No acknowledged record is lost, whichever replicas go.
    writable : bool
        Writes go on, if every replica was in sync.
    writable_while_patching : bool
        Writes go on even when one further broker is down.
    """

    share: int
    without_loss: bool
    writable: bool
    writable_while_patching: bool


@dataclass(frozen=True)
class ToleranceRow:
    """One line of the tolerance table: a replication factor and min ISR, and losing one rack."""

    replication_factor: int
    min_insync_replicas: int
    survival: Survival


def largest_share(
    brokers: Mapping[int, str | None], replication_factor: int, mode: str = "kraft"
) -> int | None:
    """Return the most replicas of one partition that one rack holds where Kafka places them.

    Parameters
    ----------
    brokers : mapping of int to (str or None)
        Broker id to rack.
    replication_factor : int
    mode : {"kraft", "zookeeper"}
        Which controller places: a KRaft controller goes round the racks until all replicas are
        placed, a ZooKeeper-era one only until every rack has one.

    Returns
    -------
    int or None
        None when the rack of a broker is not known.

    Raises
    ------
    InputError
        In Kafka's words, when there are more replicas than brokers.
    """
    if any(rack is None for rack in brokers.values()):
        return None
    return _largest_share(tuple(brokers.items()), replication_factor, mode)


@cache
def _largest_share(
    brokers: tuple[tuple[int, str | None], ...], replication_factor: int, mode: str
) -> int:
    known = dict(brokers)
    # The older algorithm begins anew after one shift for each broker but one, the newer one goes
    # round the racks alike from wherever it starts: so many partitions show every case.
    rounds = min(max(1, len(known) - 1), _MOST_ROUNDS)
    algorithm: Algorithm = "striped" if mode == "kraft" else "rack_alternated"
    placed = assign(known, len(known) * rounds, replication_factor, algorithm=algorithm)
    return max(share_of(replicas, known) for replicas in placed.values())


def least_share(brokers: Mapping[int, str | None], replication_factor: int) -> int:
    """Return the least that the fullest rack must hold of so many replicas, placed at best.

    Raises
    ------
    InputError
        There are more replicas than brokers.
    """
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
    """Return the most of these replicas that one rack holds; a broker without one stands alone."""
    stands = [broker if brokers[broker] is None else brokers[broker] for broker in replicas]
    return max(map(stands.count, stands))


def survival(share: int, config: Config) -> Survival:
    """Return what one event that takes `share` replicas does under a configuration.

    A record with acks=all is in at least min ISR logs, one with acks=1 or acks=0 perhaps only in
    the leader's. From the seeds' and KIP-966's accounts of the ISR; the effective min ISR is
    `Config.effective_min_insync_replicas`.
    """
    assert config.replication_factor is not None
    copies = config.effective_min_insync_replicas if config.acks == "all" else 1
    left = config.replication_factor - share
    return Survival(
        share=share,
        without_loss=config.acks == "all" and copies > share,
        writable=copies <= left,
        writable_while_patching=copies <= left - 1,
    )


def tolerance_table(
    brokers: Mapping[int, str | None], most: int = 5, kafka_version: str = NEWEST_KNOWN
) -> tuple[ToleranceRow, ...]:
    """Return what losing one rack does, for every RF up to `most` and every min ISR, acks=all.

    Empty when the rack of a broker is not known.
    """
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
    """Return the smallest RF that can keep data and writes when one rack goes; None: there is none.

    Parameters
    ----------
    brokers : mapping of int to (str or None)
    mode : {"kraft", "zookeeper"}
    patching : bool
        Another broker is down at the time: RF >= 2f + 2 instead of 2f + 1.
    """
    for factor in range(1, len(brokers) + 1):
        share = largest_share(brokers, factor, mode)
        if share is not None and factor >= 2 * share + (2 if patching else 1):
            return factor
    return None


def rack_rule(brokers: Mapping[int, str | None], mode: str = "kraft") -> str:
    """Return in one sentence what the racks at hand allow when one of them goes."""
    racks = {rack for rack in brokers.values() if rack is not None}
    unknown = sorted(broker for broker, rack in brokers.items() if rack is None)
    if unknown:
        if racks:
            who = f"broker{'s' if len(unknown) > 1 else ''} {', '.join(map(str, unknown))} is not"
        else:
            who = "no broker is"
        return f"The rack of {who} known, so nothing can be said about losing one."
    least = least_replication_factor(brokers, mode)
    if len(racks) == 1:
        return "All brokers are in one rack: losing it takes every replica, whatever the settings."
    if least is not None:
        share = largest_share(brokers, least, mode)
        return (
            f"RF {least} with min ISR {(share or 0) + 1} keeps every acknowledged record and goes "
            f"on writing when any one of the {len(racks)} racks is lost."
        )
    if len(racks) == 2:
        return (
            "Two racks never give both: one of them holds at least half of the replicas, so "
            "losing it either loses acknowledged records or stops writes; a third rack mends it."
        )
    return (
        "No replication factor keeps both data and writes when any one rack is lost: one rack "
        "holds too many of the brokers."
    )
