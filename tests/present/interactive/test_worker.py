"""What the explorer computes ahead, in background processes."""

import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import product
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from advised import MODEL, described
from advisor import Cluster
from advisor.advice import Goals
from advisor.catalog import model_names
from advisor.present.interactive.explorer_model import Answer, ExplorerModel, Values
from advisor.present.interactive.worker import Task, Worker, _answered, after_one_change
from advisor.protocol.rules.config import Config
from advisor.reliability.chain.ctmc import structure
from advisor.reliability.evaluate import forget_chains
from advisor.reliability.measures.replica_set import solve
from advisor.reliability.workload import Workload
from patience import PATIENCE_S

LOAD = Workload(partitions=3)
START = Config(replication_factor=3, min_insync_replicas=2, acks="all")
ONE = Config(replication_factor=1, min_insync_replicas=1, acks="all")
HIGHEST_NICENESS = 19
KERNEL = """
import multiprocessing, time
import advisor
from advisor.present.interactive.explorer_model import ExplorerModel
from advisor.present.interactive.worker import Worker
model = advisor.FailureModel.from_dict({"broker": {"crash": {"per_year": 2, "minutes": 5}}})
cluster = advisor.Cluster.uniform(brokers=2, racks=None)
explorer_model = advisor.explorer(cluster, model)._explorer_model
for _ in Worker(explorer_model).answers([(ExplorerModel.answer, explorer_model.chosen)] * 2):
    break
print(*[child.pid for child in multiprocessing.active_children()], flush=True)
time.sleep(600)
"""


def test_replication_factors_below_min_isr_are_solved_ahead() -> None:
    """The first curve has none of them, though one change leads there."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    own.answer(own.chosen)
    likely = list(after_one_change(own, own.chosen))
    assert {**own.chosen, "replication_factor": "1"} in likely
    assert max(int(other["replication_factor"]) for other in likely) == 3


def test_processes_begin_with_what_one_change_leads_to() -> None:
    """Settings that share a chain are one task; nothing is computed for the other controls."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker, changed = Worker(own), ("eligible_leader_replicas", "kafka_version", "topic")
    likely = list(after_one_change(own, own.chosen, changed))
    begun = list[list[Values]]()

    def noted(groups: Sequence[list[Values]], _on_answer: object) -> None:
        begun.extend(groups)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "_compute", noted)
        worker.begin(own.chosen, changed)
    key = own.key
    assert sorted(key(other) for task in begun for other in task) == sorted(map(key, likely))
    assert len(begun) < len(likely)
    # The controls come in the order given.
    assert begun[0][0]["eligible_leader_replicas"] != own.chosen["eligible_leader_replicas"]
    assert begun[-1][0]["topic"] != own.chosen["topic"]
    worker.begin(own.chosen, changed)
    while not all(own.is_answered(other) for other in likely):
        time.sleep(0.05)
    worker.stop()


def test_a_setting_is_submitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later calls that need it get the answer of the task that has it."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker, submitted = Worker(own), dict[str, Future[Answer]]()

    def submit(task: Task) -> Future[Answer]:
        future, (method, several) = Future[Answer](), task
        for values in several if method is ExplorerModel.answers else ():
            assert own.key(values) not in submitted
            submitted[own.key(values)] = future
        return future

    for pool in (worker._quick, worker._long):
        monkeypatch.setattr(pool, "submit", submit)
    worker.begin(own.chosen, ("unclean_leader_election_enable", "topic"))
    (begun, *_), said = list(submitted), list[Answer]()
    worker.compute_likely_next(own.chosen, said.append)
    assert len(submitted) > 2
    answer = Answer({begun: {"met": True}}, {})
    submitted[begun].set_result(answer)
    assert said == [answer]
    assert own._settings == answer.settings


def test_a_task_does_not_start_processes_that_were_stopped() -> None:
    """A thread may submit it while the same cell shows another explorer already."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker, found = Worker(own), list[Answer]()
    worker.stop()
    worker.compute_curve(own.chosen, found.append)
    worker.begin(own.chosen, ("acks",))
    assert worker._quick._running is None
    assert found == []
    assert list(worker.answers([(ExplorerModel.marked, own.chosen)])) == []


def test_what_takes_seconds_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals and marks would hold up what the next change needs."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker, quick, long = Worker(own), list[str](), list[str]()
    for pool, tasks in ((worker._quick, quick), (worker._long, long)):

        def submit(task: Task, tasks: list[str] = tasks) -> Future[Answer]:
            tasks.append(task[0].__name__)
            return Future()

        monkeypatch.setattr(pool, "submit", submit)
    worker.compute_curve(own.chosen, lambda _: None)
    worker.compute_likely_next(own.chosen, lambda _: None)
    assert set(quick) == {"answers"}
    assert long == ["marked", "with_intervals"]


def test_background_processes_give_way() -> None:
    """To the kernel by their niceness, and to the browser by that of their session."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker = Worker(own)
    assert list(worker.answers([(ExplorerModel.answers, [own.chosen])]))
    assert worker._long._running is not None
    (begun,) = worker._long._running._processes
    own_niceness = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, begun) == min(own_niceness + 10, HIGHEST_NICENESS)
    assert os.getsid(begun) != os.getsid(0)
    of_session = Path(f"/proc/{begun}/autogroup")
    if of_session.exists():
        assert of_session.read_text(encoding="ascii").split()[-1] == "10"
    worker.stop()


