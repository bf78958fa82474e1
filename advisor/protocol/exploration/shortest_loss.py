"""The shortest sequence of faults that loses an acknowledged record, or how far there is none.

The search runs over the reference itself: the faults, repairs and writes are the commands of the
scenario language, each with and without waiting for the cluster to come to rest, and what it finds
is a scenario that ``play`` runs. Each answer says how many states were seen and within which bound.
A state counts once, whether a command led to it or ``step`` passed through it on the way to rest;
all are remembered, so that two runs that meet go on as one.

One partition is looked at, on the brokers that hold its replicas: other brokers play no part.
States that differ in nothing that can matter are one (``explore_moments``). The order of a
partition's replicas decides elections, so that two replicas are not interchangeable here, even
when their logs are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.protocol.exploration.fault_actions import CAN_FAIL, CAN_MEND, EVENTS
from advisor.protocol.exploration.quiescence_cache import QuiescenceCache
from advisor.protocol.exploration.search import Found, explore, retrace
from advisor.protocol.exploration.state_equivalence import canonical_state
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import rewrite
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.invariants import lost
from advisor.protocol.simulation.state import ACTIVE, LEADER, State, broker_of
from advisor.protocol.simulation.step import step

_SHOWS_LOSS = "NoAcknowledgedRecordLost"

TOPIC = "t"
TARGET = f"{TOPIC}-0"

PAUSE_MS = 1_000
"""How long a pause between two commands is, where the cluster does not come to rest."""

FAULTS = ("kill", "stop", "power-off", "destroy", "isolate", "lag")
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
        Distinct states seen until it was found.
    """

    scenario: str
    faults: int
    states: int

    def __str__(self) -> str:
        enough = f"{_counted(self.faults, 'fault')} {'is' if self.faults == 1 else 'are'} enough"
        fewer = ", and fewer are not" if self.faults > 1 else ""
        return (
            f"{enough} to lose an acknowledged record{fewer} "
            f"({self.states:,} states seen)\n{self.scenario}"
        )


