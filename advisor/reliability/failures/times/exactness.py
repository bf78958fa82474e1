"""Which times of a card the exact answer takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from advisor.errors import NotComputedError
from advisor.reliability.calendar import Calendar
from advisor.reliability.failures.times.card_times import CREWS_PATH, LIFETIME
from advisor.reliability.failures.times.time_distribution import TimeDistribution


class _Card(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def quantities(self) -> Mapping[str, object]: ...

    @property
    def calendar(self) -> Calendar | None: ...

    @property
    def times(self) -> Mapping[str, TimeDistribution]: ...


def check_exact(model: _Card) -> None:
    """Refuse a card that no Markov chain of this package expresses."""
    if model.calendar is not None:
        model.calendar.check_exact()
    for path, distribution in model.times.items():
        takes = "exponential or gamma durations"
        if path.endswith(f".{LIFETIME}"):
            takes = "exponential times between failures"
        raise NotComputedError(
            f"{model.name}: {path} is {distribution}, and the exact answer takes {takes} only; ask "
            "advisor.simulate, which samples all of them"
        )
    if CREWS_PATH in model.quantities:
        raise NotComputedError(
            f"{model.name}: {CREWS_PATH} limits the repairs that progress at a time, and the "
            "exact answer has all of them progress; ask advisor.simulate, which samples crews"
        )
