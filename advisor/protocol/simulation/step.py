"""The transition function of a cluster: (state, event, settings) -> (state, effects)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from advisor.protocol.log import replica_log
from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.simulation import admin_requests, broker_lifecycle, events, faults
from advisor.protocol.simulation.broker_lifecycle import Outcome
from advisor.protocol.simulation.events import Effects
from advisor.protocol.simulation.fetch import fetch, propose, unable_to_join
from advisor.protocol.simulation.isr_expiration import out_of_sync_replicas
from advisor.protocol.simulation.replica import (
    NETWORK_EXCEPTION,
    NOT_LEADER,
    REQUEST_TIMED_OUT,
    append_records,
    apply_metadata,
    raise_high_watermark,
    time_out_requests,
)
from advisor.protocol.simulation.state import (
    LEADER,
    OFFLINE,
    DelayedProduce,
    Partition,
    Replica,
    Settings,
    State,
    broker_of,
    position_of,
    replica_of,
    with_partition,
    with_replica,
)

# replica.high.watermark.checkpoint.interval.ms
CHECKPOINT_MS = 5_000


def step(state: State, event: Any, settings: Settings) -> Outcome:
    """Apply one event of ``events`` to a cluster; nothing else changes a cluster's state.

    Returns the state, and what clients and operators see, in order. Equal arguments give equal
    results.
    """
    if not state.has_quorum and type(event) in _NEEDS_CONTROLLER:
        return state, (events.Refused(REQUEST_TIMED_OUT),)
    return _HANDLERS[type(event)](state, event, settings)


def _flush(state: State, event: events.Flush, _settings: Settings) -> Outcome:
    partitions = []
    for partition in state.partitions:
        replica = replica_of(partition, event.broker)
        if replica is not None:
            flushed = replica._replace(log=replica_log.flush(replica.log))
            partition = with_replica(partition, flushed)
        partitions.append(partition)
    return state._replace(partitions=tuple(partitions)), ()


def _advance(state: State, event: events.Advance, _settings: Settings) -> Outcome:
    """Advance time; high watermarks are checkpointed every five seconds."""
    now_ms = state.now_ms + event.milliseconds
    due = now_ms // CHECKPOINT_MS > state.now_ms // CHECKPOINT_MS
    partitions = state.partitions
    if due:
        running = [b.id for b in state.brokers if b.running]
        partitions = tuple([_with_checkpoints(p, running) for p in partitions])
    return State(state.brokers, partitions, now_ms, *state[3:]), ()


def _with_checkpoints(partition: Partition, running: Collection[int]) -> Partition:
    outdated = [r.broker in running and r.log.checkpoint != r.hw for r in partition.replicas]
    if not any(outdated):
        return partition
    replicas = zip(partition.replicas, outdated, strict=True)
    return partition._replace(replicas=tuple([_checkpointed(r) if d else r for r, d in replicas]))


def _checkpointed(replica: Replica) -> Replica:
    return replica._replace(log=replica.log._replace(checkpoint=replica.hw))


def _produce(state: State, event: events.Produce, settings: Settings) -> Outcome:
    state = state._replace(next_value=max(state.next_value, event.first + event.records))
    position = position_of(state, event.topic, event.partition)
    partition = state.partitions[position]
    span = (event.first, event.first + event.records)
    replica = replica_of(partition, event.broker)
    error = None
    node = broker_of(state, event.broker)
    # A broker that has not registered since it started does not take connections yet.
    starting = not node.registered and (replica is None or replica.role == OFFLINE)
    if not node.running or starting:
        error = NETWORK_EXCEPTION
    elif replica is None or replica.role != LEADER:
        error = NOT_LEADER
    else:
        error = isr_rules.refusal_before_append(
            event.acks, len(replica.isr), settings.min_isr(partition)
        )
    if error is not None and event.acks != 0:
        return state, (events.Failed(event.topic, event.partition, span, error),)
    effects: Effects = ()
    if error is None:
        assert replica is not None
        partition, effects = _append(state, partition, replica, event, settings)
    if event.acks != "all":
        partition = partition._replace(acked=replica_log.merged((*partition.acked, span)))
        effects = (events.Acked(event.topic, event.partition, span), *effects)
    return with_partition(state, position, partition), effects


def _append(
    state: State, partition: Partition, replica: Replica, event: events.Produce, settings: Settings
) -> tuple[Partition, Effects]:
    """Append the records, except a retry of an idempotent producer that is already in the log."""
    span = (event.first, event.first + event.records)
    if not (event.idempotent and replica_log.holds(replica.log, span)):
        replica = append_records(replica, event.first, event.records, settings)
    if event.acks == "all":
        deadline_ms = state.now_ms + settings.request_timeout_ms
        request = DelayedProduce(span, replica.log.leo, deadline_ms)
        if replica.hw >= replica.log.leo:
            acked = replica_log.merged((*partition.acked, span))
            return partition._replace(acked=acked), (
                events.Acked(event.topic, event.partition, span),
            )
        replica = replica._replace(waiting=(*replica.waiting, request))
    excluded = unable_to_join(state, settings)
    return raise_high_watermark(
        with_replica(partition, replica), replica, state.now_ms, settings, excluded
    )


def _give_up(state: State, event: events.GiveUp, _settings: Settings) -> Outcome:
    position = position_of(state, event.topic, event.partition)
    partition = state.partitions[position]
    for replica in partition.replicas:
        remaining = tuple(w for w in replica.waiting if w.span != event.span)
        if len(remaining) < len(replica.waiting):
            partition = with_replica(partition, replica._replace(waiting=remaining))
    return with_partition(state, position, partition), ()


def _drop_request(state: State, event: events.RequestDropped, _settings: Settings) -> Outcome:
    state = state._replace(next_value=max(state.next_value, event.span[1]))
    position = position_of(state, event.topic, event.partition)
    partition = state.partitions[position]
    acked = replica_log.merged((*partition.acked, event.span))
    effects = (events.Acked(event.topic, event.partition, event.span),)
    return with_partition(state, position, partition._replace(acked=acked)), effects


def _apply_metadata(state: State, event: events.ApplyMetadata, settings: Settings) -> Outcome:
    partition, effects = apply_metadata(
        state.partitions[event.position],
        event.broker,
        state.now_ms,
        settings,
        unable_to_join(state, settings),
    )
    return with_partition(state, event.position, partition), effects


def _fetch(state: State, event: events.Fetch, settings: Settings) -> Outcome:
    partition, effects = fetch(
        state, state.partitions[event.position], event.broker, settings, event.answered
    )
    state = with_partition(state, event.position, partition)
    for effect in effects:
        if isinstance(effect, events.Halted):
            state, failed = broker_lifecycle.end_process(
                state, effect.broker, False, broker_lifecycle.log_kept
            )
            return state, (*effects, *failed)
    return state, effects


def _leader(state: State, position: int, broker: int) -> Replica:
    replica = replica_of(state.partitions[position], broker)
    if replica is None or replica.role != LEADER:
        raise KeyError(broker)
    return replica


def _submit_isr(state: State, event: events.SubmitIsr, settings: Settings) -> Outcome:
    """An AlterPartition request and its response."""
    leader = _leader(state, event.position, event.broker)
    proposal = leader.proposal
    assert proposal is not None
    registration = state.partitions[event.position].registration
    error = admin_requests.refusal(
        state,
        registration,
        leader.broker,
        (leader.leader_epoch, leader.partition_epoch),
        proposal.isr,
        proposal.broker_epochs,
        settings,
    )
    if error is not None:
        dropped = error in ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")
        retained = None if dropped else proposal._replace(refused=True)
        partition = with_replica(
            state.partitions[event.position], leader._replace(proposal=retained)
        )
        return with_partition(state, event.position, partition), (events.Refused(error),)
    state, effects = admin_requests.record_isr(state, event.position, proposal.isr, settings)
    registration = state.partitions[event.position].registration
    if (registration.leader, registration.leader_epoch) != (leader.broker, leader.leader_epoch):
        partition = with_replica(
            state.partitions[event.position],
            leader._replace(proposal=proposal._replace(refused=True)),
        )
        return with_partition(state, event.position, partition), effects
    state, answered = _apply_metadata(
        state, events.ApplyMetadata(event.position, event.broker), settings
    )
    return state, (*effects, *answered)


def _shrink_isr(state: State, event: events.ShrinkIsr, settings: Settings) -> Outcome:
    partition = state.partitions[event.position]
    leader = _leader(state, event.position, event.broker)
    out_of_sync = out_of_sync_replicas(state, partition, leader, settings)
    if not out_of_sync:
        return state, ()
    isr = isr_rules.shrunk_isr(leader.isr, out_of_sync, settings.rules)
    changed = leader._replace(proposal=propose(leader, isr))
    return with_partition(state, event.position, with_replica(partition, changed)), ()


def _recheck(state: State, event: events.Recheck, settings: Settings) -> Outcome:
    partition = state.partitions[event.position]
    leader = _leader(state, event.position, event.broker)
    excluded = unable_to_join(state, settings)
    partition, raised = raise_high_watermark(partition, leader, state.now_ms, settings, excluded)
    current = replica_of(partition, event.broker)
    assert current is not None
    partition, timed_out = time_out_requests(partition, current, state.now_ms)
    return with_partition(state, event.position, partition), (*raised, *timed_out)


# Requests of operators, which brokers pass on to the controller.
_NEEDS_CONTROLLER = frozenset(
    {
        events.CreateTopic,
        events.GrowTopic,
        events.DeleteTopic,
        events.AlterTopic,
        events.Elect,
        events.Reassign,
    }
)
_HANDLERS: dict[type, Callable[[State, Any, Settings], Outcome]] = {
    events.Kill: faults.kill,
    events.PowerOff: faults.power_off,
    events.Destroy: faults.destroy,
    events.Wipe: faults.wipe,
    events.Stop: lambda s, e, k: broker_lifecycle.stop(s, e.broker, k),
    events.Start: faults.start,
    events.Isolate: faults.isolate,
    events.Heal: faults.heal,
    events.Lag: faults.lag,
    events.CatchUp: faults.catch_up,
    events.Limp: faults.limp,
    events.Recover: faults.recover,
    events.KillController: faults.kill_controller,
    events.StopQuorum: faults.stop_quorum,
    events.StartQuorum: faults.start_quorum,
    events.Flush: _flush,
    events.Advance: _advance,
    events.Produce: _produce,
    events.GiveUp: _give_up,
    events.RequestDropped: _drop_request,
    events.CreateTopic: lambda s, e, _k: admin_requests.create_topic(s, e),
    events.GrowTopic: lambda s, e, _k: admin_requests.grow_topic(s, e),
    events.DeleteTopic: lambda s, e, _k: admin_requests.delete_topic(s, e),
    events.AlterTopic: admin_requests.alter_topic,
    events.Elect: admin_requests.elect,
    events.Reassign: admin_requests.reassign,
    events.AlterIsr: admin_requests.alter_isr,
    events.ReportShutdown: lambda s, e, k: broker_lifecycle.process_shutdown_report(
        s, e.broker, e.clean, k
    ),
    events.TakeOver: lambda s, _e, k: broker_lifecycle.take_over(s, k),
    events.Expire: lambda s, e, k: broker_lifecycle.expire(s, e.broker, k),
    events.CompleteShutdown: lambda s, e, k: broker_lifecycle.complete_shutdown(s, e.broker, k),
    events.Register: lambda s, e, k: broker_lifecycle.register(s, e.broker, k),
    events.Unfence: lambda s, e, k: broker_lifecycle.unfence(s, e.broker, k),
    events.ApplyMetadata: _apply_metadata,
    events.Fetch: _fetch,
    events.SubmitIsr: _submit_isr,
    events.ShrinkIsr: _shrink_isr,
    events.Recheck: _recheck,
    events.SweepUnclean: lambda s, e, k: admin_requests.sweep(s, e.position, k),
}
