"""Broker sessions: fencing, registration, controlled shutdown, controller failover.

``rules.controller`` decides what each event changes in a partition; this module decides when.

Sources: ``BrokerHeartbeatManager``, ``ClusterControlManager``, ``ReplicationControlManager``
(KRaft, KIP-631, KIP-966); ``KafkaController.onBrokerFailure`` and ``onBrokerStartup`` (ZooKeeper).
"""

from __future__ import annotations

from collections.abc import Callable

from advisor.protocol.log import replica_log
from advisor.protocol.log.replica_log import Log
from advisor.protocol.rules import controller
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.simulation.events import Effect, Effects, Elected
from advisor.protocol.simulation.fetch import record_last_fetches
from advisor.protocol.simulation.replica import go_offline
from advisor.protocol.simulation.state import (
    ACTIVE,
    FENCED,
    STOPPING,
    Broker,
    Partition,
    Settings,
    State,
    active_brokers,
    broker_of,
    has_controller,
    replica_of,
    with_broker,
    with_partitions,
)

Outcome = tuple[State, Effects]
Decision = Callable[[Registration, Partition], Registration]


def decide(state: State, decision: Decision) -> Outcome:
    """Apply a controller decision to every partition and write those that it changes."""
    effects: list[Effect] = []
    changed = []
    for partition in state.partitions:
        old = partition.registration
        new = decision(old, partition)
        if new is old:
            changed.append(partition)
            continue
        if new.leader != old.leader:
            effects.append(Elected(partition.topic, partition.number, new.leader, new.leader_epoch))
        changed.append(Partition(*partition[:4], new, *partition[5:]))
    return with_partitions(state, tuple(changed)), tuple(effects)


def end_process(
    state: State, broker: int, clean: bool, log_after: Callable[[Log, int], Log]
) -> Outcome:
    """End a broker's process; ``log_after(log, hw)`` is what remains of each log."""
    node = broker_of(state, broker)
    silent_since_ms = state.now_ms if node.silent_since_ms is None else node.silent_since_ms
    effects: list[Effect] = []
    partitions = []
    for partition in state.partitions:
        if replica_of(partition, broker) is not None:
            partition = record_last_fetches(state, partition, broker)
            replica = replica_of(partition, broker)
            assert replica is not None
            log = log_after(replica.log, replica.hw)
            partition, failed = go_offline(partition, replica, log)
            effects.extend(failed)
        partitions.append(partition)
    stopped = node._replace(
        running=False,
        registered=False,
        clean=clean,
        silent_since_ms=None if node.session == FENCED else silent_since_ms,
        stops_by_ms=None,
    )
    return with_broker(with_partitions(state, tuple(partitions)), stopped), tuple(effects)


def log_kept(log: Log, _hw: int) -> Log:
    """Return the log as it is: disk and page cache survive."""
    return log


def log_after_clean_stop(log: Log, hw: int) -> Log:
    """Return the log after a clean stop: everything flushed, the high watermark checkpointed."""
    return replica_log.flush(log)._replace(checkpoint=hw)


def stop(state: State, broker: int, settings: Settings) -> Outcome:
    """Start a controlled shutdown: the controller first moves the broker's leaderships.

    A broker that cannot reach the controller goes on serving: it stops when a controller consents
    or its patience ends, with its logs flushed. A fenced broker stops at once, and so does one of
    KRaft that waits to register, with its logs as they are: it has not opened them.
    """
    node = broker_of(state, broker)
    if settings.kraft and not node.registered:
        return end_process(state, broker, node.clean, log_kept)
    if node.session == FENCED or not _waits_to_stop(state, node, settings):
        return end_process(state, broker, True, log_after_clean_stop)
    if node.stops_by_ms is None:
        node = node._replace(stops_by_ms=state.now_ms + settings.shutdown_ms)
    if not (node.connected and has_controller(state) and node.session == ACTIVE):
        return with_broker(state, node), ()
    state = with_broker(state, node._replace(session=STOPPING))
    active = active_brokers(state)

    def move(registration: Registration, partition: Partition) -> Registration:
        return controller.broker_stopping(registration, broker, active, settings.policy(partition))

    return decide(state, move)


def _waits_to_stop(state: State, node: Broker, settings: Settings) -> bool:
    """Return whether a broker told to stop first asks the controller, under ZooKeeper if it can."""
    if settings.kraft or not state.has_quorum:
        return True
    return node.connected and has_controller(state)


