"""`simulate`: the sampled reliability of a configuration on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.cluster.model import Cluster
from advisor.errors import InputError
from advisor.formatting import significant
from advisor.pipeline import sampling
from advisor.pipeline.progress import progress_bar
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.placement import Replicas
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.sampler.block import Row
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan import (
    SECONDS_PER_BLOCK,
    Block,
    Plan,
    cut_into_blocks,
    plan_for,
    years_per_block,
)
from advisor.reliability.workload import Workload

Engine = Callable[[Plan, Sequence[Block], str | None, Callable[[int], Any]], list[Row]]

ENGINES: dict[str, Engine] = {"spark": sampling.on_spark, "local": sampling.here}

MOST_SECONDS = 1_000_000
"""Most of one core's time that a run may take: twelve days, or three hours of a hundred cores."""

_WORTH_SAYING_S = 5.0
_TIMES = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (0.0, "seconds"))


def simulate(
    cluster: Cluster,
    config: Config,
    model: FailureModel,
    load: Workload | None = None,
    years: float = 1e6,
    seed: int = 7,
    engine: str = "spark",
    *,
    placement: Sequence[Replicas] | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[str], object] | None = None,
) -> Sampled:
    """What a configuration loses and refuses on a cluster, sampled event by event.

    Lives through broker, rack and cluster failures of the whole cluster, with every replica set of
    the topic at once, so that partitions that fail together are seen to fail together. Repairs
    may have any gamma shape. A loss so rare that it does not happen in ``years`` is given as an
    upper bound; `evaluate` tells how rare it is.

    Parameters
    ----------
    cluster : Cluster
        Brokers and their racks. A broker whose rack is unknown counts as a rack of its own.
    config : Config
    model : FailureModel
        Its values are taken as exact.
    load : Workload, optional
    years : float
        A whole number of years to simulate; at most what takes one core twelve days.
    seed : int
        0 to 2**64 - 1. The same seed and inputs give the same bytes, whatever the engine.
    engine : {"spark", "local"}
        "local" runs the same blocks in this process, without Spark.
    placement : sequence of tuple of int, optional
        Replicas of each partition; by default as Kafka places a new topic.
    checkpoint : path, optional
        A directory that keeps finished blocks as Parquet. Called again with the same inputs, only
        the missing blocks are computed.
    progress : callable, optional
        Is handed a sentence on how long it will take, if that is more than some seconds.

    Returns
    -------
    Sampled

    Raises
    ------
    InputError
        If an argument cannot be, or the checkpoint belongs to other inputs.
    MissingExtraError
        If pyspark (or for a checkpoint, pyarrow) is not installed.
    """
    if engine not in ENGINES:
        raise InputError(f"engine={engine!r}: there are {', '.join(map(repr, ENGINES))}")
    load = Workload() if load is None else load
    where = None if placement is None else tuple(tuple(replicas) for replicas in placement)
    if where:
        load = replace(load, partitions=len(where))
    plan = plan_for(cluster, config, model, load, where)
    seconds = _seconds_of(plan, years)
    blocks = cut_into_blocks(plan, years, seed)
    if progress is not None and seconds > _WORTH_SAYING_S:
        progress(f"Sampling {int(years):,} years takes about {_lasting(seconds)} of one core.")
    kept = None if checkpoint is None else str(checkpoint)
    with progress_bar(sum(block.years for block in blocks), "years") as advance:
        rows = ENGINES[engine](plan, blocks, kept, advance)
    return merge(rows, blocks, plan, config=config, model=model, load=load, cluster=cluster)


def _seconds_of(plan: Plan, years: float) -> float:
    """How long so many years take one core; what no core should be asked for is refused."""
    if not isinstance(years, int | float) or not math.isfinite(years):
        return 0.0
    a_second = years_per_block(plan) / SECONDS_PER_BLOCK
    if years > MOST_SECONDS * a_second:
        most = int(float(f"{MOST_SECONDS * a_second:.0e}"))
        raise InputError(
            f"years={years!r} is more than can be sampled; give a whole number, of this cluster "
            f"at most about {most:,}, which take one core {_lasting(MOST_SECONDS)}"
        )
    return years / a_second


def _lasting(seconds: float) -> str:
    size, unit = next((size, unit) for size, unit in _TIMES if seconds >= 2 * size)
    return f"{significant(seconds / (size or 1.0))} {unit}"
