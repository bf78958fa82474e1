"""Availability of consumer groups and transactions, which also need internal topics.

A client that needs several partitions stops while any of them is down.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from advisor.formatting import time_per_year
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import parse_version
from advisor.reliability.failures.fault_processes import Replicas
from advisor.reliability.failures.mechanisms import Scope, table
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.workload import Workload

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
# Kafka's defaults: partitions, replicas, min ISR. The min ISR of offsets is the brokers' own.
_DEFAULTS = {OFFSETS: (50, 3, 1), TRANSACTIONS: (50, 3, 2)}
_FIRST_VERSION = {OFFSETS: (0, 8, 2), TRANSACTIONS: (0, 11)}


@dataclass(frozen=True)
class ClientUnavailability:
    """Unavailability of a client that needs several partitions.

    Attributes
    ----------
    unavailability : float
        Fraction of time. Failures of every broker at once (the site; with a single rack the rack)
        stop all its partitions together, as long as the slowest of them; other failures count as
        independent. Partitions that share brokers are not, so the truth is nearer the lower bound.
    bounds : (float, float)
        Whatever the dependence: the worst partition's unavailability, and the sum.
    parts : tuple of (str, float)
        Partitions that it needs, and the unavailability of each.
    """

    unavailability: float
    bounds: Interval
    parts: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        low, high = map(time_per_year, self.bounds)
        within = (
            "" if low == high else f" ({low} to {high}, whether or not its parts fail together)"
        )
        parts = "; ".join(f"{name} {time_per_year(share)}" for name, share in self.parts)
        return f"{time_per_year(self.unavailability)}{within}: {parts}"


class _Part(NamedTuple):
    """One needed partition: its unavailability, and the part due to failures of every broker."""

    name: str
    share: float
    with_all: float


@dataclass(frozen=True)
class Dependents:
    """Clients that depend on Kafka's internal topics.

    Attributes
    ----------
    consumer_group : ClientUnavailability or None
        Reads the topic and commits offsets. None before Kafka 0.8.2, which keeps none itself.
    transaction : ClientUnavailability or None
        Writes the topic, its transaction's state and consumed offsets, all or nothing. None before
        Kafka 0.11, which has no transactions.
    assumptions : tuple of str
        What the cluster did not say about its internal topics.
    """

    consumer_group: ClientUnavailability | None
    transaction: ClientUnavailability | None
    assumptions: tuple[str, ...]

    def explain(self) -> str:
        """Return a sentence for each client, and what was assumed."""
        who = (("A consumer group", self.consumer_group), ("A transaction", self.transaction))
        lines = [f"{name} is down {stopped}." for name, stopped in who if stopped is not None]
        return "\n".join([*lines, *(f"Assumed: {text}." for text in self.assumptions)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "consumer_group": None if self.consumer_group is None else asdict(self.consumer_group),
            "transaction": None if self.transaction is None else asdict(self.transaction),
            "assumptions": list(self.assumptions),
        }


def dependents(result: Any) -> Dependents:
    """Add the internal topics of a result's cluster, on the same card.

    Replicas and min ISR are the cluster's, else Kafka's defaults: 3, and min ISR 2 for transactions
    and the brokers' default for offsets. With fewer brokers Kafka never creates these topics.
    """
    version = parse_version(result.config.kafka_version)
    group, transaction, notes = None, None, []
    if version >= _FIRST_VERSION[OFFSETS]:
        offsets, assumed = _internal(result, OFFSETS)
        notes += assumed
        group = _stopped(_part("topic read", result, "read_unavailability"), offsets)
        if version >= _FIRST_VERSION[TRANSACTIONS]:
            states, assumed = _internal(result, TRANSACTIONS)
            notes += assumed
            written = _part("topic written", result, "write_unavailability")
            transaction = _stopped(written, states, offsets)
    return Dependents(group, transaction, tuple(notes))


def _stopped(*parts: _Part) -> ClientUnavailability:
    shares = [stop.share for stop in parts]
    together = max(stop.with_all for stop in parts)
    # As a share of the time in which not every broker is down.
    apart = [(stop.share - stop.with_all) / (1.0 - stop.with_all or 1.0) for stop in parts]
    left = math.fsum(
        math.log1p(-share) if share < 1.0 else -math.inf for share in (together, *apart)
    )
    bounds = max(shares), min(math.fsum(shares), 1.0)
    whole = min(max(-math.expm1(left), bounds[0]), bounds[1])
    return ClientUnavailability(whole, bounds, tuple((stop.name, stop.share) for stop in parts))


def _part(name: str, result: Any, measure: str) -> _Part:
    racks = set(result.cluster.brokers.values())
    one_rack = len(racks) == 1 and None not in racks
    scopes = {Scope.CLUSTER, Scope.RACK} if one_rack else {Scope.CLUSTER}
    causes = result.causes[measure]
    with_all = math.fsum(
        causes.get(entry.name, 0.0) for entry in table().entries if entry.scope in scopes
    )
    share: float = getattr(result, measure)
    return _Part(name, share, min(with_all, share))


def _internal(result: Any, name: str) -> tuple[_Part, list[str]]:
    """Write unavailability of one partition of an internal topic, and what was assumed."""
    partitions, replicas, min_isr = _DEFAULTS[name]
    if name == OFFSETS:
        min_isr = _least_of_brokers(result.cluster) or min_isr
    described = [topic for topic in getattr(result.cluster, "topics", ()) if topic.name == name]
    if not described:
        assumed = [
            f"{name} is not described: taken as Kafka's default of {replicas} replicas and "
            f"min.insync.replicas {min_isr}"
        ]
        if replicas > len(result.cluster.brokers):
            never = _Part(name, 1.0, 1.0)
            return never, [*assumed, f"{name} needs {replicas} brokers to be created at all"]
        internal = _evaluated(result, replicas, min_isr, Workload(partitions=partitions), None)
        return _part(name, internal, "write_unavailability"), assumed
    topic, assumed = described[0], []
    if topic.min_insync_replicas is None:
        assumed.append(f"{name} states no min.insync.replicas: taken as {min_isr}")
    min_isr = topic.min_insync_replicas or min_isr
    # During a reassignment partitions may differ in their number of replicas.
    held: dict[int, list[Replicas]] = defaultdict(list)
    for partition in topic.partitions:
        held[len(partition.held)].append(partition.held)
    share = with_all = 0.0
    for factor, sets in held.items():
        load = Workload(partitions=len(sets))
        internal = _evaluated(result, factor, min_isr, load, tuple(sets))
        shares = _part(name, internal, "write_unavailability")
        share += shares.share * len(sets) / len(topic.partitions)
        with_all += shares.with_all * len(sets) / len(topic.partitions)
    return _Part(name, share, with_all), assumed


def _evaluated(
    result: Any,
    replicas: int,
    min_isr: int,
    load: Workload,
    placement: tuple[Replicas, ...] | None,
) -> Any:
    config = Config(
        kafka_version=result.config.kafka_version,
        mode=result.config.mode,
        eligible_leader_replicas=result.config.eligible_leader_replicas,
        broker_session_timeout_ms=result.config.broker_session_timeout_ms,
        zookeeper_session_timeout_ms=result.config.zookeeper_session_timeout_ms,
        replication_factor=replicas,
        min_insync_replicas=min_isr,
        acks="all",
    )
    load = replace(load, records_per_second=1.0, bytes_per_broker=_bytes_per_broker(result))
    return result.evaluate_topic(config, load, placement)


def _least_of_brokers(cluster: Any) -> int | None:
    """The brokers' min.insync.replicas if a live cluster gave it; the largest if they differ."""
    observed = getattr(cluster, "observed", None)
    reported = observed.broker_values("min.insync.replicas") if observed is not None else {}
    return max((int(value) for value in reported.values() if value.isdigit()), default=None)


def _bytes_per_broker(result: Any) -> float:
    """Bytes that a replaced broker copies, the topic's own included."""
    load, replicas = result.load, result.config.replication_factor
    assert replicas is not None
    share: float = load.retained_bytes * replicas / len(result.cluster.brokers)
    return share if load.bytes_per_broker is None else float(load.bytes_per_broker)
