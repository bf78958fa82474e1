"""What of each real copy is on disk, as far as scenarios speak of it.

Nothing is really written through: it is noted what `flush` found, and a power failure leaves that.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.kafka_lab.observation.snapshot import CopyName
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import EMPTY, Log, Runs


class Flushed:
    """The flushed part of every copy."""

    def __init__(self) -> None:
        self._parts: dict[CopyName, Runs] = {}

    def note(self, broker: int, copies: Mapping[CopyName, Log]) -> None:
        """All that a broker has is on disk now."""
        self._parts.update({name: log.runs for name, log in copies.items() if name[0] == broker})

    def clamp(self, copies: Mapping[CopyName, Log]) -> None:
        """Forget what has been cut off since: written again, it is not yet flushed again."""
        for name, runs in self._parts.items():
            kept = common(runs, copies.get(name, EMPTY).runs)
            self._parts[name] = logs.records(Log(runs), 0, kept)

    def records(self, name: CopyName) -> int:
        """How many records of a copy a power failure leaves."""
        return sum(run.length for run in self._parts.get(name, ()))


def common(one: Runs, two: Runs) -> int:
    """How many records two logs have in common from their beginning."""
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
