"""`learn`, and `Learned`: a card of one's own, what it rests on, and what it decides."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor import plotting
from advisor.advice.deciding import Decision
from advisor.advice.goals import Goals
from advisor.advice.situation import Situation
from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster import Cluster
from advisor.decision import Action, Verdict
from advisor.decision.rows import Change, between_losses, without_writes
from advisor.errors import InputError, ModelError, expect, shown
from advisor.formatting import counted, significant
from advisor.learning.card_file import card_text, write_card
from advisor.learning.counts import Window, read_histories
from advisor.learning.evidence import ClusterHistory, Gap, Outage
from advisor.learning.fit import CountRow, Fit, NumberRow, duration_words, fit
from advisor.learning.observed import Observed, observe
from advisor.learning.posterior import Range
from advisor.learning.typed_events import moment
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.workload import Workload
from advisor.rendering import joined
from advisor.tables import data_frame, html_folded, html_list, html_table

if TYPE_CHECKING:
    import pandas as pd

_PARTITIONS, _REPLICAS, _RACKS = 12, 3, 3
"""The topic that is judged where no cluster is given."""
_SHORT_YEARS, _FAR = 30.0 / 365.0, 10.0
"""A rate that moves by this factor in less than a month may be of an unusual time."""


@dataclass(frozen=True)
class Coverage:
    """What was watched of a cluster.

    gaps: times in which brokers were not watched, where metrics show it.
    """

    cluster: str
    brokers: int
    racks: int | None
    years: float
    since: datetime | None
    until: datetime | None
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, repr=False)
class Learned:
    """A card that a cluster's own history has narrowed; returned by `advisor.learn`.

    Attributes
    ----------
    prior : FailureModel
        What was believed before.
    model : FailureModel
        What is believed now; any question takes it. Of several clusters, the centre of the fleet.
    counts : tuple of CountRow
        Each mechanism that was counted: events, exposure, rate before and after.
    numbers : tuple of NumberRow
        Each number of the card that was learned: rates, lengths, probabilities.
    histories : tuple of ClusterHistory
        What was read, a cluster each.
    notes : tuple of str
        What could not be learned or was assumed, a sentence each.

    See Also
    --------
    advisor.learn : Makes one.

    Examples
    --------
    >>> import advisor
    >>> learned = advisor.learn(
    ...     {"brokers": 12, "years": 3, "events": {"broker.power": 4}}, prior="three_az_cloud"
    ... )
    >>> print(learned.quick_verdict.headline)
    Keep RF 3, min ISR 2, acks=all.
    >>> [(row.mechanism, row.events, row.broker_years) for row in learned.counts]
    [('broker.power', 4, 36.0)]
    """

    prior: FailureModel
    model: FailureModel
    counts: tuple[CountRow, ...]
    numbers: tuple[NumberRow, ...]
    histories: tuple[ClusterHistory, ...]
    notes: tuple[str, ...]
    _given: Cluster | None = field(default=None)
    _fit: Fit | None = field(default=None, compare=False)

    @cached_property
    def clusters(self) -> Mapping[str, FailureModel]:
        """Of several clusters: each one's own card, whose rates borrow from the others."""
        if len(self.histories) == 1 or self._fit is None:
            return {}
        return _own_cards(self._fit, self.histories)

    @property
    def outages(self) -> tuple[Outage, ...]:
        """The outages whose times are known, the first first."""
        rows = [outage for history in self.histories for outage in history.outages]
        return tuple(sorted(rows, key=lambda outage: outage.start))

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """What was watched, a row for each cluster."""
        return tuple(
            Coverage(h.name, h.brokers, h.racks, h.years, h.since, h.until, h.gaps)
            for h in self.histories
        )

    @property
    def verdict(self) -> Verdict:
        """What to set with the learned card, and how sure that is; takes draws of the card."""
        return self._decision.verdict

    @property
    def quick_verdict(self) -> Verdict:
        """The verdict without how sure it is: the same settings and words, at once."""
        return self._decision.at_middle

    @property
    def verdict_before(self) -> Verdict:
        """The same question with the prior card, without how sure it is."""
        return self._decided_with(self.prior).at_middle

    @cached_property
    def _decision(self) -> Decision:
        return self._decided_with(self.model)

    def _decided_with(self, card: FailureModel) -> Decision:
        cluster, load, config = self._asked
        situation = Situation.read(cluster, load)
        return Decision(situation, card, Goals().requirements, new_topic=config)

    @cached_property
    def _asked(self) -> tuple[Cluster, Workload | None, Config | None]:
        """The cluster with its topics, or an assumed one with a topic that runs there."""
        if self._given is not None and self._given.topics:
            return self._given, None, None
        cluster, history = self._given, self.histories[0]
        if cluster is None:
            racks = history.racks or min(_RACKS, history.brokers)
            uniform = Cluster.uniform(brokers=history.brokers, racks=racks)
            cluster = replace(uniform, mode=history.mode)
        factor = min(_REPLICAS, len(cluster.brokers))
        version = Situation.read(cluster).version
        config = Config(
            kafka_version=version,
            replication_factor=factor,
            min_insync_replicas=max(factor - 1, 1),
            acks="all",
        )
        return cluster, Workload(partitions=_PARTITIONS), config

    @property
    def assumed(self) -> str:
        """What the verdict is about where it was not given; "" if it was."""
        cluster, _, config = self._asked
        if config is None:
            return ""
        topic = (
            f"a topic of {_PARTITIONS} partitions with RF {config.replication_factor}, min ISR "
            f"{config.min_insync_replicas}, acks=all"
        )
        if self._given is not None:
            return f"The cluster has no topics; {topic} was assumed."
        where = (
            f"{counted(len(cluster.brokers), 'broker')} in {counted(len(cluster.racks), 'rack')}"
        )
        return f"No cluster was given; {topic} on {where} was assumed."

    @cached_property
    def observed(self) -> Observed | None:
        """Refused minutes that really happened, beside what both cards predict.

        None if no history states them. Takes draws of both cards.
        """
        return observe(self.histories, self.prior, self.model, *self._asked)

    @property
    def seen_words(self) -> str:
        """What was counted, in a sentence."""
        first = self.histories[0]
        years = sum(history.years for history in self.histories)
        time = " ".join(duration_words(years, 1.0))
        if len(self.histories) == 1:
            where = f"{counted(first.brokers, 'broker')}, {time}"
        else:
            where = f"{len(self.histories)} clusters, together {time}"
        mechanisms = f"{len(self.counts)} of {len(self.prior.mechanisms)} mechanisms"
        said = f"Counted: {where}; {mechanisms}, the others stay as in the card."
        left_out = sum(history.left_out for history in self.histories)
        if left_out:
            said += f" Not counted: {counted(left_out, 'event')} that began outside that time."
        return " ".join([said, *_cautions(years, self.numbers)])

    @property
    def named_words(self) -> str:
        """What the numbers that were learned are called in plain words, and their unit."""
        entries = [table()[name] for name in dict.fromkeys(_mechanism(r) for r in self.numbers)]
        if not entries:
            return ""
        names = "; ".join(f"{entry.name}: {entry.words}" for entry in entries)
        scopes = " or ".join(dict.fromkeys(entry.scope.value for entry in entries))
        return f"per_year: events a year of one {scopes}. {names}."

    @property
    def change(self) -> str:
        """Whether another setting is advised than with the prior card, and why."""
        before, after = _by_topic(self.verdict_before), _by_topic(self.quick_verdict)
        changed = [name for name in after if after[name].after.key != before[name].after.key]
        if not changed:
            return f"What to set stays the same. Before -> now: {self._effect}."
        name = changed[0]
        where = f" {name} gets" if name else " It is"
        what = f"{where} {after[name].after}, and with the card alone {before[name].after}"
        more = f" (and {len(changed) - 1} more topics)" if len(changed) > 1 else ""
        return f"What to set changed.{what}{more}. {self._reason}"

    @property
    def _effect(self) -> str:
        before, after = _worst(self.verdict_before), _worst(self.quick_verdict)
        losses = Change(*(between_losses(action.loss_after) for action in (before, after)))
        minutes = Change(*(without_writes(action.refused_after) for action in (before, after)))
        said = f"losses {losses.joined('->')} apart, {minutes.joined('->')} a year without writes"
        unavoidable = without_writes(after.floor.minutes_without_writes_per_year)
        return f"{said}, of which no setting prevents {unavoidable}"

    @cached_property
    def _reason(self) -> str:
        """The mechanisms whose counts alone change what to set, one after the other."""
        target = {name: action.after.key for name, action in _by_topic(self.quick_verdict).items()}
        mechanisms = dict.fromkeys(map(_mechanism, self.numbers))
        alone = [name for name in mechanisms if self._decides(name, target)]
        if not alone:
            return "No count alone changes it; together they do."
        counts = {row.mechanism: row.counted_words for row in self.counts}
        said = []
        for name in alone:
            seen = counts.get(name, "how long they lasted")
            said.append(f"{table()[name].words} ({name}, {seen})")
        enough = "The reason" if len(said) == 1 else "Each of these is reason enough"
        return f"{enough}: {'; '.join(said)}."

    def _decides(self, mechanism: str, target: Mapping[str, object]) -> bool:
        numbers = {
            path: self.model.quantities[path]
            for path in self.prior.quantities
            if path.rpartition(".")[0] == mechanism
        }
        card = replace(self.prior, quantities={**self.prior.quantities, **numbers})
        verdict = self._decided_with(card).at_middle
        return {name: action.after.key for name, action in _by_topic(verdict).items()} == target

    def explain(self) -> str:
        """Say in plain words what was seen, which numbers moved, and what that changes.

        Returns
        -------
        str
            Lines of text.

        See Also
        --------
        counts : The same as rows.

        Examples
        --------
        >>> import advisor
        >>> counts = {"brokers": 12, "years": 3, "events": {"broker.power": 4}}
        >>> learned = advisor.learn(counts, prior="three_az_cloud")
        >>> print(learned.explain().splitlines()[4])
        broker.power.per_year  0.2 (0.05 to 0.56)  0.13 (0.057 to 0.26)  4 in 36 broker-years
        """
        lines = [
            str(self.quick_verdict),
            "",
            *number_lines(self.numbers, len(self.numbers)),
            "",
            self.change,
        ]
        if len(self.histories) > 1:
            lines.append(
                "The numbers are the fleet's centre; clusters[name] is one cluster's card."
            )
        if self.observed is not None:
            lines.append(str(self.observed))
        about = (self.seen_words, self.named_words, self.assumed, *self.notes)
        return "\n".join([*lines, *filter(None, about)])

    def plot(self, ax: Any = None) -> Any:
        """Draw the range of each number that was learned, before and now.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. Default: those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        InputError
            If nothing was learned.
        MissingExtraError
            If matplotlib is not installed.

        See Also
        --------
        timeline : The outages over time.

        Examples
        --------
        >>> import advisor
        >>> counts = {"brokers": 12, "years": 3, "events": {"broker.power": 4}}
        >>> axes = advisor.learn(counts, prior="three_az_cloud").plot()
        >>> [label.get_text() for label in axes.get_legend().get_texts()]
        ['the card', 'with what was counted']
        """
        if not self.numbers:
            raise InputError("no number was learned; there is nothing to draw.")
        return plotting.draw("learned", self, ax)

    def timeline(self) -> Any:
        """Draw the outages over time, a row for each mechanism.

        Returns
        -------
        matplotlib.figure.Figure
            Axes for each cluster whose outages have times.

        Raises
        ------
        InputError
            If no event has a time.
        MissingExtraError
            If matplotlib is not installed.

        See Also
        --------
        outages : The same as rows.

        Examples
        --------
        >>> import advisor
        >>> event = {"start": "2025-03-01 10:00", "end": "2025-03-01 10:40"}
        >>> window = {"brokers": 12, "since": "2025-01-01", "until": "2026-01-01"}
        >>> learned = advisor.learn(
        ...     {**window, "events": {"cluster.crash": [event]}}, prior="three_az_cloud"
        ... )
        >>> len(learned.timeline().axes)
        1
        """
        if not self.outages:
            raise InputError("no event has a time; give events with start and end.")
        return plotting.draw("timeline", self)

    def to_toml(self, path: str | os.PathLike[str]) -> None:
        """Write the card, so that `advisor.load_model` reads the same back.

        Parameters
        ----------
        path : str or path
            A new file, or a card that was learned before, which is replaced.

        Raises
        ------
        InputError
            If it cannot be written, or is another file.

        See Also
        --------
        model : The card itself.

        Examples
        --------
        >>> import advisor, pathlib, tempfile
        >>> counts = {"brokers": 12, "years": 3, "events": {"broker.power": 4}}
        >>> learned = advisor.learn(counts, prior="three_az_cloud")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     learned.to_toml(pathlib.Path(folder) / "learned.toml")
        ...     advisor.load_model(pathlib.Path(folder) / "learned.toml") == learned.model
        True
        """
        write_card(path, self.model, self._comments)

    def as_toml(self) -> str:
        """Return the text of the file that `to_toml` writes.

        Returns
        -------
        str

        See Also
        --------
        to_toml : Writes it.

        Examples
        --------
        >>> import advisor
        >>> counts = {"brokers": 12, "years": 3, "events": {"broker.power": 4}}
        >>> print(advisor.learn(counts, prior="three_az_cloud").as_toml()[:34])
        # A card that advisor has learned.
        """
        return card_text(self.model, self._comments).text

    @property
    def _comments(self) -> list[str]:
        return [self.seen_words, f"Before: the card {self.prior.name}."]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON.

        Returns
        -------
        dict
            Verdict, counts, numbers, coverage, outages, the card and notes.

        See Also
        --------
        to_frame : The numbers as a table.

        Examples
        --------
        >>> import advisor
        >>> counts = {"brokers": 12, "years": 3, "events": {"broker.power": 4}}
        >>> advisor.learn(counts, prior="three_az_cloud").to_dict()["counts"][0]["events"]
        4
        """
        return {
            "verdict": self.quick_verdict.to_dict(),
            "change": self.change,
            "assumed": self.assumed,
            "prior": self.prior.name,
            "counts": [_plain(row) for row in self.counts],
            "numbers": [_plain(row) for row in self.numbers],
            "coverage": [_plain(row) for row in self.coverage],
            "outages": [_plain(row) for row in self.outages],
            "observed": None if self.observed is None else _plain(self.observed),
            "model": self.model.to_dict(),
            "notes": list(self.notes),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one line per number that was learned.

        Returns
        -------
        pandas.DataFrame
            Indexed by "number"; columns "before", "before_low", "before_high", "now", "now_low",
            "now_high" and "seen".

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_dict : The whole result as plain data.

        Examples
        --------
        >>> import advisor
        >>> counts = {"brokers": 12, "years": 3, "events": {"broker.power": 4}}
        >>> frame = advisor.learn(counts, prior="three_az_cloud").to_frame()
        >>> frame.loc["broker.power.per_year", "seen"]
        '4 in 36 broker-years'
        """
        ends = ("before", "before_low", "before_high", "now", "now_low", "now_high")
        rows = [(r.number, *r.prior, *r.posterior, r.evidence) for r in self.numbers]
        return data_frame(rows, ("number", *ends, "seen")).set_index("number")

    def __str__(self) -> str:
        return "\n".join([str(self.quick_verdict), self.change, self.seen_words])

    def __repr__(self) -> str:
        return "\n".join([str(self), *filter(None, (self.assumed, *self.notes))])

    def _repr_html_(self) -> str:
        rows = [
            {"number": r.number, "before": _said(r.prior), "now": _said(r.posterior)}
            | {"seen": r.evidence}
            for r in sorted(self.numbers, key=lambda row: -row.moved)
        ]
        about = [self.change, self.seen_words, *filter(None, (self.assumed, *self.notes))]
        return joined(
            self.quick_verdict.as_html(),
            html_table(rows, "What was learned, with 95 % intervals"),
            html_folded("What changed, and what was assumed", html_list(about)),
        ).text


