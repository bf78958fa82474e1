"""One step of a cluster: (state, event, settings) -> (state, effects). Nothing else changes it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import Log
from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.simulation import admin_requests, broker_lifecycle
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation import replica as copies
from advisor.protocol.simulation.broker_lifecycle import Outcome
from advisor.protocol.simulation.events import Effects
from advisor.protocol.simulation.fetch import fetch, propose, touch, unable_to_join
from advisor.protocol.simulation.isr_expiration import out_of_sync_replicas
from advisor.protocol.simulation.state import (
    FENCED,
    LEADER,
    Partition,
    Replica,
    Settings,
    State,
    Waiting,
    broker_of,
    position_of,
    replica_of,
    with_broker,
    with_partition,
    with_partitions,
    with_replica,
)

# replica.high.watermark.checkpoint.interval.ms
CHECKPOINT_MS = 5_000


def step(state: State, event: Any, settings: Settings) -> Outcome:
    """Apply one event.

    Parameters
    ----------
    state : State
    event : one of ``advisor.protocol.simulation.events``
    settings : Settings

    Returns
    -------
    (State, tuple of effects)

    Raises
    ------
    KeyError
        If the event names a broker or partition that does not exist, or is no event.
    """
    return _HANDLERS[type(event)](state, event, settings)


def _intact(log: Log, _hw: int) -> Log:
    return log


def _gone(_log: Log, _hw: int) -> Log:
    return logs.EMPTY


def _kill(state: State, event: ev.Kill, _settings: Settings) -> Outcome:
    return broker_lifecycle.end_process(state, event.broker, False, _intact)


def _power_off(state: State, event: ev.PowerOff, _settings: Settings) -> Outcome:
    return broker_lifecycle.end_process(
        state, event.broker, False, lambda log, _hw: logs.lose_power(log, event.keep)
    )


def _destroy(state: State, event: ev.Destroy, _settings: Settings) -> Outcome:
    return broker_lifecycle.end_process(state, event.broker, False, _gone)


def _stop(state: State, event: ev.Stop, settings: Settings) -> Outcome:
    return broker_lifecycle.stop(state, event.broker, settings)


def _start(state: State, event: ev.Start, _settings: Settings) -> Outcome:
    body = broker_of(state, event.broker)
    partitions = []
    for partition in state.partitions:
        replica = replica_of(partition, event.broker)
        if replica is not None:
            loaded = logs.drop_empty_epoch(replica.log)
            partition = with_replica(partition, replica._replace(log=loaded))
        partitions.append(partition)
    state = with_partitions(state, tuple(partitions))
    return with_broker(state, body._replace(running=True, registered=False)), ()


def _touch_all(state: State, broker: int) -> State:
    return with_partitions(state, tuple([touch(state, p, broker) for p in state.partitions]))


def _isolate(state: State, event: ev.Isolate, _settings: Settings) -> Outcome:
    state = _touch_all(state, event.broker)
    body = broker_of(state, event.broker)
    silent = None if body.session == FENCED else body.silent_since_ms
    if body.session != FENCED and silent is None:
        silent = state.now_ms
    return with_broker(state, body._replace(connected=False, silent_since_ms=silent)), ()


def _heal(state: State, event: ev.Heal, _settings: Settings) -> Outcome:
    body = broker_of(state, event.broker)
    speaks = body.running and body.registered
    silent = None if speaks else body.silent_since_ms
    return with_broker(state, body._replace(connected=True, silent_since_ms=silent)), ()


def _lag(state: State, event: ev.Lag, _settings: Settings) -> Outcome:
    state = _touch_all(state, event.broker)
    return with_broker(state, broker_of(state, event.broker)._replace(fetching=False)), ()


def _catch_up(state: State, event: ev.CatchUp, _settings: Settings) -> Outcome:
    return with_broker(state, broker_of(state, event.broker)._replace(fetching=True)), ()


def _kill_controller(state: State, _event: ev.KillController, settings: Settings) -> Outcome:
    return state._replace(controller_from_ms=state.now_ms + settings.failover_ms), ()


def _flush(state: State, event: ev.Flush, _settings: Settings) -> Outcome:
    partitions = []
    for partition in state.partitions:
        replica = replica_of(partition, event.broker)
        if replica is not None:
            flushed = replica._replace(log=logs.flush(replica.log))
            partition = with_replica(partition, flushed)
        partitions.append(partition)
    return state._replace(partitions=tuple(partitions)), ()


def _advance(state: State, event: ev.Advance, _settings: Settings) -> Outcome:
    """Time passes; high watermarks reach their checkpoint every five seconds."""
    now_ms = state.now_ms + event.milliseconds
    due = now_ms // CHECKPOINT_MS > state.now_ms // CHECKPOINT_MS
    partitions = state.partitions
    if due:
        running = [b.id for b in state.brokers if b.running]
        partitions = tuple([_with_checkpoints(p, running) for p in partitions])
    return State(state.brokers, partitions, now_ms, *state[3:]), ()


def _with_checkpoints(partition: Partition, running: Collection[int]) -> Partition:
    late = [r.broker in running and r.log.checkpoint != r.hw for r in partition.replicas]
    if not any(late):
        return partition
    replicas = zip(partition.replicas, late, strict=True)
    return partition._replace(replicas=tuple([_checkpointed(r) if d else r for r, d in replicas]))


def _checkpointed(replica: Replica) -> Replica:
    return replica._replace(log=replica.log._replace(checkpoint=replica.hw))


def _produce(state: State, event: ev.Produce, settings: Settings) -> Outcome:
    state = state._replace(next_value=max(state.next_value, event.first + event.records))
    position = position_of(state, event.topic, event.partition)
    partition = state.partitions[position]
    span = (event.first, event.first + event.records)
    replica = replica_of(partition, event.broker)
    error = None
    if not broker_of(state, event.broker).running:
        error = copies.NETWORK_EXCEPTION
    elif replica is None or replica.role != LEADER:
        error = copies.NOT_LEADER
    else:
        error = isr_rules.refusal_before_append(
            event.acks, len(replica.isr), settings.min_isr(partition)
        )
    if error is not None and event.acks != 0:
        return state, (ev.Failed(event.topic, event.partition, span, error),)
    effects: Effects = ()
    if error is None:
        assert replica is not None
        partition, effects = _append(state, partition, replica, event, settings)
    if event.acks != "all":
        partition = partition._replace(acked=logs.merged((*partition.acked, span)))
        effects = (ev.Acked(event.topic, event.partition, span), *effects)
    return with_partition(state, position, partition), effects


def _append(
    state: State, partition: Partition, replica: Replica, event: ev.Produce, settings: Settings
) -> tuple[Partition, Effects]:
    """Write the records; an idempotent producer's repetition is recognised, not written again."""
    span = (event.first, event.first + event.records)
    if not (event.idempotent and logs.holds(replica.log, span)):
        replica = copies.append(replica, event.first, event.records, settings)
    if event.acks == "all":
        deadline_ms = state.now_ms + settings.request_timeout_ms
        request = Waiting(span, replica.log.leo, deadline_ms)
        if replica.hw >= replica.log.leo:
            acked = logs.merged((*partition.acked, span))
            return partition._replace(acked=acked), (ev.Acked(event.topic, event.partition, span),)
        replica = replica._replace(waiting=(*replica.waiting, request))
    dead = unable_to_join(state, settings)
    return copies.raise_high_watermark(
        with_replica(partition, replica), replica, state.now_ms, settings, dead
    )


