"""Wait until a cluster of real brokers says what it was told: it reaches its brokers one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from patience import PATIENCE_S

T = TypeVar("T")
_BETWEEN_S = 0.5


def awaited(ask: Callable[[], T], is_there: Callable[[T], bool]) -> T:
    """Ask until an answer is as wanted, and return it."""
    give_up = time.monotonic() + PATIENCE_S
    while not is_there(answer := ask()):
        assert time.monotonic() < give_up, answer
        time.sleep(_BETWEEN_S)
    return answer


def steady(state: Callable[[], str], ask: Callable[[], T]) -> tuple[str, T]:
    """Return a state and an answer that belong together: it was the same before and after.

    A broker whose session ends on a busy machine leaves ISRs for a moment, and nobody is to blame.
    """

    def asked() -> tuple[str, T, str]:
        return state(), ask(), state()

    before, answer, _ = awaited(asked, lambda found: found[0] == found[2])
    return before, answer