def test_background_processes_compute_the_likely_next_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They send a setting's intervals and all that one change needs; both are cached."""
    # One ends its tasks in their order; of several each may be held up.
    monkeypatch.setattr("advisor.present.interactive.worker._PROCESSES", 1)
    goals = Goals(loss_probability_per_year=1e-3, write_unavailability=1e-5)
    own = ExplorerModel(described(), MODEL, LOAD, goals, START)
    found: Queue[Answer] = Queue()
    values = {**own.chosen, "retries": "7"}
    likely = list(after_one_change(own, values))
    assert values not in likely
    assert [other["acks"] for other in likely if other["acks"] != values["acks"]] == ["1", "0"]
    worker = Worker(own)
    worker.compute_likely_next(values, found.put)
    wanted, sent = {own.key(other) for other in (values, *likely)}, dict[str, dict[str, Any]]()
    while wanted - sent.keys():
        sent |= found.get(timeout=PATIENCE_S).settings
    low, high = sent[own.key(values)]["loss"][1:3]
    assert low < sent[own.key(values)]["loss"][0] < high
    assert own.has_intervals(values)
    assert not list(after_one_change(own, values))
    # The pictures after a change come first.
    pictures = [own.key(own.same_picture(other)) for other in likely]
    both = [key for key in sent if key in pictures], [own.key(other) for other in likely]
    order = {key: place for place, key in enumerate(sent)}
    first, last = (statistics.mean(order[key] for key in keys) for keys in both)
    assert first < last
    worker.stop()


def test_cached_intervals_are_kept() -> None:
    """One process may compute a setting whose intervals came from another."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    key, plain = own.key(own.chosen), own.without_cache().setting(own.chosen)
    with_intervals = {**plain, "complete": True}
    assert own.store(Answer({key: plain}, {})).settings == {key: plain}
    assert own.store(Answer({key: with_intervals}, {})).settings == {key: with_intervals}
    assert own.store(Answer({key: plain}, {})).settings == {key: with_intervals}


def test_processes_that_are_stopped_or_killed_end_without_an_error() -> None:
    """The kernel goes on alone; later questions start other processes."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker, before = Worker(own), multiprocessing.active_children()
    settings = [{**own.chosen, "retries": str(n)} for n in range(1, 30)]
    tasks = [(ExplorerModel.answers, [values]) for values in settings]
    answers = worker.answers(tasks)
    assert next(answers).settings
    for process in multiprocessing.active_children():
        if process not in before:  # other tests' may still end their last task
            process.kill()
    assert len(list(answers)) < len(tasks) - 1
    assert worker.stopped
    found: Queue[Answer] = Queue()
    worker.compute_likely_next(own.chosen, found.put)
    assert found.get(timeout=PATIENCE_S).settings
    worker.stop()


def test_processes_end_with_a_kernel_that_was_killed() -> None:
    """Nothing computes on behind a notebook that is gone."""
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL], stdout=subprocess.PIPE, text=True)
    assert kernel.stdout is not None
    workers = [int(number) for number in kernel.stdout.readline().split()]
    assert workers
    kernel.kill()
    kernel.wait()
    until = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{number}/exe").exists() for number in workers):
        assert time.monotonic() < until, "a process of the explorer outlives its kernel"
        time.sleep(0.1)


def test_a_process_keeps_the_chains_of_few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all settings would take a gigabyte; the numbers are the same without them."""
    own = ExplorerModel(Cluster.uniform(brokers=2, racks=None), MODEL, LOAD, Goals(), ONE)
    monkeypatch.setattr("advisor.present.interactive.worker._EXPLORER_MODEL", [own])
    forget_chains()
    before, kept = own.setting(own.chosen), list[int]()
    for card, unclean, acks in product(model_names(), ("true", "false"), ("all", "1")):
        values = {**own.chosen, "card": card, "acks": acks}
        values["unclean_leader_election_enable"] = unclean
        answer = _answered(ExplorerModel.answers, [values])
        assert "verdicts" in answer.settings[own.key(values)]
        kept.append(structure.cache_info().currsize)
    assert 1 <= max(kept) <= 8 < len(kept)
    forget_chains()
    assert structure.cache_info().currsize == solve.cache_info().currsize == 0
    assert own.without_cache().setting(own.chosen) == before
