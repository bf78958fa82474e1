"""The shortest sequence of faults that loses an acknowledged record, or how far there is none.

The search runs over the reference itself: the faults, repairs and writes are the commands of the
scenario language, each with and without waiting for the cluster to come to rest, and what it finds
is a scenario that ``play`` runs. Each answer says how many states were seen and within which bound.

One partition is looked at, on the brokers that hold its replicas: other brokers play no part. States
that differ only in their clock, in counters that are merely compared, or in books kept for the
checks are one. The order of a partition's replicas decides elections, so that two replicas are not
interchangeable here even when their logs are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.protocol import events as ev
from advisor.protocol import log as logs
from advisor.protocol.config import Config
from advisor.protocol.explore import Found, explore, retrace
from advisor.protocol.explore_moments import same_moment
from advisor.protocol.schedule import settle
from advisor.protocol.simulation import REST_MS, Simulation
from advisor.protocol.state import LEADER, Broker, Partition, Settings, State, broker_of, leading
from advisor.protocol.step import step

TOPIC = "t"
TARGET = f"{TOPIC}-0"

FAULTS = ("kill", "power-off", "destroy", "isolate", "lag")
"""What counts as a fault, in the scenario language's words."""

CRASHES = ("kill", "power-off", "destroy")
"""The faults that end a broker's process."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An acknowledged record is lost.

    Attributes
    ----------
    scenario : str
        A scenario file: run it with ``play``.
    faults : int
        Faults in it. No sequence with fewer loses a record.
    states : int
        States seen until it was found.
    """

    scenario: str
    faults: int
    states: int


@dataclass(frozen=True, slots=True)
class NoLoss:
    """Nothing acknowledged is lost within the bound.

    Attributes
    ----------
    faults, writes : int
        Every sequence of up to so many faults and writes was tried, with any number of repairs.
    states : int
        States seen.
    commands : int
        Commands to the furthest state.
    complete : bool
        False when ``max_states`` ended the search: then only sequences of up to ``commands``
        commands were tried.
    """

    faults: int
    writes: int
    states: int
    commands: int
    complete: bool


class Moment(NamedTuple):
    """A state of the cluster, and what may still be done to it."""

    state: State
    faults_left: int
    writes_left: int


def shortest_loss(
    config: Config,
    *,
    faults: int = 2,
    kinds: Iterable[str] = FAULTS,
    writes: int | None = None,
    max_states: int | None = None,
) -> Loss | NoLoss:
    """Look for the fewest faults that lose an acknowledged record.

    Parameters
    ----------
    config : Config
        Version, controller, replication factor, min.insync.replicas, acks, unclean election.
        Each broker holds one replica; the producer does not retry.
    faults : int
        How many faults to try at most. Repairs (start, heal, catch-up) are not counted.
    kinds : iterable of str
        Which of `FAULTS` may happen.
    writes : int, optional
        Records written at most; left out, one before the first fault and one after each.
    max_states : int, optional
        Give up once so many states were seen in one round (a round for each number of faults).

    Returns
    -------
    Loss or NoLoss

    Raises
    ------
    InputError
        For an unknown kind of fault or a negative bound.
    """
    kinds = tuple(kinds)
    for kind in kinds:
        if kind not in FAULTS:
            raise InputError(f"unknown fault {kind!r}; known are {', '.join(FAULTS)}")
    if faults < 0 or (writes is not None and writes < 0):
        raise InputError("faults and writes must be at least 0")
    seen = 0
    for budget in range(faults + 1):
        allowed = budget + 1 if writes is None else writes
        search = _Search(config, kinds)
        start = Moment(search.initial, budget, allowed)
        found = explore(start, search.successors, violates=search.has_lost, max_states=max_states)
        seen += found.states
        if isinstance(found, Found):
            told = retrace(found.path, search.moves, lambda moment: moment)
            return Loss(search.scenario([line for line, _ in told]), budget, seen)
        if not found.complete:
            break
    return NoLoss(budget, allowed, seen, found.depth, found.complete)


