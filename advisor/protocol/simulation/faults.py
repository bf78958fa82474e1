"""Faults and repairs of brokers, of their replication and of the controller quorum.

One function for each event of that kind; ``broker_lifecycle`` has what a controller makes of them.
"""

from __future__ import annotations

from advisor.protocol.log import replica_log
from advisor.protocol.log.replica_log import Log
from advisor.protocol.simulation import broker_lifecycle, events
from advisor.protocol.simulation.broker_lifecycle import Outcome, log_kept
from advisor.protocol.simulation.events import Effect
from advisor.protocol.simulation.fetch import record_last_fetches
from advisor.protocol.simulation.state import (
    FENCED,
    Settings,
    State,
    broker_of,
    replica_of,
    with_broker,
    with_partitions,
    with_replica,
)


def _log_destroyed(_log: Log, _hw: int) -> Log:
    return replica_log.EMPTY


def kill(state: State, event: events.Kill, settings: Settings) -> Outcome:
    """End a process; one of KRaft that still waits to register leaves its logs closed."""
    node = broker_of(state, event.broker)
    clean = settings.kraft and node.clean and not node.registered
    return broker_lifecycle.end_process(state, event.broker, clean, log_kept)


def power_off(state: State, event: events.PowerOff, _settings: Settings) -> Outcome:
    """End a process and lose what is not flushed."""
    return broker_lifecycle.end_process(
        state, event.broker, False, lambda log, _hw: replica_log.lose_power(log, event.keep)
    )


def destroy(state: State, event: events.Destroy, _settings: Settings) -> Outcome:
    """End a process and lose its logs."""
    return broker_lifecycle.end_process(state, event.broker, False, _log_destroyed)


def wipe(state: State, event: events.Wipe, settings: Settings) -> Outcome:
    """Destroy several brokers before anyone notices the first."""
    effects: list[Effect] = []
    for broker in event.brokers:
        state, failed = destroy(state, events.Destroy(broker), settings)
        effects.extend(failed)
    return state, tuple(effects)


def start(state: State, event: events.Start, _settings: Settings) -> Outcome:
    """Start a process, which loads its logs and waits to register."""
    node = broker_of(state, event.broker)
    partitions = []
    for partition in state.partitions:
        replica = replica_of(partition, event.broker)
        if replica is not None:
            loaded = replica_log.drop_empty_epoch(replica.log)
            partition = with_replica(partition, replica._replace(log=loaded))
        partitions.append(partition)
    state = with_partitions(state, tuple(partitions))
    return with_broker(state, node._replace(running=True, registered=False)), ()


def isolate(state: State, event: events.Isolate, _settings: Settings) -> Outcome:
    """Cut a broker off from the other brokers and the controller."""
    state = _record_fetches_of(state, event.broker)
    node = broker_of(state, event.broker)
    silent_since_ms = None if node.session == FENCED else node.silent_since_ms
    if node.session != FENCED and silent_since_ms is None:
        silent_since_ms = state.now_ms
    return with_broker(state, node._replace(connected=False, silent_since_ms=silent_since_ms)), ()


def heal(state: State, event: events.Heal, _settings: Settings) -> Outcome:
    """Connect a broker again."""
    node = broker_of(state, event.broker)
    sends_heartbeats = node.running and node.registered
    silent_since_ms = None if sends_heartbeats else node.silent_since_ms
    return with_broker(state, node._replace(connected=True, silent_since_ms=silent_since_ms)), ()


def lag(state: State, event: events.Lag, _settings: Settings) -> Outcome:
    """Stop a broker's replica fetchers."""
    state = _record_fetches_of(state, event.broker)
    return with_broker(state, broker_of(state, event.broker)._replace(fetching=False)), ()


def catch_up(state: State, event: events.CatchUp, _settings: Settings) -> Outcome:
    """Let a broker's replica fetchers run again."""
    return with_broker(state, broker_of(state, event.broker)._replace(fetching=True)), ()


def limp(state: State, event: events.Limp, _settings: Settings) -> Outcome:
    """Stop a broker's fetches, and those that others send it."""
    state = _record_fetches_of(state, event.broker)
    return with_broker(state, broker_of(state, event.broker)._replace(limping=True)), ()


def recover(state: State, event: events.Recover, _settings: Settings) -> Outcome:
    """Let a limping broker replicate again, in both directions."""
    return with_broker(state, broker_of(state, event.broker)._replace(limping=False)), ()


def _record_fetches_of(state: State, broker: int) -> State:
    return with_partitions(
        state, tuple([record_last_fetches(state, p, broker) for p in state.partitions])
    )


def kill_controller(state: State, _event: events.KillController, settings: Settings) -> Outcome:
    """Leave the cluster without a controller until the next one takes over."""
    if not state.has_quorum:
        return state, ()
    return state._replace(controller_from_ms=state.now_ms + settings.failover_ms), ()


def stop_quorum(state: State, _event: events.StopQuorum, _settings: Settings) -> Outcome:
    """Stop everything that needs the controller's record."""
    return state._replace(has_quorum=False), ()


def start_quorum(state: State, _event: events.StartQuorum, settings: Settings) -> Outcome:
    """Bring the quorum back; sessions begin anew, and KRaft elects a controller first."""
    if state.has_quorum:
        return state, ()
    brokers = tuple(
        b if b.silent_since_ms is None else b._replace(silent_since_ms=state.now_ms)
        for b in state.brokers
    )
    elects = settings.kraft or state.controller_from_ms >= 0
    from_ms = state.now_ms + settings.failover_ms if elects else -1
    return state._replace(has_quorum=True, brokers=brokers, controller_from_ms=from_ms), ()
