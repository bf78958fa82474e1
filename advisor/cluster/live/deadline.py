"""Run what cannot be interrupted, such as a DNS lookup, with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_with_timeout(work: Callable[[], T], limit_s: float) -> T | None:
    """Run a function in a thread; None after the limit: a DNS lookup cannot be interrupted."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="advisor-live", daemon=True).start()
    try:
        return result.result(timeout=limit_s)
    except TimeoutError:
        # It may be the function's own, and what came while the limit passed is no worse for it.
        return result.result() if result.done() else None
