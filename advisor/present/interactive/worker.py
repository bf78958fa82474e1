"""Background processes of the explorer: intervals, the page, and the settings likely to be next."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import partial
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from typing import NamedTuple

from advisor.present.interactive.explorer_model import Answer, ExplorerModel, Values

Task = Callable[[], Answer]
_PROCESSES = min(2, os.cpu_count() or 1)


class Worker:
    """Background processes, which leave the kernel free for what a user chooses.

    They start with the first task and run one task each.

    Parameters
    ----------
    explorer_model : ExplorerModel
        What they evaluate.

    Attributes
    ----------
    stopped : bool
        Whether the processes ended before `answers` was done.
    """

    def __init__(self, explorer_model: ExplorerModel) -> None:
        self._explorer_model = explorer_model
        self._pool: ProcessPoolExecutor | None = None
        self._curve_futures: list[Future[Answer]] = []
        self._next_futures: list[Future[Answer]] = []
        # Threads submit tasks, and one may be starting the processes when they are to stop.
        self._starting = threading.Lock()
        self._ended = False
        self.stopped = False

    def begin(self, values: Values, changed: Sequence[str]) -> None:
        """Start the processes, and cache what one change of some controls leads to.

        Parameters
        ----------
        values : mapping of str to str
            Value of each control.
        changed : sequence of str
            The controls.
        """
        model = self._explorer_model
        likely = list(model.likely_next_settings(values, changed))
        groups = [
            [other for other in group if other in likely] for group in model.combinations(values)
        ]
        groups += [[other] for other in likely if not any(other in group for group in groups)]
        self._submit_all([settings(group) for group in groups if group], _keep)

    def compute_curve(self, values: Values, on_answer: Callable[[Answer], None]) -> None:
        """Pass on what is computed of a setting's curve and its marks, and compute the rest.

        Tasks of earlier calls that have not started are cancelled. What is cached is passed on
        too, since a reloaded page has lost it.

        Parameters
        ----------
        values : mapping of str to str
            Value of each control.
        on_answer : callable
            Called with each answer, the computed ones from a thread.
        """
        _drop(self._curve_futures + self._next_futures)
        known = self._explorer_model.computed_curve(values)
        if known.settings or known.marks:
            on_answer(known)
        tasks = [settings([other]) for other in self._explorer_model.missing_settings(values)]
        if not known.marks:
            tasks.append(marks(values))
        self._curve_futures = self._submit_all(tasks, on_answer)

    def compute_likely_next(self, values: Values, on_answer: Callable[[Answer], None]) -> None:
        """Compute what the next changes need, this setting's intervals, then the next ones' curves.

        First what one change of a control leads to, with all that shares a chain with it, then what
        several changes do. The latter is cached here and not passed on. Tasks of earlier calls that
        have not started are cancelled.

        Parameters
        ----------
        values : mapping of str to str
            Value of each control.
        on_answer : callable
            Called with each answer, from a thread.
        """
        _drop(self._next_futures)
        ahead = _Ahead.of(self._explorer_model, values)

        def on_next(answer: Answer) -> None:
            sent = {key: each for key, each in answer.settings.items() if key not in ahead.unsent}
            on_answer(replace(answer, settings=sent))

        tasks = [*map(settings, ahead.shared), *(settings([other]) for other in ahead.single)]
        if not self._explorer_model.has_intervals(values):
            # They take as long as ten settings, so what one change leads to comes before them.
            tasks.append(with_intervals(values))
        self._next_futures = [
            *self._submit_all(tasks, on_next),
            *self._submit_all([*map(settings, ahead.later)], _keep),
            *self._submit_all([*map(curve, ahead.likely)], on_answer),
        ]

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Run tasks; yield each answer as it comes, until the processes end.

        No more tasks are submitted than there are processes, so that `compute_curve` need not wait
        for all of them.
        """
        left, running = list(reversed(tasks)), set[Future[Answer]]()
        try:
            while (left or running) and not self.stopped:
                while left and len(running) < _PROCESSES:
                    running.add(self._submit(left.pop()))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield self._explorer_model.store(future.result())
        except (RuntimeError, CancelledError):
            # The processes were stopped or killed; the kernel answers without them.
            self._pool, self.stopped = None, True

    def stop(self) -> None:
        """End the processes and their tasks; later tasks are cancelled at once."""
        self.stopped = True
        with self._starting:
            self._ended = True
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None

    def _submit_all(
        self, tasks: Sequence[Task], on_answer: Callable[[Answer], None]
    ) -> list[Future[Answer]]:
        def answered(future: Future[Answer]) -> None:
            if future.cancelled():
                return
            if future.exception() is not None:
                self._pool = None  # the next task starts other processes
                return
            on_answer(self._explorer_model.store(future.result()))

        futures = [self._submit(task) for task in tasks]
        for future in futures:
            future.add_done_callback(answered)
        return futures

    def _submit(self, task: Task) -> Future[Answer]:
        with self._starting:
            if self._ended:
                refused = Future[Answer]()
                refused.cancel()
                refused.set_running_or_notify_cancel()  # or `wait` never returns it
                return refused
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    _PROCESSES, _context(), _begin, (self._explorer_model.without_cache(),)
                )
            return self._pool.submit(task)


