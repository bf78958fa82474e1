"""Progress bars: on a terminal, for what takes long, and nowhere else."""

import re
import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from advised import MODEL, described
from advisor import progress
from advisor.advice import audit, recommend
from advisor.present.report.page import render_report
from advisor.progress import progress_bar
from patience import PATIENCE_S

SHOWN_S = 0.05


def fake_terminal(monkeypatch: pytest.MonkeyPatch, shown_after_s: float = SHOWN_S) -> None:
    """Make stderr a terminal, on which bars appear after a twentieth of a second."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "_SHOWN_AFTER_S", shown_after_s)
    monkeypatch.setattr(progress, "_BETWEEN_UPDATES_S", SHOWN_S)


def run(seconds: float) -> None:
    with progress_bar(10, " steps", "Working") as done:
        for _ in range(10):
            time.sleep(seconds / 10.0)
            done(1)


def test_a_long_run_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is done, how much of how much, and the time that is left."""
    fake_terminal(monkeypatch)
    run(0.5)
    shown = capfd.readouterr()
    assert "Working: " in shown.err
    assert re.search(r"/10\.0 \[\d\d:\d\d<\d\d:\d\d", shown.err)
    assert shown.out == ""


def test_a_short_run_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No bar flickers."""
    fake_terminal(monkeypatch, PATIENCE_S)
    run(0.0)
    assert capfd.readouterr() == ("", "")


def test_without_a_terminal_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """However long it takes."""
    monkeypatch.setattr(progress, "_SHOWN_AFTER_S", 0.0)
    run(0.1)
    assert capfd.readouterr() == ("", "")


def whole_report() -> object:
    """Everything that the report command computes."""
    cluster = described()
    return render_report(recommend(cluster, MODEL), audit(cluster, MODEL))


def decided() -> object:
    """A decision with how sure it is."""
    return audit(described(), MODEL).verdict


@pytest.mark.parametrize(
    ("compute", "parts"),
    [
        (
            whole_report,
            (
                "95 % intervals",
                "Fewest faults",
                "Auditing",
            ),
        ),
        (decided, ("How sure",)),
    ],
)
def test_every_long_part_has_a_bar(
    compute: Callable[[], object],
    parts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each part that may take more than five seconds counts what it does."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "_SHOWN_AFTER_S", 0.0)
    compute()
    shown = capfd.readouterr().err
    assert [part for part in parts if f"{part}:" not in shown] == []


def test_a_line_says_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """At once, and gone at the end; nowhere without a terminal."""
    with progress.status_line("Compiling"):
        assert capfd.readouterr() == ("", "")
    fake_terminal(monkeypatch)
    with progress.status_line("Compiling"):
        assert capfd.readouterr().err.endswith("Compiling")
    assert capfd.readouterr().err.strip() == ""


def test_a_notebook_shows_bars_and_a_loaded_kernel_alone_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ipywidgets load Jupyter's kernel in every program; in a notebook the shell runs in one."""
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    ipython = SimpleNamespace(get_ipython=lambda: None)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not progress._is_interactive()
    ipython.get_ipython = lambda: SimpleNamespace(kernel=1)
    assert progress._is_interactive()
