"""A process beside the kernel that computes intervals, and what one change would need next."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

from advisor.present.interactive.neighbourhood import Answer, Neighbourhood, Values


class Worker:
    """Starts with the first question; one question at a time, the latest ones only.

    Parameters
    ----------
    around : Neighbourhood
        What is asked about.
    """

    def __init__(self, around: Neighbourhood) -> None:
        self._around = around
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: list[Future[Answer]] = []

    def look_ahead(self, values: Values, tell: Callable[[Answer], None]) -> None:
        """Compute a setting's intervals, then what one change leads to; earlier questions end.

        Parameters
        ----------
        values : mapping of str to str
            Value of each control.
        tell : callable
            Called with each answer, from a thread.
        """
        for future in self._waiting:
            future.cancel()
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, get_context("spawn"), _begin, (self._around.forgetful(),)
            )
        pool = self._pool

        def answered(future: Future[Answer]) -> None:
            if future.cancelled():
                return
            if future.exception() is not None:
                self._pool = None  # interrupted: the next question starts another process
                return
            self._around.keep(future.result())
            tell(future.result())

        self._waiting = [pool.submit(_ranged, dict(values))] * (not self._around.ranged(values))
        self._waiting += [pool.submit(_answer, other) for other in self._around.ahead(values)]
        for future in self._waiting:
            future.add_done_callback(answered)


_OWN: list[Neighbourhood] = []


def _begin(around: Neighbourhood) -> None:
    _OWN[:] = [around]
    if hasattr(os, "nice"):
        os.nice(10)


def _answer(values: Values) -> Answer:
    return _OWN[0].answer(values)


def _ranged(values: Values) -> Answer:
    around = _OWN[0]
    return Answer({around.key(values): around.setting(values, intervals=True)}, {})
