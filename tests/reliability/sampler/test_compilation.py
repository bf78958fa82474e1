"""The kernels are compiled once for all processes: `make test` begins with this file."""

import subprocess
import sys

from compiled_kernels import METHODS, compile_kernels

READY = """
from advisor.reliability.sampler.compiled import kernel
from advisor.reliability.sampler.cycles import kernel as cycles
from advisor.reliability.sampler.splitting import kernel as splitting

print(kernel.run.is_ready, cycles.run.is_ready, splitting.run.is_ready)
"""


def test_other_processes_find_what_one_compiled() -> None:
    """One process compiles all kernels, what they share once; another one finds them ready."""
    compile_kernels()
    asked = [sys.executable, "-c", READY]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"] * len(METHODS)