def number_lines(numbers: Sequence[NumberRow], shown_rows: int) -> list[str]:
    """Return numbers that were learned as aligned lines, those that moved most first."""
    rows = sorted(numbers, key=lambda row: -row.moved)
    cells = [("number", "before", "now", "seen")]
    cells += [(r.number, _said(r.prior), _said(r.posterior), r.evidence) for r in rows[:shown_rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    hidden = len(rows) - shown_rows
    return [*lines, f"And {hidden} more numbers."] if hidden > 0 else lines


def _mechanism(row: NumberRow) -> str:
    return row.number.rpartition(".")[0]


def _by_topic(verdict: Verdict) -> dict[str, Action]:
    return {action.topic: action for action in verdict.actions}


def _worst(verdict: Verdict) -> Action:
    return max(verdict.actions, key=lambda action: action.cost_after)


def _said(interval: Range) -> str:
    value, low, high = map(significant, interval)
    return f"{value} ({low} to {high})"


def _plain(row: Any) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in vars(row).items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Range | Gap):
        return {name: _plain_value(inner) for name, inner in value._asdict().items()}
    if isinstance(value, tuple):
        return list(map(_plain_value, value))
    return value.isoformat() if isinstance(value, datetime) else value


@names_checked
def learn(
    source: Any,
    *,
    prior: FailureModel | str | os.PathLike[str],
    cluster: Cluster | Sources | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    client_properties: str | os.PathLike[str] | None = None,
    timeout_ms: int | None = None,
    work: str | os.PathLike[str] | None = None,
    engine: str = "local",
) -> Learned:
    """Narrow a card by what a cluster has seen.

    Parameters
    ----------
    source : mapping, str, path, or a list of these
        Counts as a mapping, or a TOML, JSON or CSV file of counts, or a CSV of incidents;
        ``docs/learn.md`` has the keys and columns. Several are several clusters of a fleet. Or
        answers of Prometheus' ``query_range``, JSON files or a folder of them, which are put
        together, by the label of the cluster if they have one; Parquet of a long-term store, files
        or folders; or the address of Prometheus or
        what answers like it, such as ``"https://prometheus:9090"``, which is only read.
    prior : FailureModel, str or path
        What was believed before; a card's name or path is read by `advisor.load_model`.
    cluster : Cluster, str, path or list, optional
        What the verdict is about, and how many brokers and racks there are where a source does not
        say. Default: a topic of 12 partitions, RF 3, min ISR 2, on a cluster of that many brokers.
    since, until : str or date, optional
        The time that was watched, where a source does not say; in UTC if it has no zone.
    client_properties : str or path, optional
        For an address that wants a login or TLS: a Java client's properties file, with SASL PLAIN
        for HTTP basic and OAUTHBEARER for a bearer token.
    timeout_ms : int, optional
        Time limit in milliseconds for each question to an address. Default: 30 000.
    work : str or path, optional
        A folder for data sets in Parquet, to which files of samples of any amount are read in
        stages; ``docs/learn.md`` has their columns. What is there is not read again.
    engine : {"local", "spark"}, default "local"
        Who reads Parquet and what goes to `work`; with Spark all workers have to see the files.

    Returns
    -------
    Learned
        With the card as `model`.

    Raises
    ------
    InputError
        Anything misspelt, missing, negative, or more than there can be.
    ModelError
        If the card is unusable.

    See Also
    --------
    load_model : Reads a card.
    FailureModel : What is learned.

    Examples
    --------
    >>> import advisor
    >>> learned = advisor.learn(
    ...     {"brokers": 12, "years": 3, "events": {"broker.power": 4, "cluster.crash": 0}},
    ...     prior="three_az_cloud",
    ... )
    >>> round(learned.model["broker.power.per_year"], 3)
    0.131
    """
    card = model_of(prior)
    if not isinstance(card, FailureModel):
        raise ModelError(f"prior={shown(prior)}: give a card, its name or its path.")
    given = None if cluster is None else cluster_of(cluster)
    if given is not None:
        expect("cluster", given, Cluster, "a Cluster, a path or a text")
    asked = replace(
        _window(given, since, until),
        client_properties=client_properties,
        timeout_ms=timeout_ms,
        work=work,
        engine=engine,
    )
    histories = read_histories(_listed(source), asked)
    fitted = fit(card, histories)
    if work is not None:
        from advisor.learning.stages import write_fits

        write_fits(os.fspath(work), fitted.numbers)
    return Learned(
        prior=card,
        model=fitted.model(),
        counts=tuple(fitted.counts),
        numbers=tuple(fitted.numbers),
        histories=histories,
        notes=tuple(dict.fromkeys((*fitted.notes, *(n for h in histories for n in h.notes)))),
        _given=given,
        _fit=fitted,
    )


def _cautions(years: float, numbers: Sequence[NumberRow]) -> Iterator[str]:
    """Say which rates were moved far by a short time, which may not have been a usual one."""
    if years >= _SHORT_YEARS:
        return
    for row in numbers:
        before, now = row.prior.value, row.posterior.value
        if row.number.endswith(".per_year") and now > _FAR * before > 0.0:
            time = " ".join(duration_words(years, 1.0))
            yield (
                f"Caution: {row.number} went from {significant(before)} to {significant(now)}, and "
                f"only {time} {'were' if time.endswith('s') else 'was'} watched. If that was an "
                "exercise or a migration, give a longer record."
            )


def _listed(source: Any) -> Sequence[Any]:
    if isinstance(source, list | tuple):
        if not source:
            raise InputError("there is nothing to learn from; give counts or a file.")
        return source
    return [source]


def _window(cluster: Cluster | None, since: Any, until: Any) -> Window:
    first = None if since is None else moment(since, "since")
    last = None if until is None else moment(until, "until")
    if cluster is None:
        return Window(since=first, until=last)
    situation = Situation.read(cluster)
    unknown = None in cluster.brokers.values()
    return Window(
        brokers=len(cluster.brokers),
        racks=None if unknown else len(cluster.racks),
        mode=situation.mode,
        since=first,
        until=last,
    )


def _own_cards(fitted: Fit, histories: Sequence[ClusterHistory]) -> Mapping[str, FailureModel]:
    """Of a fleet: each cluster's card, with its own rates and the lengths of all."""
    own = {path: fleet.of_clusters(fitted.prior.name) for path, fleet in fitted.fleets.items()}
    cards = {}
    for history in histories:
        rates = {path: rates[history.name] for path, rates in own.items() if history.name in rates}
        cards[history.name] = fitted.model(_file_name(history.name), {**fitted.quantities, **rates})
    return cards


def _file_name(name: str) -> str:
    return Path(name).name or name
