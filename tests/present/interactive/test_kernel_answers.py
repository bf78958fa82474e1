"""What the explorer's kernel answers to its page."""

from queue import Queue
from typing import Any

import pytest

from advised import MODEL, described
from advisor.advice import Goals
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.present.interactive.neighbourhood import Answer, Neighbourhood, Values
from advisor.present.interactive.worker import Worker
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=3)
START = Config(replication_factor=3, min_insync_replicas=2, acks="all")


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explorer(described(), MODEL, LOAD, config=START, cards=())


def test_the_kernel_answers_with_the_setting_first(view: Explorer) -> None:
    """A question is for a setting, or for the curve and the marks around it."""
    sent: list[Any] = []
    view.send = lambda content: sent.append(content)
    values = {**view._around.chosen, "retries": "5"}
    view._asked(view, {"id": "a1", "values": values, "kind": "setting"}, [])
    view._asked(view, {"id": "a1", "values": values, "kind": "around"}, [])
    key = view._around.key(values)
    assert list(sent[0]["settings"]) == [key]
    assert len(sent[1]["settings"]) == 6
    assert [len(reply["marks"]) for reply in sent] == [0, 1]
    assert {reply["id"] for reply in sent} == {"a1"}


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


def test_another_process_looks_ahead() -> None:
    """It sends the intervals first, then what one change needs; both are remembered."""
    goals = Goals(loss_probability_per_year=1e-3, write_unavailability=1e-5)
    own = Neighbourhood(described(), MODEL, LOAD, goals, START)
    found: Queue[Answer] = Queue()
    values = {**own.chosen, "retries": "7"}
    expected = [own.key(other) for other in own.ahead(values)]
    Worker(own).look_ahead(values, found.put)
    ranged = found.get(timeout=120).settings[own.key(values)]
    assert ranged["loss"][1] < ranged["loss"][0] < ranged["loss"][2]
    got = [next(iter(found.get(timeout=120).settings)) for _ in expected]
    assert got == expected
    assert list(own.ahead(values)) == []
