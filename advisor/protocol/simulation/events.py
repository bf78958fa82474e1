"""What can happen to a cluster, and what is seen of it: plain data.

The first group comes from outside (faults and acts), the second is the cluster's own work, which
``schedule`` finds enabled; ``step`` takes either.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.log.replica_log import Span
from advisor.protocol.rules.partition_registration import Replicas

# ---- from outside ---------------------------------------------------------------------------


class Kill(NamedTuple):
    """The process dies at once; disk and page cache survive."""

    broker: int


class PowerOff(NamedTuple):
    """The host dies: what was not flushed is gone, or all but ``keep`` records of each log."""

    broker: int
    keep: int | None = None


class Destroy(NamedTuple):
    """The broker and its disk are gone."""

    broker: int


class Stop(NamedTuple):
    """Controlled shutdown."""

    broker: int


class Start(NamedTuple):
    """The process starts (on an empty disk if the old one was destroyed)."""

    broker: int


class Isolate(NamedTuple):
    """Nobody but its own clients reaches the broker."""

    broker: int


class Heal(NamedTuple):
    """The broker is reachable again."""

    broker: int


class Lag(NamedTuple):
    """The broker's followers stop copying; it stays alive."""

    broker: int


class CatchUp(NamedTuple):
    """The broker's followers copy again."""

    broker: int


class KillController(NamedTuple):
    """The controller dies; another takes over after the failover time."""


class Flush(NamedTuple):
    """The broker's logs are written to disk."""

    broker: int


class Produce(NamedTuple):
    """A producer's request reaches a broker; ``first`` is the first of ``records`` new values."""

    topic: str
    partition: int
    broker: int
    first: int
    records: int
    acks: str | int
    idempotent: bool = False


class GiveUp(NamedTuple):
    """The producer of a span no longer waits; a late success would reach nobody."""

    topic: str
    partition: int
    span: Span


class RequestDropped(NamedTuple):
    """An acks=0 request that reached nobody, of which its producer knows nothing."""

    topic: str
    partition: int
    span: Span


class CreateTopic(NamedTuple):
    """A new topic: the replicas of each partition."""

    topic: str
    assignment: tuple[Replicas, ...]
    min_insync_replicas: int = 1
    unclean: bool = False


class GrowTopic(NamedTuple):
    """More partitions for a topic."""

    topic: str
    assignment: tuple[Replicas, ...]


class DeleteTopic(NamedTuple):
    """The topic and its logs go."""

    topic: str


class AlterTopic(NamedTuple):
    """Topic settings change; None leaves one."""

    topic: str
    min_insync_replicas: int | None = None
    unclean: bool | None = None


class Elect(NamedTuple):
    """An operator's election: ``kind`` is "preferred" or "unclean"."""

    topic: str
    partition: int
    kind: str


class Reassign(NamedTuple):
    """New replicas for a partition; None calls a running reassignment off.

    ``throttle`` is how many records a second each new replica may copy, 0: as many as there are.
    """

    topic: str
    partition: int
    replicas: Replicas | None
    throttle: int = 0


class AlterIsr(NamedTuple):
    """The current leader's proposal, put to the controller by hand (``only=controller``)."""

    topic: str
    partition: int
    isr: Replicas


class ReportShutdown(NamedTuple):
    """A new registration says how the broker's last life ended; the session stays as it is."""

    broker: int
    clean: bool


class Advance(NamedTuple):
    """Time passes."""

    milliseconds: int


# ---- the cluster's own work -----------------------------------------------------------------


class TakeOver(NamedTuple):
    """A new controller begins to act."""


class Expire(NamedTuple):
    """The controller gives a silent broker up."""

    broker: int


class CompleteShutdown(NamedTuple):
    """A broker in controlled shutdown leads nothing any more and ends."""

    broker: int


class Register(NamedTuple):
    """The controller accepts a started broker."""

    broker: int


class Unfence(NamedTuple):
    """The controller lets a registered broker lead and join."""

    broker: int


class ApplyMetadata(NamedTuple):
    """A broker hears of the controller's record of a partition."""

    position: int
    broker: int


class SubmitIsr(NamedTuple):
    """A leader's proposal reaches the controller, and the answer the leader."""

    position: int
    broker: int


class Fetch(NamedTuple):
    """One round trip of a follower; not ``answered``: the request arrives, the answer is lost."""

    position: int
    broker: int
    answered: bool = True


class ShrinkIsr(NamedTuple):
    """A leader looks for followers that lag."""

    position: int
    broker: int


class Recheck(NamedTuple):
    """A leader looks at its high watermark and its waiting requests again."""

    position: int
    broker: int


class SweepUnclean(NamedTuple):
    """KRaft's periodic look for leaderless partitions that may elect uncleanly."""

    position: int


# ---- what is seen ---------------------------------------------------------------------------


class Acked(NamedTuple):
    """A producer got its success for a span of values."""

    topic: str
    partition: int
    span: Span


class Failed(NamedTuple):
    """A producer got an error for a span of values."""

    topic: str
    partition: int
    span: Span
    error: str


class Truncated(NamedTuple):
    """A replica cut its log."""

    topic: str
    partition: int
    broker: int
    before: int
    after: int


class Elected(NamedTuple):
    """The controller's record has another leader (-1: none)."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int


class Halted(NamedTuple):
    """A broker ended itself: its log was longer than its leader's (0.8 to 0.10)."""

    broker: int


class Refused(NamedTuple):
    """An operator's or leader's request was answered with an error in Kafka's name."""

    error: str


Effect = Acked | Failed | Truncated | Elected | Halted | Refused
Effects = tuple[Effect, ...]

NONE: Effects = ()
