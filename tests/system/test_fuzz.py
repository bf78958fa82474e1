"""Mutated files and drawn arguments end in an `AdvisorError`, in bounded time and memory."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fuzz
from advisor.errors import InputError
from patience import PATIENCE_S

PROGRAM = Path(fuzz.__file__)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop calls after a fifth of a second."""
    before = signal.signal(signal.SIGPROF, fuzz._stop)
    monkeypatch.setattr(fuzz, "LIMIT_S", 0.2)
    yield
    signal.signal(signal.SIGPROF, before)


def test_a_minute_of_drawn_input() -> None:
    """The same seed gives the same files and calls; `make fuzz` runs ten times as many."""
    amounts = ["--inputs", "12000", "--mutations", "5000", "--calls", "3000"]
    command = [sys.executable, str(PROGRAM), *amounts]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    assert (
        "12,000 inputs, 5,000 mutations of the corpus and 3,000 calls of seed 7: 0 " in ran.stdout
    )


@pytest.mark.usefixtures("limits")
def test_what_is_a_mistake() -> None:
    """Other exceptions, endless calls and messages of two lines count; an AdvisorError does not."""

    def endless() -> None:
        while True:
            pass

    def refuses() -> None:
        raise InputError("racks=7: give names")

    def empty() -> None:
        raise InputError("")

    assert fuzz.limited(lambda: 7) is None
    assert fuzz.limited(refuses) is None
    assert isinstance(fuzz.limited(lambda: {}["x"]), KeyError)
    assert isinstance(fuzz.limited(endless), fuzz.TooSlowError)
    assert isinstance(fuzz.limited(empty), ValueError)


def test_an_allocation_of_a_gigabyte_is_a_mistake() -> None:
    """The limit on memory holds in the program."""
    code = "import fuzz; fuzz._limit_memory(); print(repr(fuzz.limited(lambda: bytearray(2**31))))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=PROGRAM.parent,
    )
    assert "MemoryError" in ran.stdout, ran.stderr