class _Search:
    """The commands that can be given, and the states they lead to."""

    def __init__(self, config: Config, kinds: tuple[str, ...]) -> None:
        assert config.replication_factor is not None
        assert config.min_insync_replicas is not None
        self.config = config
        self.kinds = kinds
        self.settings = Settings.of(config)
        self.producer = config.changed(retries=0, enable_idempotence=False)
        self.brokers = tuple(range(1, config.replication_factor + 1))
        created = ev.CreateTopic(
            TOPIC,
            (self.brokers,),
            config.min_insync_replicas,
            bool(config.unclean_leader_election_enable),
        )
        state, _ = step(State(tuple(map(Broker, self.brokers))), created, self.settings)
        self.initial = self._rested(state)

    def successors(self, moment: Moment) -> Iterator[Moment]:
        """The moments that one command leads to."""
        return (after for _, after in self.moves(moment))

    def moves(self, moment: Moment) -> Iterator[tuple[str, Moment]]:
        """Each command, first as one that waits, and the moment after it."""
        hasty: list[tuple[str, Moment]] = []
        for line, cost, apply in self._commands(moment):
            state = apply(moment.state)
            faults_left, writes_left = moment.faults_left - cost[0], moment.writes_left - cost[1]
            yield line, Moment(self._rested(state), faults_left, writes_left)
            hasty.append((f"! {line}", Moment(self._same(state), faults_left, writes_left)))
        yield from hasty

    def has_lost(self, moment: Moment) -> bool:
        """Whether an acknowledged record is gone for good.

        No log holds it, or the whole cluster is up and at rest and its leader does not serve it.
        """
        state = moment.state
        partition = state.partitions[0]
        anywhere = logs.merged(
            span for replica in partition.replicas for span in logs.spans(replica.log.runs)
        )
        if logs.without(partition.acked, anywhere):
            return True
        leader = leading(state, partition)
        if leader is None or not logs.without(partition.acked, logs.spans(leader.log.runs)):
            return False
        healthy = all(b.running and b.connected and b.fetching for b in state.brokers)
        return healthy and self._rested(state) == self._same(state)

    def scenario(self, lines: list[str]) -> str:
        """The scenario file of a found sequence."""
        config = self.config
        head = [
            f"# Found by exhaustive search: the fewest faults that lose an acknowledged record.",
            f"cluster brokers={len(self.brokers)} kafka={config.kafka_version} mode={config.mode}",
            f"topic {TOPIC} replicas={','.join(map(str, self.brokers))} "
            f"min_insync_replicas={config.min_insync_replicas}",
        ]
        return "\n".join([*head, *lines, f"consume {TARGET}", "check", ""])

    def _commands(
        self, moment: Moment
    ) -> Iterator[tuple[str, tuple[int, int], Callable[[State], State]]]:
        """(line, (faults, writes) it costs, what it does) of each command that makes sense now."""
        if moment.writes_left:
            for via in self._writable(moment.state):
                yield self._line_of_write(via), (0, 1), self._write(via)
        if moment.faults_left:
            for kind in self.kinds:
                for body in moment.state.brokers:
                    if _CAN_FAIL[kind](body, moment.state):
                        yield f"{kind} {body.id}", (1, 0), self._event(_EVENTS[kind](body.id))
        for kind, possible in _CAN_MEND.items():
            for body in moment.state.brokers:
                if possible(body):
                    yield f"{kind} {body.id}", (0, 0), self._event(_EVENTS[kind](body.id))

    def _event(self, event: Any) -> Callable[[State], State]:
        return lambda state: step(state, event, self.settings)[0]

    def _writable(self, state: State) -> Iterator[int | None]:
        """None: the recorded leader takes writes; a broker: so does a zombie, from its own side."""
        recorded = state.partitions[0].registration.leader
        for replica in state.partitions[0].replicas:
            body = broker_of(state, replica.broker)
            if replica.role == LEADER and body.running:
                plain = replica.broker == recorded and body.connected
                yield None if plain else replica.broker

    def _line_of_write(self, via: int | None) -> str:
        aimed = "" if via is None else f" via={via}"
        return f"produce {TARGET} 1 acks={self.config.acks} retries=0{aimed}"

    def _write(self, via: int | None) -> Callable[[State], State]:
        def apply(state: State) -> State:
            cluster = Simulation(state.brokers, self.settings)
            cluster.state = state
            cluster.produce(TOPIC, 0, 1, self.producer, via)
            return cluster.state

        return apply

    def _rested(self, state: State) -> State:
        return self._same(settle(state, self.settings, REST_MS)[0])

    def _same(self, state: State) -> State:
        return same_moment(state, self.settings)


def _runs(body: Broker, _state: State) -> bool:
    return body.running


_CAN_FAIL: dict[str, Callable[[Broker, State], bool]] = {
    "kill": _runs,
    "power-off": _runs,
    "destroy": lambda body, state: body.running or _has_data(state.partitions[0], body.id),
    "isolate": lambda body, _state: body.connected,
    "lag": lambda body, _state: body.running and body.fetching,
}

_CAN_MEND: dict[str, Callable[[Broker], bool]] = {
    "start": lambda body: not body.running,
    "heal": lambda body: not body.connected,
    "catch-up": lambda body: not body.fetching,
}

_EVENTS: dict[str, Callable[[int], Any]] = {
    "kill": ev.Kill,
    "power-off": ev.PowerOff,
    "destroy": ev.Destroy,
    "isolate": ev.Isolate,
    "lag": ev.Lag,
    "start": ev.Start,
    "heal": ev.Heal,
    "catch-up": ev.CatchUp,
}


def _has_data(partition: Partition, broker: int) -> bool:
    return any(r.broker == broker and r.log.leo > 0 for r in partition.replicas)
