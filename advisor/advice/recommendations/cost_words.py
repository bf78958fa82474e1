"""What a setting costs, in words: bytes stored and sent, waiting, and the copies to make."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.advice.choice import Choice
from advisor.advice.migration.moves import Move
from advisor.advice.phrases import count_in_words
from advisor.cluster.topic import INTERNAL_TOPICS
from advisor.formatting import significant
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.workload import Workload


def cost_words(choice: Choice, moves: Sequence[Move], load: Workload) -> str:
    """Return the cost of a setting in one sentence.

    Parameters
    ----------
    choice : Choice
    moves : sequence of Move
        What has to be copied to get there.
    load : Workload
        Of which each replica holds one partition; those of Kafka's own topics are small.
    """
    cost = choice.reliability.cost
    copies = sum(move.copies for move in moves)
    loaded = sum(move.copies for move in moves if move.topic not in INTERNAL_TOPICS)
    moved = f"; the change copies {count_in_words(copies, 'replica')}" if copies else ""
    if loaded:
        moved += f", {in_bytes(loaded * load.retained_bytes / load.partitions)}"
        moved += " without Kafka's own topics" if loaded < copies else ""
    waiting = (
        f"an acknowledgement waits about {significant(cost.acknowledgement_ms)} ms for followers"
        if choice.config.acks == "all"
        else "an acknowledgement waits for no follower"
    )
    return (
        f"It costs {in_bytes(cost.bytes_stored)} stored and "
        f"{in_bytes(cost.bytes_per_second_between_brokers)}/s to followers, "
        f"{cost.between_racks_text}; {waiting}{moved}."
    )


def more_stored(other: Choice, best: Choice) -> str:
    """Return what another setting stores: "4.1 TB stored instead of 3.1 TB"."""
    theirs, ours = (in_bytes(c.reliability.cost.bytes_stored) for c in (other, best))
    return f"{theirs} stored instead of {ours}"
