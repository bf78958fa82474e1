"""Whether a run means anything: on a machine too busy, sessions end that nobody broke."""

from __future__ import annotations

from collections.abc import Collection

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError


class TooBusyError(BrokersUnavailableError):
    """A healthy broker was taken for dead; the run says nothing, and may be repeated."""


class Steady:
    """The brokers that serve and to which nothing has been done since."""

    def __init__(self) -> None:
        self._brokers: frozenset[int] = frozenset()

    def disturb(self, broker: int) -> None:
        """Something is done to a broker: its session may end."""
        self._brokers -= {broker}

    def check(self, serving: Collection[int], live: Collection[int]) -> None:
        """Compare with who serves now.

        Parameters
        ----------
        serving : collection of int
            The brokers that the controller counts in.
        live : collection of int
            Those that run and are connected.

        Raises
        ------
        TooBusyError
        """
        lost = self._brokers - set(serving)
        if lost:
            names = ", ".join(map(str, sorted(lost)))
            raise TooBusyError(
                f"broker {names} was fenced and nothing had been done to it: this machine is too "
                "busy for sessions this short; run again when it is not"
            )
        self._brokers |= frozenset(serving) & frozenset(live)
