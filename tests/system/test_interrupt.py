"""A long cell that is interrupted leaves its notebook usable, whatever it was doing."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

from command_line import CARD, good
from patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SETUP = """
import advisor
cluster = advisor.Cluster.uniform(6, 3)
config = advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all")
model, load = advisor.load_model("three_az_cloud"), advisor.Workload(partitions=12)
few = dict(years=64, seed=1, engine=ENGINE)
many = {**few, "years": 1_000_000_000}
import faulthandler, signal
faulthandler.register(signal.SIGUSR1, open(STACKS, "w"))
"""
# Ends a test that hangs. Spark and the compiler take minutes to start on a busy computer.
AT_MOST_S = PATIENCE_S
BLOCKS = 32
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
IDLE = """
import time
from pyspark import SparkContext
tracker = SparkContext.getOrCreate().statusTracker()
until = time.monotonic() + AT_MOST_S
while tracker.getActiveJobsIds() and time.monotonic() < until:
    time.sleep(0.1)
assert not tracker.getActiveJobsIds()
"""


@pytest.fixture
def kernel() -> Iterator[tuple[BlockingKernelClient, object]]:
    """A kernel of its own, as JupyterLab starts it."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT))
    yield client, manager
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: BlockingKernelClient, code: str) -> tuple[str, str]:
    """Run a cell: its status, and the name of its error."""
    told = client.execute_interactive(code, timeout=AT_MOST_S, output_hook=lambda _: None)
    return told["content"]["status"], told["content"].get("ename", "")


def interrupted(client: BlockingKernelClient, manager, stacks: Path) -> dict[str, object]:
    """Interrupt a cell five seconds after it said that it samples; return the reply.

    It would sample for hours: only the interrupt can end it.
    """
    while "Sampling " not in client.get_iopub_msg(timeout=AT_MOST_S)["content"].get("text", ""):
        pass
    time.sleep(5.0)
    manager.interrupt_kernel()
    try:
        told = client.get_shell_msg(timeout=AT_MOST_S)["content"]
    except Empty:
        assert client.is_alive(), "The interrupt ended the kernel."
        os.kill(manager.provisioner.pid, signal.SIGUSR1)
        time.sleep(1.0)
        raise AssertionError(
            f"The cell goes on after the interrupt:\n{stacks.read_text()}"
        ) from None
    return told


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_sample_is_interrupted(kernel, engine: str, tmp_path: Path) -> None:
    """The cell ends at once, and the next ones compute, sample and plot as before."""
    client, manager = kernel
    stacks = tmp_path / "stacks"
    constants = SETUP.replace("ENGINE", repr(engine)).replace("STACKS", repr(str(stacks)))
    assert run(client, constants) == ("ok", "")
    first = "before = advisor.simulate(cluster, config, model, load, **few)"
    assert run(client, first) == ("ok", "")
    # Else Jupyter drops a cell that it receives just after the interrupt, as of a "run all".
    long = "advisor.simulate(cluster, config, model, load, **many, progress=print)"
    client.execute(long, stop_on_error=False)
    told = interrupted(client, manager, stacks)
    assert told.get("ename") == "KeyboardInterrupt"
    assert str(told["evalue"]).startswith("Interrupted, and nothing is kept; ")
    if engine == "spark":
        # Else the workers go on with blocks that no one waits for.
        assert run(client, IDLE.replace("AT_MOST_S", str(AT_MOST_S))) == ("ok", "")
    assert run(client, "advisor.evaluate(cluster, config, model, load).plot()") == ("ok", "")
    again = "after = advisor.simulate(cluster, config, model, load, **few)"
    assert run(client, again) == ("ok", "")
    assert run(client, "assert after.to_dict() == before.to_dict()") == ("ok", "")


def interrupted_command(line: list[str], folder: Path) -> tuple[int, str, str]:
    """Interrupt a command after its first block: its exit code, and what it printed."""
    asked = subprocess.Popen(line, **PIPES, start_new_session=True)
    until = time.monotonic() + AT_MOST_S
    while not any(folder.glob("block-*.parquet")) and time.monotonic() < until:
        time.sleep(0.02)
    # A terminal sends it to everything that the command has started, too.
    os.killpg(asked.pid, signal.SIGINT)
    out, err = asked.communicate(timeout=AT_MOST_S)
    return asked.returncode, out, err


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_an_interrupted_command_says_how_to_go_on(engine: str, tmp_path: Path) -> None:
    """One sentence and exit code 130; the same command then runs only the blocks that lack."""
    card = tmp_path / "card.toml"
    card.write_text(CARD)
    without = [sys.executable, "-m", "advisor", "simulate", good(tmp_path), "--model", str(card)]
    without += ["--engine", engine, "--years", "24000000", "--method", "crude", "--json"]
    # On a busy machine it may have all blocks before the interrupt comes: then it is asked again.
    for attempt in range(5):
        folder = tmp_path / f"blocks-{attempt}"
        line = [*without, "--checkpoint", str(folder)]
        ended, out, err = interrupted_command(line, folder)
        if len(list(folder.glob("block-*.parquet"))) < BLOCKS:
            break
    assert (ended, out) == (130, ""), err
    *_, sentence = err.splitlines()
    assert sentence.startswith(f"Interrupted; {folder} keeps the finished blocks: repeat the same ")
    assert "Traceback" not in err
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("block-*.parquet")}
    assert 0 < len(kept) < BLOCKS
    again = subprocess.run(line, **PIPES, timeout=AT_MOST_S)
    assert (again.returncode, re.findall("Traceback|Interrupted", again.stderr)) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    alone = subprocess.run(without, **PIPES, timeout=AT_MOST_S)
    assert again.stdout == alone.stdout
