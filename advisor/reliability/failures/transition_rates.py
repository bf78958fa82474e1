"""The numbers of a card, by the names that the chain's transitions bear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.workload import Workload

_NOT_RETURNING = "cluster.power.not_returning"
_CLUSTER_POWER = re.compile(r"cluster\.power (\d+) of (\d+)")
# A copy that takes less is over before anything else can happen.
_INSTANT_HOURS = 1.0 / 3600.0
# A follower that fetches nothing is waited for so many lag times on average.
MEAN_LAG_TIMES = 1.25
# A calendar of restarts that is fuller than this leaves no time between them.
_FULLEST = 0.9


def copy_hours(config: Config, model: FailureModel, load: Workload, brokers: int) -> float:
    """Mean hours until a replaced, empty broker has copied its share: bytes over throttle."""
    speed = model.get("copy.bytes_per_second", 0.0)
    if speed <= 0:
        return 0.0
    assert config.replication_factor is not None
    share = load.bytes_per_broker
    if share is None:
        share = load.retained_bytes * config.replication_factor / brokers
    hours = share / speed / 3600.0
    return hours if hours >= _INSTANT_HOURS else 0.0


def names(mechanisms: frozenset[str], replicas: int, copying: bool) -> tuple[str, ...]:
    """Names of all rates that the chain of a replica set can hold.

    Parameters
    ----------
    mechanisms : frozenset of str
        Those that can happen, and "cluster.power.not_returning" if that can.
    replicas : int
    copying : bool
        A replaced broker takes time to copy.
    """
    found = sorted(mechanisms - {_NOT_RETURNING, "cluster.power"})
    if "cluster.power" in mechanisms:
        found += [
            f"cluster.power {lost} of {standing}"
            for standing in range(replicas + 1)
            for lost in range(standing + 1 if _NOT_RETURNING in mechanisms else 1)
        ]
    ending = mechanisms - {_NOT_RETURNING, "rack.destroyed"}
    if mechanisms & {_NOT_RETURNING, "rack.destroyed"}:
        ending |= {"broker.destroyed"}
    found += [f"repair {mechanism}" for mechanism in sorted(ending)]
    return (*found, *(["copy"] if copying else []))


def rate_per_hour(
    name: str, config: Config, model: FailureModel, load: Workload, brokers: int
) -> float:
    """The rate of one kind of transition.

    Parameters
    ----------
    name : str
        A mechanism, "repair" and a mechanism, "copy", or "cluster.power K of M": K of M standing
        brokers do not come back.

    Raises
    ------
    NotComputedError
        If the card gives the repair a shape other than exponential.
    """
    if name == "copy":
        return 1.0 / copy_hours(config, model, load, brokers)
    if name.startswith("repair "):
        mechanism = name.removeprefix("repair ")
        if model.shape(mechanism) != 1.0:
            raise NotComputedError(
                f"{mechanism}.shape={model.shape(mechanism):g}: evaluate() solves exponential "
                "repairs; simulate() samples any shape"
            )
        return 1.0 / model.repair_hours(mechanism)
    power = _CLUSTER_POWER.fullmatch(name)
    if power:
        lost, standing = int(power[1]), int(power[2])
        chance = model.get(_NOT_RETURNING, 0.0)
        share = chance**lost * (1.0 - chance) ** (standing - lost)
        return model.rate_per_hour("cluster.power") * share
    if name == "broker.restart":
        assert config.replication_factor is not None
        return offered_restarts(model, brokers, config.replication_factor)
    return model.rate_per_hour(name)


def offered_restarts(model: FailureModel, brokers: int, together: int) -> float:
    """Rate per hour and broker at which a planned restart is tried, so that the card's come off.

    Planned restarts follow a calendar: one broker at a time, each broker as often as the card
    says. Here they come at random, and those that find another under way pass by. Of ``together``
    brokers with a load of a each (rate times duration) one is restarting for a share n a of the
    time, so that tries at ``rate / (1 - n a)`` make up for it. A replica set by itself, at its
    own rate, then sees exactly what it would see in the whole cluster. What is neglected: a
    calendar's even spread, which leaves every share of time as it is, and restarts put off
    because their broker is down for something else (a share of its unavailability).

    Parameters
    ----------
    model : FailureModel
    brokers : int
        Of the whole cluster. What does not fit into nine tenths of a year, one broker after the
        other, is left undone.
    together : int
        Those among which restarts are drawn: a replica set's, or all.
    """
    hours = model.repair_hours("broker.restart")
    load = min(model.rate_per_hour("broker.restart") * hours, _FULLEST / max(brokers, together))
    return load / hours / (1.0 - together * load)


def mechanism_of(name: str) -> str:
    """The mechanism that a transition belongs to; a copy belongs to the destroyed broker."""
    if name == "copy":
        return "broker.destroyed"
    return name.removeprefix("repair ").split(" ")[0]


def shares_of_destruction(model: FailureModel) -> dict[str, float]:
    """How a destroyed broker came to be destroyed, by the rates of the ways there."""
    rates = {
        "broker.destroyed": model.rate_per_hour("broker.destroyed"),
        "rack.destroyed": model.rate_per_hour("rack.destroyed"),
        "cluster.power": model.rate_per_hour("cluster.power") * model.get(_NOT_RETURNING, 0.0),
    }
    total = sum(rates.values())
    return {name: rate / total for name, rate in rates.items() if rate > 0} if total else {}


def causes_of(name: str, model: FailureModel) -> dict[str, float]:
    """The mechanisms behind a transition, with their shares.

    The end of a disk's replacement, and of its copy, belong to what destroyed the disk.
    """
    if name in ("copy", "repair broker.destroyed"):
        return shares_of_destruction(model)
    return {mechanism_of(name): 1.0}


class Failovers(NamedTuple):
    """Mean hours without a leader, with the move back to the preferred one afterwards.

    Attributes
    ----------
    broker, rack : float
        When a broker fails, and when all brokers of a rack do.
    move : float
        When a broker that is to stop hands over.
    """

    broker: float = 0.0
    rack: float = 0.0
    move: float = 0.0

    def by_name(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Those of failures and of controlled moves, shape (names of rates, 2)."""
        failing = [self.rack if name.startswith("rack.") else self.broker for name in names]
        return np.stack([failing, np.full(len(names), self.move)], axis=1)


