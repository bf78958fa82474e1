"""Track how much of each replica log a power failure preserves.

`flush` in a scenario does not call fsync; the log at that moment is recorded, and a simulated
power failure truncates the log to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.kafka_lab.observation.snapshot import ReplicaKey
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import EMPTY, Log, Runs


class FlushedOffsets:
    """The flushed prefix of every replica log."""

    def __init__(self) -> None:
        self._parts: dict[ReplicaKey, Runs] = {}

    def note(self, broker: int, copies: Mapping[ReplicaKey, Log]) -> None:
        """Record all logs of a broker as flushed."""
        self._parts.update({name: log.runs for name, log in copies.items() if name[0] == broker})

    def clamp(self, copies: Mapping[ReplicaKey, Log]) -> None:
        """Drop records truncated since; if rewritten, they are unflushed."""
        for name, runs in self._parts.items():
            kept = common_prefix_length(runs, copies.get(name, EMPTY).runs)
            self._parts[name] = logs.records(Log(runs), 0, kept)

    def records(self, name: ReplicaKey) -> int:
        """Return the number of records of a replica that a power failure preserves."""
        return sum(run.length for run in self._parts.get(name, ()))


def common_prefix_length(one: Runs, two: Runs) -> int:
    """Return the length of the common prefix of two logs, in records."""
    offset = 0
    left, right = list(one), list(two)
    while left and right:
        a, b = left.pop(0), right.pop(0)
        if (a.epoch, a.first) != (b.epoch, b.first):
            break
        length = min(a.length, b.length)
        offset += length
        for runs, run in ((left, a), (right, b)):
            if run.length > length:
                runs.insert(0, run._replace(first=run.first + length, length=run.length - length))
    return offset
