"""Processes beside the kernel: they compute intervals, the page, and what one change would need."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing import get_context, parent_process

from advisor.present.interactive.neighbourhood import Answer, Neighbourhood, Values

Task = Callable[[], Answer]
_PROCESSES = min(2, os.cpu_count() or 1)


class Worker:
    """Its processes start with the first question and have one question each.

    The kernel itself stays free for what a user chooses.

    Parameters
    ----------
    around : Neighbourhood
        What is asked about.

    Attributes
    ----------
    stopped : bool
        Whether the processes ended before `answers` was done.
    """

    def __init__(self, around: Neighbourhood) -> None:
        self._around = around
        self._pool: ProcessPoolExecutor | None = None
        self._near: list[Future[Answer]] = []
        self._ahead: list[Future[Answer]] = []
        self.stopped = False

    def look_around(self, values: Values, tell: Callable[[Answer], None]) -> None:
        """Tell what is known of a curve and its marks, compute the rest; earlier questions end.

        Takes what `look_ahead` takes. A page that was loaded again lacks what is known here.
        """
        _drop(self._near + self._ahead)
        known = self._around.known_around(values)
        if known.settings or known.marks:
            tell(known)
        tasks = [settings([other]) for other in self._around.lacking(values)]
        if not known.marks:
            tasks.append(marks(values))
        self._near = self._ask(tasks, tell)

    def look_ahead(self, values: Values, tell: Callable[[Answer], None]) -> None:
        """Compute a setting's intervals and what one change leads to; this replaces earlier ones.

        The settings that one change leads to come before their curves.

        Parameters
        ----------
        values : mapping of str to str
            Value of each control.
        tell : callable
            Called with each answer, from a thread.
        """
        _drop(self._ahead)
        ahead = list(self._around.ahead(values))
        tasks = [] if self._around.ranged(values) else [with_intervals(values)]
        tasks += [settings([other]) for other in ahead] + [curve(other) for other in ahead]
        self._ahead = self._ask(tasks, tell)

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Run tasks; yield what each found as it comes, until the processes end.

        No more tasks wait than there are processes, so that a later question comes before them.
        """
        left, running = list(reversed(tasks)), set[Future[Answer]]()
        try:
            while (left or running) and not self.stopped:
                while left and len(running) < _PROCESSES:
                    running.add(self._submit(left.pop()))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield self._around.keep(future.result())
        except (RuntimeError, CancelledError):
            # The processes were stopped or killed; the kernel answers without them.
            self._pool, self.stopped = None, True

    def stop(self) -> None:
        """End the processes and what they work on."""
        self.stopped = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _ask(self, tasks: Sequence[Task], tell: Callable[[Answer], None]) -> list[Future[Answer]]:
        def answered(future: Future[Answer]) -> None:
            if future.cancelled():
                return
            if future.exception() is not None:
                self._pool = None  # the next question starts other processes
                return
            tell(self._around.keep(future.result()))

        asked = [self._submit(task) for task in tasks]
        for future in asked:
            future.add_done_callback(answered)
        return asked

    def _submit(self, task: Task) -> Future[Answer]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                _PROCESSES, get_context("spawn"), _begin, (self._around.forgetful(),)
            )
        return self._pool.submit(task)


def _drop(waiting: Sequence[Future[Answer]]) -> None:
    for future in waiting:
        future.cancel()


def settings(every: Sequence[Values]) -> Task:
    """Return the task to compute some settings, without intervals."""
    return partial(_settings, [dict(values) for values in every])


def curve(values: Values) -> Task:
    """Return the task to compute a setting, those of its curve and what is marked there."""
    return partial(_curve, dict(values))


def marks(values: Values) -> Task:
    """Return the task to find the present and the recommended setting."""
    return partial(_marks, dict(values))


def with_intervals(values: Values) -> Task:
    """Return the task to compute a setting with its intervals."""
    return partial(_with_intervals, dict(values))


_OWN: list[Neighbourhood] = []


def _begin(around: Neighbourhood) -> None:
    _OWN[:] = [around]
    # The kernel is interrupted together with its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(10)


def _end_with_parent() -> None:
    """End with a kernel that was killed; the pool's own queue would wait for ever."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _settings(every: Sequence[Values]) -> Answer:
    around = _OWN[0]
    return Answer({around.key(values): around.setting(values) for values in every}, {})


def _curve(values: Values) -> Answer:
    return _OWN[0].answer(values)


def _marks(values: Values) -> Answer:
    context, marked = _OWN[0].marks(values)
    return Answer({}, {context: marked})


def _with_intervals(values: Values) -> Answer:
    return _OWN[0].with_intervals(values)