class _Ahead(NamedTuple):
    """What is computed ahead of the next changes.

    Attributes
    ----------
    likely : list of dict
        Settings that one change leads to.
    shared : list of list of dict
        Some of these, each first in a group of settings that share its chain.
    single : list of dict
        The others of these.
    later : list of list of dict
        Groups that only several changes lead to.
    unsent : set of str
        Keys of settings in groups that one change does not lead to.
    """

    likely: list[dict[str, str]]
    shared: list[list[dict[str, str]]]
    single: list[dict[str, str]]
    later: list[list[dict[str, str]]]
    unsent: set[str]

    @classmethod
    def of(cls, model: ExplorerModel, values: Values) -> _Ahead:
        likely = list(model.likely_next_settings(values))
        groups = list(model.likely_later_settings(values))
        next_keys = {model.key(other) for other in likely}
        grouped = {model.key(other) for group in groups for other in group}
        shared = [group for group in groups if model.key(group[0]) in next_keys]
        return cls(
            likely,
            shared,
            single=[other for other in likely if model.key(other) not in grouped],
            later=[group for group in groups if group not in shared],
            unsent=grouped - next_keys - {model.key(values)},
        )


def _context() -> BaseContext:
    """Return how processes start: where it can, one imports this module for all of them.

    Not by a fork of the kernel, whose threads may hold locks.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _keep(_answer: Answer) -> None:
    """Leave it in the cache; the page asks for it when it is chosen."""


def _drop(waiting: Sequence[Future[Answer]]) -> None:
    for future in waiting:
        future.cancel()


def settings(every: Sequence[Values]) -> Task:
    """Return the task to compute some settings, without intervals."""
    return partial(_settings, [dict(values) for values in every])


def curve(values: Values) -> Task:
    """Return the task to compute a setting, its curve and the marks of its topic."""
    return partial(_curve, dict(values))


def marks(values: Values) -> Task:
    """Return the task to find the present and the recommended setting."""
    return partial(_marks, dict(values))


def with_intervals(values: Values) -> Task:
    """Return the task to compute a setting with its intervals."""
    return partial(_with_intervals, dict(values))


_EXPLORER_MODEL: list[ExplorerModel] = []


def _begin(explorer_model: ExplorerModel) -> None:
    _EXPLORER_MODEL[:] = [explorer_model]
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
    explorer_model = _EXPLORER_MODEL[0]
    return Answer(
        {explorer_model.key(values): explorer_model.setting(values) for values in every}, {}
    )


def _curve(values: Values) -> Answer:
    return _EXPLORER_MODEL[0].answer(values)


def _marks(values: Values) -> Answer:
    context, marked = _EXPLORER_MODEL[0].marks(values)
    return Answer({}, {context: marked})


def _with_intervals(values: Values) -> Answer:
    return _EXPLORER_MODEL[0].with_intervals(values)
