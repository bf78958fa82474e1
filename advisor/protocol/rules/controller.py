"""How a controller changes one partition after a broker, leader or operator event.

Sources: ``ReplicationControlManager.handleBroker*``, ``alterPartition``, ``electLeaders`` (KRaft);
``KafkaController``, ``PartitionStateMachine``, ``ReplicaStateMachine`` (ZooKeeper).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.protocol.rules import election
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration, Replicas
from advisor.protocol.rules.versions import Rules


@dataclass(frozen=True, slots=True)
class Policy:
    """Topic settings that the controller uses: the effective min ISR, and unclean elections."""

    min_isr: int
    unclean: bool
    rules: Rules

    @property
    def automatic_election(self) -> str:
        """The election that follows a change of liveness."""
        return election.UNCLEAN if self.unclean else election.ONLINE


def broker_gone(
    registration: Registration, broker: int, active: frozenset[int], policy: Policy
) -> Registration:
    """A broker was fenced or its session expired; `active` no longer contains it.

    The KRaft controller removes it from the ISR before the election; without ELR the last member
    stays in the ISR of a leaderless partition. The ZooKeeper controller elects first.
    """
    if policy.rules.mode == "kraft":
        if broker not in registration.isr:
            return registration
        return _kraft(registration, active, policy, isr=_without(registration.isr, broker))
    elected = registration
    if registration.leader == broker:
        elected = _zookeeper_elect(registration, active, policy)
    return _zookeeper_remove(elected, broker)


def controller_started(
    registration: Registration,
    active: frozenset[int],
    policy: Policy,
    order: Sequence[int] | None = None,
) -> Registration:
    """A broker has become the ZooKeeper controller, and writes what happened without one.

    It first removes each dead broker from the ISR, by id or in a given order, and then elects: two
    writes where a controller in office needs one (``KafkaController.onControllerFailover``).
    """
    dead = set(registration.isr) - active
    for broker in sorted(dead) if order is None else [b for b in order if b in dead]:
        registration = _zookeeper_remove(registration, broker)
    if registration.leader not in active:
        return _zookeeper_elect(registration, active, policy)
    return registration


def broker_stopping(
    registration: Registration, broker: int, active: frozenset[int], policy: Policy
) -> Registration:
    """A broker requested a controlled shutdown; `active` no longer contains it."""
    if policy.rules.mode == "kraft":
        return broker_gone(registration, broker, active, policy)
    if registration.leader == broker:
        chosen = election.zookeeper_controlled_shutdown(registration, active, (broker,))
        if chosen is None:
            return registration
        return _zookeeper_write(registration, *chosen)
    return _zookeeper_remove(registration, broker)


def broker_back(
    registration: Registration,
    broker: int,
    active: frozenset[int],
    unclean_shutdown: bool,
    policy: Policy,
) -> Registration:
    """A broker registered again and was unfenced; `active` contains it.

    After an unclean shutdown it first leaves ISR and ELR, since it may have lost records.
    """
    if policy.rules.mode == "zookeeper":
        if registration.leader in active:
            return registration
        return _zookeeper_elect(registration, active, policy)
    registered = registration
    if policy.rules.eligible_leader_replicas and unclean_shutdown:
        registered = broker_registered_unclean(registration, broker, active - {broker}, policy)
    if registered.leader != NO_LEADER:
        return registered
    return _kraft(registered, active, policy)


def broker_registered_unclean(
    registration: Registration, broker: int, active: frozenset[int], policy: Policy
) -> Registration:
    """A broker registered after an unclean shutdown (KIP-966)."""
    if broker not in registration.isr and broker not in registration.elr:
        return registration
    isr = _without(registration.isr, broker)
    return _kraft(registration, active, policy, isr=isr, unclean_shutdowns=(broker,))


def isr_proposed(
    registration: Registration, isr: Replicas, active: frozenset[int], policy: Policy
) -> Registration:
    """Record the leader's new ISR, already validated."""
    if policy.rules.mode == "zookeeper":
        return replace(registration, isr=isr, partition_epoch=registration.partition_epoch + 1)
    return _kraft(registration, active, policy, isr=isr, recovering=False)


def elected_by_operator(
    registration: Registration, kind: str, active: frozenset[int], policy: Policy
) -> Registration:
    """``kafka-leader-election.sh``; an unclean one changes nothing while there is a leader."""
    if kind == election.UNCLEAN and registration.leader in active:
        return registration
    if policy.rules.mode == "kraft":
        return election.kraft_change(
            registration, active=active, min_isr=policy.min_isr, rules=policy.rules, kind=kind
        )
    if kind == election.PREFERRED:
        preferred = election.zookeeper_preferred(registration, active)
        if preferred is None or preferred == registration.leader:
            return registration
        return _zookeeper_write(registration, preferred, registration.isr)
    chosen = election.zookeeper_offline(registration, active, True, policy.rules)
    return registration if chosen is None else _zookeeper_write(registration, *chosen)


def _kraft(
    registration: Registration,
    active: frozenset[int],
    policy: Policy,
    *,
    isr: Replicas | None = None,
    recovering: bool | None = None,
    unclean_shutdowns: Replicas = (),
) -> Registration:
    """A change that the KRaft controller initiates, with the topic's automatic election."""
    return election.kraft_change(
        registration,
        active=active,
        min_isr=policy.min_isr,
        rules=policy.rules,
        kind=policy.automatic_election,
        isr=isr,
        recovering=recovering,
        unclean_shutdowns=unclean_shutdowns,
    )


def _without(replicas: Replicas, broker: int) -> Replicas:
    return tuple(replica for replica in replicas if replica != broker)


def _zookeeper_elect(
    registration: Registration, live: frozenset[int], policy: Policy
) -> Registration:
    chosen = election.zookeeper_offline(registration, live, policy.unclean, policy.rules)
    return registration if chosen is None else _zookeeper_write(registration, *chosen)


def _zookeeper_remove(registration: Registration, broker: int) -> Registration:
    """Remove a dead replica from the ISR unless it is the last; its leadership ends either way."""
    last = registration.isr == (broker,)
    isr = registration.isr if last else _without(registration.isr, broker)
    leader = NO_LEADER if registration.leader == broker else registration.leader
    if (leader, isr) == (registration.leader, registration.isr):
        return registration
    return _zookeeper_write(registration, leader, isr)


def _zookeeper_write(registration: Registration, leader: int, isr: Replicas) -> Registration:
    """Return the record that the ZooKeeper controller writes, with the leader epoch raised."""
    return replace(
        registration,
        leader=leader,
        isr=isr,
        leader_epoch=registration.leader_epoch + 1,
        partition_epoch=registration.partition_epoch + 1,
    )
