"""What a setting costs, in words: bytes stored and sent, waiting, and the copies to make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.advice.candidate import Candidate
from advisor.advice.migration.moves import Move
from advisor.advice.phrases import count_in_words
from advisor.cluster.topic import INTERNAL_TOPICS
from advisor.formatting import significant
from advisor.reliability.results.cost import in_bytes


def cost_words(choice: Candidate, moves: Sequence[Move], each: Mapping[str, float]) -> str:
    """Return the cost of a setting in one sentence.

    Parameters
    ----------
    choice : Candidate
    moves : sequence of Move
        What has to be copied to get there.
    each : mapping of str to float
        Bytes of a replica, by topic; those of Kafka's own topics are small.
    """
    cost = choice.reliability.cost
    copies = sum(move.copies for move in moves)
    of_users = [move for move in moves if move.topic not in INTERNAL_TOPICS]
    loaded = sum(move.copies for move in of_users)
    moved = f"; the change copies {count_in_words(copies, 'replica')}" if copies else ""
    if loaded:
        moved += f", {in_bytes(sum(move.copies * each[move.topic] for move in of_users))}"
        moved += " without Kafka's own topics" if loaded < copies else ""
    waiting = (
        f"an acknowledgement waits about {significant(cost.acknowledgement_ms)} ms for followers"
        if choice.config.acks == "all"
        else "an acknowledgement waits for no follower"
    )
    return (
        f"It costs {in_bytes(choice.bytes_stored)} stored and "
        f"{in_bytes(cost.bytes_per_second_between_brokers)}/s to followers, "
        f"{cost.between_racks_text}; {waiting}{moved}."
    )
