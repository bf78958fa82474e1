"""Chains that are explored in several threads at once, as the explorer's kernel does."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability.chain.ctmc import structure
from advisor.reliability.measures import replica_set
from advisor.reliability.partition.transition_table import partition_transition_table
from advisor.reliability.statespace.state_graph import graph

CASES = [
    (card, acks)
    for card in ("three_az_cloud", "single_rack", "two_az", "bare_metal_racks")
    for acks in ("all", 1)
]


def results(threads: int) -> list[tuple[float, float]]:
    """Solve every case from nothing, in so many threads."""
    for cached in (
        *(replica_set.measure, replica_set.solve, structure),
        *(graph, partition_transition_table),
    ):
        cached.cache_clear()

    def solved(case: tuple[str, str | int]) -> tuple[float, float]:
        card, acks = case
        config = Config(replication_factor=2, min_insync_replicas=1, acks=acks)
        found = evaluate(Cluster.uniform(3, 3), config, card, Workload(partitions=1))
        return found.loss_probability_per_year, found.write_unavailability

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(solved, CASES))


def test_threads_do_not_disturb_each_other() -> None:
    """Cards share the numbered states of a partition, and acks=1 those of min ISR 1."""
    expected = results(1)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(3):
            np.testing.assert_allclose(results(8), expected, rtol=1e-9)
    finally:
        sys.setswitchinterval(before)
