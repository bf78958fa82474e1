"""Background processes of the explorer: intervals, the page, and the settings likely to be next."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from advisor.present.interactive.controls import SMALL_REPLICAS
from advisor.present.interactive.explorer_model import Answer, ExplorerModel, Values, Verdicts
from advisor.present.interactive.lookahead import Ahead, by_chain, combinations, with_other_cards
from advisor.reliability.evaluate import forget_chains

Task = Callable[[], Answer]
_PROCESSES = min(4, os.cpu_count() or 1)
# Lower priorities than the kernel's. What a user may choose next comes before what takes seconds.
_QUICK_NICENESS, _LONG_NICENESS, _IDLE_NICENESS = 5, 10, 15
# Chains of so many tasks stay in memory, where each takes some 30 MB.
_KEPT_TASKS = 4
# About as long as the kernel takes for most settings of three replicas.
_LONGEST_WAIT_S = 0.25


class Worker:
    """Background processes, which leave the kernel free for what a user chooses.

    They start with the first task and run one task each. One more process computes what takes
    seconds and may come later: intervals, marks, and the page without a kernel. When none of that
    is left to do, another one computes the settings of the other cards. One is for a chosen setting
    that takes seconds, and is ended if the user gives it up.

    explorer_model: what they evaluate.
    stopped: whether the processes ended before `answers` was done.
    """

    def __init__(self, explorer_model: ExplorerModel) -> None:
        self._explorer_model = explorer_model
        self._quick = _Pool(explorer_model, _PROCESSES, _QUICK_NICENESS)
        self._long = _Pool(explorer_model, 1, _LONG_NICENESS)
        self._idle = _Pool(explorer_model, 1, _IDLE_NICENESS)
        self._chosen = _Pool(explorer_model, 1, _QUICK_NICENESS)
        self._chosen_futures: list[Future[Answer]] = []
        self._curve_futures: list[Future[Answer]] = []
        self._next_futures: list[Future[Answer]] = []
        self._computing: dict[str, Future[Answer]] = {}
        self._card_futures: list[Future[Answer]] = []
        self._combined: dict[str, Future[Answer]] = {}
        self._cards_around: Values | None = None
        self._answering = False
        self.stopped = False

    def begin(self, values: Values, changed: Sequence[str]) -> None:
        """Start the processes, and cache what one change of some controls leads to.

        values: value of each control.
        changed: the controls, the first of which is computed first.
        """
        self._compute(by_chain(self._explorer_model, values, changed), _keep)

    def await_setting(self, values: Values) -> None:
        """Wait if a process is computing a setting of three replicas, whose chains take longest.

        It stays without an answer if that process is killed, or gets no processor time because
        others keep the machine busy.
        """
        if int(values["replication_factor"]) < SMALL_REPLICAS:
            return
        future = self._computing.get(self._explorer_model.key(values))
        running = [task for task in dict.fromkeys(self._computing.values()) if task.running()]
        # A pool also says so of the task that is begun next.
        if future is None or future not in running[:_PROCESSES]:
            return
        with suppress(TimeoutError):
            if future.exception(timeout=_LONGEST_WAIT_S) is None:
                self._explorer_model.store(future.result())

    def compute_curve(self, values: Values, on_answer: Callable[[Answer], None]) -> None:
        """Pass on what is computed of a setting's curve and its marks, and compute the rest.

        Tasks of earlier calls that have not started are cancelled. What is cached is passed on
        too, since a reloaded page has lost it.

        values: value of each control.
        on_answer: called with each answer, the computed ones from a thread.
        """
        self._drop_next()
        _drop(self._curve_futures)
        computed = self._explorer_model.computed_curve(values)
        if computed.settings or computed.marks:
            on_answer(computed)
        missing = self._explorer_model.missing_settings(values)
        self._curve_futures = [
            *self._compute([[other] for other in missing], on_answer),
            *self._submit_all(self._long, [] if computed.marks else [marks(values)], on_answer),
        ]

    def compute_chosen(
        self,
        values: Values,
        on_numbers: Callable[[Answer], None],
        on_answer: Callable[[Answer], None],
    ) -> None:
        """Compute a setting that takes seconds: first its numbers, then the verdict on it.

        values: value of each control.
        on_numbers: called from a thread with the setting without a verdict.
        on_answer: called from a thread with the setting; with nothing if it was given up.
        """
        first, last = (self._chosen.submit(task) for task in (numbers(values), settings([values])))
        self._chosen_futures = [first, last]

        def ended(future: Future[Answer]) -> None:
            on_answer(
                Answer({}, {}) if _failed(future) else self._explorer_model.store(future.result())
            )

        def measured(future: Future[Answer]) -> None:
            if not _failed(future):
                on_numbers(future.result())

        first.add_done_callback(measured)
        last.add_done_callback(ended)

    def give_up(self) -> None:
        """End the process that computes a chosen setting, if there is one."""
        if all(future.done() for future in self._chosen_futures):
            return
        _drop(self._chosen_futures)
        self._chosen.kill()

    def compute_likely_next(self, values: Values, on_answer: Callable[[Answer], None]) -> None:
        """Compute what the next changes need, and this setting's intervals.

        First what one change of a control leads to, with all that shares a chain with it, then what
        several changes do, last with other cards. Only the first is passed on; all is cached here.
        Pictures come before failed sends where producers do not retry as at first. Tasks of earlier
        calls that have not started are cancelled. Marks and curves of what is next take too long:
        they come when it is chosen.

        values: value of each control.
        on_answer: called with each answer, from a thread.
        """
        self._drop_next()
        model = self._explorer_model
        ahead = Ahead.of(model, values)

        def on_next(answer: Answer) -> None:
            sent = {
                key: setting for key, setting in answer.settings.items() if key not in ahead.unsent
            }
            on_answer(replace(answer, settings=sent))

        long = [] if model.has_intervals(values) else [with_intervals(values)]
        self._next_futures = [
            *self._compute([*ahead.shared, *ahead.single], on_next),
            *self._compute(ahead.sends, on_answer),
            *self._compute(ahead.later, _keep),
            *self._submit_all(self._long, long, on_answer),
        ]
        self._cards_around = values
        for future in self._next_futures:
            future.add_done_callback(lambda _: self._start_other_cards())
        self._start_other_cards()

    def _drop_next(self) -> None:
        self._cards_around = None
        _drop(self._next_futures + self._card_futures)

    def _start_other_cards(self) -> None:
        """Start with the other cards when nothing else is left to do."""
        values = self._cards_around
        busy = self._answering or not all(future.done() for future in self._next_futures)
        if values is None or busy:
            return
        self._cards_around = None
        self._card_futures = self._combine_other_cards(values)

    def _combine_other_cards(self, values: Values) -> list[Future[Answer]]:
        """Compute every combination with the other cards, but what was or is being computed."""
        done = {key: future for key, future in self._combined.items() if not _failed(future)}
        model = self._explorer_model
        places = {model.key(place): place for place in with_other_cards(model, values)}
        left = {key: place for key, place in places.items() if key not in done}
        futures = self._submit_all(self._idle, [combined(place) for place in left.values()], _keep)
        self._combined = done | dict(zip(left, futures, strict=True))
        return futures

    def answers(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """Run tasks in the process for long ones; yield each answer as it comes, until it ends.

        One task is submitted after another, so that marks and intervals need not wait for all.
        """
        self._answering = True
        try:
            for task in tasks:
                if self.stopped:
                    return
                yield self._explorer_model.store(self._long.submit(task).result())
        except (RuntimeError, CancelledError):
            # The process was stopped or killed; the kernel answers without it.
            self._long.forget()
            self.stopped = True
        finally:
            self._answering = False
            self._start_other_cards()

    def stop(self) -> None:
        """End the processes and their tasks; later tasks are cancelled at once."""
        self.stopped = True
        for pool in (self._quick, self._long, self._idle, self._chosen):
            pool.stop()

    def _compute(
        self, groups: Sequence[Sequence[Values]], on_answer: Callable[[Answer], None]
    ) -> list[Future[Answer]]:
        """Compute groups of settings, one task each, but what was submitted before."""
        key_of = self._explorer_model.key
        # Another dict each time, since several threads come here.
        computing = {key: each for key, each in self._computing.items() if not each.done()}
        shared = {key_of(each) for group in groups for each in group} & computing.keys()
        groups = [
            left for group in groups if (left := [e for e in group if key_of(e) not in shared])
        ]
        futures = self._submit_all(self._quick, [*map(settings, groups)], on_answer)
        for future in dict.fromkeys(computing[key] for key in shared):
            self._pass_on(future, on_answer)
        for group, future in zip(groups, futures, strict=True):
            computing |= {key_of(each): future for each in group}
        self._computing = computing
        return futures

    def _submit_all(
        self, pool: _Pool, tasks: Sequence[Task], on_answer: Callable[[Answer], None]
    ) -> list[Future[Answer]]:
        def ended(future: Future[Answer]) -> None:
            if _failed(future) and not future.cancelled():
                pool.forget()  # the next task starts other processes

        futures = [pool.submit(task) for task in tasks]
        for future in futures:
            future.add_done_callback(ended)
            self._pass_on(future, on_answer)
        return futures

    def _pass_on(self, future: Future[Answer], on_answer: Callable[[Answer], None]) -> None:
        """Cache the answer of a submitted task when it comes, and pass it on."""

        def answered(future: Future[Answer]) -> None:
            if not _failed(future):
                on_answer(self._explorer_model.store(future.result()))

        future.add_done_callback(answered)


class _Pool:
    """Processes of one priority, which start with the first task."""

    def __init__(self, explorer_model: ExplorerModel, processes: int, niceness: int) -> None:
        self._explorer_model = explorer_model
        self._processes, self._niceness = processes, niceness
        self._running: ProcessPoolExecutor | None = None
        # Threads submit tasks, and one may be starting the processes when they are to stop.
        self._starting = threading.Lock()
        self._ended = False

    def submit(self, task: Task) -> Future[Answer]:
        """Run a task when a process is free; cancelled at once after `stop`."""
        with self._starting:
            if self._ended:
                refused = Future[Answer]()
                refused.cancel()
                refused.set_running_or_notify_cancel()  # or `wait` never returns it
                return refused
            if self._running is None:
                given = self._explorer_model.without_cache(), self._niceness
                self._running = ProcessPoolExecutor(self._processes, _context(), _begin, given)
            return self._running.submit(task)

    def forget(self) -> None:
        """Start other processes with the next task: these were killed."""
        self._running = None

    def kill(self) -> None:
        """End the processes at once, with what they compute; the next task starts others."""
        with self._starting:
            pool, self._running = self._running, None
        if pool is None:
            return
        for process in [*(pool._processes or {}).values()]:
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """End the processes and their tasks."""
        with self._starting:
            self._ended = True
            if self._running is not None:
                self._running.shutdown(wait=False, cancel_futures=True)
                self._running = None


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


def _failed(future: Future[Answer]) -> bool:
    return future.cancelled() or (future.done() and future.exception() is not None)


def settings(every: Sequence[Values]) -> Task:
    """Return the task to compute some settings, without intervals."""
    return partial(_settings, [dict(values) for values in every])


def numbers(values: Values) -> Task:
    """Return the task to compute a setting without the verdict on it."""
    return partial(_numbers, dict(values))


def combined(values: Values) -> Task:
    """Return the task to compute every combination of the controls that decide elections."""
    return partial(_combined, dict(values))


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
_COUNTED = count(1)


def _begin(explorer_model: ExplorerModel, niceness: int) -> None:
    _EXPLORER_MODEL[:] = [explorer_model]
    # The kernel is interrupted together with its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _give_way(niceness)


def _give_way(niceness: int) -> None:
    """Leave the processor to the kernel, and to the browser and the server behind it.

    Linux weighs sessions against each other before processes, so that a nice process of the
    kernel's session takes as much from a browser as the kernel does (sched(7), autogroups).
    """
    if not hasattr(os, "setsid"):
        return
    os.nice(niceness)
    with suppress(OSError):  # where there are no autogroups, or it leads a session already
        os.setsid()
        Path("/proc/self/autogroup").write_text(str(niceness), encoding="ascii")


def _end_with_parent() -> None:
    """End with a kernel that was killed; the pool's own queue would wait for ever."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _settings(every: Sequence[Values]) -> Answer:
    if next(_COUNTED) % _KEPT_TASKS == 0:
        forget_chains()
    return _EXPLORER_MODEL[0].answers(every)


def _numbers(values: Values) -> Answer:
    explorer_model = _EXPLORER_MODEL[0]
    return Answer({explorer_model.key(values): explorer_model.numbers(values)}, {})


def _combined(values: Values) -> Answer:
    answered, verdicts = dict[str, dict[str, Any]](), dict[str, Verdicts]()
    for group in combinations(_EXPLORER_MODEL[0], values):
        answer = _settings(group)
        answered |= answer.settings
        verdicts |= answer.verdicts
    return Answer(answered, {}, verdicts)


def _curve(values: Values) -> Answer:
    return _EXPLORER_MODEL[0].answer(values)


def _marks(values: Values) -> Answer:
    context, marked = _EXPLORER_MODEL[0].marks(values)
    return Answer({}, {context: marked})


def _with_intervals(values: Values) -> Answer:
    return _EXPLORER_MODEL[0].with_intervals(values)
