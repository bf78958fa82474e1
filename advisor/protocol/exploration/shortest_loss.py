"""Search for the fewest faults that lose an acknowledged record, over the full simulation.

Transitions are scenario commands (faults, repairs, writes), each with and without waiting for
quiescence, so a loss is reported as a scenario that ``play`` reproduces. All states are counted,
those after a command and those that ``step`` passes through on the way to quiescence.

The model has one partition, and only the brokers that hold its replicas. Equivalent states are
merged (``state_equivalence``). There is no symmetry reduction: the order of the replica list
decides elections, so replicas with equal logs are not exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.protocol.exploration.fault_actions import EVENTS, FAULT_ENABLED, REPAIR_ENABLED
from advisor.protocol.exploration.quiescence_cache import QuiescenceCache
from advisor.protocol.exploration.search import Violation, explore, retrace
from advisor.protocol.exploration.state_equivalence import canonical_state
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import rewrite
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.invariants import lost
from advisor.protocol.simulation.state import ACTIVE, LEADER, State, broker_of
from advisor.protocol.simulation.step import step

_LOSS_INVARIANT = "NoAcknowledgedRecordLost"

TOPIC = "t"
TARGET = f"{TOPIC}-0"

PAUSE_MS = 1_000
"""Pause after a command that does not wait for quiescence."""

FAULTS = ("kill", "stop", "power-off", "destroy", "isolate", "lag")
"""Verbs of the scenario language that count as faults."""

CRASHES = ("kill", "power-off", "destroy")
"""Faults that end a broker's process without a controlled shutdown."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A shortest loss of an acknowledged record.

    Attributes
    ----------
    scenario : str
        Scenario that shows the loss; run it with ``play``.
    faults : int
        Faults in it. No sequence with fewer faults loses a record.
    states : int
        Distinct states visited until it was found.

    See Also
    --------
    shortest_loss : Searches for it.
    """

    scenario: str
    faults: int
    states: int

    def __str__(self) -> str:
        verb = "is" if self.faults == 1 else "are"
        enough = f"{_with_unit(self.faults, 'fault')} {verb} enough"
        fewer = ", and fewer are not" if self.faults > 1 else ""
        return (
            f"{enough} to lose an acknowledged record{fewer} "
            f"({self.states:,} states seen)\n{self.scenario}"
        )


@dataclass(frozen=True, slots=True)
class NoLoss:
    """No acknowledged record is lost within the bounds.

    Attributes
    ----------
    faults, writes : int
        Bounds: all sequences of up to this number of faults and writes were searched, with any
        number of repairs.
    states : int
        Distinct states visited, including those on the way to quiescence.
    commands : int
        Commands to the furthest state.
    complete : bool
        False if ``max_states`` stopped the search; then only sequences of up to ``commands``
        commands were searched.

    See Also
    --------
    shortest_loss : Searches for a loss.
    """

    faults: int
    writes: int
    states: int
    commands: int
    complete: bool

    def __str__(self) -> str:
        bound = f"{_with_unit(self.faults, 'fault')} and {_with_unit(self.writes, 'write')}"
        if self.complete:
            return f"no acknowledged record is lost within {bound}: all {self.states:,} states seen"
        # Searches with fewer faults came first and were complete.
        fewer = (
            f", and none at all with {_with_unit(self.faults - 1, 'fault')}" if self.faults else ""
        )
        return (
            f"no loss found with {bound} in up to {self.commands} commands{fewer}; "
            f"the search ended after {self.states:,} states"
        )


Budget = tuple[int, tuple[int, ...], int]
"""Faults left, faults left of each kind, writes left."""


class ScenarioLine(NamedTuple):
    """A command, and the time the search then waited for a period to begin."""

    line: str
    wait_ms: int = 0


class SearchState(NamedTuple):
    """A cluster state and the faults and writes still allowed.

    Attributes
    ----------
    state : State
    faults_left : int
    kinds_left : tuple of int
        Faults left of each kind, in the order of the search's kinds.
    writes_left : int
    unsettled : bool
        The last command did not wait for quiescence, so a pause may follow.
    """

    state: State
    faults_left: int
    kinds_left: tuple[int, ...]
    writes_left: int
    unsettled: bool = False


def shortest_loss(
    config: Config,
    *,
    faults: int = 2,
    kinds: Iterable[str] | Mapping[str, int] = FAULTS,
    writes: int | None = None,
    max_states: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Loss | NoLoss:
    """Search for the fewest faults that lose an acknowledged record.

    Parameters
    ----------
    config : Config
        Kafka version and mode, replication factor, min.insync.replicas, acks, unclean election,
        ELR and replica.lag.time.max.ms. Each broker holds one replica; the producer does not retry.
    faults : int
        Largest number of faults. Repairs (start, heal, catch-up) are not limited.
    kinds : iterable of str, or mapping of str to int
        The `FAULTS` to consider; a mapping limits the number of each kind.
    writes : int, optional
        Largest number of records written. Default: one more than the number of faults.
    max_states : int, optional
        Stop after this number of distinct states. Default: no limit.
    progress : callable, optional
        Called after every transition with the number of faults allowed at that stage and the
        number of states visited.

    Returns
    -------
    Loss or NoLoss
        `Loss` with a scenario, or `NoLoss` with the bounds searched.

    Raises
    ------
    InputError
        For an unknown kind of fault or a negative bound.

    See Also
    --------
    advisor.protocol.scenario.player.play : Runs the scenario of a `Loss`.

    Examples
    --------
    >>> config = Config(replication_factor=2, min_insync_replicas=1, acks=1, kafka_version="3.9")
    >>> loss = shortest_loss(config, faults=1, kinds=["kill"])
    >>> print(loss)  # doctest: +NORMALIZE_WHITESPACE
    1 fault is enough to lose an acknowledged record (41 states seen)
    cluster brokers=2 kafka=3.9 mode=kraft
    topic t replicas=1,2 min_insync_replicas=1
    ! produce t-0 1 acks=1 retries=0
    > acked 1
    kill 1
    consume t-0
    > read 0
    check
    > NoAcknowledgedRecordLost t-0: lost 1 of 1 acknowledged records
    >>> safe = Config(replication_factor=2, min_insync_replicas=2, acks="all", kafka_version="3.9")
    >>> shortest_loss(safe, faults=1, kinds=["kill"], writes=1).complete
    True
    """
    limits = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, faults)
    for kind in limits:
        if kind not in FAULTS:
            raise InputError(f"unknown fault {kind!r}; known are {', '.join(FAULTS)}")
    if faults < 0 or min(limits.values(), default=0) < 0 or (writes is not None and writes < 0):
        raise InputError("faults and writes must be at least 0")
    if max_states is not None and max_states < 1:
        raise InputError("max_states must be at least 1")
    search = _Search(config, tuple(limits))
    for allowed_faults in range(faults + 1):
        allowed_writes = allowed_faults + 1 if writes is None else writes
        kinds_left = tuple(min(limit, allowed_faults) for limit in limits.values())
        start = SearchState(search.initial, allowed_faults, kinds_left, allowed_writes)
        outcome = explore(
            start,
            search.successors,
            violates=search.has_lost,
            should_stop=partial(
                _reached_limit, search.quiescence, allowed_faults, max_states, progress
            ),
        )
        states = len(search.quiescence.seen)
        if isinstance(outcome, Violation):
            steps = retrace(outcome.path, search.moves, lambda node: node)
            return Loss(search.scenario([line for line, _ in steps]), allowed_faults, states)
        no_loss = NoLoss(allowed_faults, allowed_writes, states, outcome.depth, outcome.complete)
        if not outcome.complete:
            break
    return no_loss


def _reached_limit(
    quiescence: QuiescenceCache,
    faults: int,
    max_states: int | None,
    progress: Callable[[int, int], object] | None,
) -> bool:
    """Report progress; whether ``max_states`` is reached."""
    if progress is not None:
        progress(faults, len(quiescence.seen))
    return max_states is not None and len(quiescence.seen) >= max_states


class _Search:
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

        A command without waiting may be followed by a one-second pause. This covers a controller
        that has detected one fault but not the next.
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
        """Whether no sequence of repairs and writes can lose a record.

        True at quiescence with a single, connected leader: only a fault ends its leadership, so
        its log only grows and holds every record it acknowledges.
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
        """Scenario text of a command sequence, with its output.

        Waits for a clock phase are kept only where the loss depends on them.
        """
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
            for broker in state.brokers:
                if FAULT_ENABLED[kind](broker, state):
                    yield f"{kind} {broker.id}", budget, self._event(EVENTS[kind](broker.id))
        budget = (faults_left, kinds_left, writes_left)
        for kind, enabled in REPAIR_ENABLED.items():
            for broker in state.brokers:
                if enabled(broker):
                    yield f"{kind} {broker.id}", budget, self._event(EVENTS[kind](broker.id))

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


def _with_unit(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


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
