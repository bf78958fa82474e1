"""What the explorer's kernel answers to its page."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from advised import MODEL, described
from advisor.advice import Goals
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.present.interactive.neighbourhood import Answer, Neighbourhood, Values
from advisor.present.interactive.worker import Worker, settings
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=3)
START = Config(replication_factor=3, min_insync_replicas=2, acks="all")
KERNEL = """
import multiprocessing, time
import advisor
from advisor.present.interactive.worker import Worker, settings
model = advisor.FailureModel.from_dict({"broker": {"crash": {"per_year": 2, "minutes": 5}}})
around = advisor.explorer(advisor.Cluster.uniform(brokers=2, racks=None), model)._around
for _ in Worker(around).answers([settings([around.chosen])] * 2):
    break
print(*[child.pid for child in multiprocessing.active_children()], flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explorer(described(), MODEL, LOAD, config=START, cards=())


def test_the_kernel_answers_with_the_setting_alone(view: Explorer) -> None:
    """The curve around it comes in parts, so that the kernel is free for the next choice."""
    sent: Queue[Any] = Queue()
    view.send = sent.put
    values = {**view._around.chosen, "retries": "5"}
    view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    key = view._around.key(values)
    wanted = {key: view._around.setting(values)}
    assert sent.get_nowait() == {"id": "a1", "settings": wanted, "marks": {}}
    view._asked(view, {"id": "a2", "values": values, "kind": "around"}, [])
    parts = [sent.get(timeout=120) for _ in range(6)]
    assert {part["id"] for part in parts} == {"a2"}
    assert sorted(len(part["settings"]) for part in parts) == [0, 1, 1, 1, 1, 1]
    assert sum(len(part["marks"]) for part in parts) == 1
    assert not list(view._around.lacking(values))
    # A page that was loaded again has forgotten them, and is told at once.
    view._asked(view, {"id": "a3", "values": values, "kind": "around"}, [])
    again = sent.get_nowait()
    assert (len(again["settings"]), len(again["marks"])) == (5, 1)
    view._worker.stop()


def test_a_new_choice_drops_what_waits_for_the_last() -> None:
    """Its curve is not on the screen any more."""
    own = Neighbourhood(described(), MODEL, LOAD, Goals(), START)
    worker, found = Worker(own), Queue[Answer]()
    before = [{**own.chosen, "retries": str(n)} for n in range(40, 60)]
    for values in [*before, own.chosen]:
        worker.look_around(values, found.put)
    while own.lacking(own.chosen):
        found.get(timeout=120)
    assert sum(own.key(values) in own._settings for values in before) < len(before) / 2
    worker.stop()


def test_an_interrupted_question_is_replied_to(
    view: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page asks its next question after the reply: without one it would wait for ever."""

    def interrupted(_around: Neighbourhood, _values: Values) -> Answer:
        raise KeyboardInterrupt

    sent: list[Any] = []
    view.send = lambda content: sent.append(content)
    monkeypatch.setattr(Neighbourhood, "setting", interrupted)
    values = {**view._around.chosen, "retries": "8"}
    with pytest.raises(KeyboardInterrupt):
        view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    assert sent == [{"id": "a1", "settings": {}, "marks": {}}]


def test_other_processes_look_ahead() -> None:
    """They send a setting's intervals and all that one change needs; both are remembered."""
    goals = Goals(loss_probability_per_year=1e-3, write_unavailability=1e-5)
    own = Neighbourhood(described(), MODEL, LOAD, goals, START)
    found: Queue[Answer] = Queue()
    values = {**own.chosen, "retries": "7"}
    ahead = list(own.ahead(values))
    assert [other["acks"] for other in ahead[:3]] == ["all", "1", "0"]
    worker = Worker(own)
    worker.look_ahead(values, found.put)
    answers = [found.get(timeout=120) for _ in range(1 + 2 * len(ahead))]
    settings = {key: each for answer in answers for key, each in answer.settings.items()}
    ranged = settings[own.key(values)]
    assert ranged["loss"][1] < ranged["loss"][0] < ranged["loss"][2]
    assert {own.key(other) for other in ahead} < set(settings)
    assert list(own.ahead(values)) == []
    assert own.ranged(values)
    worker.stop()


def test_what_is_known_keeps_its_intervals() -> None:
    """One process may compute a setting whose intervals came from another."""
    own = Neighbourhood(described(), MODEL, LOAD, Goals(), START)
    key, plain = own.key(own.chosen), own.forgetful().setting(own.chosen)
    ranged = {**plain, "loss": [2.0, 1.0, 3.0]}
    assert own.keep(Answer({key: plain}, {})).settings == {key: plain}
    assert own.keep(Answer({key: ranged}, {})).settings == {key: ranged}
    assert own.keep(Answer({key: plain}, {})).settings == {key: ranged}


def test_processes_that_are_stopped_or_killed_end_without_an_error() -> None:
    """The kernel goes on alone; later questions start other processes."""
    own = Neighbourhood(described(), MODEL, LOAD, Goals(), START)
    worker = Worker(own)
    tasks = [settings([{**own.chosen, "retries": str(n)}]) for n in range(1, 30)]
    answers = worker.answers(tasks)
    assert next(answers).settings
    for process in multiprocessing.active_children():
        process.kill()
    assert len(list(answers)) < len(tasks) - 1
    assert worker.stopped
    found: Queue[Answer] = Queue()
    worker.look_ahead(own.chosen, found.put)
    assert found.get(timeout=120).settings
    worker.stop()


def test_processes_end_with_a_kernel_that_was_killed() -> None:
    """Nothing computes on behind a notebook that is gone."""
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL], stdout=subprocess.PIPE, text=True)
    assert kernel.stdout is not None
    workers = [int(number) for number in kernel.stdout.readline().split()]
    assert workers
    kernel.kill()
    kernel.wait()
    for _ in range(600):
        if not any(Path(f"/proc/{number}/exe").exists() for number in workers):
            return
        time.sleep(0.1)
    pytest.fail("a process of the explorer outlives its kernel")
