"""One fetch: the follower asks, the leader notes how far it is and answers, the follower copies.

Sources: ``Partition.fetchRecords``, ``Replica.updateFetchState``, ``AbstractFetcherThread``
(0.8.0 to 4.4); KIP-101, KIP-279, KIP-320, and truncation on fetch in 2.7.
"""

from __future__ import annotations

from advisor.protocol.log import leader_epoch_cache as epoch_cache
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log import truncation
from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.simulation.events import Effects, Halted, Truncated
from advisor.protocol.simulation.replica import raise_high_watermark
from advisor.protocol.simulation.state import (
    ACTIVE,
    FOLLOWER,
    LEADER,
    Broker,
    Follower,
    Partition,
    Proposal,
    Replica,
    Settings,
    State,
    broker_of,
    maximal_isr,
    replica_of,
    with_replica,
)

_NOBODY: frozenset[int] = frozenset()


def source_of(state: State, partition: Partition, follower: Replica) -> Replica | None:
    """The copy that a follower can fetch from now, None if it cannot.

    It goes by what the follower believes; a leader that the controller has already deposed still
    answers, unless it is fenced by the epoch (KIP-320).
    """
    if follower.role != FOLLOWER or follower.leader < 0:
        return None
    here, there = broker_of(state, follower.broker), broker_of(state, follower.leader)
    if not (here.running and here.connected and here.fetching):
        return None
    if not (there.running and there.connected):
        return None
    leader = replica_of(partition, follower.leader)
    if leader is None or leader.role != LEADER:
        return None
    return leader


def accepts(leader: Replica, follower: Replica, settings: Settings) -> bool:
    """Whether the leader answers: since KIP-320 only in the same epoch, and only a replica."""
    if settings.rules.fence_fetch_by_epoch and leader.leader_epoch != follower.leader_epoch:
        return False
    return _known(leader, follower.broker) is not None


def _known(leader: Replica, broker: int) -> Follower | None:
    """What a leader remembers of a follower, None if it is no replica to it."""
    for known in leader.followers:
        if known.broker == broker:
            return known
    return None


def _with_note(leader: Replica, noted: Follower) -> Replica:
    followers = tuple([noted if f.broker == noted.broker else f for f in leader.followers])
    return Replica(*leader[:11], followers, leader.waiting)


def throttled_until_ms(partition: Partition, leader: Replica, follower: Replica) -> int | None:
    """When a new replica may copy again; None if nothing holds it back.

    The throttle of a reassignment concerns replicas that are not in sync yet (KIP-73): each may
    copy so many records, and again a second later.
    """
    if not partition.throttle or follower.broker not in partition.registration.adding:
        return None
    if follower.broker in leader.isr or follower.log.leo >= leader.log.leo:
        return None
    known = next(f for f in leader.followers if f.broker == follower.broker)
    return known.fetch_ms + 1_000


def _held_back(state: State, partition: Partition, leader: Replica, follower: Replica) -> bool:
    until_ms = throttled_until_ms(partition, leader, follower)
    return until_ms is not None and until_ms > state.now_ms


def changes_something(
    state: State, partition: Partition, follower: Replica, settings: Settings
) -> bool:
    """Whether a fetch now would move anything but the clock."""
    leader = source_of(state, partition, follower)
    if leader is None or not accepts(leader, follower, settings):
        return False
    if partition.throttle and _held_back(state, partition, leader, follower):
        return False
    known = _known(leader, follower.broker)
    assert known is not None
    if (
        follower.truncating
        or follower.log.leo != leader.log.leo
        or known.leo != follower.log.leo
        or known.broker_epoch != broker_of(state, follower.broker).epoch
        or min(leader.hw, follower.log.leo) != follower.hw
    ):
        return True
    if _diverges(leader, follower, settings):
        return True
    return _would_join(state, leader, known, settings)


def fetch(
    state: State, partition: Partition, broker: int, settings: Settings, answered: bool = True
) -> tuple[Partition, Effects]:
    """One round trip of a follower; nothing changes if it cannot reach a leader.

    Where the answer is lost the leader has noted the follower's offset all the same.
    """
    follower = replica_of(partition, broker)
    if follower is None:
        return partition, ()
    leader = source_of(state, partition, follower)
    if leader is None or not accepts(leader, follower, settings):
        return partition, ()
    if _held_back(state, partition, leader, follower):
        return partition, ()
    if not answered and (follower.truncating or _diverges(leader, follower, settings)):
        return partition, ()
    if follower.truncating:
        return _ask(partition, leader, follower, settings)
    last = epoch_cache.latest(follower.log.epochs)
    if settings.rules.truncate_on_fetch:
        answer = truncation.divergence(leader.log, follower.log.leo, last)
        if answer is not None:
            cut = truncation.by_answer(follower.log, follower.hw, answer)
            return _cut(partition, follower, cut.offset, still_asking=False)
    if follower.log.leo > leader.log.leo:
        return _out_of_range(partition, leader, follower, settings)
    high_watermark = leader.hw
    partition, effects = _note(state, partition, leader, broker, settings)
    if not answered:
        return partition, effects
    return _copy(partition, leader, follower, high_watermark, settings), effects


def _diverges(leader: Replica, follower: Replica, settings: Settings) -> bool:
    """Whether the leader will answer with something else than records."""
    if follower.log.leo > leader.log.leo:
        return True
    last = epoch_cache.latest(follower.log.epochs)
    if not settings.rules.truncate_on_fetch:
        return False
    return truncation.divergence(leader.log, follower.log.leo, last) is not None


