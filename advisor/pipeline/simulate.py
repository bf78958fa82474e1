"""`simulate`: the sampled reliability of a configuration on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path

from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster.model import Cluster
from advisor.errors import InputError, expect, shown
from advisor.pipeline import sampling
from advisor.pipeline.rounds import Stop, sample_in_rounds
from advisor.pipeline.sampling import OnRows, ShouldStop
from advisor.pipeline.watch import duration, watched
from advisor.progress import Notify, warn
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import check_inputs
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import Replicas
from advisor.reliability.results.sampled import TIME_UP, Sampled
from advisor.reliability.results.units import IMPORTANCE
from advisor.reliability.sampler.block import Row
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.methods import check_method, with_method
from advisor.reliability.sampler.plan import (
    SECONDS_PER_BLOCK,
    Block,
    Plan,
    check_run,
    cut_into_blocks,
    years_per_block,
)
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.workload import Workload

Engine = Callable[[Plan, Sequence[Block], str | None, OnRows, Notify, ShouldStop], list[Row]]

ENGINES: dict[str, Engine] = {"spark": sampling.sample_on_spark, "local": sampling.sample_locally}

QUICKEST = "quickest"
"""Name of the engine that is one or the other, by the length of the run."""

MAX_CORE_SECONDS = 1_000_000
"""Limit of a run in core-seconds: twelve days of one core."""

MOST_YEARS = 10**15
QUICKER_HERE_S = 20.0
"""Runs of fewer core-seconds end in this process before Spark and its workers have started."""

ANNOUNCE_FROM_S = 5.0


@names_checked
def simulate(
    cluster: Cluster | Sources,
    config: Config,
    model: FailureModel | str | PathLike[str],
    load: Workload | None = None,
    years: float = 1e6,
    seed: int = 7,
    engine: str = "spark",
    *,
    method: str | None = None,
    relative_width: float | None = None,
    seconds: float | None = None,
    placement: Sequence[Replicas] | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[str], object] | None = None,
) -> Sampled:
    """Estimate the reliability of a configuration by discrete-event simulation.

    Simulates broker, rack and cluster failures with all replica sets of the topic at once, so
    that correlated losses are included. Times between failures and durations may have any
    distribution that a card can name, and repairs may wait for a crew. A loss too rare to occur
    within ``years`` gets an upper bound; `evaluate` computes it exactly.

    Parameters
    ----------
    cluster : Cluster, str, path or list
        Brokers and their racks; texts or paths are read by `load_cluster`. A broker without a known
        rack counts as a rack of its own.
    config : Config
        Topic, producer and broker settings.
    model : FailureModel, str or path
        Failure and repair rates; a card's name or path is read by `load_model`. Their uncertainty
        is ignored.
    load : Workload, optional
        Traffic and partitions. Default: ``Workload()``.
    years : float, default 1e6
        Whole number of years to simulate, at most twelve days of one core. The upper limit if
        ``relative_width`` or ``seconds`` is given.
    seed : int, default 7
        0 to 2**64 - 1. The same seed and inputs give identical results on every engine.
    engine : {"spark", "local", "quickest"}, default "spark"
        Where to run: on Spark, in this process, or in this process if that is done before Spark
        has started.
    method : {"crude", "importance", "splitting"}, optional
        "crude": years as they come. "importance": cycles of failures, from the first one until all
        is healthy again, in which failures are likelier than they are, weighed so that the
        means stay the same (balanced failure biasing); for losses of which hardly any would occur
        in ``years``. It takes exponential times between failures, no calendar, no crews and even
        traffic. "splitting": years in which a path splits where more replicas of a set are out than
        before, into retrials that fail again soon, weighed in the same way; for rare losses with
        any times, crews and traffic, without a calendar. Default: chosen by how many losses a
        pilot expects; ``why_method`` says why.
    relative_width : float, optional
        Stop after the first round of blocks in which the 95 % interval of the loss probability is
        at most this wide, as a part of its value: 0.2 is from 10 % below to 10 % above. The same
        seed and inputs still give identical results on every engine. Without losses the interval
        is never narrow. With "splitting" it stays wide while some kind of failure is too rare to
        occur in the years done; where nothing else does, ``why`` says so. If ``years`` end first,
        the result prints how wide the interval still is.
    seconds : float, optional
        Stop when this much time has passed, the start of Spark included; a round of an eighth of a
        second of one core is always finished, and so is the pilot of "importance" or "splitting",
        which takes some ten seconds of one core, with four replicas or more up to a minute; ``why``
        says if it took all the time. How many years were done depends on the machine.
    placement : sequence of tuple of int, optional
        Broker ids of the replicas of each partition. Default: as Kafka places a new topic.
    checkpoint : str or path, optional
        Directory for finished blocks as Parquet, each kept as soon as it is finished. A repeated
        call with the same inputs runs only those that are missing or damaged.
    progress : callable, optional
        Called with a sentence about the expected run time if that exceeds a few seconds, about a
        new Spark session after the last one died, and about damaged blocks of the checkpoint.
        Without it the last two are Python warnings.

    Returns
    -------
    Sampled
        Estimates of all measures with confidence intervals. ``years`` says how many were done and
        ``why`` why no more; the numbers are those of a call with that many years.

    Raises
    ------
    InputError
        If an argument is out of range, or the checkpoint belongs to other inputs.
    KeyboardInterrupt
        If it is interrupted; the message says what is kept and how to go on.
    MissingExtraError
        If pyspark (or pyarrow for a checkpoint) is not installed.

    See Also
    --------
    evaluate : The same measures, computed exactly.

    Notes
    -----
    Where times between failures are not exponential, the ages of brokers run on from year to year:
    a year begins with all of them well, and not with new ones. Such years depend on each other, so
    the interval of the loss probability is taken over blocks of years, which do not.

    "splitting" makes failures that follow other failures likelier, but no single failure that loses
    records at once. Its upper ends allow for failures too rare to occur in the sampled years. With
    fewer than 30 effective losses (``weights``) its interval may be an order of magnitude off.

    Cycles of "importance", and blocks of years, begin with logs as long as their retention. Where a
    set loses its log more than once within it, too many records are lost: the lower end of
    ``acked_records_lost_per_year`` allows for it.

    A rule that looks at the data and stops when the interval is narrow prefers samples in which
    losses happen to be frequent, because these get there first. So the loss probability is a
    little too high on average and its interval covers the truth a little less often than in 95 of
    100 runs. ``bench/stopping.py`` measures the coverage. For an interval that is exactly what it
    says, repeat the call with another seed and the same ``years``, without a rule.

    Examples
    --------
    >>> import advisor
    >>> card = {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
    >>> sampled = advisor.simulate(
    ...     advisor.Cluster.uniform(brokers=3, racks=None),
    ...     advisor.Config(replication_factor=1, min_insync_replicas=1),
    ...     advisor.FailureModel.from_dict(card),
    ...     years=1000,
    ...     engine="local",
    ... )
    >>> sampled.years
    1000
    >>> 0.9 < sampled.loss_events_per_year.value < 1.1
    True
    """
    stop = Stop(relative_width, seconds)
    check_options(engine, years, checkpoint, progress)
    check_method(method)
    cluster, model = cluster_of(cluster), model_of(model)
    check_inputs(cluster, config, model, load, placement)
    load = Workload() if load is None else load
    assignment = None if placement is None else tuple(tuple(replicas) for replicas in placement)
    if assignment:
        load = replace(load, partitions=len(assignment))
    directory = None if checkpoint is None else str(checkpoint)
    with interrupts_explained(directory):
        plan = plan_for(cluster, config, model, load, assignment)
        check_run(years, seed)
        if method != IMPORTANCE:
            core_seconds(plan, years)
        plan, why_method = with_method(plan, method, int(years), seed)
        stop = stop.of(plan)
        pilot_was_late = stop.seconds_left <= 0.0 and bool(plan.bias or plan.splitting)
        expected = core_seconds(plan, years)
        if engine == QUICKEST:
            engine = "local" if expected < QUICKER_HERE_S else "spark"
        if progress is not None and expected > ANNOUNCE_FROM_S:
            progress(_announcement(years, expected, stop))
        rows, blocks, why = _sample(engine, plan, years, seed, stop, directory, progress or warn)
    merged = merge(rows, blocks, plan, config=config, model=model, load=load, cluster=cluster)
    if pilot_was_late and why.startswith(TIME_UP):
        why = f"{why}; the pilot took all of it"
    return replace(merged, why=why, why_method=why_method)


def check_options(engine: object, years: object, checkpoint: object, progress: object) -> None:
    """Check the options of sampling."""
    if engine not in (*ENGINES, QUICKEST):
        names = ", ".join(map(repr, (*ENGINES, QUICKEST)))
        raise InputError(f"engine={shown(engine)}: there are {names}")
    expect("checkpoint", checkpoint, str | Path | None, "the path of a folder, or None")
    if checkpoint is not None and not (str(checkpoint) and str(checkpoint).isprintable()):
        raise InputError(f"checkpoint={shown(str(checkpoint))}: give the path of a folder")
    if isinstance(years, int) and abs(years) > MOST_YEARS:
        raise InputError(f"years={shown(years)} is more than can be sampled; give fewer")
    if progress is not None and not callable(progress):
        raise InputError(f"progress={shown(progress)}: give a function, or None")


def _sample(
    engine: str,
    plan: Plan,
    years: float,
    seed: int,
    stop: Stop,
    directory: str | None,
    notify: Notify,
) -> tuple[list[Row], tuple[Block, ...], str]:
    """Sample on an engine, with a bar that shows how far it is."""
    with watched(int(years), stop) as watch:

        def sample(blocks: Sequence[Block], keep: bool, should_stop: ShouldStop) -> list[Row]:
            kept_in = directory if keep else None
            return ENGINES[engine](plan, blocks, kept_in, watch.add, notify, should_stop)

        try:
            return sample_in_rounds(sample, plan, years, seed, stop)
        except OSError as error:
            if directory is None:
                raise
            why = error.strerror or "it cannot be used"
            raise InputError(f"checkpoint={shown(directory)}: {why}") from error


@contextmanager
def interrupts_explained(directory: str | None) -> Iterator[None]:
    """Explain on an interrupt which blocks are kept, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        if directory is None:
            raise KeyboardInterrupt(
                "Interrupted, and nothing is kept; name a folder as checkpoint to go on from there "
                "another time."
            ) from None
        raise KeyboardInterrupt(
            f"Interrupted; {directory} keeps the finished blocks: repeat the same call or command "
            "to go on from there."
        ) from None


def _announcement(years: float, core_seconds: float, stop: Stop) -> str:
    limit = "at most " if stop.given else ""
    return f"Sampling {limit}{int(years):,} years takes about {duration(core_seconds)} of one core."


def is_quick_here(
    cluster: Cluster, config: Config, model: FailureModel, load: Workload, years: float
) -> bool:
    """Whether a sample takes less time here than Spark takes to start."""
    check_inputs(cluster, config, model, load, None)
    plan = plan_for(cluster, config, model, load, None)
    seconds = core_seconds(plan, years)
    cut_into_blocks(plan, years, 0)
    return seconds < QUICKER_HERE_S


def core_seconds(plan: Plan, years: float) -> float:
    """Return the run time of these years on one core, in seconds; reject more than the limit."""
    if not isinstance(years, int | float) or not math.isfinite(years):
        return 0.0
    years_per_second = years_per_block(plan) / SECONDS_PER_BLOCK
    if years > MAX_CORE_SECONDS * years_per_second:
        most_years = int(float(f"{MAX_CORE_SECONDS * years_per_second:.0e}"))
        raise InputError(
            f"years={years!r} is more than can be sampled; give a whole number, of this cluster "
            f"at most about {most_years:,}, which take one core {duration(MAX_CORE_SECONDS)}"
        )
    return years / years_per_second
