"""When two states of the reference are the same for all that can follow.

Behaviour depends on times only as differences and on the phase of the periodic work; on broker,
controller and partition epochs only as they compare; on the values of records below the marks not
at all. ``same_moment`` maps states that differ in nothing else to one.
"""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from advisor.protocol.lag import period_ms
from advisor.protocol.state import LEADER, Broker, Partition, Replica, Settings, State
from advisor.protocol.step import CHECKPOINT_MS

# What a current life of a broker, or the current record of a partition, is numbered as; an older
# one is numbered below it.
_CURRENT = 1


def same_moment(state: State, settings: Settings) -> State:
    """The representative of a state: its clock within one period, its counters set back.

    The books of what was committed, which only checks read, are left empty.
    """
    now_ms = state.now_ms % lcm(CHECKPOINT_MS, period_ms(settings))
    shift_ms = state.now_ms - now_ms
    epochs = {b.id: b.epoch for b in state.brokers}
    from_ms = state.controller_from_ms
    return state._replace(
        brokers=tuple(_broker(b, shift_ms) for b in state.brokers),
        partitions=tuple(
            _partition(p, shift_ms, now_ms, epochs, settings) for p in state.partitions
        ),
        now_ms=now_ms,
        controller_epoch=_CURRENT,
        controller_from_ms=from_ms if from_ms < 0 else from_ms - shift_ms,
        next_broker_epoch=_CURRENT + 1,
    )


def _broker(body: Broker, shift_ms: int) -> Broker:
    silent_ms = body.silent_since_ms
    return body._replace(
        epoch=_CURRENT, silent_since_ms=None if silent_ms is None else silent_ms - shift_ms
    )


def _partition(
    partition: Partition, shift_ms: int, now_ms: int, epochs: dict[int, int], settings: Settings
) -> Partition:
    record = partition.registration
    replicas = []
    for replica in partition.replicas:
        if replica.partition_epoch >= 0:
            current = replica.partition_epoch == record.partition_epoch
            replica = replica._replace(partition_epoch=_CURRENT if current else _CURRENT - 1)
        if replica.role == LEADER:
            replica = _leader(replica, shift_ms, now_ms - settings.lag_ms - 1, epochs)
        replicas.append(replica)
    return partition._replace(
        registration=replace(record, partition_epoch=_CURRENT),
        replicas=tuple(replicas),
        committed=(),
    )


def _leader(leader: Replica, shift_ms: int, oldest_ms: int, epochs: dict[int, int]) -> Replica:
    """A leader's notes; a fetch longer ago than the lag time is only known to be too long ago."""
    proposal = leader.proposal
    if proposal is not None:
        pairs = zip(proposal.isr, proposal.broker_epochs, strict=True)
        proposal = proposal._replace(
            broker_epochs=tuple(_life(epoch, epochs[broker]) for broker, epoch in pairs)
        )
    return leader._replace(
        proposal=proposal,
        followers=tuple(
            f._replace(
                caught_up_ms=max(f.caught_up_ms - shift_ms, oldest_ms),
                fetch_ms=max(f.fetch_ms - shift_ms, oldest_ms),
                broker_epoch=_life(f.broker_epoch, epochs[f.broker]),
            )
            for f in leader.followers
        ),
        waiting=tuple(w._replace(deadline_ms=w.deadline_ms - shift_ms) for w in leader.waiting),
    )


def _life(noted: int, current: int) -> int:
    """A noted broker epoch: unknown stays, the current life is current, any other is older."""
    if noted < 0:
        return noted
    return _CURRENT if noted == current else _CURRENT - 1
