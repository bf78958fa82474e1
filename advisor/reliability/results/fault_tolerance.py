"""How many broker failures a setting tolerates, which lose most, and whether it ever writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from advisor.protocol.rules.config import Config


@dataclass(frozen=True)
class Tolerance:
    """Brokers that may fail at once.

    Attributes
    ----------
    without_loss : int
        Without losing an acknowledged record: min ISR - 1 for acks=all, 0 otherwise.
    while_writable : int
        While producers are acknowledged: RF - min ISR for acks=all; -1 if never writable.
    while_readable : int
        While a leader serves reads: RF - 1.
    """

    without_loss: int
    while_writable: int
    while_readable: int

    def __str__(self) -> str:
        if self.while_writable < 0:
            return (
                "no write succeeds, even with every broker up; brokers you can lose: "
                f"{self.while_readable} with reads going on"
            )
        return (
            f"brokers you can lose: {self.without_loss} without losing acknowledged records, "
            f"{self.while_writable} with writes going on, "
            f"{self.while_readable} with reads going on"
        )


class LossStep(NamedTuple):
    """One transition of a path.

    Attributes
    ----------
    rate : str
        Name of the transition rate, which says what happens.
    brokers : int
        Brokers of the replica set that it strikes or brings back.
    """

    rate: str
    brokers: int


class LossPath(NamedTuple):
    """The most probable path to a loss.

    Attributes
    ----------
    steps : tuple of LossStep
    per_year : float
        Loss events of a partition this way, whichever of its brokers are struck.
    share : float
        Of all its loss events, 0 to 1.
    """

    steps: tuple[LossStep, ...]
    per_year: float
    share: float


def tolerance(config: Config) -> Tolerance:
    """Return the three numbers of a configuration: with acks=all f = min ISR - 1 failures."""
    assert config.replication_factor is not None
    replicas, min_isr = config.replication_factor, config.effective_min_insync_replicas
    if config.acks == "all":
        writable = replicas - min_isr if min_isr <= replicas else -1
        return Tolerance(min(min_isr, replicas) - 1, writable, replicas - 1)
    return Tolerance(0, replicas - 1, replicas - 1)


def tolerance_in_words(config: Config) -> str:
    """Return how many brokers may fail; with acks=0 no lost record was acknowledged."""
    words = str(tolerance(config))
    return words.replace("acknowledged records", "records") if config.acks == 0 else words


def never_writes(config: Config) -> str:
    """Return why a setting never accepts a write and what to do; "" if it does accept writes.

    Before 3.7 acks=all needs ``min.insync.replicas`` even where there are fewer replicas.
    """
    if tolerance(config).while_writable >= 0:
        return ""
    factor, min_isr = config.replication_factor or 1, config.min_insync_replicas
    there = "one replica there is" if factor == 1 else f"{factor} replicas there are"
    return (
        f"Kafka {config.kafka_version} refuses every write with acks=all, because "
        f"min.insync.replicas {min_isr} is more than the {there} (3.7 and later use {factor}); "
        f"set min.insync.replicas to {max(factor - 1, 1)}, or keep {(min_isr or 1) + 1} replicas"
    )
