"""When two states of the reference are the same for all that can follow.

What follows depends on times only as differences and on the phase of the periodic work; on broker
and partition epochs only as they compare; not at all on how long ago a follower fetched while it is
still fetching, on the order in which the ISR was written down, or on the books kept for checks.
``canonical_state`` maps states that differ in nothing else to one: whatever happens next, they stay so.
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

# The numbers of a broker's current life and of a partition's current record, and of older ones.
_CURRENT = 1
_OLDER = 0


def period_of(settings: Settings) -> int:
    """After how many milliseconds all periodic work has the same phase again."""
    return lcm(CHECKPOINT_MS, period_ms(settings))


def canonical_state(state: State, settings: Settings) -> State:
    """The representative of a state.

    Parameters
    ----------
    state : State
    settings : Settings

    Returns
    -------
    State
        Its clock lies within the first period, its counters are set back as far as they can be.
    """
    now_ms = state.now_ms % period_of(settings)
    shift_ms = state.now_ms - now_ms
    from_ms = state.controller_from_ms
    return state._replace(
        brokers=tuple([_broker(body, shift_ms, settings) for body in state.brokers]),
        partitions=tuple([_partition(state, p, shift_ms, settings) for p in state.partitions]),
        now_ms=now_ms,
        controller_epoch=_CURRENT,
        controller_from_ms=from_ms if from_ms < 0 else from_ms - shift_ms,
        next_broker_epoch=_CURRENT + 1,
    )


def _broker(body: Broker, shift_ms: int, settings: Settings) -> Broker:
    """How the last life ended matters to a KRaft controller, until it has registered the next."""
    silent_ms = body.silent_since_ms
    idle = not settings.kraft or (body.running and body.registered)
    clean = body.clean or idle
    since_ms = None if silent_ms is None else silent_ms - shift_ms
    if (body.epoch, body.clean, silent_ms) == (_CURRENT, clean, since_ms):
        return body
    return body._replace(epoch=_CURRENT, clean=clean, silent_since_ms=since_ms)


def _partition(state: State, partition: Partition, shift_ms: int, settings: Settings) -> Partition:
    record = partition.registration
    replicas = []
    for replica in partition.replicas:
        # Only a leader names a partition epoch to the controller.
        epoch = min(replica.partition_epoch, _OLDER)
        if replica.role == LEADER:
            epoch = _life(replica.partition_epoch, record.partition_epoch)
            replica = _leader(state, partition, replica, shift_ms, settings)
        if replica.partition_epoch != epoch:
            replica = Replica(*replica[:6], epoch, *replica[7:])
        replicas.append(replica)
    isr = _in_any_order(record.isr, settings)
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


def _in_any_order(isr: Replicas, settings: Settings) -> Replicas:
    """Since 0.8.1 the order of the replicas decides an election, not that of the ISR."""
    return isr if settings.rules.elect_in_isr_order else tuple(sorted(isr))


def _leader(
    state: State, partition: Partition, leader: Replica, shift_ms: int, settings: Settings
) -> Replica:
    epochs = {body.id: body.epoch for body in state.brokers}
    proposal = leader.proposal
    if proposal is not None:
        pairs = zip(proposal.isr, proposal.broker_epochs, strict=True)
        proposal = proposal._replace(
            broker_epochs=tuple([_life(epoch, epochs[broker]) for broker, epoch in pairs])
        )
    oldest_ms = state.now_ms - settings.lag_ms - 1
    followers = []
    members = leader.isr
    for known in leader.followers:
        broker, leo, caught_up_ms, fetch_ms, leader_leo, epoch = known
        if broker in members and leo >= 0 and _fetches(state, partition, leader, broker, settings):
            caught_up_ms = fetch_ms = state.now_ms
        if caught_up_ms >= fetch_ms:
            # The leader's end at the last fetch only tells whether that one was a catching up.
            leader_leo = -1
        caught_up_ms = max(caught_up_ms, oldest_ms) - shift_ms
        fetch_ms = max(fetch_ms, oldest_ms) - shift_ms
        life = _life(epoch, epochs[broker])
        followers.append(Follower(broker, leo, caught_up_ms, fetch_ms, leader_leo, life))
    waiting = leader.waiting
    if waiting and shift_ms:
        waiting = tuple([w._replace(deadline_ms=w.deadline_ms - shift_ms) for w in waiting])
    isr = _in_any_order(leader.isr, settings)
    return Replica(*leader[:9], isr, proposal, tuple(followers), waiting)


def _fetches(
    state: State, partition: Partition, leader: Replica, broker: int, settings: Settings
) -> bool:
    """Whether a follower in the ISR fetches from this leader.

    Whatever ends its fetches notes the time of that, so that the times of earlier ones are idle.
    """
    follower = replica_of(partition, broker)
    if follower is None or fetch_source(state, partition, follower) is not leader:
        return False
    return accepts(leader, follower, settings)


def _life(noted: int, current: int) -> int:
    """A noted epoch: unknown stays, the current one is current, any other is older."""
    if noted < 0:
        return noted
    return _CURRENT if noted == current else _OLDER
