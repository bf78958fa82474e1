"""Random fault scripts with a deterministic outcome on model and brokers.

Excluded, because their outcome is a race on real brokers: simultaneous faults and, under
ZooKeeper, failures of the controller. There broker 1 is the controller, without replicas and
without faults. Of several brokers that die while the quorum is stopped, the one that is fenced
first is a race as well, so one dies at most. Excluded, because they take minutes: a controlled
shutdown and requests of operators while the quorum is stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

FEWEST_STEPS, MOST_STEPS = 3, 10


@dataclass(frozen=True)
class Kind:
    """The cluster that scripts are made for.

    Attributes
    ----------
    name : str
    opening : str
        The first line of every script.
    holders : tuple of int
        The brokers that have replicas and get faults.
    kraft : bool
    """

    name: str
    opening: str
    holders: tuple[int, ...]
    kraft: bool = True


KINDS = {
    kind.name: kind
    for kind in (
        Kind("3.9-kraft", "cluster brokers=3 kafka=3.9 mode=kraft", (1, 2, 3)),
        Kind("3.9-zookeeper", "cluster brokers=4 kafka=3.9 mode=zookeeper", (2, 3, 4), False),
        Kind(
            "4.3-elr",
            "cluster brokers=3 kafka=4.3 mode=kraft eligible_leader_replicas=true",
            (1, 2, 3),
        ),
        Kind(
            "4.3-without-elr",
            "cluster brokers=3 kafka=4.3 mode=kraft eligible_leader_replicas=false",
            (1, 2, 3),
        ),
    )
}


@dataclass
class _Script:
    """The script so far, and the state that the next line depends on."""

    kind: Kind
    cuttable: bool
    lines: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    down: set[int] = field(default_factory=set)
    isolated: set[int] = field(default_factory=set)
    lagging: set[int] = field(default_factory=set)
    limping: set[int] = field(default_factory=set)
    quorum: bool = True
    struck: bool = False

    def steps(self) -> list[str]:
        """Return the possible next steps, repeated by weight."""
        if not self.quorum:
            return self._steps_without_quorum()
        well = self._well()
        found = ["produce"] * 3
        if well:
            found += ["kill"] * 3 + ["stop"] * 2 + ["power-off"] * 2
            found += ["isolate", "lag", "limp"] if self.cuttable else []
        if self.down:
            found += ["start"] * 5 + ["destroy"]
        if self.isolated:
            found += ["heal"] * 3
        if self.lagging:
            found += ["catch-up"] * 3
        if self.limping:
            found += ["recover"] * 3
        found += ["flush", "stop-quorum"]
        if not self.kind.kraft or set(self.kind.holders) - self.down - self.isolated:
            # A reachable broker must forward the request to the controller.
            found += ["elect preferred", "elect unclean", "alter"]
        return found + (["kill-controller"] if self.kind.kraft else [])

    def _steps_without_quorum(self) -> list[str]:
        found = ["produce"] * 3 + ["start-quorum"] * 2 + ["flush"]
        if self._well() and not self.struck:
            found += ["kill"] * 2 + ["power-off"]
        found += ["start"] * 2 if self.down else []
        found += ["recover"] if self.limping else []
        found += ["catch-up"] if self.lagging else []
        return found

    def _well(self) -> set[int]:
        gone = self.down | self.isolated | self.lagging | self.limping
        return set(self.kind.holders) - gone

    def add(self, step: str, broker: int, partition: str, number: int) -> None:
        """Add a step and the commands that print the state after it."""
        if step == "produce":
            acks = ("all", "all", "1")[number % 3]
            self.lines.append(f"produce {partition} {number} acks={acks} retries=0")
        elif step.startswith("elect"):
            self.lines.append(f"{step} {partition}")
        elif step == "alter":
            topic = partition.rsplit("-", 1)[0]
            self.lines.append(f"alter {topic} min_insync_replicas={number % 3 + 1}")
        elif step.endswith(("controller", "quorum")):
            self.lines.append(step)
            self.quorum = step != "stop-quorum"
            self.struck = False
        else:
            self.lines.append(f"{step} {broker}")
            self._note(step, broker)
        self.lines += [f"state {name}" for name in self.partitions]

    def candidates(self, step: str) -> list[int]:
        """Return the brokers that a step can apply to."""
        if step in ("start", "destroy"):
            return sorted(self.down)
        if step == "heal":
            return sorted(self.isolated)
        if step == "catch-up":
            return sorted(self.lagging)
        if step == "recover":
            return sorted(self.limping)
        return sorted(self._well()) or list(self.kind.holders)

    def _note(self, step: str, broker: int) -> None:
        if step in ("kill", "stop", "power-off"):
            self.down.add(broker)
            self.struck = True
        elif step == "start":
            self.down.discard(broker)
        elif step == "isolate":
            self.isolated.add(broker)
        elif step == "heal":
            self.isolated.discard(broker)
        elif step == "lag":
            self.lagging.add(broker)
        elif step == "catch-up":
            self.lagging.discard(broker)
        elif step == "limp":
            self.limping.add(broker)
        elif step == "recover":
            self.limping.discard(broker)


def _topics(draw: st.DrawFn, board: _Script) -> None:
    """Three topics: two of all replicas and one of two, each with its own settings."""
    for name, size in (("a", 3), ("b", 3), ("c", 2)):
        replicas = draw(st.permutations(board.kind.holders))[:size]
        floor = draw(st.integers(1, size))
        unclean = draw(st.sampled_from(("", "", " unclean_leader_election_enable=true")))
        listed = ",".join(map(str, replicas))
        board.lines.append(f"topic {name} replicas={listed} min_insync_replicas={floor}{unclean}")
        board.partitions.append(f"{name}-0")


@st.composite
def scripts(draw: st.DrawFn, kind: Kind, cuttable: bool = True) -> str:
    """The text of a random scenario.

    Parameters
    ----------
    draw : callable
        Hypothesis'.
    kind : Kind
    cuttable : bool
        Whether connections can be cut on this machine.
    """
    board = _Script(kind, cuttable, [kind.opening])
    _topics(draw, board)
    board.lines += [f"produce {name} 4 acks=all retries=0" for name in board.partitions]
    for _ in range(draw(st.integers(FEWEST_STEPS, MOST_STEPS))):
        step = draw(st.sampled_from(board.steps()))
        broker = draw(st.sampled_from(board.candidates(step)))
        partition = draw(st.sampled_from(board.partitions))
        board.add(step, broker, partition, draw(st.integers(1, 6)))
    if not board.quorum:
        board.add("start-quorum", 0, board.partitions[0], 1)
    for step in ("heal", "catch-up", "recover", "start"):
        for broker in board.candidates(step):
            board.add(step, broker, board.partitions[0], 1)
    looks = [f"log {b} {p}" for p in board.partitions for b in kind.holders]
    board.lines += [*looks, *(f"consume {p}" for p in board.partitions), "check"]
    return "\n".join(board.lines) + "\n"