def failovers(
    model: FailureModel, load: Workload, brokers: int, brokers_per_rack: float
) -> Failovers:
    """How long a partition waits for a leader.

    The controller moves all leaders of the brokers that fail together, one after the other; a
    partition waits for half of them on average.
    """

    def election(at_once: float) -> float:
        leaders = max(load.partitions / brokers * at_once, 1.0)
        return model.get("election.ms_per_leader", 0.0) * (leaders + 1.0) / 2.0 / 3_600_000.0

    detected = model.get("detection.seconds", 0.0) / 3600.0
    one, rack = 2.0 * election(1.0), 2.0 * election(brokers_per_rack)
    return Failovers(detected + one, detected + rack, one)


def stall_hours(config: Config, model: FailureModel) -> tuple[float, float]:
    """Mean hours for which acks=all waits for a follower that is dead, and for one that hangs.

    It waits for the whole ISR. A dead broker leaves it when the controller notices; one that is
    up and fetches nothing when the leader does, which looks every half
    ``replica.lag.time.max.ms`` for followers that have lacked records that long: after 1 to 1.5
    times that time, evenly spread (``ReplicaManager.startup``, ``Partition.maybeShrinkIsr``).
    """
    if config.acks != "all":
        return 0.0, 0.0
    assert config.replica_lag_time_max_ms is not None
    hung = MEAN_LAG_TIMES * config.replica_lag_time_max_ms / 3_600_000.0
    return model.get("detection.seconds", 0.0) / 3600.0, hung


__all__ = [
    "HOURS_PER_YEAR",
    "MEAN_LAG_TIMES",
    "Failovers",
    "causes_of",
    "copy_hours",
    "failovers",
    "mechanism_of",
    "names",
    "offered_restarts",
    "rate_per_hour",
    "shares_of_destruction",
    "stall_hours",
]
