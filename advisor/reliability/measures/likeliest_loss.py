"""The most probable way from all replicas in sync to a loss, through the chain of one replica set.

The rate of a path is that of its first transition, times the probabilities of the following ones
and the chance that records are lost at the end (Dijkstra's shortest path, with -log p as lengths).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from advisor.reliability.case import Case, ChainParameters
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.measures import replica_set
from advisor.reliability.measures.solved_chain import SolvedChain
from advisor.reliability.results.fault_tolerance import LossPath, LossStep
from advisor.reliability.solver.generator import Vector

# scipy takes an edge of length 0 for a missing one; this length changes no probability.
_SHORTEST = 1e-15


def likeliest_loss(case: Case) -> LossPath | None:
    """Return the path of the replica sets on which it is most frequent; None without any loss."""
    paths = [
        (path, sets.partitions)
        for pattern, sets in case.patterns.items()
        if (path := _likeliest_on(pattern, case.chain)) is not None
    ]
    if not paths:
        return None
    return max(paths, key=lambda path_on_sets: path_on_sets[0].per_year * path_on_sets[1])[0]


@lru_cache(maxsize=256)
def _likeliest_on(pattern: tuple[int, ...], parameters: ChainParameters) -> LossPath | None:
    """Path of one replica set; `pattern` is the rack number of each replica."""
    solved = replica_set.solve(pattern, parameters)
    events = solved.chances.events
    total = float((solved.flux * events).sum())
    if not total:
        return None
    transitions = _shortest(solved, np.minimum(events, 1.0))
    steps = tuple(_step(solved, index) for index in transitions)
    per_hour = _flow_along(solved, [int(solved.chain.rate[index]) for index in transitions])
    return LossPath(steps, per_hour * HOURS_PER_YEAR, min(per_hour / total, 1.0))


def _flow_along(solved: SolvedChain, names: list[int]) -> float:
    """Loss events per hour on all paths with these names of rates, whichever brokers they strike.

    A leader and a follower that are struck by the same make two paths of the chain.
    """
    chain = solved.chain
    flow: Vector = np.zeros(chain.states)
    flow[0] = solved.pi[0]
    leaves = (chain.target != 0) & (chain.source != chain.target)
    for step, name in enumerate(names):
        rate = np.where(chain.rate == name, solved.rate, 0.0)
        moved = flow[chain.source] * rate
        if step:
            moved /= solved.generator.out[chain.source]
        if step == len(names) - 1:
            return float((moved * solved.chances.events).sum())
        flow = np.bincount(chain.target, moved * leaves, chain.states).astype(np.float64)
    return 0.0


def _shortest(solved: SolvedChain, chance: Vector) -> list[int]:
    """Indices of the transitions of the most probable path."""
    chain = solved.chain
    source, target, states = chain.source, chain.target, chain.states
    moves = np.flatnonzero((source != target) & (target != 0) & (solved.rate > 0))
    probability = solved.rate / solved.generator.out[source]
    # Of several transitions between two states the most probable one.
    moves = moves[np.lexsort((-probability[moves], target[moves], source[moves]))]
    pairs = source[moves].astype(np.int64) * states + target[moves]
    moves = moves[np.r_[True, pairs[1:] != pairs[:-1]]]
    lengths = _SHORTEST - np.log(probability[moves])
    graph = sparse.csr_array((lengths, (source[moves], target[moves])), shape=(states, states))
    distance, before = csgraph.dijkstra(graph, indices=0, return_predecessors=True)
    with np.errstate(divide="ignore"):
        ends = distance[source] - np.log(probability * chance)
    last = int(np.argmin(ends))
    between = {(int(source[i]), int(target[i])): int(i) for i in moves}
    path, state = [last], int(source[last])
    while state != 0:
        step = between[int(before[state]), state]
        path.insert(0, step)
        state = int(source[step])
    return path


def _step(solved: SolvedChain, index: int) -> LossStep:
    """Name of the transition, and how many brokers change their condition in it."""
    chain = solved.chain
    replicas = chain.environment.replicas
    source, target = chain.source[index], chain.target[index]
    before, after = (sorted(chain.own[s, :replicas].tolist()) for s in (source, target))
    changed = list(after)
    for condition in before:
        if condition in changed:
            changed.remove(condition)
    return LossStep(chain.rate_names[chain.rate[index]], len(changed))
