"""Transition relation of the fault search: scenario commands applied to simulation states.

A `SearchState` is a cluster state with the faults and writes still allowed. Each enabled fault,
repair or write leads to the state at quiescence after it, and to the state right after it. Without
commands the simulation is deterministic: every state on the way to quiescence is stored with its
successor and with the quiescent state at the end, so no step is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from advisor.protocol.exploration.state_equivalence import canonical_state, period_of
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import rewrite
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import REST_MS, Simulation
from advisor.protocol.simulation.invariants import lost
from advisor.protocol.simulation.scheduler import (
    MAX_STEPS,
    next_event,
    no_quiescence_error,
    run_for,
)
from advisor.protocol.simulation.state import (
    ACTIVE,
    LEADER,
    Broker,
    Partition,
    Settings,
    State,
    broker_of,
)
from advisor.protocol.simulation.step import step


def _is_running(broker: Broker, _state: State) -> bool:
    return broker.running


# verb -> (event, whether it changes anything)
_FAULTS: dict[str, tuple[Callable[[int], Any], Callable[[Broker, State], bool]]] = {
    "kill": (ev.Kill, _is_running),
    "stop": (ev.Stop, _is_running),
    "power-off": (ev.PowerOff, _is_running),
    "destroy": (ev.Destroy, lambda b, s: b.running or _has_data(s.partitions[0], b.id)),
    "isolate": (ev.Isolate, lambda broker, _state: broker.connected),
    "lag": (ev.Lag, lambda broker, _state: broker.running and broker.fetching),
}
_REPAIRS: dict[str, tuple[Callable[[int], Any], Callable[[Broker], bool]]] = {
    "start": (ev.Start, lambda broker: not broker.running),
    "heal": (ev.Heal, lambda broker: not broker.connected),
    "catch-up": (ev.CatchUp, lambda broker: not broker.fetching),
}


def _has_data(partition: Partition, broker: int) -> bool:
    return any(r.broker == broker and r.log.leo > 0 for r in partition.replicas)


class Quiescence(NamedTuple):
    """The quiescent state that a state leads to, canonical, at the start of a period.

    wait_ms: time from quiescence to the start of that period.
    pending: whether any event happened on the way.
    """

    state: State
    wait_ms: int
    pending: bool


class _CacheEntry:
    """Successor and quiescent state of one state, as far as they are known."""

    __slots__ = ("quiescence", "quiet", "successor")

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.successor: State | None = None
        self.quiescence: Quiescence | None = None


class QuiescenceCache:
    """Maps states to the quiescent states that they lead to.

    seen: has a key for every state looked up, passed on the way to quiescence, or quiescent.
    """

    def __init__(self, settings: Settings) -> None:
        self.seen: dict[State, _CacheEntry] = {}
        self._settings = settings
        self._period_ms = period_of(settings)

    def settle(self, state: State) -> Quiescence:
        """Run a state to quiescence and on to the start of the next period of periodic work."""
        entry = self.seen.setdefault(state, _CacheEntry())
        return self._run(state, entry) if entry.quiescence is None else entry.quiescence

    def is_quiet(self, state: State) -> bool:
        """Whether no event follows without a command."""
        entry = self.seen.get(state)
        return (entry is not None and entry.quiet) or not self.settle(state).pending

    def advance(self, state: State, milliseconds: int) -> State:
        """The state after a time; events due immediately are taken from the cache."""
        now_ms = state.now_ms
        while (entry := self.seen.get(state)) is not None:
            if entry.successor is None or entry.successor.now_ms != now_ms:
                break
            state = entry.successor
        return run_for(state, self._settings, milliseconds)[0]

    def _run(self, state: State, entry: _CacheEntry) -> Quiescence:
        """Step until no event is left or a state with a known quiescent state is reached."""
        passed: list[_CacheEntry] = []
        while entry.quiescence is None:
            event = next_event(state, self._settings)
            if event is None:
                entry.quiescence = self._at_next_period(state)
                break
            if len(passed) >= MAX_STEPS:
                raise no_quiescence_error(state, event)
            passed.append(entry)
            state, _ = step(state, event, self._settings)
            entry.successor = state
            entry = self.seen.setdefault(state, _CacheEntry())
        quiescence = entry.quiescence
        if passed:
            quiescence = quiescence._replace(pending=True)
            for entry in passed:
                entry.quiescence = quiescence
        return quiescence

    def _at_next_period(self, state: State) -> Quiescence:
        """Wait the settling time, then until a period of the periodic work begins."""
        settled, _ = step(state, ev.Advance(REST_MS), self._settings)
        wait_ms = -settled.now_ms % self._period_ms
        if wait_ms:
            settled, _ = step(settled, ev.Advance(wait_ms), self._settings)
        canonical = canonical_state(settled, self._settings)
        self.seen.setdefault(canonical, _CacheEntry(quiet=True))
        return Quiescence(canonical, wait_ms, False)


_LOSS_INVARIANT = "NoAcknowledgedRecordLost"

TOPIC = "t"
TARGET = f"{TOPIC}-0"

PAUSE_MS = 1_000
"""Pause after a command that does not wait for quiescence."""

Budget = tuple[int, tuple[int, ...], int]
"""Faults left, faults left of each kind, writes left."""


class ScenarioLine(NamedTuple):
    """A command, and the time the search then waited for a period to begin."""

    line: str
    wait_ms: int = 0


class SearchState(NamedTuple):
    """A cluster state and the faults and writes still allowed.

    unsettled: the last command did not wait for quiescence, so a pause may follow.
    """

    state: State
    faults_left: int
    kinds_left: tuple[int, ...]
    writes_left: int
    unsettled: bool = False


class Transitions:
    """Transition relation of the search, for one config."""

    def __init__(self, config: Config, kinds: tuple[str, ...]) -> None:
        self.kinds = kinds
        self.head = _head(config)
        runner = Runner()
        runner.run(parse(self.head))
        assert runner.cluster is not None
        self.settings = runner.cluster.settings
        self.producer = self.settings.config.changed(acks=config.acks, retries=0)
        self.quiescence = QuiescenceCache(self.settings)
        self.initial, self.initial_wait_ms, _ = self.quiescence.settle(runner.cluster.state)

    def successors(self, node: SearchState) -> Iterator[SearchState]:
        """States that one command leads to."""
        return (after for _, after in self.moves(node))

    def moves(self, node: SearchState) -> Iterator[tuple[ScenarioLine, SearchState]]:
        """Each command with the state after it: first with waiting, then without.

        A one-second pause after a command covers a controller that has detected one fault of two.
        """
        if not node.faults_left and self._cannot_lose(node.state):
            return
        unsettled: list[tuple[ScenarioLine, SearchState]] = []
        for line, budget, apply in self._commands(node):
            state = self._canonical(apply(node.state))
            settled = self.quiescence.settle(state)
            yield ScenarioLine(line, settled.wait_ms), SearchState(settled.state, *budget)
            if settled.pending:
                after = SearchState(state, *budget, unsettled=True)
                unsettled.append((ScenarioLine(f"! {line}"), after))
        yield from unsettled
        if node.unsettled:
            state = self._canonical(self.quiescence.advance(node.state, PAUSE_MS))
            yield ScenarioLine(_pause(PAUSE_MS)), node._replace(state=state, unsettled=False)

    def _cannot_lose(self, state: State) -> bool:
        """Whether no repair or write can lose a record: at rest with a single, connected leader.

        Only a fault ends its leadership, so its log holds every record that it acknowledges.
        """
        leader, *others = _leaders(state) or (None,)
        if others or leader is None or leader != state.partitions[0].registration.leader:
            return False
        broker = broker_of(state, leader)
        return broker.connected and broker.session == ACTIVE and self.quiescence.is_quiet(state)

    def has_lost(self, node: SearchState) -> bool:
        """Whether an acknowledged record is lost, now and at quiescence."""
        state = node.state
        if not lost(state, state.partitions[0]):
            return False
        settled = self.quiescence.settle(state).state
        return bool(lost(settled, settled.partitions[0]))

    def scenario(self, lines: list[ScenarioLine]) -> str:
        """Scenario of some commands with its output, and only the waits that the loss needs."""
        lines = [ScenarioLine("", self.initial_wait_ms), *lines]
        for position, command in enumerate(lines):
            shorter = [*lines[:position], ScenarioLine(command.line), *lines[position + 1 :]]
            if _LOSS_INVARIANT in self._play(shorter):
                lines = shorter
        return self._play(lines)

    def _play(self, commands: list[ScenarioLine]) -> str:
        lines = [self.head]
        for line, wait_ms in commands:
            lines += [line] if line else []
            lines += [_pause(wait_ms)] if wait_ms else []
        return rewrite("\n".join([*lines, f"consume {TARGET}", "check", ""]))

    def _commands(
        self, node: SearchState
    ) -> Iterator[tuple[str, Budget, Callable[[State], State]]]:
        """Enabled commands: (line, budget after it, function that applies it)."""
        state, faults_left, kinds_left, writes_left, _ = node
        if writes_left:
            budget: Budget = (faults_left, kinds_left, writes_left - 1)
            for via in self._writable(state):
                yield self._produce_line(via), budget, self._produce(via)
        for position, kind in enumerate(self.kinds):
            if not faults_left or not kinds_left[position]:
                continue
            after = (*kinds_left[:position], kinds_left[position] - 1, *kinds_left[position + 1 :])
            remaining = faults_left - 1
            budget = (remaining, tuple(min(left, remaining) for left in after), writes_left)
            event, has_effect = _FAULTS[kind]
            for broker in state.brokers:
                if has_effect(broker, state):
                    yield f"{kind} {broker.id}", budget, self._event(event(broker.id))
        budget = (faults_left, kinds_left, writes_left)
        for kind, (event, needed) in _REPAIRS.items():
            for broker in state.brokers:
                if needed(broker):
                    yield f"{kind} {broker.id}", budget, self._event(event(broker.id))

    def _event(self, event: Any) -> Callable[[State], State]:
        return lambda state: step(state, event, self.settings)[0]

    def _writable(self, state: State) -> Iterator[int | None]:
        """Brokers that accept writes: None for the registered leader, an id for a stale one."""
        registered = state.partitions[0].registration.leader
        for replica in state.partitions[0].replicas:
            broker = broker_of(state, replica.broker)
            if replica.role == LEADER and broker.running:
                is_current = replica.broker == registered and broker.connected
                yield None if is_current else replica.broker

    def _produce_line(self, via: int | None) -> str:
        option = "" if via is None else f" via={via}"
        return f"produce {TARGET} 1 acks={self.producer.acks} retries=0{option}"

    def _produce(self, via: int | None) -> Callable[[State], State]:
        def apply(state: State) -> State:
            cluster = Simulation(state.brokers, self.settings)
            cluster.state = state
            cluster.produce(TOPIC, 0, 1, self.producer, via)
            return cluster.state

        return apply

    def _canonical(self, state: State) -> State:
        return canonical_state(state, self.settings)


def _pause(milliseconds: int) -> str:
    whole, rest = divmod(milliseconds, 1_000)
    return f"! wait {milliseconds}ms" if rest else f"! wait {whole}s"


def _head(config: Config) -> str:
    """First lines of the scenario: one broker for each replica, and the configs set explicitly."""
    assert config.replication_factor is not None
    brokers = range(1, config.replication_factor + 1)
    configs = {
        "eligible_leader_replicas": config.eligible_leader_replicas,
        "replica_lag_time_max_ms": config.replica_lag_time_max_ms,
        "unclean_leader_election_enable": config.unclean_leader_election_enable,
    }
    extra = "".join(
        f" {name}={str(value).lower()}"
        for name, value in configs.items()
        if name in config.explicit
    )
    return (
        f"cluster brokers={len(brokers)} kafka={config.kafka_version} mode={config.mode}{extra}\n"
        f"topic {TOPIC} replicas={','.join(map(str, brokers))} "
        f"min_insync_replicas={config.min_insync_replicas}"
    )


def _leaders(state: State) -> list[int]:
    """Running brokers that act as leader, whether or not they are the registered one."""
    replicas = state.partitions[0].replicas
    return [r.broker for r in replicas if r.role == LEADER and broker_of(state, r.broker).running]
