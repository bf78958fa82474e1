"""A long cell that is interrupted leaves its notebook usable, whatever it was doing."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).resolve().parents[2]
SETUP = """
import advisor
cluster = advisor.Cluster.uniform(6, 3)
config = advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all")
model, load = advisor.load_model("three_az_cloud"), advisor.Workload(partitions=12)
few = dict(years=64, seed=1, engine=ENGINE)
"""
AT_MOST_S = 120.0


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


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_sample_is_interrupted(kernel, engine: str) -> None:
    """The cell ends at once, and the next ones compute, sample and plot as before."""
    client, manager = kernel
    assert run(client, SETUP.replace("ENGINE", repr(engine))) == ("ok", "")
    first = "before = advisor.simulate(cluster, config, model, load, **few)"
    assert run(client, first) == ("ok", "")
    client.execute("advisor.simulate(cluster, config, model, load, **{**few, 'years': 10_000_000})")
    time.sleep(5.0)
    manager.interrupt_kernel()
    begun = time.monotonic()
    told = client.get_shell_msg(timeout=AT_MOST_S)
    assert told["content"].get("ename") == "KeyboardInterrupt"
    assert time.monotonic() - begun < 30.0
    assert run(client, "advisor.evaluate(cluster, config, model, load).plot()") == ("ok", "")
    again = "after = advisor.simulate(cluster, config, model, load, **few)"
    assert run(client, again) == ("ok", "")
    assert run(client, "assert after.to_dict() == before.to_dict()") == ("ok", "")
