"""Whether a sample has the same bytes after a SIGKILL at random moments.

Run it with ``python bench/kill_moments.py``; it takes some minutes. A Python worker, a standalone
worker and the driver are each killed at ten moments; the driver is started again with the same
checkpoint.
"""

from __future__ import annotations

import sys
from pathlib import Path

MOMENTS, SEED = 10, 7
KILLED = {
    "python": "a Python worker",
    "standalone": "a standalone worker",
    "driver": "the driver",
}


def main() -> None:
    """Print a line for each kind of process, and the sum."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
    from kills import swept

    same = struck = 0
    for kind, words in KILLED.items():
        found = swept(kind, MOMENTS, SEED)
        print(f"{words}: same bytes after {found['same']} of {found['struck']} kills", flush=True)
        same, struck = same + found["same"], struck + found["struck"]
    print(f"together: {same} of {struck}")


if __name__ == "__main__":
    main()
