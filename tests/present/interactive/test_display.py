"""What a cell shows: the first picture, and later the page that needs no kernel."""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from advised import MODEL, described
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.present.interactive.explorer_model import Answer
from advisor.present.interactive.worker import Task, Worker, after_one_change
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from patience import PATIENCE_S

LOAD = Workload(partitions=3)
VIEW = "application/vnd.jupyter.widget-view+json"
START = Config(replication_factor=3, min_insync_replicas=2, acks="all")


class Notebook:
    """IPython's shell in a kernel, as far as the explorer asks it.

    Parameters
    ----------
    user : bool
        Whether a user sees the running cell.
    """

    def __init__(self, user: bool, cell: str = "a") -> None:
        self.shown: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.widgets = 0
        self.updates: list[bool] = []
        self.complete = threading.Event()
        request = {"content": {"allow_stdin": user}, "metadata": {"cellId": cell}}
        self.kernel = SimpleNamespace(get_parent={"shell": request}.get)
        self.display_pub = self

    def publish(
        self, data: dict[str, Any], *, metadata: Any, transient: Any, update: bool = False
    ) -> None:
        assert metadata == {}
        if VIEW in data:
            assert "text/html" not in data
            self.widgets += 1
            return
        self.shown.append(data)
        self.ids.append(transient["display_id"])
        self.updates.append(update)
        if update:
            self.complete.set()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes IPython's shell that of a notebook."""

    def entered(user: bool, cell: str = "a") -> Notebook:
        shell = Notebook(user, cell)
        monkeypatch.setattr("advisor.present.interactive.explorer.get_ipython", lambda: shell)
        return shell

    return entered


def example(cards: Sequence[str] = ()) -> Explorer:
    return explorer(described(), MODEL, LOAD, config=START, cards=cards)


def page_of(data: dict[str, Any]) -> Any:
    """Return the page in what a cell shows."""
    pattern = r'<script type="application/json">(.*?)</script>'
    found = re.search(pattern, data["text/html"], re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_program_that_runs_a_notebook_waits_for_the_page(notebook: Any) -> None:
    """The widget has no HTML; the output after it gets the page before the cell ends."""
    view = example()
    # It is IPython's sign to go on with the next representation.
    with pytest.raises(NotImplementedError):
        view._ipython_display_()
    shell = notebook(user=False)
    view._ipython_display_()
    assert shell.updates == [False, True]
    assert shell.ids[0] == shell.ids[1]
    first, last = shell.shown
    assert [data["text/plain"] for data in shell.shown] == [repr(view)] * 2
    assert len(page_of(first)["settings"]) == 6
    assert shell.widgets == 1
    assert page_of(last) == page_of({"text/html": view.html})
    # The page is complete: from now on it is shown as any object with a mimebundle.
    with pytest.raises(NotImplementedError):
        view._ipython_display_()


def held_up(view: Explorer, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let the other processes' answers wait until the event that is returned."""
    go, real = threading.Event(), view._worker.answers

    def later(tasks: Iterable[Task]) -> Iterator[Answer]:
        assert go.wait(PATIENCE_S)
        return real(tasks)

    monkeypatch.setattr(view._worker, "answers", later)
    return go


def test_a_users_cell_ends_with_the_first_picture(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel answers while other processes compute the page, which is the same page."""
    shell, view = notebook(user=True), example(cards=["two_az"])
    go = held_up(view, monkeypatch)
    sent: list[Any] = []
    view.send = lambda content: sent.append(content)
    view._ipython_display_()
    assert shell.updates == [False]
    values = {**view._explorer_model.chosen, "retries": "5"}
    view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    assert list(sent[-1]["settings"]) == [view._explorer_model.key(values)]
    go.set()
    assert shell.complete.wait(PATIENCE_S)
    assert shell.updates == [False, True]
    assert shell.ids[0] == shell.ids[1]
    assert page_of(shell.shown[1]) == page_of({"text/html": example(cards=["two_az"]).html})
    view._worker.stop()


def test_processes_begin_before_the_first_curve_where_a_user_waits(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first picture comes with every acks; a program that runs the notebook needs neither."""
    begun = Queue[list[dict[str, str]]]()

    def noted(worker: Worker, values: dict[str, str], changed: Sequence[str]) -> None:
        model = worker._explorer_model
        begun.put(list(after_one_change(model, values, changed)))

    monkeypatch.setattr(Worker, "begin", noted)
    notebook(user=False)
    assert len(example().page["settings"]) == 6
    assert begun.empty()
    notebook(user=True)
    view = example()
    later = begun.get(timeout=PATIENCE_S)
    assert {"two_az"} < {other["card"] for other in later}
    assert len(view.page["settings"]) == 8


def test_a_second_output_of_the_same_explorer_is_completed_too(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both wait for one computation."""
    shell, view = notebook(user=True), example()
    go = held_up(view, monkeypatch)
    view._ipython_display_()
    view._ipython_display_()
    go.set()
    while len(shell.updates) < 4:
        shell.complete.clear()
        assert len(shell.updates) == 4 or shell.complete.wait(PATIENCE_S)
    assert shell.updates == [False, False, True, True]
    view._worker.stop()


def test_a_cell_run_again_ends_the_work_for_its_old_explorer(notebook: Any) -> None:
    """Another cell's explorer goes on."""
    one, other, again = example(), example(), example()
    notebook(user=True, cell="one")
    one._ipython_display_()
    notebook(user=True, cell="other")
    other._ipython_display_()
    notebook(user=True, cell="one")
    again._ipython_display_()
    assert [view._worker.stopped for view in (one, other, again)] == [True, False, False]
    for view in (other, again):
        view._worker.stop()


def test_what_other_processes_computed_is_not_computed_for_the_page(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users change controls while the page is computed."""
    monkeypatch.setattr(Worker, "begin", lambda *_: None)
    shell, view = notebook(user=True), example(cards=["two_az"])
    asked, go, real = list[Task](), threading.Event(), view._worker.answers

    def noted(tasks: Iterable[Task]) -> Iterator[Answer]:
        assert go.wait(PATIENCE_S)
        given = list(tasks)
        asked.extend(given)
        return real(given)

    # Of this explorer only: a thread of an earlier test's explorer may still be running.
    monkeypatch.setattr(view._worker, "answers", noted)
    model, start = view._explorer_model, view._explorer_model.chosen
    view._ipython_display_()
    for values in ({**start, "acks": "1"}, {**start, "card": "two_az"}):
        model.answer(values)
    model.with_intervals(start)
    known = set(model._settings)
    go.set()
    assert shell.complete.wait(PATIENCE_S)
    given: dict[str, list[Any]] = {"answers": [], "answer": [], "with_intervals": []}
    for method, argument in asked:
        given[method.__name__].append(argument)
    assert {**start, "card": "two_az"} in given["with_intervals"]
    assert given["answers"]
    assert not known & {model.key(values) for several in given["answers"] for values in several}
    assert {**start, "card": "two_az"} not in given["answer"]
    assert page_of(shell.shown[1]) == page_of({"text/html": example(cards=["two_az"]).html})
    view._worker.stop()


def test_intervals_come_before_the_rest_of_the_page() -> None:
    """Until then the badge tells only of the card's middle values."""
    asked = [method.__name__ for method, _ in example()._missing_here()]
    assert asked[:2] == ["with_intervals", "answers"]