def _give_up(state: State, event: ev.GiveUp, _settings: Settings) -> Outcome:
    position = position_of(state, event.topic, event.partition)
    partition = state.partitions[position]
    for replica in partition.replicas:
        left = tuple(w for w in replica.waiting if w.span != event.span)
        if len(left) < len(replica.waiting):
            partition = with_replica(partition, replica._replace(waiting=left))
    return with_partition(state, position, partition), ()


def _sent_for_nothing(state: State, event: ev.RequestDropped, _settings: Settings) -> Outcome:
    state = state._replace(next_value=max(state.next_value, event.span[1]))
    position = position_of(state, event.topic, event.partition)
    partition = state.partitions[position]
    acked = logs.merged((*partition.acked, event.span))
    effects = (ev.Acked(event.topic, event.partition, event.span),)
    return with_partition(state, position, partition._replace(acked=acked)), effects


def _learn(state: State, event: ev.ApplyMetadata, settings: Settings) -> Outcome:
    partition, effects = copies.learn(
        state.partitions[event.position],
        event.broker,
        state.now_ms,
        settings,
        unable_to_join(state, settings),
    )
    return with_partition(state, event.position, partition), effects


def _fetch(state: State, event: ev.Fetch, settings: Settings) -> Outcome:
    partition, effects = fetch(
        state, state.partitions[event.position], event.broker, settings, event.answered
    )
    state = with_partition(state, event.position, partition)
    for effect in effects:
        if isinstance(effect, ev.Halted):
            state, failed = broker_lifecycle.end_process(state, effect.broker, False, _intact)
            return state, (*effects, *failed)
    return state, effects


