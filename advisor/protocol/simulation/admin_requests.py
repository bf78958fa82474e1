"""Requests to the controller: topics, elections, reassignments, ISR changes.

Sources: ``ReplicationControlManager`` (createTopics, electLeader, alterPartition,
alterPartitionReassignments), ``KafkaController`` for ZooKeeper; error names are Kafka's.
"""

from __future__ import annotations

from advisor.protocol.rules import controller, election, reassignment
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration, new_registration
from advisor.protocol.simulation.broker_lifecycle import Outcome, elect_leaderless
from advisor.protocol.simulation.events import (
    AlterIsr,
    AlterTopic,
    CreateTopic,
    DeleteTopic,
    Effects,
    Elect,
    Elected,
    GrowTopic,
    Reassign,
    Refused,
)
from advisor.protocol.simulation.state import (
    Partition,
    Settings,
    State,
    active_brokers,
    position_of,
    with_partition,
)


def create_topic(state: State, request: CreateTopic) -> Outcome:
    """Add a topic's partitions; every active replica is in sync from the start."""
    if any(p.topic == request.topic for p in state.partitions):
        return state, (Refused("TOPIC_ALREADY_EXISTS"),)
    return _add(state, request.topic, 0, request)


def grow_topic(state: State, request: GrowTopic) -> Outcome:
    """Add partitions to a topic, with the settings of its first one."""
    existing = [p for p in state.partitions if p.topic == request.topic]
    if not existing:
        return state, (Refused("UNKNOWN_TOPIC_OR_PARTITION"),)
    addition = CreateTopic(
        request.topic, request.assignment, existing[0].min_insync_replicas, existing[0].unclean
    )
    return _add(state, request.topic, len(existing), addition)


def _add(state: State, topic: str, first: int, request: CreateTopic) -> Outcome:
    active = active_brokers(state)
    new = []
    effects = []
    for index, replicas in enumerate(request.assignment, start=first):
        registration = new_registration(replicas, active)
        if registration is None:
            return state, (Refused("INVALID_REPLICA_ASSIGNMENT"),)
        new.append(
            Partition(topic, index, request.min_insync_replicas, request.unclean, registration, ())
        )
        effects.append(Elected(topic, index, registration.leader, 0))
    insert_at = 1 + max((i for i, p in enumerate(state.partitions) if p.topic == topic), default=-1)
    insert_at = insert_at or len(state.partitions)
    partitions = (*state.partitions[:insert_at], *new, *state.partitions[insert_at:])
    return state._replace(partitions=partitions), tuple(effects)


def delete_topic(state: State, request: DeleteTopic) -> Outcome:
    """Remove a topic and its logs."""
    remaining = tuple(p for p in state.partitions if p.topic != request.topic)
    if len(remaining) == len(state.partitions):
        return state, (Refused("UNKNOWN_TOPIC_OR_PARTITION"),)
    return state._replace(partitions=remaining), ()


def alter_topic(state: State, request: AlterTopic, settings: Settings) -> Outcome:
    """Change topic settings; with ELR a new min.insync.replicas clears the ELR (4.0).

    Enabling unclean elections acts at once under ZooKeeper; KRaft waits for its next sweep.
    """
    changed = []
    for partition in state.partitions:
        if partition.topic == request.topic:
            partition = _altered(partition, request, settings)
        changed.append(partition)
    state = state._replace(partitions=tuple(changed))
    if request.unclean and not settings.kraft:
        return elect_leaderless(state, settings)
    return state, ()


def _altered(partition: Partition, request: AlterTopic, settings: Settings) -> Partition:
    if request.unclean is not None:
        partition = partition._replace(unclean=request.unclean)
    if request.min_insync_replicas in (None, partition.min_insync_replicas):
        return partition
    assert request.min_insync_replicas is not None
    registration = partition.registration
    if not settings.preview_elr:
        registration = reassignment.clear_elr(registration)
    return partition._replace(
        min_insync_replicas=request.min_insync_replicas, registration=registration
    )


def elect(state: State, request: Elect, settings: Settings) -> Outcome:
    """``kafka-leader-election.sh`` for one partition."""
    position = position_of(state, request.topic, request.partition)
    partition = state.partitions[position]
    old = partition.registration
    preferred = request.kind == election.PREFERRED
    if (preferred and old.leader == old.replicas[0]) or (not preferred and old.leader != NO_LEADER):
        return state, (Refused("ELECTION_NOT_NEEDED"),)
    new = controller.elected_by_operator(
        old, request.kind, active_brokers(state), settings.policy(partition)
    )
    if new is old:
        error = "PREFERRED_LEADER_NOT_AVAILABLE" if preferred else "ELIGIBLE_LEADERS_NOT_AVAILABLE"
        return state, (Refused(error),)
    return write(state, position, new)


