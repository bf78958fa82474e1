"""How Python calls the compiled kernels."""

import subprocess
import sys

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
