"""`SampledGrid`, what `simulate_grid` returns: a `Sampled` for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from advisor.arguments import missing_attribute, suggestion
from advisor.cluster.model import Cluster
from advisor.errors import InputError, shown
from advisor.formatting import counted
from advisor.pipeline.parcels import Job, Record, rows_of
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.sampler.block import Row
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.workload import Workload
from advisor.rendering import joined, one_line
from advisor.tables import (
    MOST_ROWS,
    data_frame,
    html_paragraphs,
    html_table,
    html_verdict,
    more_rows,
)

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, str]
"""Names of a cluster, a configuration and a card."""


def cluster_name(cluster: Cluster) -> str:
    """Return the name of an unnamed cluster: its file, or its size."""
    brokers, racks = len(cluster.brokers), len(set(cluster.brokers.values()) - {None})
    size = f"{brokers} broker{'' if brokers == 1 else 's'}"
    if cluster.source not in ("", "uniform"):
        return one_line(Path(cluster.source).stem)
    return f"{size}, {racks} racks" if racks > 1 else size


def config_name(config: Config) -> str:
    """Return the name of an unnamed configuration."""
    replicas, isr = config.replication_factor, config.min_insync_replicas
    return f"RF {replicas}, min ISR {isr}, acks {config.acks}"


@dataclass(frozen=True)
class Cell:
    """Inputs of one cell."""

    job: Job
    cluster: Cluster
    config: Config
    model: FailureModel
    load: Workload

    def merged(self, rows: Sequence[Row]) -> Sampled:
        """Return the result of the cell, as `simulate` does."""
        return merge(
            *(rows, self.job.blocks, self.job.plan),
            config=self.config,
            model=self.model,
            load=self.load,
            cluster=self.cluster,
        )


@dataclass(frozen=True, eq=False, repr=False)
class SampledGrid:
    """What every configuration lost and refused on every cluster of a fleet, with every card.

    ``grid[cluster, configuration, card]``, by their names, is a `Sampled`; iteration yields the
    names of each cell. A cell's estimates are made when it is first read.

    Attributes
    ----------
    clusters : mapping of str to Cluster
    configs : mapping of str to Config
    models : mapping of str to FailureModel
    refused : mapping of (str, str, str) to str
        Cells that Kafka could not place, each with a sentence that says why. They count in the
        length, and reading one raises an InputError with this sentence.

    See Also
    --------
    simulate_grid : Samples it.
    Sampled : One cell.

    Examples
    --------
    >>> import advisor
    >>> configs = {"one": advisor.Config(replication_factor=1, min_insync_replicas=1)}
    >>> grid = advisor.simulate_grid(
    ...     [advisor.Cluster.uniform(1, None), advisor.Cluster.uniform(3)],
    ...     configs,
    ...     "three_az_cloud",
    ...     years=20,
    ...     engine="local",
    ... )
    >>> for cluster, config, model in grid:
    ...     print(cluster, config, model, grid[cluster, config, model].years)
    1 broker one three_az_cloud 20
    3 brokers, 3 racks one three_az_cloud 20
    """

    clusters: Mapping[str, Cluster]
    configs: Mapping[str, Config]
    models: Mapping[str, FailureModel]
    refused: Mapping[Key, str]
    _cells: Mapping[Key, Cell]
    _records: Mapping[str, tuple[Record, ...]]
    _read: dict[Key, Sampled] = field(default_factory=dict, init=False)

    if not TYPE_CHECKING:  # a type checker would take it for any attribute
        __getattr__ = missing_attribute

    def __len__(self) -> int:
        return len(self._cells) + len(self.refused)

    def __iter__(self) -> Iterator[Key]:
        for cluster in self.clusters:
            for config in self.configs:
                yield from ((cluster, config, model) for model in self.models)

    def __getitem__(self, key: Key) -> Sampled:
        if key in self.refused:
            raise InputError(f"{', '.join(key)}: {self.refused[key]}")
        if key not in self._cells:
            raise InputError(self._unknown(key))
        if key not in self._read:
            self._read[key] = self._cells[key].merged(self._rows(key))
        return self._read[key]

    def __contains__(self, key: object) -> bool:
        return key in self._cells or key in self.refused

    def _rows(self, key: Key) -> list[Row]:
        """Return the rows of a cell, in their order."""
        job = self._cells[key].job
        rows = rows_of(job, self._records[job.run])
        return [rows[number] for number in sorted(rows)]

    def _unknown(self, key: object) -> str:
        if not isinstance(key, tuple) or len(key) != 3:
            return f"{shown(key)}: give the names of a cluster, a configuration and a card"
        named = (("cluster", self.clusters), ("configuration", self.configs), ("card", self.models))
        for name, (kind, names) in zip(key, named, strict=True):
            if name not in names:
                meant = suggestion(str(name), names)
                hint = f". Did you mean {meant}?" if meant else f"; there are {', '.join(names)}"
                return f"no {kind} is called {shown(name)}{hint}"
        raise AssertionError(key)

    @property
    def sampled(self) -> Iterator[tuple[Key, Sampled]]:
        """The cells that were sampled, each with its names."""
        return ((key, self[key]) for key in self if key not in self.refused)

    @property
    def summary(self) -> str:
        """How many cells there are, and how many could not be placed, in one sentence."""
        sides = ((self.clusters, "cluster"), (self.configs, "configuration"), (self.models, "card"))
        whole = ", ".join(counted(len(side), noun) for side, noun in sides)
        years = next(iter(self._cells.values())).job.blocks if self._cells else ()
        years_of_each = f", {sum(block.years for block in years):,} years each" if years else ""
        placed = f"; Kafka cannot place {len(self.refused):,}" if self.refused else ""
        return f"{counted(len(self._cells), 'cell')} sampled{years_of_each}: {whole}{placed}."

    def to_frame(self) -> pd.DataFrame:
        """Return one line per cell and measure; a cell that was refused has one line.

        Returns
        -------
        pandas.DataFrame
            Columns "cluster", "config", "model", "measure", "value", "low", "high" (95 %
            interval), "seen" (False where "value" is only a bound), "unit", "years", "method",
            and "refused", which is the sentence of a cell that
            Kafka could not place.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_dict : The cells as plain JSON data.

        Examples
        --------
        >>> import advisor
        >>> config = advisor.Config(replication_factor=2, min_insync_replicas=1)
        >>> fleet = [advisor.Cluster.uniform(1, None), advisor.Cluster.uniform(3)]
        >>> grid = advisor.simulate_grid(fleet, config, "three_az_cloud", years=20, engine="local")
        >>> frame = grid.to_frame()
        >>> len(frame), frame["refused"].iloc[0][:34]
        (10, 'The target replication factor of 2')
        """
        rows: list[dict[str, object]] = []
        for key in self:
            names = dict(zip(("cluster", "config", "model"), key, strict=True))
            if key in self.refused:
                rows.append({**names, "refused": self.refused[key]})
                continue
            for line in self[key].to_frame().reset_index().to_dict("records"):
                rows.append({**names, **{str(k): v for k, v in line.items()}, "refused": ""})
        columns = ("cluster", "config", "model", "measure", "value", "low", "high")
        more = ("seen", "unit", "years", "method", "refused")
        frame = data_frame(rows)
        return frame.reindex(columns=[*columns, *more])

    def to_dict(self) -> dict[str, Any]:
        """Every cell as plain data; the same for the same seed and inputs.

        Examples
        --------
        >>> import advisor
        >>> config = advisor.Config(replication_factor=2, min_insync_replicas=1)
        >>> fleet = advisor.Cluster.uniform(3)
        >>> grid = advisor.simulate_grid(fleet, config, "three_az_cloud", years=20, engine="local")
        >>> grid.to_dict()["cells"][0]["sampled"]["years"]
        20
        """
        return {
            "cells": [
                {
                    **dict(zip(("cluster", "config", "model"), key, strict=True)),
                    **(
                        {"refused": self.refused[key]}
                        if key in self.refused
                        else {"sampled": self[key].to_dict()}
                    ),
                }
                for key in self
            ]
        }

    def __repr__(self) -> str:
        shown_cells = [*self][:MOST_ROWS]
        lines = [f"{', '.join(key)}: {self._in_words(key)}" for key in shown_cells]
        return "\n".join([self.summary, *lines, *filter(None, [self._more()])])

    def _in_words(self, key: Key) -> str:
        return self.refused[key] if key in self.refused else self[key].summary

    def _more(self) -> str:
        return more_rows(range(len(self)), "cells", "to_frame()")

    def _repr_html_(self) -> str:
        rows = [
            {
                **dict(zip(("cluster", "configuration", "card"), key, strict=True)),
                "what was sampled": self._in_words(key),
            }
            for key in [*self][:MOST_ROWS]
        ]
        table = html_table(rows, "Cells of the grid")
        more = html_paragraphs([self._more()])
        return joined(html_verdict(self.summary), table, more).text


def grid_of(
    cells: Mapping[Key, Cell],
    refused: Mapping[Key, str],
    records: Sequence[Record],
    named: tuple[Mapping[str, Cluster], Mapping[str, Config], Mapping[str, FailureModel]],
) -> SampledGrid:
    """Return the grid of cells, those that are refused, and the records of the others."""
    by_run: dict[str, list[Record]] = {}
    for record in records:
        by_run.setdefault(record.run, []).append(record)
    clusters, configs, models = named
    return SampledGrid(
        clusters=MappingProxyType(dict(clusters)),
        configs=MappingProxyType(dict(configs)),
        models=MappingProxyType(dict(models)),
        refused=MappingProxyType(dict(refused)),
        _cells=cells,
        _records={run: tuple(records_of_run) for run, records_of_run in by_run.items()},
    )
