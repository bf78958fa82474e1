"""Types, beside the other tests: what `make types` checks."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_types() -> None:
    """The command of `make types` has nothing to say."""
    command = re.search(
        r"^types:.*\n\t\$\(PY\) (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert command is not None
    line = [sys.executable, *command[1].split()]
    checked = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
