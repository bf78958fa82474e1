"""What a setting costs, in words: bytes stored and sent, waiting, and the copies to make."""

from __future__ import annotations

from advisor.advice.choice import Choice
from advisor.advice.phrases import count
from advisor.formatting import significant
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.workload import Workload


def cost_words(choice: Choice, copies: int, load: Workload) -> str:
    """Return the cost of a setting in one sentence.

    Parameters
    ----------
    choice : Choice
    copies : int
        Replicas that have to be copied to get there.
    load : Workload
        Of which each replica holds one partition.
    """
    cost = choice.reliability.cost
    moved = (
        f"; the change copies {count(copies, 'replica')}, "
        f"{in_bytes(copies * load.retained_bytes / load.partitions)}"
        if copies
        else ""
    )
    waiting = (
        f"an acknowledgement waits about {significant(cost.acknowledgement_ms)} ms for followers"
        if choice.config.acks == "all"
        else "an acknowledgement waits for no follower"
    )
    return (
        f"It costs {in_bytes(cost.bytes_stored)} stored and "
        f"{in_bytes(cost.bytes_per_second_between_brokers)}/s to followers, {cost.abroad}; "
        f"{waiting}{moved}."
    )


def more_stored(other: Choice, best: Choice) -> str:
    """Return what another setting stores: "4.1 TB stored instead of 3.1 TB"."""
    theirs, ours = (in_bytes(c.reliability.cost.bytes_stored) for c in (other, best))
    return f"{theirs} stored instead of {ours}"