@dataclass(frozen=True, slots=True)
class NoLoss:
    """Nothing acknowledged is lost within the bound.

    Attributes
    ----------
    faults, writes : int
        Every sequence of up to so many faults and writes was tried, with any number of repairs.
    states : int
        Distinct states seen, those on the way to rest too.
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

    def __str__(self) -> str:
        bound = f"{_counted(self.faults, 'fault')} and {_counted(self.writes, 'write')}"
        if self.complete:
            return f"no acknowledged record is lost within {bound}: all {self.states:,} states seen"
        # Fewer faults came first, and were tried to the end.
        fewer = (
            f", and none at all with {_counted(self.faults - 1, 'fault')}" if self.faults else ""
        )
        return (
            f"no loss found with {bound} in up to {self.commands} commands{fewer}; "
            f"the search ended after {self.states:,} states"
        )


Left = tuple[int, tuple[int, ...], int]
"""What may still be done: faults, faults of each kind, writes."""


class Told(NamedTuple):
    """A command of a scenario, and for how long the search then waited for a period to begin."""

    line: str
    late_ms: int = 0


class Moment(NamedTuple):
    """A state of the cluster, and what may still be done to it.

    ``each_left`` are the faults left of each kind, in the order in which the kinds were given.
    ``hasty``: the last command did not wait, so that a pause may follow.
    """

    state: State
    faults_left: int
    each_left: tuple[int, ...]
    writes_left: int
    hasty: bool = False


def shortest_loss(
    config: Config,
    *,
    faults: int = 2,
    kinds: Iterable[str] | Mapping[str, int] = FAULTS,
    writes: int | None = None,
    max_states: int | None = None,
    watched: Callable[[int, int], object] | None = None,
) -> Loss | NoLoss:
    """Look for the fewest faults that lose an acknowledged record.

    Parameters
    ----------
    config : Config
        Version, controller, replication factor, min.insync.replicas, acks, unclean election.
        Each broker holds one replica; the producer does not retry.
    faults : int
        How many faults to try at most. Repairs (start, heal, catch-up) are not counted.
    kinds : iterable of str, or mapping of str to int
        Which of `FAULTS` may happen; in a mapping, each at most so many times.
    writes : int, optional
        Records written at most; left out, one before the first fault and one after each.
    max_states : int, optional
        Give up once so many states were seen.
    watched : callable, optional
        Is handed, after every command tried, the faults allowed so far and the states seen.

    Returns
    -------
    Loss or NoLoss

    Raises
    ------
    InputError
        For an unknown kind of fault or a negative bound.
    """
    most = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, faults)
    for kind in most:
        if kind not in FAULTS:
            raise InputError(f"unknown fault {kind!r}; known are {', '.join(FAULTS)}")
    if faults < 0 or min(most.values(), default=0) < 0 or (writes is not None and writes < 0):
        raise InputError("faults and writes must be at least 0")
    if max_states is not None and max_states < 1:
        raise InputError("max_states must be at least 1")
    search = _Search(config, tuple(most))
    for budget in range(faults + 1):
        allowed = budget + 1 if writes is None else writes
        each = tuple(min(at_most, budget) for at_most in most.values())
        start = Moment(search.initial, budget, each, allowed)
        found = explore(
            start,
            search.successors,
            violates=search.has_lost,
            enough=partial(_is_enough, search.rests, budget, max_states, watched),
        )
        states = len(search.rests.seen)
        if isinstance(found, Found):
            told = retrace(found.path, search.moves, lambda moment: moment)
            return Loss(search.scenario([command for command, _ in told]), budget, states)
        none = NoLoss(budget, allowed, states, found.depth, found.complete)
        if not found.complete:
            break
    return none


def _is_enough(
    rests: QuiescenceCache,
    faults: int,
    max_states: int | None,
    watched: Callable[[int, int], object] | None,
) -> bool:
    """Whether so many states were seen that the search ends; tells who watches."""
    if watched is not None:
        watched(faults, len(rests.seen))
    return max_states is not None and len(rests.seen) >= max_states


class _Search:
    """The commands that can be given, and the states they lead to."""

    def __init__(self, config: Config, kinds: tuple[str, ...]) -> None:
        self.kinds = kinds
        self.head = _head(config)
        runner = Runner()
        runner.run(parse(self.head))
        assert runner.cluster is not None
        self.settings = runner.cluster.settings
        self.producer = self.settings.config.changed(acks=config.acks, retries=0)
        self.rests = QuiescenceCache(self.settings)
        self.initial, self.first_late_ms, _ = self.rests.of(runner.cluster.state)

    def successors(self, moment: Moment) -> Iterator[Moment]:
        """The moments that one command leads to."""
        return (after for _, after in self.moves(moment))

    def moves(self, moment: Moment) -> Iterator[tuple[Told, Moment]]:
        """Each command, first as one that waits, and the moment after it.

        A command that does not wait may be followed by one second, so that what the next one
        meets includes a controller that has noticed one fault and not yet the other.
        """
        if not moment.faults_left and self._is_decided(moment.state):
            return
        hasty: list[tuple[Told, Moment]] = []
        for line, left, apply in self._commands(moment):
            state = self._same(apply(moment.state))
            rest = self.rests.of(state)
            yield Told(line, rest.late_ms), Moment(rest.state, *left)
            if rest.pending:
                hasty.append((Told(f"! {line}"), Moment(state, *left, hasty=True)))
        yield from hasty
        if moment.hasty:
            after = moment._replace(
                state=self._same(self.rests.after(moment.state, PAUSE_MS)), hasty=False
            )
            yield Told(_pause(PAUSE_MS)), after

    def _is_decided(self, state: State) -> bool:
        """Whether no repair or write can lose anything any more.

        At rest under one leader in reach of everyone: only a fault ends its leadership, so its
        log only grows, and what it acknowledges is in it.
        """
        leader, *others = _leaders(state) or (None,)
        if others or leader is None or leader != state.partitions[0].registration.leader:
            return False
        body = broker_of(state, leader)
        return body.connected and body.session == ACTIVE and self.rests.is_quiet(state)

    def has_lost(self, moment: Moment) -> bool:
        """Whether an acknowledged record is lost, and still is when the cluster is at rest."""
        state = moment.state
        if not lost(state, state.partitions[0]):
            return False
        rested = self.rests.of(state).state
        return bool(lost(rested, rested.partitions[0]))

    def scenario(self, told: list[Told]) -> str:
        """The scenario file of a sequence, with what its commands print.

        It waits for the clock phase that the search met only where the loss depends on it.
        """
        told = [Told("", self.first_late_ms), *told]
        for position, command in enumerate(told):
            hastier = [*told[:position], Told(command.line), *told[position + 1 :]]
            if _SHOWS_LOSS in self._played(hastier):
                told = hastier
        return self._played(told)

    def _played(self, told: list[Told]) -> str:
        lines = [self.head]
        for line, late_ms in told:
            lines += [line] if line else []
            lines += [_pause(late_ms)] if late_ms else []
        return rewrite("\n".join([*lines, f"consume {TARGET}", "check", ""]))

    def _commands(self, moment: Moment) -> Iterator[tuple[str, Left, Callable[[State], State]]]:
        """(line, what is left after it, what it does) of each command that makes sense."""
        state, faults_left, each_left, writes_left, _ = moment
        if writes_left:
            fewer: Left = (faults_left, each_left, writes_left - 1)
            for via in self._writable(state):
                yield self._line_of_write(via), fewer, self._write(via)
        for position, kind in enumerate(self.kinds):
            if not faults_left or not each_left[position]:
                continue
            others = (*each_left[:position], each_left[position] - 1, *each_left[position + 1 :])
            most = faults_left - 1
            fewer = (most, tuple(min(left, most) for left in others), writes_left)
            for body in state.brokers:
                if CAN_FAIL[kind](body, state):
                    yield f"{kind} {body.id}", fewer, self._event(EVENTS[kind](body.id))
        same = (faults_left, each_left, writes_left)
        for kind, possible in CAN_MEND.items():
            for body in state.brokers:
                if possible(body):
                    yield f"{kind} {body.id}", same, self._event(EVENTS[kind](body.id))

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
        return f"produce {TARGET} 1 acks={self.producer.acks} retries=0{aimed}"

    def _write(self, via: int | None) -> Callable[[State], State]:
        def apply(state: State) -> State:
            cluster = Simulation(state.brokers, self.settings)
            cluster.state = state
            cluster.produce(TOPIC, 0, 1, self.producer, via)
            return cluster.state

        return apply

    def _same(self, state: State) -> State:
        return canonical_state(state, self.settings)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _pause(milliseconds: int) -> str:
    whole, rest = divmod(milliseconds, 1_000)
    return f"! wait {milliseconds}ms" if rest else f"! wait {whole}s"


def _head(config: Config) -> str:
    """The scenario's first lines: a broker for each replica, and what differs from defaults."""
    assert config.replication_factor is not None
    brokers = range(1, config.replication_factor + 1)
    given = {
        "eligible_leader_replicas": config.eligible_leader_replicas,
        "replica_lag_time_max_ms": config.replica_lag_time_max_ms,
        "unclean_leader_election_enable": config.unclean_leader_election_enable,
    }
    extra = "".join(
        f" {name}={str(value).lower()}" for name, value in given.items() if name in config.explicit
    )
    return (
        f"cluster brokers={len(brokers)} kafka={config.kafka_version} mode={config.mode}{extra}\n"
        f"topic {TOPIC} replicas={','.join(map(str, brokers))} "
        f"min_insync_replicas={config.min_insync_replicas}"
    )


def _leaders(state: State) -> list[int]:
    """Brokers that run and take themselves for the leader."""
    copies = state.partitions[0].replicas
    return [r.broker for r in copies if r.role == LEADER and broker_of(state, r.broker).running]
