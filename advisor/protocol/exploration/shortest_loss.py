"""Search for the fewest faults that lose an acknowledged record, over the full simulation.

Transitions are scenario commands (faults, repairs, writes), each with and without waiting for
quiescence, so a loss is a scenario that ``play`` reproduces. There is one partition, and only its
brokers. Replicas with equal logs are not exchangeable: their order decides elections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from advisor.errors import InputError
from advisor.protocol.exploration.search import Violation, explore
from advisor.protocol.exploration.transitions import QuiescenceCache, SearchState, Transitions
from advisor.protocol.rules.config import Config

FAULTS = ("kill", "stop", "power-off", "destroy", "isolate", "lag")
"""Verbs of the scenario language that count as faults."""

CRASHES = ("kill", "power-off", "destroy")
"""Faults that end a broker's process without a controlled shutdown."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A scenario with the fewest faults that lose an acknowledged record.

    states: distinct states visited until it was found.
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
    """No acknowledged record is lost within the bounds on faults and writes.

    states: distinct states visited, including those on the way to quiescence.
    commands: commands to the furthest state.
    complete: False if ``max_states`` stopped the search; then only sequences of up to ``commands``
        commands were searched.
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

    config: as a scenario has it. Each broker holds one replica; the producer does not retry.
    faults: largest number of faults. Repairs (start, heal, catch-up) are not limited.
    kinds: the `FAULTS` to consider; a mapping limits the number of each kind.
    writes: largest number of records written. Default: one more than the number of faults.
    progress: called after every transition with the number of faults allowed at that stage and the
        number of states visited.

    >>> config = Config(replication_factor=2, min_insync_replicas=1, acks=1, kafka_version="3.9")
    >>> print(shortest_loss(config, faults=1, kinds=["kill"]))  # doctest: +NORMALIZE_WHITESPACE
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
    """
    limits = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, faults)
    for kind in limits:
        if kind not in FAULTS:
            raise InputError(f"unknown fault {kind!r}; known are {', '.join(FAULTS)}")
    if faults < 0 or min(limits.values(), default=0) < 0 or (writes is not None and writes < 0):
        raise InputError("faults and writes must be at least 0")
    if max_states is not None and max_states < 1:
        raise InputError("max_states must be at least 1")
    search = Transitions(config, tuple(limits))
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
            lines = [
                next(line for line, reached in search.moves(before) if reached == after)
                for before, after in pairwise(outcome.path)
            ]
            return Loss(search.scenario(lines), allowed_faults, states)
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


def _with_unit(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
