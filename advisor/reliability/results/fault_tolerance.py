"""How many brokers a setting can lose, and whether it ever takes a write."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.protocol.rules.config import Config


@dataclass(frozen=True)
class Tolerance:
    """How many brokers may be lost at once.

    Attributes
    ----------
    without_loss : int
        And no acknowledged record is lost: min ISR - 1 for acks=all, 0 otherwise.
    while_writable : int
        And producers are still acknowledged: RF - min ISR for acks=all; -1 if never writable.
    while_readable : int
        And a leader still serves reads: RF - 1.
    """

    without_loss: int
    while_writable: int
    while_readable: int

    def __str__(self) -> str:
        if self.while_writable < 0:
            return (
                "no write succeeds, even with every broker up; brokers you can lose: "
                f"{self.while_readable} while readable"
            )
        return (
            f"brokers you can lose: {self.without_loss} without losing acknowledged records, "
            f"{self.while_writable} while writable, {self.while_readable} while readable"
        )


def tolerance(config: Config) -> Tolerance:
    """The three numbers of a configuration (DESIGN of ISR replication: f = min ISR - 1)."""
    assert config.replication_factor is not None
    replicas, least = config.replication_factor, config.effective_min_insync_replicas
    if config.acks == "all":
        writable = replicas - least if least <= replicas else -1
        return Tolerance(min(least, replicas) - 1, writable, replicas - 1)
    return Tolerance(0, replicas - 1, replicas - 1)


def never_writes(config: Config) -> str:
    """Say why a setting never accepts a write, and what to do; "" where it does.

    Before 3.7 acks=all asks for ``min.insync.replicas`` of them even where there are fewer.
    """
    if tolerance(config).while_writable >= 0:
        return ""
    factor, least = config.replication_factor or 1, config.min_insync_replicas
    there = "one replica there is" if factor == 1 else f"{factor} replicas there are"
    return (
        f"Kafka {config.kafka_version} never accepts a write, because min.insync.replicas {least} "
        f"asks for more in-sync replicas than the {there} (3.7 and later take it for {factor}); "
        f"set min.insync.replicas to {max(factor - 1, 1)}, or keep {(least or 1) + 1} replicas"
    )