def _ask(
    partition: Partition, leader: Replica, follower: Replica, settings: Settings
) -> tuple[Partition, Effects]:
    """OffsetsForLeaderEpoch before the first fetch (0.11 to 2.6)."""
    if settings.rules.truncation == "epoch":
        cut = truncation.after_kip101(follower.log, follower.hw, leader.log)
    else:
        cut = truncation.after_kip279(follower.log, follower.hw, leader.log)
    return _cut(partition, follower, cut.offset, still_asking=not cut.final)


def _cut(
    partition: Partition, follower: Replica, offset: int, still_asking: bool
) -> tuple[Partition, Effects]:
    log = logs.truncate(follower.log, offset)
    changed = follower._replace(log=log, hw=min(follower.hw, log.leo), truncating=still_asking)
    effects: Effects = ()
    if log.leo < follower.log.leo:
        effects = (
            Truncated(
                partition.topic, partition.number, follower.broker, follower.log.leo, log.leo
            ),
        )
    return with_replica(partition, changed), effects


def _out_of_range(
    partition: Partition, leader: Replica, follower: Replica, settings: Settings
) -> tuple[Partition, Effects]:
    """The follower is ahead of its leader and no epoch explained why.

    Before 0.11 it took this for data loss by an unclean election: with that forbidden the broker
    ended itself; otherwise, and later, it truncates to the leader's end.
    """
    if not settings.with_epochs and not partition.unclean and not settings.rules.unclean_only:
        return partition, (Halted(follower.broker),)
    return _cut(partition, follower, leader.log.leo, still_asking=False)


def _note(
    state: State, partition: Partition, leader: Replica, broker: int, settings: Settings
) -> tuple[Partition, Effects]:
    """The leader notes the follower's fetch offset; ISR and high watermark may move."""
    follower = replica_of(partition, broker)
    assert follower is not None
    offset = follower.log.leo
    known = _known(leader, broker)
    assert known is not None
    epoch = broker_of(state, broker).epoch
    noted = _fetched(known, offset, leader.log.leo, state.now_ms, epoch)
    leader = _with_note(leader, noted)
    if _would_join(state, leader, noted, settings):
        isr = isr_rules.joined(leader.isr, broker, settings.rules)
        leader = leader._replace(proposal=propose(leader, isr))
    dead = unable_to_join(state, settings)
    return raise_high_watermark(
        with_replica(partition, leader), leader, state.now_ms, settings, dead
    )


def _fetched(
    known: Follower, offset: int, leader_leo: int, now_ms: int, broker_epoch: int
) -> Follower:
    """``Replica.updateFetchState``: when was this follower last at the leader's end."""
    caught_up_ms = known.caught_up_ms
    if offset >= leader_leo:
        caught_up_ms = max(caught_up_ms, now_ms)
    elif offset >= known.leader_leo >= 0:
        caught_up_ms = max(caught_up_ms, known.fetch_ms)
    return Follower(known.broker, offset, caught_up_ms, now_ms, leader_leo, broker_epoch)


def _would_join(state: State, leader: Replica, known: Follower, settings: Settings) -> bool:
    if leader.proposal is not None or known.broker in maximal_isr(leader):
        return False
    broker = broker_of(state, known.broker)
    return isr_rules.may_join(
        known.leo,
        leader.hw,
        leader.epoch_start,
        _eligible(broker, known, settings),
        settings.rules,
    )


def _eligible(broker: Broker, known: Follower, settings: Settings) -> bool:
    """KIP-841: neither fenced nor stopping; KIP-903: still the life that fetched."""
    if broker.session != ACTIVE:
        return False
    checks = settings.rules.broker_epoch_in_alter_partition
    return not checks or known.broker_epoch in (-1, broker.epoch)


def unable_to_join(state: State, settings: Settings) -> frozenset[int]:
    """Brokers for which the high watermark need not wait outside the ISR (KIP-841)."""
    if not settings.rules.high_watermark_ignores_dead:
        return _NOBODY
    gone = [b.id for b in state.brokers if b.session != ACTIVE]
    return frozenset(gone) if gone else _NOBODY


def propose(leader: Replica, isr: tuple[int, ...]) -> Proposal:
    """An ISR change with the broker epochs of the fetches that it rests on."""
    known = {f.broker: f.broker_epoch for f in leader.followers}
    return Proposal(isr, tuple(known.get(b, -1) for b in isr))


def _copy(
    partition: Partition,
    leader: Replica,
    follower: Replica,
    high_watermark: int,
    settings: Settings,
) -> Partition:
    """The follower appends the answer; its high watermark is the leader's of before this fetch."""
    log = follower.log
    if log.leo < leader.log.leo:
        end = leader.log.leo
        if throttled_until_ms(partition, leader, follower) is not None:
            end = min(end, log.leo + partition.throttle)
        new = logs.records(leader.log, log.leo, end)
        log = logs.append(log, new, settings.with_epochs)
    hw = min(high_watermark, log.leo)
    if log is follower.log and hw == follower.hw:
        return partition
    return with_replica(partition, follower._replace(log=log, hw=hw))


def touch(state: State, partition: Partition, broker: int) -> Partition:
    """Note that the fetches which a fault of this broker ends went on until now."""
    for follower in partition.replicas:
        leader = source_of(state, partition, follower)
        if leader is None or broker not in (leader.broker, follower.broker):
            continue
        known = _known(leader, follower.broker)
        if known is None or known.leo < 0:
            continue
        noted = known._replace(caught_up_ms=state.now_ms, fetch_ms=state.now_ms)
        partition = with_replica(partition, _with_note(leader, noted))
    return partition
