"""When a real cluster is quiet: nothing changes, and no clock that still runs can change anything.

Two readings that are the same prove little: a session may be about to end, or the lag of a
follower to be noticed. So what is still owed is worked out from the reading; where something is,
the cluster must stand still for as long as its slowest clock runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import Clocks
from advisor.kafka_lab.observation.snapshot import Reading
from advisor.protocol.log.replica_log import EMPTY, Log
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration

_LOOK_EVERY_S = 0.25
# A follower fetches at least five times in this time, and hears of the high watermark.
_SETTLED_FOR_S = 1.0
_LONGEST_S = 120.0
# Broken connections are made anew in seconds, on a busy machine in more than a clock's time.
_UNSURE, _PATIENCE = "may join the ISR", 4
_CERTAIN = ("is to be fenced", "is to serve", "is to join the ISR")


@dataclass(frozen=True)
class Links:
    """What was done to the connections of brokers, which no reading shows.

    Attributes
    ----------
    isolated : frozenset of int
        Cut off from the other nodes.
    lagging : frozenset of int
        They do not copy.
    """

    isolated: frozenset[int] = frozenset()
    lagging: frozenset[int] = frozenset()


def pending_work(reading: Reading, links: Links) -> list[str]:
    """What must still happen by itself, a sentence each; empty if nothing must.

    Nothing is owed where every live broker serves, every other one is fenced, and every live copy
    of a partition that has a leader is equal to the leader's and in the ISR.
    """
    live = reading.running - links.isolated
    serving = reading.truth.serving
    found = [f"broker {b} is to be fenced" for b in sorted(serving - live)]
    found += [f"broker {b} is to serve" for b in sorted(live - serving)]
    for (topic, number), record in sorted(reading.truth.registrations.items()):
        name = f"{topic}-{number}"
        found += [f"{name}: {what}" for what in _owed_of(reading, links, topic, number, record)]
    return found


def _owed_of(
    reading: Reading, links: Links, topic: str, number: int, record: Registration
) -> list[str]:
    live = reading.running - links.isolated
    leader = record.leader
    if leader == NO_LEADER:
        return []
    if leader not in live:
        return [f"leader {leader} is gone"]
    log = reading.logs.get((leader, topic, number), EMPTY)
    if reading.high_watermarks.get((topic, number)) is None:
        return [f"broker {leader} does not lead yet"]
    found = []
    if not log.epochs or log.epochs[-1].epoch != record.leader_epoch:
        found.append(f"broker {leader} has not begun epoch {record.leader_epoch}")
    for broker in record.replicas:
        copy = reading.logs.get((broker, topic, number), EMPTY)
        found += _owed_by(broker, leader, record, _same(copy, log), broker in live, links.lagging)
    if record.adding or record.removing:
        # It ends by itself once all that are added copy; else it waits for those.
        blocked = [b for b in record.adding if b not in live or b in links.lagging]
        found += [] if blocked else ["a reassignment is to end"]
    return found


def _owed_by(
    broker: int,
    leader: int,
    record: Registration,
    same: bool,
    lives: bool,
    lagging: Collection[int],
) -> list[str]:
    """What a replica other than the leader must still do, or is still to suffer."""
    if broker == leader or not lives:
        return []
    if broker in lagging:
        # Even an equal copy leaves where the leader is new: it has not heard of its end yet.
        return [f"broker {broker} may leave the ISR"] if broker in record.isr else []
    if not same:
        return [f"broker {broker} is to copy"]
    # The leader asks the controller for that, and a lagging one may not reach it.
    how = "may" if leader in lagging else "is to"
    return [] if broker in record.isr else [f"broker {broker} {how} join the ISR"]


def _same(one: Log, two: Log) -> bool:
    return one.leo == two.leo and one.runs == two.runs


def wait_until_quiet(
    read: Callable[[], Reading], links: Links, clocks: Clocks, longest_s: float = _LONGEST_S
) -> Reading:
    """Read until the cluster is quiet; the last reading.

    Parameters
    ----------
    read : callable
        Takes a reading.
    links : Links
    clocks : Clocks
    longest_s : float

    Raises
    ------
    BrokersUnavailableError
        If it never stands still; the text says what was still owed.
    """
    began = since = time.monotonic()
    last = read()
    while True:
        time.sleep(_LOOK_EVERY_S)
        now = read()
        at = time.monotonic()
        if now != last:
            last, since = now, at
        pending = pending_work(now, links)
        still_for_s = at - since
        patience = _PATIENCE if any(what.endswith(_UNSURE) for what in pending) else 1
        needed_s = _SETTLED_FOR_S + (patience * clocks.notices_within_ms / 1000 if pending else 0)
        # These come about without fail; on a busy machine that takes its time.
        certain = any(what.endswith(_CERTAIN) for what in pending)
        if still_for_s >= needed_s and not certain:
            return now
        if at - began > longest_s:
            what = "; ".join(pending) or "it keeps changing"
            raise BrokersUnavailableError(
                f"the cluster did not come to rest within {longest_s:g} s: {what}"
            )
