"""How fast the main pieces are, as ratios against a peer in the same run.

Ratios travel between machines; seconds do not. Run it with ``make bench``.
"""

from __future__ import annotations

import audit
import decision
import exact
import redraw
import sampling
from stopwatch import seconds

from advisor import Config
from advisor.lessons.specification.model_checker import check
from advisor.protocol.exploration.shortest_loss import CRASHES, shortest_loss


def search() -> tuple[str, float, str, float]:
    """A state of the reference against a state of the public specification."""
    found = []
    config = Config(kafka_version="3.9", replication_factor=3, min_insync_replicas=2, acks="all")
    reference = seconds(
        lambda: found.append(shortest_loss(config, faults=2, kinds=CRASHES, writes=1)), 2
    )
    spec = check("Kip101", 2, 2, 2, 2)
    specification = seconds(lambda: check("Kip101", 2, 2, 2, 2), 2) / spec.distinct_states
    return (
        "a state of the reference's search",
        reference / found[-1].states,
        "a state of the specification's",
        specification,
    )


def main() -> None:
    """Print a line for each comparison."""
    exact.main()
    for compare in (*sampling.COMPARED, *decision.COMPARED, search, *audit.COMPARED):
        ours, taken, peer, other = compare()
        print(
            f"{ours}: {taken * 1e6:,.1f} us; {peer}: {other * 1e6:,.1f} us; "
            f"ratio {taken / other:.2g}"
        )
    sampling.main()
    redraw.main()


if __name__ == "__main__":
    main()
