"""Events that change a cluster, and their observable effects, as plain data.

External events (faults, client and operator requests) come first, then the cluster's internal
events, which ``scheduler.enabled`` generates; ``step`` takes both.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.log.replica_log import Span
from advisor.protocol.rules.partition_registration import Replicas

# ---- external events ------------------------------------------------------------------------


class Kill(NamedTuple):
    """The process is killed; disk and page cache survive."""

    broker: int


class PowerOff(NamedTuple):
    """The host loses power: the unflushed tail of each log, or all but `keep` records, is lost."""

    broker: int
    keep: int | None = None


class Destroy(NamedTuple):
    """The broker and its disk are lost."""

    broker: int


class Stop(NamedTuple):
    """A controlled shutdown."""

    broker: int


class Start(NamedTuple):
    """The process starts, with an empty disk if the old one was destroyed."""

    broker: int


class Isolate(NamedTuple):
    """The broker is cut off from the other brokers and the controller, not from its clients."""

    broker: int


class Heal(NamedTuple):
    """The broker is reachable again."""

    broker: int


class Lag(NamedTuple):
    """The broker's replica fetchers stop; it stays alive."""

    broker: int


class CatchUp(NamedTuple):
    """The broker's replica fetchers run again."""

    broker: int


class Limp(NamedTuple):
    """The broker limps: it serves clients and keeps its session, but replicates nothing.

    A leader that limps removes every follower that lacks records from the ISR and stays leader;
    where it follows, it leaves the ISR itself. Lasts until `Recover`, restarts included.
    """

    broker: int


class Recover(NamedTuple):
    """The broker no longer limps."""

    broker: int


class Wipe(NamedTuple):
    """The logs of several brokers are gone at the same moment, and their processes with them."""

    brokers: tuple[int, ...]


class KillController(NamedTuple):
    """The controller fails, if there is a quorum; another takes over after the failover time."""


class StopQuorum(NamedTuple):
    """The controller quorum stops: all KRaft controllers, or ZooKeeper.

    Until `StartQuorum` nothing that needs the controller happens; brokers go on with their roles.
    """


class StartQuorum(NamedTuple):
    """The controller quorum is back with all that it had recorded; sessions begin anew."""


class Flush(NamedTuple):
    """The broker's logs are flushed to disk."""

    broker: int


class Produce(NamedTuple):
    """A produce request reaches a broker, with values ``first`` to ``first + records - 1``."""

    topic: str
    partition: int
    broker: int
    first: int
    records: int
    acks: str | int
    idempotent: bool = False


class GiveUp(NamedTuple):
    """The producer stops waiting for a span; a later success is not delivered."""

    topic: str
    partition: int
    span: Span


class RequestDropped(NamedTuple):
    """An acks=0 request is lost; its producer does not notice."""

    topic: str
    partition: int
    span: Span


class CreateTopic(NamedTuple):
    """A new topic, with the replicas of each partition."""

    topic: str
    assignment: tuple[Replicas, ...]
    min_insync_replicas: int = 1
    unclean: bool = False


class GrowTopic(NamedTuple):
    """More partitions for a topic."""

    topic: str
    assignment: tuple[Replicas, ...]


class DeleteTopic(NamedTuple):
    """The topic and its logs are deleted."""

    topic: str


class AlterTopic(NamedTuple):
    """Topic settings change; None leaves one unchanged."""

    topic: str
    min_insync_replicas: int | None = None
    unclean: bool | None = None


class Elect(NamedTuple):
    """An operator's election; `kind` is "preferred" or "unclean"."""

    topic: str
    partition: int
    kind: str


class Reassign(NamedTuple):
    """New replicas for a partition; None cancels. ``throttle``: records a second, 0: no limit."""

    topic: str
    partition: int
    replicas: Replicas | None
    throttle: int = 0


class AlterIsr(NamedTuple):
    """An ISR proposed in the leader's name (``only=controller``)."""

    topic: str
    partition: int
    isr: Replicas


class ReportShutdown(NamedTuple):
    """A registration reports how the broker last shut down; its session does not change."""

    broker: int
    clean: bool


class Advance(NamedTuple):
    """Time passes."""

    milliseconds: int


# ---- internal events ------------------------------------------------------------------------


class TakeOver(NamedTuple):
    """A new controller becomes active."""


class Expire(NamedTuple):
    """The session of a silent broker expires."""

    broker: int


class CompleteShutdown(NamedTuple):
    """A broker in controlled shutdown leads nothing any more and stops."""

    broker: int


class Register(NamedTuple):
    """The controller accepts a started broker."""

    broker: int


class Unfence(NamedTuple):
    """The controller unfences a registered broker: it may lead and join ISRs."""

    broker: int


class ApplyMetadata(NamedTuple):
    """A broker applies the controller's record of a partition."""

    position: int
    broker: int


class SubmitIsr(NamedTuple):
    """A leader's ISR proposal reaches the controller, and the response the leader."""

    position: int
    broker: int


class Fetch(NamedTuple):
    """One fetch request; if not ``answered``, the request arrives and the response is lost."""

    position: int
    broker: int
    answered: bool = True


class ShrinkIsr(NamedTuple):
    """A leader removes out-of-sync followers from the ISR."""

    position: int
    broker: int


class Recheck(NamedTuple):
    """A leader checks its high watermark and delayed requests again."""

    position: int
    broker: int


class SweepUnclean(NamedTuple):
    """KRaft's periodic unclean election of a leaderless partition."""

    position: int


# ---- effects --------------------------------------------------------------------------------


class Acked(NamedTuple):
    """A producer got a success for a span of values."""

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
    """A replica truncated its log."""

    topic: str
    partition: int
    broker: int
    before: int
    after: int


class Elected(NamedTuple):
    """The controller recorded another leader (-1: none)."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int


class Halted(NamedTuple):
    """A broker halted because its log was longer than its leader's (0.8 to 0.10)."""

    broker: int


class Refused(NamedTuple):
    """An operator's or leader's request was rejected with an error, in Kafka's name."""

    error: str


Effect = Acked | Failed | Truncated | Elected | Halted | Refused
Effects = tuple[Effect, ...]

NONE: Effects = ()