def _leader(state: State, position: int, broker: int) -> Replica:
    replica = replica_of(state.partitions[position], broker)
    if replica is None or replica.role != LEADER:
        raise KeyError(broker)
    return replica


def _submit_isr(state: State, event: ev.SubmitIsr, settings: Settings) -> Outcome:
    """An AlterPartition request and its answer."""
    leader = _leader(state, event.position, event.broker)
    proposal = leader.proposal
    assert proposal is not None
    record = state.partitions[event.position].registration
    error = admin_requests.refusal(
        state,
        record,
        leader.broker,
        (leader.leader_epoch, leader.partition_epoch),
        proposal.isr,
        proposal.broker_epochs,
        settings,
    )
    if error is not None:
        dropped = error in ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")
        left = None if dropped else proposal._replace(refused=True)
        partition = with_replica(state.partitions[event.position], leader._replace(proposal=left))
        return with_partition(state, event.position, partition), (ev.Refused(error),)
    state, effects = admin_requests.record_isr(state, event.position, proposal.isr, settings)
    record = state.partitions[event.position].registration
    if (record.leader, record.leader_epoch) != (leader.broker, leader.leader_epoch):
        partition = with_replica(
            state.partitions[event.position],
            leader._replace(proposal=proposal._replace(refused=True)),
        )
        return with_partition(state, event.position, partition), effects
    state, answered = _learn(state, ev.ApplyMetadata(event.position, event.broker), settings)
    return state, (*effects, *answered)


def _shrink_isr(state: State, event: ev.ShrinkIsr, settings: Settings) -> Outcome:
    partition = state.partitions[event.position]
    leader = _leader(state, event.position, event.broker)
    late = out_of_sync_replicas(state, partition, leader, settings)
    if not late:
        return state, ()
    isr = isr_rules.shrunk(leader.isr, late, settings.rules)
    changed = leader._replace(proposal=propose(leader, isr))
    return with_partition(state, event.position, with_replica(partition, changed)), ()


def _recheck(state: State, event: ev.Recheck, settings: Settings) -> Outcome:
    partition = state.partitions[event.position]
    leader = _leader(state, event.position, event.broker)
    dead = unable_to_join(state, settings)
    partition, raised = copies.raise_high_watermark(partition, leader, state.now_ms, settings, dead)
    current = replica_of(partition, event.broker)
    assert current is not None
    partition, late = copies.time_out_requests(partition, current, state.now_ms)
    return with_partition(state, event.position, partition), (*raised, *late)


_HANDLERS: dict[type, Callable[[State, Any, Settings], Outcome]] = {
    ev.Kill: _kill,
    ev.PowerOff: _power_off,
    ev.Destroy: _destroy,
    ev.Stop: _stop,
    ev.Start: _start,
    ev.Isolate: _isolate,
    ev.Heal: _heal,
    ev.Lag: _lag,
    ev.CatchUp: _catch_up,
    ev.KillController: _kill_controller,
    ev.Flush: _flush,
    ev.Advance: _advance,
    ev.Produce: _produce,
    ev.GiveUp: _give_up,
    ev.RequestDropped: _sent_for_nothing,
    ev.CreateTopic: lambda s, e, _k: admin_requests.create_topic(s, e),
    ev.GrowTopic: lambda s, e, _k: admin_requests.grow_topic(s, e),
    ev.DeleteTopic: lambda s, e, _k: admin_requests.delete_topic(s, e),
    ev.AlterTopic: admin_requests.alter_topic,
    ev.Elect: admin_requests.elect,
    ev.Reassign: admin_requests.reassign,
    ev.AlterIsr: admin_requests.alter_isr,
    ev.ReportLastLife: lambda s, e, k: broker_lifecycle.report_last_life(s, e.broker, e.clean, k),
    ev.TakeOver: lambda s, _e, k: broker_lifecycle.take_over(s, k),
    ev.Expire: lambda s, e, k: broker_lifecycle.expire(s, e.broker, k),
    ev.CompleteShutdown: lambda s, e, k: broker_lifecycle.leave(s, e.broker, k),
    ev.Register: lambda s, e, k: broker_lifecycle.register(s, e.broker, k),
    ev.Unfence: lambda s, e, k: broker_lifecycle.unfence(s, e.broker, k),
    ev.ApplyMetadata: _learn,
    ev.Fetch: _fetch,
    ev.SubmitIsr: _submit_isr,
    ev.ShrinkIsr: _shrink_isr,
    ev.Recheck: _recheck,
    ev.SweepUnclean: lambda s, e, k: admin_requests.sweep(s, e.position, k),
}
