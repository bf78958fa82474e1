"""The reference as a twin needs it: one partition, one fault at a time, quiet in between.

Slots are broker ids, and every fault is spelled in the reduction's words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import Spans
from advisor.protocol.rules import controller, election
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.admin_requests import write
from advisor.protocol.simulation.cluster import LEADER_NOT_AVAILABLE, Simulation
from advisor.protocol.simulation.invariants import lost
from advisor.protocol.simulation.state import (
    ACTIVE,
    STOPPING,
    Broker,
    Partition,
    Settings,
    State,
    broker_of,
    current_leader,
    replica_of,
)
from advisor.reliability.partition import reduced_state as red

# One record would do; two tell "some" from "all".
WRITTEN = 2
NAMES = (
    "CRASH", "ISOLATE", "STOP", "POWER", "DESTROY", "BACK", "REPLACED", "COPIED", "LAG",
    "CAUGHT_UP", "EARLY_POWER", "LIMP", "RECOVERED", "QUORUM_LOST", "QUORUM_STOPPED", "QUORUM_BACK",
)  # fmt: skip
_EVENTS = {
    red.CRASH: ev.Kill, red.ISOLATE: ev.Isolate, red.STOP: ev.Stop, red.POWER: ev.PowerOff,
    red.DESTROY: ev.Destroy, red.LAG: ev.Lag, red.CAUGHT_UP: ev.CatchUp, red.COPIED: ev.CatchUp,
    red.LIMP: ev.Limp, red.RECOVERED: ev.Recover,
}  # fmt: skip


class Move(NamedTuple):
    """An event and the slots that it strikes."""

    event: int
    slots: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{NAMES[self.event]} {','.join(map(str, self.slots))}"


class DivergedError(Exception):
    """Before 2.0.1: truncation after a loss did what the reduction does not know."""


class Cluster:
    """One partition; under ZooKeeper one broker more than it has replicas never fails.

    Else nobody would be the controller when all others are down, and nothing would be written
    until one is back: the reduction knows only clusters that have a controller.

    Parameters
    ----------
    config : Config
    apart : bool
        The ZooKeeper controller is none of the brokers; otherwise slot 0 is it at first.

    Attributes
    ----------
    state : State
        Set it to go on from another moment.
    """

    def __init__(self, config: Config, apart: bool) -> None:
        assert config.replication_factor is not None
        # A lagging follower leaves the ISR well before the producer loses its patience.
        self.config = config.changed(
            retries=0,
            replica_lag_time_max_ms=2_000,
            request_timeout_ms=8_000,
            delivery_timeout_ms=None if config.delivery_timeout_ms is None else 9_000,
            retry_backoff_ms=10_000,
        )
        self.slots = tuple(range(config.replication_factor))
        unclean = bool(config.unclean_leader_election_enable)
        self.policy = Policy(config.effective_min_insync_replicas, unclean, config.rules)
        spare = () if apart or config.rules.mode == "kraft" else (len(self.slots),)
        self._simulation = Simulation(
            tuple(Broker(broker) for broker in (*self.slots, *spare)), Settings(self.config)
        )
        if apart:
            self.state = self.state._replace(controller_broker=-1)
        assert config.min_insync_replicas is not None
        self.apply(ev.CreateTopic("t", (self.slots,), config.min_insync_replicas, unclean))
        self.settle()
        if config.acks != "all" or self.policy.min_isr <= len(self.slots):
            assert self.produce(WRITTEN) is None
            self.settle()

    @property
    def state(self) -> State:
        """The reference."""
        return self._simulation.state

    @state.setter
    def state(self, state: State) -> None:
        self._simulation.state = state

    @property
    def partition(self) -> Partition:
        """The partition in the reference."""
        return self.state.partitions[0]

    @property
    def record(self) -> Registration:
        """What the controller knows of it."""
        return self.partition.registration

    @property
    def leader(self) -> int:
        """The slot that leads and can be reached."""
        led = current_leader(self.state, self.partition)
        return NO_LEADER if led is None or not self.up(led.broker) else led.broker

    def apply(self, event: object) -> None:
        """One event of the reference's own."""
        self._simulation.apply(event)

    def settle(self) -> None:
        """Until quiet, high watermarks at their checkpoint.

        Before 0.11 a broker whose log is longer than its leader's ends itself, if elections are
        clean: there a comparison ends.
        """
        brokers = self.state.brokers
        stopping = [b.id for b in brokers if b.session == STOPPING or b.stops_by_ms is not None]
        up = [slot for slot in self.slots if self.up(slot) and slot not in stopping]
        self._simulation.settle()
        if not all(self.up(slot) for slot in up):
            self._diverged()

    def up(self, slot: int) -> bool:
        """Whether a broker runs and can be reached."""
        body = broker_of(self.state, slot)
        return body.running and body.connected

    def fetching(self, slot: int) -> bool:
        """Whether a broker does not lag."""
        return broker_of(self.state, slot).fetching

    def _well(self, slot: int) -> bool:
        """Whether a broker neither lags nor limps."""
        return self.fetching(slot) and not broker_of(self.state, slot).limping

    def held(self, slot: int, values: Spans) -> int:
        """How many of some values a slot's log holds."""
        copy = replica_of(self.partition, slot)
        assert copy is not None
        return logs.size(values) - logs.size(logs.without(values, logs.spans(copy.log.runs)))

    def produce(self, count: int) -> str | None:
        """Send records; the error, None if they were acknowledged."""
        if self.leader == NO_LEADER:
            # acks=0 would take anything for sent to a leader that is only on record.
            return LEADER_NOT_AVAILABLE
        return self._simulation.produce("t", 0, count, self.config)

    def flush(self) -> None:
        """Every log is on disk."""
        for slot in self.slots:
            self.apply(ev.Flush(slot))

    def strike(self, move: Move) -> None:
        """All slots are struck before the controller notices the first, the leader first."""
        leader = self.leader
        order = sorted(move.slots, key=lambda slot: slot != leader)
        for slot in order:
            if move.event in _EVENTS:
                self.apply(_EVENTS[move.event](slot))
                if move.event == red.STOP and not self.state.has_quorum:
                    # It asks for another leader until it gives up.
                    self.settle()
                if broker_of(self.state, slot).limping and move.event != red.LIMP:
                    # A broker that was down no longer limps.
                    self.apply(ev.Recover(slot))
                continue
            if not broker_of(self.state, slot).connected:
                self.apply(ev.Heal(slot))
            if not broker_of(self.state, slot).running:
                self.apply(ev.Start(slot))
        fell = leader in order and not self.up(leader)
        if fell and self.state.has_quorum and broker_of(self.state, leader).session == ACTIVE:
            # Nothing else happens before the sessions end, all in the same moment.
            self.apply(ev.Advance(self._simulation.settings.session_timeout_ms))
            self.apply(ev.Expire(leader))

    def stop_quorum(self) -> None:
        """No controller from now on."""
        self.apply(ev.StopQuorum())

    def start_quorum(self, fallen: Iterable[int], waiting: Iterable[int]) -> None:
        """The controller is back; sessions end, and brokers register, in the order given.

        Kafka orders neither: all sessions end in the same moment.
        """
        self.apply(ev.StartQuorum())
        settings = self._simulation.settings
        self.apply(ev.Advance(settings.failover_ms))
        self.apply(ev.TakeOver())
        self.apply(ev.Advance(settings.session_timeout_ms))
        for slot in fallen:
            self.apply(ev.Expire(slot))
        for slot in waiting:
            self.apply(ev.Register(slot))
            self.apply(ev.Unfence(slot))

    def set_fetching(self, slot: int, fetching: bool) -> None:
        """Let a broker copy or not."""
        if self.fetching(slot) != fetching:
            self.apply(ev.CatchUp(slot) if fetching else ev.Lag(slot))

    def elect_what_is_left(self, values: Spans, destroyed: frozenset[int]) -> bool:
        """The operator's unclean election, if its time has come; whether it was.

        He waits for replicas that Kafka could elect and for those that hold more of the values
        than any that is up, unless their disks are gone.
        """
        up = [slot for slot in self.slots if self.up(slot)]
        down = [slot for slot in self.slots if not self.up(slot) and slot not in destroyed]
        record = self.record
        electable = record.isr or record.elr or record.last_known_elr
        if not self.state.has_quorum:
            return False
        if record.leader != NO_LEADER or not up or set(electable) & set(down):
            return False
        best = min(up, key=lambda s: (-self.held(s, values), not self._well(s), s))
        if any(self.held(slot, values) > self.held(best, values) for slot in down):
            return False
        elected = controller.elected_by_operator(
            record, election.UNCLEAN, frozenset((best,)), self.policy
        )
        self.state, _ = write(self.state, 0, elected)
        self.settle()
        return True

    def rebalance(self) -> None:
        """A partition that is whole goes back to its preferred leader."""
        well = all(self.up(slot) and self._well(slot) for slot in self.slots)
        if not well or set(self.record.isr) != set(self.slots) or self.leader == NO_LEADER:
            return
        if self.leader != 0:
            self.apply(ev.Elect("t", 0, election.PREFERRED))
            self.settle()

    def expect_equal_logs(self) -> None:
        """Before 2.0.1 in-sync replicas may differ after a loss: there a comparison ends."""
        if self.config.rules.truncate_on_every_epoch or self.leader == NO_LEADER:
            return
        copies = [replica_of(self.partition, slot) for slot in self.record.isr]
        kept = {copy.log.runs for copy in copies if copy is not None}
        # 0.8.2 never finds a follower of an empty log behind.
        empty = self.config.rules.lag_max_messages and not any(kept)
        if len(kept) > 1 or empty:
            self._diverged()

    def lost(self, known: Iterable[tuple[int, int]]) -> Spans:
        """What is lost and was not known to be."""
        return logs.without(lost(self.state, self.partition), logs.merged(known))

    def _diverged(self) -> None:
        assert not self.config.rules.truncate_on_every_epoch, self.partition
        raise DivergedError
