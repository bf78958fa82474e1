"""`simulate_grid`: a fleet sampled as one job, every cluster with every configuration and card."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from advisor.arguments import cluster_of, model_of, names_checked
from advisor.cluster.model import Cluster
from advisor.errors import InputError, shown
from advisor.pipeline import fleet
from advisor.pipeline.parcels import Job, Record
from advisor.pipeline.sampled_grid import Cell, Key, SampledGrid, cluster_name, config_name, grid_of
from advisor.pipeline.simulate import (
    ANNOUNCE_FROM_S,
    QUICKER_HERE_S,
    QUICKEST,
    check_options,
    core_seconds,
    interrupts_explained,
)
from advisor.pipeline.watch import duration
from advisor.progress import Notify, status_bar, warn
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import check_inputs
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.sampler.plan import cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.workload import Workload

Engine = Callable[[Sequence[Job], str | None, fleet.OnRecords, Notify], list[Record]]
ENGINES: dict[str, Engine] = {"spark": fleet.run_on_spark, "local": fleet.run_locally}

MOST_CELLS = 1_000_000
MOST_CORE_SECONDS = 100_000_000
"""Limit of a fleet: three years of one core."""

T = TypeVar("T")
ClusterLike = Cluster | str | PathLike[str]
ModelLike = FailureModel | str | PathLike[str]


@names_checked
def simulate_grid(
    clusters: ClusterLike | Sequence[ClusterLike] | Mapping[str, ClusterLike],
    configs: Config | Sequence[Config] | Mapping[str, Config],
    models: ModelLike | Sequence[ModelLike] | Mapping[str, ModelLike],
    load: Workload | None = None,
    years: float = 1e5,
    seed: int = 7,
    engine: str = "spark",
    *,
    checkpoint: str | Path | None = None,
    progress: Callable[[str], object] | None = None,
) -> SampledGrid:
    """Sample every cluster with every configuration and every card, as one job.

    Each cell has the numbers of `simulate` with the same inputs, years and seed, to the byte. The
    blocks of all cells are spread over the cores by their expected run time, since one cluster may
    take a thousand times as long as another.

    Parameters
    ----------
    clusters : Cluster, sequence or mapping of str to Cluster
        What `simulate` takes, or several. The keys of a mapping are the names in the
        result; without them a cluster is called by the file it was read from, or by its size.
    configs : Config, sequence or mapping of str to Config
        Without names, a configuration is called by its replication factor, min ISR and acks.
    models : FailureModel, card's name, sequence or mapping
        Without names, a card is called by its own.
    load : Workload, optional
        Traffic and partitions of the topic, on every cluster. Default: ``Workload()``.
    years : float, default 1e5
        Whole number of years to simulate of each cell.
    seed : int, default 7
        0 to 2**64 - 1, the same for each cell.
    engine : {"spark", "local", "quickest"}, default "spark"
        As of `simulate`.
    checkpoint : str or path, optional
        Directory for finished blocks as Parquet, a file for each second of work or so. A repeated
        call with the same inputs runs only those that are missing or damaged.
    progress : callable, optional
        As of `simulate`.

    Returns
    -------
    SampledGrid
        A `Sampled` for each cell. Cells that Kafka could not place, such as three replicas on two
        brokers, are in its ``refused``, each with a sentence; the others are sampled.

    Raises
    ------
    InputError
        If an argument is out of range, there are no cells, or the checkpoint belongs to other
        inputs.
    KeyboardInterrupt
        If it is interrupted; the message says what is kept and how to go on.
    MissingExtraError
        If pyspark (or pyarrow for a checkpoint) is not installed.

    See Also
    --------
    simulate : One cell, with rules when to stop.
    write_samples : Writes the result as Parquet, for SQL.

    Examples
    --------
    >>> import advisor
    >>> fleet = {"small": advisor.Cluster.uniform(3), "large": advisor.Cluster.uniform(6, 3)}
    >>> configs = {
    ...     f"RF {factor}": advisor.Config(replication_factor=factor, min_insync_replicas=2)
    ...     for factor in (3, 5)
    ... }
    >>> grid = advisor.simulate_grid(fleet, configs, "three_az_cloud", years=20, engine="local")
    >>> len(grid)
    4
    >>> grid["large", "RF 5", "three_az_cloud"].years
    20
    >>> print(grid.refused["small", "RF 5", "three_az_cloud"])
    The target replication factor of 5 cannot be reached because only 3 broker(s) are registered.
    """
    check_options(engine, years, checkpoint, progress)
    load = Workload() if load is None else load
    named = _Named.read(clusters, configs, models, load)
    notify = progress or warn
    cells, refused = _cells(named, load, years, seed)
    jobs = [*{cell.job.run: cell.job for cell in cells.values()}.values()]
    expected = math.fsum(core_seconds(job.plan, years) for job in jobs)
    if expected > MOST_CORE_SECONDS:
        raise InputError(
            f"years={shown(years)} of {len(cells):,} cells take one core {duration(expected)}; "
            f"give fewer, at most {duration(MOST_CORE_SECONDS)}"
        )
    if engine == QUICKEST:
        engine = "local" if expected < QUICKER_HERE_S else "spark"
    if progress is not None and expected > ANNOUNCE_FROM_S:
        progress(
            f"Sampling {int(years):,} years of each of {len(cells):,} cells takes about "
            f"{duration(expected)} of one core."
        )
    directory = None if checkpoint is None else str(checkpoint)
    records = _sampled(engine, jobs, directory, notify) if jobs else []
    return grid_of(cells, refused, records, (named.clusters, named.configs, named.models))


@dataclass(frozen=True)
class _Named:
    """The arguments by name."""

    clusters: Mapping[str, Cluster]
    configs: Mapping[str, Config]
    models: Mapping[str, FailureModel]

    @classmethod
    def read(cls, clusters: Any, configs: Any, models: Any, load: Workload) -> _Named:
        """Name the arguments and check their types."""
        arguments = cls(
            _by_name("clusters", clusters, cluster_of, cluster_name),
            _by_name("configs", configs, lambda config: config, config_name),
            _by_name("models", models, model_of, lambda model: model.name),
        )
        for cluster in arguments.clusters.values():
            for config in arguments.configs.values():
                for model in arguments.models.values():
                    check_inputs(cluster, config, model, load)
        cells = len(arguments.clusters) * len(arguments.configs) * len(arguments.models)
        if cells > MOST_CELLS:
            raise InputError(f"{cells:,} cells are too many; give at most {MOST_CELLS:,}")
        return arguments


def _by_name(
    argument: str, given: Any, read: Callable[[Any], T], name: Callable[[Any], str]
) -> dict[str, T]:
    """Return the values of an argument by name; unnamed ones get the name of `name`, numbered."""
    if isinstance(given, Mapping):
        wrong = [key for key in given if not isinstance(key, str) or not key.strip()]
        if wrong:
            raise InputError(f"{argument}: {shown(wrong[0])} is not a name; give a text for each")
        named = {key: read(value) for key, value in given.items()}
    else:
        several = isinstance(given, Sequence) and not isinstance(given, str)
        named = {}
        for value in map(read, given if several else (given,)):
            try:
                wanted = name(value)
            except AttributeError:
                # Checked, and refused, where types are.
                wanted = ""
            named[_unused(wanted, named)] = value
    if not named:
        raise InputError(f"{argument}={shown(given)}: give one or more")
    return named


def _unused(wanted: str, named: Mapping[str, object]) -> str:
    """Return a name, numbered if it is used already or empty."""
    if wanted and wanted not in named:
        return wanted
    number = len(named) + 1
    while (name := f"{wanted} {number}".strip()) in named:
        number += 1
    return name


def _cells(
    named: _Named, load: Workload, years: float, seed: int
) -> tuple[dict[Key, Cell], dict[Key, str]]:
    """Plan each cell; one that Kafka could not place has a sentence instead."""
    cells: dict[Key, Cell] = {}
    refused: dict[Key, str] = {}
    jobs: dict[str, Job] = {}
    for place, cluster in named.clusters.items():
        for setting, config in named.configs.items():
            for card, model in named.models.items():
                key = place, setting, card
                try:
                    plan = plan_for(cluster, config, model, load)
                except InputError as error:
                    refused[key] = str(error)
                    continue
                core_seconds(plan, years)
                job = Job.of(plan, cut_into_blocks(plan, years, seed))
                # Cells that differ in nothing that is sampled are sampled once.
                job = jobs.setdefault(job.run, job)
                cells[key] = Cell(job, cluster, config, model, load)
    return cells, refused


def _sampled(
    engine: str, jobs: Sequence[Job], directory: str | None, notify: Notify
) -> list[Record]:
    """Run the jobs on an engine, with a bar that shows how far it is."""
    with interrupts_explained(directory), _watched(jobs) as on_records:
        try:
            return ENGINES[engine](jobs, directory, on_records, notify)
        except OSError as error:
            if directory is None:
                raise
            why = error.strerror or "it cannot be used"
            raise InputError(f"checkpoint={shown(directory)}: {why}") from error


@contextmanager
def _watched(jobs: Sequence[Job]) -> Iterator[fleet.OnRecords]:
    """Show how many blocks are done, and the time left at the speed so far."""
    total = sum(len(job.blocks) for job in jobs)
    begun: list[tuple[float, float]] = []
    done = 0
    with status_bar(total, "blocks") as show:

        def on_records(records: Sequence[Record], left: float) -> None:
            nonlocal done
            done += sum(record.blocks for record in records)
            begun.append((time.monotonic(), left))
            (first, before), (now, _) = begun[0], begun[-1]
            words = ""
            if left < before:
                seconds = left * (now - first) / (before - left)
                words = f"about {duration(max(seconds, 1.0))} left"
            show(min(done, total), words)

        yield on_records
