"""Canonical form of simulation states with equal behaviour (a bisimulation).

Future behaviour depends on time differences and the phase of periodic work, not on absolute time;
on whether broker and partition epochs are equal or older, not on their values. It does not depend
on the last fetch time of a follower that is still fetching, on the order of the ISR (since 0.8.1),
or on the history kept for invariant checks. ``canonical_state`` maps states that differ in nothing
else to the same state; any event leads such states to states with the same canonical form.
"""

from __future__ import annotations

from math import lcm

from advisor.protocol.rules.partition_registration import Registration, Replicas
from advisor.protocol.simulation.fetch import accepts, fetch_source
from advisor.protocol.simulation.isr_expiration import period_ms
from advisor.protocol.simulation.state import (
    LEADER,
    Broker,
    Follower,
    Partition,
    Replica,
    Settings,
    State,
    replica_of,
)
from advisor.protocol.simulation.step import CHECKPOINT_MS

# Canonical broker and partition epochs: the current one, and any older one.
_CURRENT = 1
_OLDER = 0


def period_of(settings: Settings) -> int:
    """Common period of all periodic work, in milliseconds."""
    return lcm(CHECKPOINT_MS, period_ms(settings))


def canonical_state(state: State, settings: Settings) -> State:
    """Representative of a state's class: clock in the first period, epochs current or older."""
    now_ms = state.now_ms % period_of(settings)
    shift_ms = state.now_ms - now_ms
    from_ms = state.controller_from_ms
    return state._replace(
        brokers=tuple([_broker(broker, shift_ms, settings) for broker in state.brokers]),
        partitions=tuple([_partition(state, p, shift_ms, settings) for p in state.partitions]),
        now_ms=now_ms,
        controller_epoch=_CURRENT,
        controller_from_ms=from_ms if from_ms < 0 else from_ms - shift_ms,
        next_broker_epoch=_CURRENT + 1,
    )


def _broker(broker: Broker, shift_ms: int, settings: Settings) -> Broker:
    """A clean or unclean shutdown matters only to KRaft, until the broker has registered again."""
    silent_ms, stops_ms = broker.silent_since_ms, broker.stops_by_ms
    if shift_ms and (silent_ms is not None or stops_ms is not None):
        broker = broker._replace(
            silent_since_ms=None if silent_ms is None else silent_ms - shift_ms,
            stops_by_ms=None if stops_ms is None else stops_ms - shift_ms,
        )
    irrelevant = not settings.kraft or (broker.running and broker.registered)
    clean = broker.clean or irrelevant
    if (broker.epoch, broker.clean) == (_CURRENT, clean):
        return broker
    return broker._replace(epoch=_CURRENT, clean=clean)


def _partition(state: State, partition: Partition, shift_ms: int, settings: Settings) -> Partition:
    record = partition.registration
    replicas = []
    for replica in partition.replicas:
        # Only a leader sends a partition epoch to the controller (AlterPartition).
        epoch = min(replica.partition_epoch, _OLDER)
        if replica.role == LEADER:
            epoch = _relative_epoch(replica.partition_epoch, record.partition_epoch)
            replica = _leader(state, partition, replica, shift_ms, settings)
        if replica.partition_epoch != epoch:
            replica = Replica(*replica[:6], epoch, *replica[7:])
        replicas.append(replica)
    isr = _canonical_isr(record.isr, settings)
    if (record.partition_epoch, record.isr) != (_CURRENT, isr):
        record = Registration(
            replicas=record.replicas,
            isr=isr,
            leader=record.leader,
            elr=record.elr,
            last_known_elr=record.last_known_elr,
            leader_epoch=record.leader_epoch,
            partition_epoch=_CURRENT,
            recovering=record.recovering,
            adding=record.adding,
            removing=record.removing,
        )
    topic, number, min_isr, unclean, _, _, acked, _, throttle = partition
    return Partition(topic, number, min_isr, unclean, record, tuple(replicas), acked, (), throttle)


def _canonical_isr(isr: Replicas, settings: Settings) -> Replicas:
    """Sort the ISR, except before 0.8.1, where its order decides elections."""
    return isr if settings.rules.elect_in_isr_order else tuple(sorted(isr))


def _leader(
    state: State, partition: Partition, leader: Replica, shift_ms: int, settings: Settings
) -> Replica:
    epochs = {broker.id: broker.epoch for broker in state.brokers}
    proposal = leader.proposal
    if proposal is not None:
        pairs = zip(proposal.isr, proposal.broker_epochs, strict=True)
        proposal = proposal._replace(
            broker_epochs=tuple([_relative_epoch(epoch, epochs[broker]) for broker, epoch in pairs])
        )
    oldest_ms = state.now_ms - settings.lag_ms - 1
    followers = []
    members = leader.isr
    for follower in leader.followers:
        broker, leo, caught_up_ms, fetch_ms, leader_leo, epoch = follower
        if broker in members and leo >= 0 and _fetches(state, partition, leader, broker, settings):
            caught_up_ms = fetch_ms = state.now_ms
        if caught_up_ms >= fetch_ms:
            # The leader's LEO at the last fetch matters only for a follower that is not caught up.
            leader_leo = -1
        caught_up_ms = max(caught_up_ms, oldest_ms) - shift_ms
        fetch_ms = max(fetch_ms, oldest_ms) - shift_ms
        epoch = _relative_epoch(epoch, epochs[broker])
        followers.append(Follower(broker, leo, caught_up_ms, fetch_ms, leader_leo, epoch))
    waiting = leader.waiting
    if waiting and shift_ms:
        waiting = tuple([w._replace(deadline_ms=w.deadline_ms - shift_ms) for w in waiting])
    isr = _canonical_isr(leader.isr, settings)
    return Replica(*leader[:9], isr, proposal, tuple(followers), waiting)


def _fetches(
    state: State, partition: Partition, leader: Replica, broker: int, settings: Settings
) -> bool:
    """Whether a follower fetches now: any event that stops that records the time anew."""
    follower = replica_of(partition, broker)
    if follower is None or fetch_source(state, partition, follower) is not leader:
        return False
    return accepts(leader, follower, settings)


def _relative_epoch(epoch: int, current: int) -> int:
    """Reduce an epoch to current or older; a negative one (unknown) is kept."""
    if epoch < 0:
        return epoch
    return _CURRENT if epoch == current else _OLDER