def write(state: State, position: int, new: Registration) -> Outcome:
    """Write the controller's record of one partition."""
    partition = state.partitions[position]
    effects: Effects = ()
    if new.leader != partition.registration.leader:
        effects = (Elected(partition.topic, partition.number, new.leader, new.leader_epoch),)
    return with_partition(state, position, partition._replace(registration=new)), effects


def reassign(state: State, request: Reassign, settings: Settings) -> Outcome:
    """Start or cancel a reassignment."""
    position = position_of(state, request.topic, request.partition)
    partition = state.partitions[position]
    old = partition.registration
    active = active_brokers(state)
    if request.replicas is not None:
        state = with_partition(state, position, partition._replace(throttle=request.throttle))
        return write(
            state,
            position,
            reassignment.begin(old, request.replicas, active, settings.policy(partition)),
        )
    if not old.adding and not old.removing:
        return state, (Refused("NO_REASSIGNMENT_IN_PROGRESS"),)
    reverted = reassignment.cancel(old, active, settings.policy(partition))
    if reverted is None:
        return state, (Refused("INVALID_REPLICA_ASSIGNMENT"),)
    return write(state, position, reverted)


def sweep(state: State, position: int, settings: Settings) -> Outcome:
    """KRaft's periodic unclean election of one leaderless partition."""
    partition = state.partitions[position]
    new = controller.elected_by_operator(
        partition.registration,
        election.UNCLEAN,
        active_brokers(state),
        settings.policy(partition),
    )
    return write(state, position, new)


def alter_isr(state: State, request: AlterIsr, settings: Settings) -> Outcome:
    """Propose an ISR in the leader's name: current epochs, recovered, no broker epochs."""
    position = position_of(state, request.topic, request.partition)
    registration = state.partitions[position].registration
    error = refusal(
        state,
        registration,
        registration.leader,
        (registration.leader_epoch, registration.partition_epoch),
        request.isr,
        (-1,) * len(request.isr),
        settings,
    )
    if registration.leader == NO_LEADER:
        error = "INVALID_REQUEST"
    if error is not None:
        return state, (Refused(error),)
    return record_isr(state, position, request.isr, settings)


def record_isr(state: State, position: int, isr: tuple[int, ...], settings: Settings) -> Outcome:
    """Write an accepted ISR; it may complete a reassignment."""
    partition = state.partitions[position]
    active = active_brokers(state)
    new = controller.isr_proposed(partition.registration, isr, active, settings.policy(partition))
    if not settings.kraft:
        new = reassignment.zookeeper_finish(new, active)
    return write(state, position, new)


def refusal(
    state: State,
    registration: Registration,
    sender: int,
    epochs: tuple[int, int],
    isr: tuple[int, ...],
    broker_epochs: tuple[int, ...],
    settings: Settings,
) -> str | None:
    """Return the error of an AlterPartition request, checked in Kafka's order; None if accepted.

    sender: id of the broker that considers itself the leader.
    broker_epochs: of the proposed ISR; -1 is not checked.
    """
    leader_epoch, partition_epoch = epochs
    if leader_epoch > registration.leader_epoch or partition_epoch > registration.partition_epoch:
        return "NOT_CONTROLLER"
    if leader_epoch < registration.leader_epoch:
        return "FENCED_LEADER_EPOCH"
    if sender != registration.leader:
        return "INVALID_REQUEST"
    if partition_epoch < registration.partition_epoch:
        return "INVALID_UPDATE_VERSION"
    if not isr or len(set(isr)) < len(isr) or not set(isr) <= set(registration.replicas):
        return "INVALID_REQUEST"
    if sender not in isr:
        return "INVALID_REQUEST"
    if settings.kraft and _ineligible(state, isr, broker_epochs, settings):
        return "INELIGIBLE_REPLICA"
    return None


def _ineligible(
    state: State, isr: tuple[int, ...], broker_epochs: tuple[int, ...], settings: Settings
) -> bool:
    active = active_brokers(state)
    if settings.rules.join_refuses_fenced and not set(isr) <= active:
        return True
    if not settings.rules.broker_epoch_in_alter_partition:
        return False
    registered = {b.id: b.epoch for b in state.brokers}
    return any(e not in (-1, registered[b]) for b, e in zip(isr, broker_epochs, strict=True))
