"""Short stories of faults that would end differently if one rule of the reduction were broken.

The reference and the reduction live through each, are compared after every fault, and end as is
written here: the reference is told in which order a controller that is back decides, and the rules
of `advisor.protocol.rules.controller` are those of both, so agreement alone would not show a change
of these. `tests/support/telling_traces.py` finds more of them.
"""

from typing import NamedTuple

import pytest

from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from agreement_cluster import NAMES, Move
from agreement_search import configuration
from agreement_twin import Experiment

ELECTION_LOSS = Effect.LOSS | Effect.ELECTION_LOSS


class Story(NamedTuple):
    """Rules, replicas, min ISR and acks; what happens; and how it ends.

    The losses are those of all events together, the conditions those of the slots in order.
    """

    settings: tuple[str, int, int, str | int]
    faults: str
    leader: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    losses: int = 0


STORIES = {
    "the leader is fenced first and the follower stays electable": Story(
        ("3.9", 2, 1, "all"), "QUORUM_LOST 0; ISOLATE 0; ISOLATE 1; QUORUM_BACK 0; BACK 0",
        leader=NO_LEADER, isr=(1,),
    ),
    "a replica that was cut off is fenced after one that crashed": Story(
        ("3.9", 3, 1, "all"), "QUORUM_LOST 0; CRASH 2; ISOLATE 0; ISOLATE 1; QUORUM_BACK 0; BACK 2",
        leader=NO_LEADER, isr=(1,),
    ),
    "the replica that lacks most is fenced last, leads and loses": Story(
        ("3.9", 3, 1, 1), "QUORUM_LOST 0; LAG 1; ISOLATE 0,1,2; QUORUM_BACK 0; BACK 1",
        leader=1, isr=(1,), losses=Effect.TAIL | ELECTION_LOSS,
    ),
    "a destroyed replica is fenced last and leads, empty": Story(
        ("3.9", 2, 1, "all"), "QUORUM_LOST 0; ISOLATE 0; DESTROY 1; QUORUM_BACK 0; REPLACED 1",
        leader=1, isr=(1,), losses=ELECTION_LOSS,
    ),
    "who was cut off without a controller stopped cleanly": Story(
        ("4.2", 2, 2, "all"), "QUORUM_LOST 0; ISOLATE 0; ISOLATE 1; QUORUM_BACK 0; BACK 1",
        leader=1, isr=(1,), elr=(0,),
    ),
    "who crashed without a controller did not": Story(
        ("4.2", 2, 2, "all"), "QUORUM_LOST 0; CRASH 0; CRASH 1; QUORUM_BACK 0; BACK 1",
        leader=NO_LEADER, isr=(), elr=(0,),
    ),
    "who crashed, waits to register and crashes again did not": Story(
        ("4.2", 2, 2, "all"),
        "ISOLATE 0; CRASH 1; QUORUM_LOST 0; BACK 1; CRASH 1; QUORUM_BACK 0; BACK 1",
        leader=NO_LEADER, isr=(), elr=(0,),
    ),
    "who stopped, waits to register and crashes has stopped cleanly": Story(
        ("4.2", 2, 2, "all"),
        "STOP 0; STOP 1; QUORUM_LOST 0; BACK 1; CRASH 1; QUORUM_BACK 0; BACK 1",
        leader=1, isr=(1,), elr=(0,),
    ),
    "the operator waits for the electable replica that may return": Story(
        ("4.2", 3, 3, "all"), "CRASH 2; ISOLATE 0; ISOLATE 1; BACK 2; DESTROY 0",
        leader=NO_LEADER, isr=(), elr=(0, 1),
    ),
    "the operator elects when none may return": Story(
        ("4.2", 3, 3, "all"), "CRASH 2; ISOLATE 0; ISOLATE 1; BACK 2; DESTROY 0; DESTROY 1",
        leader=2, isr=(2,),
    ),
    "a new ZooKeeper controller leaves the last broker in the ISR": Story(
        ("2.8", 3, 1, "all"),
        "QUORUM_LOST 0; ISOLATE 0; ISOLATE 1; ISOLATE 2; QUORUM_BACK 0; BACK 0; BACK 1",
        leader=NO_LEADER, isr=(2,),
    ),
}  # fmt: skip


def moves_of(faults: str) -> list[Move]:
    """Read "CRASH 0; BACK 0,1"."""
    written = [fault.split() for fault in faults.split(";")]
    return [Move(NAMES.index(name), tuple(map(int, at.split(",")))) for name, at in written]


def test_moves_are_read_by_their_names() -> None:
    """Each name stands at the number of its event."""
    assert all(getattr(red, name) == number for number, name in enumerate(NAMES[:10]))


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_how_it_ends(story: Story) -> None:
    """Both fidelities agree after every fault, and on how it ends."""
    rules, replicas, min_isr, acks = story.settings
    experiment = Experiment(
        configuration(rules, replicas, min_isr, acks, False),
        page_cache=True,
        apart=True,
        quorum=True,
    )
    twin, losses = experiment.start(), 0
    for move in moves_of(story.faults):
        assert move in experiment.moves(twin, together=True)
        losses |= experiment.transition_table.step(twin.number, *move)[1].losses
        twin = experiment.step(twin, move)
    reference, reduced = experiment.cluster, experiment.transition_table.states[twin.number]
    assert (reference.leader, set(reference.record.isr), set(reference.record.elr)) == (
        story.leader,
        set(story.isr),
        set(story.elr),
    )
    on_record = reduced.registration
    assert (on_record.leader, on_record.isr, on_record.elr) == (story.leader, story.isr, story.elr)
    assert red.is_readable(reduced) == (story.leader != NO_LEADER)
    assert losses == story.losses
