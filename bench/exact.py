"""How fast the exact model is: single settings, a grid, and peers that solve the same chain.

Run by ``make bench``. Storm (stormpy) is asked where it is installed; nothing here needs it.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg
from stopwatch import seconds

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.case import ChainParameters
from advisor.reliability.measures import replica_set
from advisor.reliability.solver import first_passage, generator

try:
    import stormpy
except ImportError:
    stormpy = None

LOAD = Workload(partitions=12, records_per_second=1000, record_bytes=512)
CLUSTER = Cluster.uniform(brokers=6, racks=3)
YEAR = 8760.0
# Card, replication factor, min ISR, unclean elections.
SINGLES = (
    ("three_az_cloud", 3, 2, False),
    ("three_az_cloud", 4, 3, False),
    ("three_az_cloud", 5, 3, False),
    ("bare_metal_racks", 5, 3, False),
    ("three_az_cloud", 6, 4, False),
    ("three_az_cloud", 5, 3, True),
)
PATIENCE_SECONDS = 30


def once(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def fresh(ask: Callable[..., str], *asked: object) -> str:
    """Answer in a process of its own, which remembers nothing; its start and imports are over."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(ask, asked)


def grid() -> list[tuple[Config, FailureModel]]:
    """200 settings of one topic: what a person tries in an afternoon.

    Replication factor 3 and 2 with every min ISR, acks, unclean election, ELR and five ways to try
    again.
    """
    card = load_model("three_az_cloud")
    return [(config, card) for config in _settings()]


def grid_of_two_cards() -> list[tuple[Config, FailureModel]]:
    """Every fifth of these settings, too, where a card's rates call for other states."""
    card = load_model("three_az_cloud")
    busier = card.with_values({"broker.crash.per_year": 1.1})
    return list(product(_settings()[::5], (card, busier)))


def _settings() -> list[Config]:
    acknowledged: tuple[str | int, ...] = ("all", 1)
    budgets: tuple[dict[str, Any], ...] = (
        {},
        {"delivery_timeout_ms": 60_000},
        {"delivery_timeout_ms": 600_000},
        {"delivery_timeout_ms": 1_800_000},
        {"retries": 0},
    )
    return [
        Config(
            kafka_version="4.2",
            replication_factor=replicas,
            min_insync_replicas=least,
            acks=acks,
            unclean_leader_election_enable=unclean,
            eligible_leader_replicas=elr,
            **budget,
        )
        for replicas, acks, unclean, elr in product(
            (3, 2), acknowledged, (False, True), (True, False)
        )
        for least in range(1, replicas + 1)
        for budget in budgets
    ]


def single(card_name: str, replicas: int, least: int, unclean: bool) -> str:
    """Cold: nothing was asked before. Warm: another rate, on states that are known."""
    card = load_model(card_name)
    other = card.with_values({"broker.crash.per_year": 1.02})
    config = Config(
        replication_factor=replicas,
        min_insync_replicas=least,
        acks="all",
        unclean_leader_election_enable=unclean,
    )
    cold = once(lambda: evaluate(CLUSTER, config, card, LOAD))
    warm = once(lambda: evaluate(CLUSTER, config, other, LOAD))
    found = evaluate(CLUSTER, config, card, LOAD)
    off = found.error_bounds["loss_probability_per_year"]
    elections = ", unclean elections" if unclean else ""
    return (
        f"{card_name}, RF {replicas}, min ISR {least}{elections}, {found.states} states: "
        f"cold {cold:.2f} s, warm {warm * 1e3:.0f} ms; loss probability "
        f"{found.loss_probability_per_year:.3g} +- {off:.1g}, write unavailability "
        f"{found.write_unavailability:.3g} +- {found.error_bounds['write_unavailability']:.1g}"
    )


def whole_grid(questions: list[tuple[Config, FailureModel]]) -> str:
    """A grid, cold and warm."""

    def answer() -> None:
        replica_set.measure.cache_clear()
        replica_set.solve.cache_clear()
        for config, card in questions:
            evaluate(CLUSTER, config, card, LOAD)

    cold = once(answer)
    return f"{len(questions)} questions: cold {cold:.1f} s, warm {once(answer):.2f} s"


