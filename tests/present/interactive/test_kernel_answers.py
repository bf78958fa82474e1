"""What the explorer's kernel answers to its page."""

import threading
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from advised import MODEL, described
from advisor.advice import Goals
from advisor.cluster import Cluster
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.present.interactive.explorer_model import Answer, ExplorerModel, Values
from advisor.present.interactive.worker import _PROCESSES, Worker
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from gates import held
from patience import PATIENCE_S

LOAD = Workload(partitions=3)
START = Config(replication_factor=3, min_insync_replicas=2, acks="all")


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explorer(described(), MODEL, LOAD, config=START, cards=())


def test_the_kernel_answers_with_the_setting_alone(view: Explorer) -> None:
    """The rest of its curve comes in parts, so that the kernel is free for the next choice."""
    sent: Queue[Any] = Queue()
    view.send = sent.put
    values = {**view._explorer_model.chosen, "card": "two_az"}
    view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    key = view._explorer_model.key(values)
    wanted = {key: view._explorer_model.setting(values)}
    assert sent.get_nowait() == {"id": "a1", "settings": wanted, "marks": {}}
    view._asked(view, {"id": "a2", "values": values, "kind": "around"}, [])
    parts = [sent.get(timeout=PATIENCE_S) for _ in range(6)]
    assert {part["id"] for part in parts} == {"a2"}
    assert sorted(len(part["settings"]) for part in parts) == [0, 1, 1, 1, 1, 1]
    assert sum(len(part["marks"]) for part in parts) == 1
    assert not list(view._explorer_model.missing_settings(values))
    # A page that was loaded again has forgotten them, and is told at once.
    view._asked(view, {"id": "a3", "values": values, "kind": "around"}, [])
    again = sent.get_nowait()
    assert (len(again["settings"]), len(again["marks"])) == (5, 1)
    view._worker.stop()


def test_a_long_setting_is_answered_in_two_parts_and_can_be_given_up(tmp_path: Path) -> None:
    """Its numbers come first, then the verdict; meanwhile the kernel answers, and hears cancel."""
    cluster = Cluster.uniform(brokers=4, racks=None)
    own = Explorer(ExplorerModel(cluster, MODEL, LOAD, Goals(), START))
    model, sent = own._explorer_model, Queue[Any]()
    own.send = sent.put
    values = {**model.chosen, "replication_factor": "4"}
    own._asked(own, {"id": "a1", "values": values, "kind": "setting"}, [])
    parts = [sent.get(timeout=PATIENCE_S) for _ in range(2)]
    assert [part.get("more", False) for part in parts] == [True, False]
    first, last = (part["settings"][model.key(values)] for part in parts)
    assert (first["loss"], first["verdicts"]) == (last["loss"], {})
    assert last == model.without_cache().setting(values)
    other = {**values, "min_insync_replicas": "1"}
    # The process is busy, or it may have the answer before the user gives it up.
    own._worker._chosen.submit((held, str(tmp_path / "never")))
    own._asked(own, {"id": "a2", "values": other, "kind": "setting"}, [])
    own._asked(own, {"id": "a2", "values": other, "kind": "cancel"}, [])
    assert sent.get(timeout=PATIENCE_S) == {"id": "a2", "settings": {}, "marks": {}}
    own._asked(own, {"id": "a3", "values": other, "kind": "setting"}, [])
    assert sent.get(timeout=PATIENCE_S)["settings"]
    own._worker.stop()


def test_a_new_choice_drops_what_waits_for_the_last(tmp_path: Path) -> None:
    """Its curve is not on the screen any more."""
    own = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    worker, found = Worker(own), Queue[Answer]()
    for _ in range(_PROCESSES):
        worker._quick.submit((held, str(tmp_path / "go")))
    before = [{**own.chosen, "retries": str(n)} for n in range(40, 60)]
    for values in [*before, own.chosen]:
        worker.compute_curve(values, found.put)
    (tmp_path / "go").touch()
    while own.missing_settings(own.chosen):
        found.get(timeout=PATIENCE_S)
    assert sum(own.key(values) in own._settings for values in before) < len(before) / 2
    worker.stop()


def test_an_interrupted_question_is_replied_to(
    view: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page asks its next question after the reply: without one it would wait for ever."""

    def interrupted(_explorer_model: ExplorerModel, _values: Values) -> Answer:
        raise KeyboardInterrupt

    sent: list[Any] = []
    view.send = lambda content: sent.append(content)
    monkeypatch.setattr(ExplorerModel, "setting", interrupted)
    values = {**view._explorer_model.chosen, "retries": "8"}
    with pytest.raises(KeyboardInterrupt):
        view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    assert sent == [{"id": "a1", "settings": {}, "marks": {}}]


@pytest.mark.parametrize("killed", [False, True])
def test_a_setting_that_a_process_computes_is_awaited(
    view: Explorer, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel computes it only if the process is killed."""
    monkeypatch.setattr("advisor.present.interactive.worker._LONGEST_WAIT_S", PATIENCE_S)
    monkeypatch.setattr(view._worker, "_computing", {})
    model, sent = view._explorer_model, list[Any]()
    values = {**model.chosen, "retries": "12" if killed else "11"}
    key, computed = model.key(values), {"refusal": "as computed by a process"}
    view.send = sent.append
    future = Future[Answer]()
    future.set_running_or_notify_cancel()
    view._worker._computing[key] = future
    end = partial(future.set_result, Answer({key: computed}, {}))
    if killed:
        end = partial(future.set_exception, BrokenProcessPool("killed"))
    threading.Timer(0.2, end).start()
    view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    assert (sent[-1]["settings"][key] == computed) is not killed
    assert ("verdicts" in sent[-1]["settings"][key]) is killed


@pytest.mark.parametrize("begun", [False, True])
def test_what_the_kernel_computes_sooner_is_not_awaited(
    view: Explorer, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool calls the next task running, too; and a chain of two replicas is solved at once."""
    model, sent = view._explorer_model, list[Any]()
    values = {**model.chosen, "delivery_timeout_ms": "61000" if begun else "62000"}
    values["replication_factor"] = "2" if begun else "3"
    view.send = sent.append
    monkeypatch.setattr(view._worker, "_computing", {})
    for number in range(0 if begun else _PROCESSES):
        view._worker._computing[str(number)] = Future[Answer]()
    view._worker._computing[model.key(values)] = Future[Answer]()
    for future in view._worker._computing.values():
        future.set_running_or_notify_cancel()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Future, "exception", lambda *_, **__: pytest.fail("waited"))
        view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    assert "verdicts" in sent[-1]["settings"][model.key(values)]


def test_a_process_without_processor_time_is_awaited_for_a_while(
    view: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the kernel, whose priority is higher, computes the setting."""
    monkeypatch.setattr(view._worker, "_computing", {})
    model, sent = view._explorer_model, list[Any]()
    values = {**model.chosen, "retries": "13"}
    view.send = sent.append
    starved = Future[Answer]()
    starved.set_running_or_notify_cancel()
    view._worker._computing[model.key(values)] = starved
    monkeypatch.setattr("advisor.present.interactive.worker._LONGEST_WAIT_S", 0.05)
    view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    assert "verdicts" in sent[-1]["settings"][model.key(values)]
