"""Processor time of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """Return the CPU seconds of the fastest of some runs, after one to warm up."""
    work()
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)
