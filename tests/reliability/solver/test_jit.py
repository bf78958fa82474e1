"""How Python calls the compiled kernels."""

import subprocess
import sys

import pytest

from advisor import Cluster, Config, load_model
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.compiled.transition_tables import Tables, tables
from advisor.reliability.sampler.plan import Block
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.solver.jit import Entry
from advisor.reliability.workload import Workload

# Numba looks up the addresses of the random generator in Python, and ends the process if that
# fails. A process of its own, so that this ends no others.
INTERRUPTED_ON_THE_WAY_IN = """
import ctypes, signal
import advisor

def sample():
    card = {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
    return advisor.simulate(
        advisor.Cluster.uniform(2, racks=None), advisor.Config(replication_factor=2),
        advisor.FailureModel.from_dict(card), years=64, engine="local", method="crude",
    )

before, cast = sample(), ctypes.cast

def interrupted(*what):
    signal.raise_signal(signal.SIGINT)
    return cast(*what)

ctypes.cast = interrupted
try:
    sample()
except KeyboardInterrupt as interrupt:
    print(interrupt)
ctypes.cast = cast
assert sample().to_dict() == before.to_dict()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_an_interrupt_on_the_way_into_a_kernel_ends_the_call_alone() -> None:
    """The process goes on, and the next call returns what it did before."""
    line = [sys.executable, "-c", INTERRUPTED_ON_THE_WAY_IN]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Interrupted, and nothing is kept; ")


def test_missing_entries_are_filled_in_without_asking_for_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The way in through numba's dispatcher takes longer than what one entry is filled in for."""
    config, load = Config(replication_factor=3, min_insync_replicas=2), Workload(partitions=12)
    plan = plan_for(Cluster.uniform(6, 3), config, load_model("three_az_cloud"), load, None)
    block = Block(7, 0, 300)
    done = run_block(plan, block)
    asked, filled, enter, fill = [], [], Entry.__call__, Tables.fill

    def entered(self: Entry, *arguments: object) -> int:
        asked.append(1)
        return enter(self, *arguments)

    def noted(self: Tables, state: int, event: int, mask: int) -> None:
        filled.append(1)
        fill(self, state, event, mask)

    monkeypatch.setattr(Entry, "__call__", entered)
    monkeypatch.setattr(Tables, "fill", noted)
    tables.cache_clear()
    assert run_block(plan, block) == done
    assert len(filled) > 100
    assert len(asked) < len(filled) / 10