def _loss_flow() -> generator.Generator:
    """The chain of three replicas in three racks, up to its first loss."""
    model, config = load_model("three_az_cloud"), Config(replication_factor=3)
    solved = replica_set.solve((0, 1, 2), ChainParameters.read(config, model, LOAD, 3))
    return solved.until_loss(solved.chances.probability)


def _replaced_yearly() -> generator.Generator:
    """Three brokers destroyed yearly and rebuilt in 12 h: how many are away."""
    rates = np.zeros((3, 3))
    for away in range(2):
        rates[away, away + 1] = (3 - away) / YEAR
        rates[away + 1, away] = (away + 1) / 12.0
    return generator.Generator(sparse.csr_array(rates), np.array([0.0, 0.0, 1.0 / YEAR]))


def _solved_by_lu(system: Any, right: Any) -> Any:
    return linalg.splu(system).solve(right)


def peers() -> None:
    """Mean time to loss of two chains: ours, a sparse LU, and Storm."""
    for what, flow in (("birth and death", _replaced_yearly()), ("all mechanisms", _loss_flow())):
        ours = seconds(partial(first_passage.first_loss, flow, YEAR), 3)
        mean = first_passage.first_loss(flow, YEAR).mean_hours
        system = sparse.csc_array(sparse.diags_array(flow.out) - flow.rates)
        ones = np.ones(system.shape[0])
        lu = seconds(partial(_solved_by_lu, system, ones), 3)
        off = abs(float(_solved_by_lu(system, ones)[0]) / mean - 1.0)
        print(
            f"{what}, {len(flow.absorbed)} states, mean time to loss and its chance: "
            f"{ours * 1e3:.1f} ms; one sparse LU solve: {lu * 1e3:.2f} ms, ratio {ours / lu:.2g}; "
            f"LU is off by {off:.1g}"
        )
        print(f"  Storm, the mean alone: {_storm(flow, ours, mean)}")


def _storm(flow: generator.Generator, ours: float, mean: float) -> str:
    """Ask Storm in a process of its own, which ends when it takes too long."""
    if stormpy is None:
        return "not installed (pip install stormpy, in an environment of its own)"
    answers: Any = multiprocessing.Queue()
    asked = multiprocessing.Process(target=_ask_storm, args=(flow, answers))
    asked.start()
    asked.join(PATIENCE_SECONDS)
    if asked.is_alive():
        asked.terminate()
        asked.join()
        return f"no answer within {PATIENCE_SECONDS} s"
    taken, value = answers.get(timeout=5)
    off = abs(value / mean - 1.0)
    return f"{taken * 1e3:.1f} ms, ratio {ours / taken:.2g}; off by {off:.1g}"


def _ask_storm(flow: generator.Generator, answers: Any) -> None:
    model = _storm_model(flow)
    goal = stormpy.parse_properties('T=? [F "loss"]')[0]
    start = time.process_time()
    found = stormpy.model_checking(model, goal)
    answers.put((time.process_time() - start, float(found.get_value_vector()[0])))


def _storm_model(flow: generator.Generator) -> Any:
    lost = len(flow.absorbed)
    builder = stormpy.datastructures.SparseMatrixBuilder(lost + 1, lost + 1)
    for state in range(lost):
        row = flow.rates[[state], :].tocoo()
        for column, rate in sorted(zip(row.coords[1].tolist(), row.data.tolist(), strict=True)):
            builder.add_next_value(state, column, rate)
        if flow.absorbed[state] > 0:
            builder.add_next_value(state, lost, float(flow.absorbed[state]))
    builder.add_next_value(lost, lost, 1.0)
    labels = stormpy.models.StateLabeling(lost + 1)
    for label, state in (("init", 0), ("loss", lost)):
        labels.add_label(label)
        labels.add_label_to_state(label, state)
    parts = stormpy.models.SparseModelComponents(
        transition_matrix=builder.build(), state_labeling=labels, rate_transitions=True
    )
    return stormpy.models.SparseCtmc(parts)


def main() -> None:
    """Print a line for each measurement."""
    for asked in SINGLES:
        print(fresh(single, *asked))
    print("the settings of an afternoon:", fresh(whole_grid, grid()))
    print("some of them, on two cards:", fresh(whole_grid, grid_of_two_cards()))
    peers()


if __name__ == "__main__":
    main()