def complete_shutdown(state: State, broker: int, settings: Settings) -> Outcome:
    """Complete a controlled shutdown; the session ends at once if someone can end it."""
    ends_session = has_controller(state) if settings.kraft else state.has_quorum
    ends_session = ends_session and broker_of(state, broker).connected
    state, ended = end_process(state, broker, True, log_after_clean_stop)
    if not ends_session:
        return state, ended
    state, decided = expire(state, broker, settings)
    return state, (*ended, *decided)


def expire(state: State, broker: int, settings: Settings) -> Outcome:
    """End a broker's session: it is fenced and its leaderships move, once.

    Without an active ZooKeeper controller no leadership moves until there is one.
    """
    node = broker_of(state, broker)
    if node.session == FENCED:
        return state, ()
    controlled = has_controller(state)
    stays_registered = settings.kraft and node.registered
    state = with_broker(
        state, node._replace(session=FENCED, silent_since_ms=None, registered=stays_registered)
    )
    if state.controller_broker == broker:
        return _elect_zookeeper_controller(state, settings)
    if not controlled and not settings.kraft:
        return state, ()
    active = active_brokers(state)

    def remove(registration: Registration, partition: Partition) -> Registration:
        return controller.broker_gone(registration, broker, active, settings.policy(partition))

    return decide(state, remove)


def _elect_zookeeper_controller(state: State, settings: Settings) -> Outcome:
    """Make the broker with a session, even an expiring one, and the lowest id controller."""
    active = active_brokers(state)
    candidates = [b.id for b in state.brokers if b.id in active and b.running and b.connected]
    if not candidates:
        return state, ()
    state = state._replace(
        controller_broker=min(candidates), controller_epoch=state.controller_epoch + 1
    )

    def start(registration: Registration, partition: Partition) -> Registration:
        return controller.controller_started(registration, active, settings.policy(partition))

    return decide(state, start)


def register(state: State, broker: int, settings: Settings) -> Outcome:
    """Accept a broker's registration; under KRaft it stays fenced until it has the metadata."""
    node = broker_of(state, broker)
    accepted = node._replace(
        registered=True,
        epoch=state.next_broker_epoch,
        silent_since_ms=None,
        session=node.session if settings.kraft else ACTIVE,
    )
    state = with_broker(state, accepted)._replace(next_broker_epoch=state.next_broker_epoch + 1)
    if settings.kraft:
        return process_shutdown_report(state, broker, node.clean, settings)
    last = state.controller_broker
    if last == broker or (last >= 0 and broker_of(state, last).session == FENCED):
        return _elect_zookeeper_controller(state, settings)
    return elect_leaderless(state, settings) if has_controller(state) else (state, ())


def process_shutdown_report(state: State, broker: int, clean: bool, settings: Settings) -> Outcome:
    """Apply what a KRaft registration says about the broker's last shutdown (KIP-966)."""
    others = active_brokers(state) - {broker}

    def on_registration(registration: Registration, partition: Partition) -> Registration:
        policy = settings.policy(partition)
        if settings.rules.eligible_leader_replicas and not clean:
            return controller.broker_registered_unclean(registration, broker, others, policy)
        if settings.rules.registration_fences:
            return controller.broker_gone(registration, broker, others, policy)
        return registration

    return decide(state, on_registration)


def unfence(state: State, broker: int, settings: Settings) -> Outcome:
    """Unfence a broker that is not active; leaderless partitions may elect a leader."""
    node = broker_of(state, broker)
    if node.session == ACTIVE:
        return state, ()
    state = with_broker(state, node._replace(session=ACTIVE, silent_since_ms=None))
    return elect_leaderless(state, settings, broker)


def elect_leaderless(state: State, settings: Settings, returned: int = NO_LEADER) -> Outcome:
    """Try an election for every partition without a leader."""
    active = active_brokers(state)

    def elect(registration: Registration, partition: Partition) -> Registration:
        if registration.leader != NO_LEADER:
            return registration
        policy = settings.policy(partition)
        return controller.broker_back(registration, returned, active, False, policy)

    return decide(state, elect)


def take_over(state: State, settings: Settings) -> Outcome:
    """Activate the next controller; under KRaft every session restarts."""
    state = state._replace(controller_epoch=state.controller_epoch + 1, controller_from_ms=-1)
    if settings.kraft:
        brokers = tuple(
            b if b.silent_since_ms is None else b._replace(silent_since_ms=state.now_ms)
            for b in state.brokers
        )
        return state._replace(brokers=brokers), ()
    return elect_leaderless(state, settings)
