"""Detect sessions that expire without a fault, because the machine is overloaded."""

from __future__ import annotations

from collections.abc import Collection

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError


class TooBusyError(BrokersUnavailableError):
    """A healthy broker was fenced; the run is invalid and can be repeated."""


def too_busy(seen: str) -> TooBusyError:
    """Return the error, which begins with what shows it."""
    return TooBusyError(
        f"{seen}: this machine is too busy for sessions this short; run again when it is not"
    )


class ExpectedServing:
    """The brokers that must still be serving: no fault was injected since they last served."""

    def __init__(self) -> None:
        self._brokers: frozenset[int] = frozenset()

    def disturb(self, broker: int) -> None:
        """Stop expecting a broker to serve; a fault is injected."""
        self._brokers -= {broker}

    def check(self, serving: Collection[int], live: Collection[int]) -> None:
        """Compare with the brokers that serve now.

        serving: brokers that are not fenced.
        live: brokers that run and are not isolated.
        Raises TooBusyError if a broker stopped serving without a fault.
        """
        lost = self._brokers - set(serving)
        if lost:
            names = ", ".join(map(str, sorted(lost)))
            raise too_busy(f"broker {names} was fenced and nothing had been done to it")
        self._brokers |= frozenset(serving) & frozenset(live)
