"""Background processes of the explorer: intervals, the page, and the settings likely to be next."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from advisor.present.interactive.controls import SMALL_REPLICAS
from advisor.present.interactive.explorer_model import Answer, ExplorerModel, Values
from advisor.reliability.evaluate import forget_chains

Task = tuple[Callable[[ExplorerModel, Any], Answer], Any]
"""A method of the model, and its argument."""

_PROCESSES = min(4, os.cpu_count() or 1)
# Lower priorities than the kernel's. What a user may choose next comes before what takes seconds.
_QUICK_NICENESS, _LONG_NICENESS = 5, 10
# Chains of so many tasks stay in memory, where each takes some 30 MB.
_KEPT_TASKS = 4
# About as long as the kernel takes for most settings of three replicas.
_LONGEST_WAIT_S = 0.25
_MOST_OPTIONS = 12
_REPLICAS = ("min_insync_replicas", "replication_factor")
_OFTEN_CHANGED = (
    *_REPLICAS,
    "acks",
    "eligible_leader_replicas",
    "kafka_version",
    "unclean_leader_election_enable",
    "card",
    "topic",
)


def after_one_change(
    model: ExplorerModel, values: Values, changed: Sequence[str] = _OFTEN_CHANGED
) -> Iterator[dict[str, str]]:
    """Yield the settings without an answer that one change leads to, the most usual first."""
    options = {control["key"]: control.get("options", ()) for control in model.controls}
    for key in changed:
        for option, _ in options[key][: SMALL_REPLICAS if key in _REPLICAS else _MOST_OPTIONS]:
            of_topic = model.of_topic(option) if key == "topic" else {}
            changed_to = {**values, **of_topic, key: option}
            if changed_to != values and not model.is_answered(changed_to):
                yield changed_to


def by_chain(model: ExplorerModel, several: Iterable[Values]) -> list[list[Values]]:
    """Group settings by the Markov chain that they probably share, each once."""
    groups = dict[tuple[object, ...], dict[str, Values]]()
    for values in several:
        groups.setdefault(model.chain_key(values), {}).setdefault(model.key(values), values)
    return [list(group.values()) for group in groups.values()]


class Worker:
    """Background processes, which leave the kernel free for what a user chooses.

    They start with the first task and run one task each. One more process computes what takes
    seconds and may come later: intervals, marks, and the page without a kernel. Another is for a
    chosen setting that takes seconds, and is ended if the user gives it up.

    stopped: whether the processes ended before `answers` was done.
    """

    def __init__(self, explorer_model: ExplorerModel) -> None:
        self._explorer_model = explorer_model
        self._quick = _Pool(explorer_model, _PROCESSES, _QUICK_NICENESS)
        self._long = _Pool(explorer_model, 1, _LONG_NICENESS)
        self._chosen = _Pool(explorer_model, 1, _QUICK_NICENESS)
        self._chosen_futures: list[Future[Answer]] = []
        self._curve_futures: list[Future[Answer]] = []
        self._next_futures: list[Future[Answer]] = []
        self._computing: dict[str, Future[Answer]] = {}
        self.stopped = False

    def begin(self, values: Values, changed: Sequence[str]) -> None:
        """Start the processes, and cache what one change of some controls leads to, in order."""
        likely = after_one_change(self._explorer_model, values, changed)
        self._compute(by_chain(self._explorer_model, likely), _keep)

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
        """Pass on a setting's curve and marks, known ones too, since a reloaded page has lost them.

        Tasks of earlier calls that have not started are cancelled.
        """
        _drop(self._next_futures)
        _drop(self._curve_futures)
        computed = self._explorer_model.computed_curve(values)
        if computed.settings or computed.marks:
            on_answer(computed)
        unanswered = self._explorer_model.missing_settings(values)
        marks = [] if computed.marks else [(ExplorerModel.marked, values)]
        self._curve_futures = [
            *self._compute([[values_of_curve] for values_of_curve in unanswered], on_answer),
            *self._submit_all(self._long, marks, on_answer),
        ]

    def compute_chosen(
        self,
        values: Values,
        on_numbers: Callable[[Answer], None],
        on_answer: Callable[[Answer], None],
    ) -> None:
        """Compute a setting that takes seconds: first its numbers, then the verdict on it.

        `on_answer` gets nothing if it was given up. Both are called from a thread.
        """
        first = self._chosen.submit((ExplorerModel.numbers, values))
        last = self._chosen.submit((ExplorerModel.answers, [values]))
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
        """Compute what one change of a control leads to, and this setting's intervals.

        Pictures come before failed sends where producers do not retry as at first. Tasks of earlier
        calls that have not started are cancelled. Marks and curves of what is next take too long:
        they come when it is chosen.
        """
        _drop(self._next_futures)
        model = self._explorer_model
        pictured = after_one_change(model, model.same_picture(values))
        likely = [*pictured, *after_one_change(model, values)]
        long = [] if model.has_intervals(values) else [(ExplorerModel.with_intervals, values)]
        self._next_futures = [
            *self._compute(by_chain(model, likely), on_answer),
            *self._submit_all(self._long, long, on_answer),
        ]

    def answers(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """Run tasks in the process for long ones; yield each answer as it comes, until it ends."""
        try:
            for task in tasks:
                if self.stopped:
                    return
                yield self._explorer_model.store(self._long.submit(task).result())
        except (RuntimeError, CancelledError):
            # The process was stopped or killed; the kernel answers without it.
            self._long.forget()
            self.stopped = True

    def stop(self) -> None:
        """End the processes and their tasks; later tasks are cancelled at once."""
        self.stopped = True
        for pool in (self._quick, self._long, self._chosen):
            pool.stop()

    def _compute(
        self, groups: Sequence[Sequence[Values]], on_answer: Callable[[Answer], None]
    ) -> list[Future[Answer]]:
        """Compute groups of settings, one task each, but what was submitted before."""
        key_of = self._explorer_model.key
        # Another dict each time, since several threads come here.
        computing = {key: task for key, task in self._computing.items() if not task.done()}
        shared = {key_of(values) for group in groups for values in group} & computing.keys()
        left = [[values for values in group if key_of(values) not in shared] for group in groups]
        groups = [group for group in left if group]
        tasks = [(ExplorerModel.answers, group) for group in groups]
        futures = self._submit_all(self._quick, tasks, on_answer)
        for future in dict.fromkeys(computing[key] for key in shared):
            self._pass_on(future, on_answer)
        for group, future in zip(groups, futures, strict=True):
            computing |= {key_of(values): future for values in group}
        self._computing = computing
        return futures

    def _submit_all(
        self, pool: _Pool, tasks: Iterable[Task], on_answer: Callable[[Answer], None]
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
                arguments = self._explorer_model.without_cache(), self._niceness
                self._running = ProcessPoolExecutor(self._processes, _context(), _begin, arguments)
            return self._running.submit(_answered, *task)

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
    """Start processes by `forkserver`, if there is one: the kernel's threads may hold locks."""
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


def _answered(method: Callable[[ExplorerModel, Any], Answer], argument: Any) -> Answer:
    answer = method(_EXPLORER_MODEL[0], argument)
    if next(_COUNTED) % _KEPT_TASKS == 0:
        forget_chains()
    return answer
