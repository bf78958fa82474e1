"""From what clusters have seen, and a card as the prior, to a card of their own."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from advisor import catalog
from advisor.formatting import as_given, counted
from advisor.learning.evidence import ClusterHistory, Seen, Teaches, evidence_of
from advisor.learning.posterior import (
    Counted,
    Lengths,
    Range,
    Share,
    cluster_posteriors,
    length_likelihood,
    posterior,
    product_posterior,
    rate_likelihood,
    share_likelihood,
    struck_posterior,
)
from advisor.reliability.calendar import RATE_PATH
from advisor.reliability.failures.card import Quantity
from advisor.reliability.failures.card_origin import OWN_EVIDENCE
from advisor.reliability.failures.distributions import range_of
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import PER_YEAR, SHAPE, Mechanism, Scope, table

# What a card shows of a number that was computed.
_DIGITS = 4
# Less than so many years are said in days.
_LEAST_YEARS, _LEAST_DAYS, _DAYS_PER_YEAR = 0.1, 0.95, 365.0
NAME = "learned"


@dataclass(frozen=True)
class CountRow:
    """A mechanism that was counted.

    number: dotted path of its rate in the card.
    broker_years, rack_years, cluster_years: in which they were counted; one of them.
    prior, posterior: events per year of one broker, rack or cluster: value, low and high. Of a
        fleet, its centre. Where a card has the product with the minutes, low and high are of all
        minutes together, and so wider than in `Learned.numbers`, which has them at the card's.
    """

    mechanism: str
    number: str
    events: int
    broker_years: float | None
    rack_years: float | None
    cluster_years: float | None
    prior: Range
    posterior: Range

    @property
    def exposure_years(self) -> float:
        """The years of whichever it strikes."""
        return self.broker_years or self.rack_years or self.cluster_years or 0.0

    @property
    def counted_words(self) -> str:
        """How many in how long."""
        (kind,) = (k for k in Scope if getattr(self, f"{k.value}_years") is not None)
        return _counted_words(Counted(self.events, self.exposure_years), kind.value)


@dataclass(frozen=True)
class NumberRow:
    """A number of the card that was learned.

    number: dotted path.
    evidence: what was seen.
    prior, posterior: as the card says it before, and as the learned one does.
    """

    number: str
    evidence: str
    prior: Range
    posterior: Range

    @property
    def moved(self) -> float:
        """How much was learned: by which factor the value moved, and the range narrowed."""
        pairs = zip(self.prior, self.posterior, strict=True)
        return sum(abs(math.log(after / before)) for before, after in pairs if before and after)


@dataclass(frozen=True)
class FleetRate:
    """A rate that several clusters counted.

    number: the prior of the fleet's rate.
    clusters: by name.
    kind: what one event strikes.
    """

    number: Quantity
    clusters: Mapping[str, Counted]
    kind: str

    def of_clusters(self, prior_name: str) -> dict[str, Quantity]:
        """Return each cluster's own rate, by its name."""
        updated = cluster_posteriors(self.number, list(self.clusters.values()))
        own = {}
        for (name, cluster), rate in zip(self.clusters.items(), updated, strict=True):
            said = f"{_counted_words(cluster, self.kind)}, and the fleet's"
            own[name] = Quantity(*_rounded(rate), _evidence(said, self.number, prior_name))
        return own


@dataclass
class Fit:
    """A card with what was learned; and what was learned, number by number.

    quantities: those that changed.
    notes: what could not be learned, a sentence each.
    fleets: rates that several clusters counted, by path.
    """

    prior: FailureModel
    quantities: dict[str, Quantity] = field(default_factory=dict)
    counts: list[CountRow] = field(default_factory=list)
    numbers: list[NumberRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fleets: dict[str, FleetRate] = field(default_factory=dict)

    def model(
        self, name: str = NAME, changed: Mapping[str, Quantity] | None = None
    ) -> FailureModel:
        """Return the card with what was learned, as it reads back from a file."""
        numbers = self.quantities if changed is None else changed
        quantities = {
            path: _with_source(numbers.get(path, quantity), self.prior.name)
            for path, quantity in self.prior.quantities.items()
        }
        times = {
            path: replace(t, evidence=_source(t.evidence, self.prior.name))
            for path, t in self.prior.times.items()
        }
        title = f"{self.prior.title}, with what was counted"
        learned = replace(self.prior, name=name, title=title, quantities=quantities, times=times)
        return FailureModel.from_dict(learned.to_dict(), name)


def fit(prior: FailureModel, histories: Sequence[ClusterHistory]) -> Fit:
    """Learn every number that something was seen of; the others keep the prior."""
    result = Fit(prior)
    for entry in table().entries:
        seen = [(h, h.seen[entry.name]) for h in histories if entry.name in h.seen]
        if seen:
            _Learning(entry, seen, result).learn()
    return result


@dataclass(frozen=True)
class _Learning:
    """Learns the numbers of one mechanism."""

    entry: Mechanism
    seen: Sequence[tuple[ClusterHistory, Seen]]
    result: Fit

    def learn(self) -> None:
        entry, prior = self.entry, self.result.prior
        if entry.name not in prior.mechanisms:
            self.result.notes.append(
                f"The card {prior.name} has no {entry.name}; what was counted of it is not used."
            )
            return
        lengths = self._lengths()
        for mode, path in self._rate_paths():
            members = [(h, s) for h, s in self.seen if mode in ("", h.mode)]
            if members:
                self._learn_rate(path, members, lengths)
        for path, updated in lengths.items():
            if path not in self.result.quantities:
                self._learn_length(path, updated)
        self._learn_shares()

    def _rate_paths(self) -> list[tuple[str, str]]:
        """The rates by the mode of the clusters that they hold for; "" for all."""
        usual = f"{self.entry.name}.{PER_YEAR.key}"
        other = self.entry.path(self.entry.with_zookeeper)
        if other in self.result.prior.quantities:
            return [("kraft", usual), ("zookeeper", other)]
        return [("", usual)]

    # Lengths

    def _lengths(self) -> dict[str, Lengths]:
        """What was seen of each mean length, where the card's outages are gamma or exponential."""
        updated: dict[str, Lengths] = {}
        for key, kind in evidence_of(self.entry).items():
            if kind is not Teaches.LENGTH:
                continue
            rows = [seen.lengths[key] for _, seen in self.seen if key in seen.lengths]
            ended = tuple(length for row in rows for length in row.ended)
            ongoing = tuple(length for row in rows for length in row.ongoing)
            path = f"{self.entry.name}.{key}"
            if (ended or ongoing) and self._is_learnable(path):
                updated[path] = Lengths(ended, ongoing)
        return updated

    def _is_learnable(self, path: str) -> bool:
        """Whether the card has a range at a path, and its times are such that counts say it."""
        prior, (name, _, key) = self.result.prior, path.rpartition(".")
        rate = evidence_of(self.entry)[key] in (Teaches.RATE, Teaches.ZOOKEEPER_RATE)
        times = prior.times.get(f"{name}.{'lifetime' if rate else 'duration'}")
        length = evidence_of(self.entry)[key] is Teaches.LENGTH
        number = prior.quantities.get(path)
        why = ""
        if number is None:
            why = f"the card {prior.name} does not give it"
        elif path == RATE_PATH and prior.calendar is not None:
            why = "it follows from the calendar"
        elif (rate or length) and times is not None:
            why = f"its times are {times}, and counts are read as exponential"
        elif not number.is_range:
            why = f"the card {prior.name} says it without a range, as exact"
        if why:
            self.result.notes.append(f"{path} stays as it was: {why}.")
        return not why

    def _shape(self) -> Quantity | None:
        return self.result.prior.quantities.get(f"{self.entry.name}.{SHAPE.key}")

    def _learn_length(self, path: str, lengths: Lengths) -> None:
        number = self.result.prior.quantities[path]
        updated = posterior(number, length_likelihood(lengths, self._shape()))
        self._keep(path, updated, _length_words(lengths))

    # Rates

    def _learn_rate(
        self,
        path: str,
        members: Sequence[tuple[ClusterHistory, Seen]],
        lengths: Mapping[str, Lengths],
    ) -> None:
        number = self.result.prior.quantities[path]
        clusters = [Counted(s.events, h.exposure_of(self.entry)) for h, s in members]
        if not self._is_learnable(path):
            self._count(path, clusters, _range_of(number), _range_of(number))
            return
        if number.minutes_per_year is not None:
            self._learn_product(path, members, clusters, lengths)
            return
        if number.events is not None and number.exposure_years is not None and len(members) == 1:
            (seen,) = clusters
            events, years = number.events + seen.events, number.exposure_years + seen.exposure_years
            updated = Range(*range_of(events, years))
            row = self._count(path, clusters, _range_of(number), updated)
            evidence = _evidence(row.counted_words, number, self.result.prior.name)
            self.result.quantities[path] = Quantity(*updated, evidence, events, years)
            said = row.counted_words
            self.result.numbers.append(NumberRow(path, said, _range_of(number), updated))
        else:
            updated = posterior(number, rate_likelihood(clusters))
            row = self._count(path, clusters, _range_of(number), updated)
            self._keep(path, updated, row.counted_words)
        self._fleet(path, members, clusters, number)

    def _learn_product(
        self,
        path: str,
        members: Sequence[tuple[ClusterHistory, Seen]],
        clusters: Sequence[Counted],
        lengths: Mapping[str, Lengths],
    ) -> None:
        """Learn a rate of which the card knows the product with its minutes, and these minutes."""
        number = self.result.prior.quantities[path]
        assert number.minutes_per_year is not None
        beside = f"{self.entry.name}.minutes"
        minutes = self.result.prior.quantities[beside]
        prior_product = Quantity(*number.minutes_per_year)
        before = product_posterior(prior_product, minutes, None, None)
        long = lengths.get(beside)
        updated = product_posterior(
            prior_product,
            minutes,
            rate_likelihood(clusters),
            None if long is None else length_likelihood(long, self._shape()),
        )
        said = _counted_words(_together(clusters), self.entry.scope.value)
        if beside not in self.result.quantities:
            # The card knows their product: a rate that was counted says something of the minutes.
            follows = f"follows from {said}"
            self._keep(beside, updated.minutes, _length_words(long) if long else follows)
        if updated.keeps_product:
            evidence = _evidence(said, number, self.result.prior.name)
            new_minutes, rounded = self.result.quantities[beside], _rounded(updated.product)
            self.result.quantities[path] = _divided(rounded, new_minutes, evidence)
            # As both cards say it, and not the quotient's own median, which no card has.
            after = _range_of(self.result.quantities[path])
            self.result.numbers.append(NumberRow(path, said, _range_of(number), after))
        else:
            self._keep(path, updated.rate, said)
        ends = before.rate[1:], updated.rate[1:]
        values = number.value, self.result.quantities[path].value
        self._count(path, clusters, Range(values[0], *ends[0]), Range(values[1], *ends[1]))
        self._fleet(path, members, clusters, Quantity(*before.rate))

    def _count(
        self, path: str, clusters: Sequence[Counted], before: Range, after: Range
    ) -> CountRow:
        events, exposure = _together(clusters)
        years = {scope: exposure if scope is self.entry.scope else None for scope in Scope}
        row = CountRow(
            mechanism=self.entry.name,
            number=path,
            events=events,
            broker_years=years[Scope.BROKER],
            rack_years=years[Scope.RACK],
            cluster_years=years[Scope.CLUSTER],
            prior=before,
            posterior=after,
        )
        self.result.counts.append(row)
        return row

    def _fleet(
        self,
        path: str,
        members: Sequence[tuple[ClusterHistory, Seen]],
        clusters: Sequence[Counted],
        number: Quantity,
    ) -> None:
        if len(clusters) > 1:
            names = [history.name for history, _ in members]
            by_name = dict(zip(names, clusters, strict=True))
            self.result.fleets[path] = FleetRate(number, by_name, self.entry.scope.value)

    # Probabilities

    def _learn_shares(self) -> None:
        for path, share in self._shares():
            number = self.result.prior.quantities[path]
            updated = posterior(number, share_likelihood(share), 1.0)
            self._keep(path, updated, f"{share.happened:,} of {share.of:,}")
        struck = [pair for _, seen in self.seen for pair in seen.struck]
        if struck:
            self._learn_struck(struck)

    def _shares(self) -> Iterator[tuple[str, Share]]:
        for key in evidence_of(self.entry):
            rows = [seen.shares[key] for _, seen in self.seen if key in seen.shares]
            share = Share(sum(row.happened for row in rows), sum(row.of for row in rows))
            path = f"{self.entry.name}.{key}"
            if share.of and self._is_learnable(path):
                yield path, share

    def _learn_struck(self, struck: Sequence[tuple[int, int]]) -> None:
        entry, given = self.entry, self.result.prior.quantities
        every, brokers = entry.path(entry.every), entry.share_path
        if not self._is_learnable(brokers):
            return
        both = every in given and self._is_learnable(every)
        whole, own = struck_posterior(given[every] if both else None, given[brokers], struck)
        said = _struck_words(struck)
        if whole is not None:
            self._keep(every, whole, said)
        self._keep(brokers, own, said)

    def _keep(self, path: str, updated: Range, said: str) -> None:
        number = self.result.prior.quantities[path]
        evidence = _evidence(said, number, self.result.prior.name)
        self.result.quantities[path] = Quantity(*_rounded(updated), evidence)
        self.result.numbers.append(NumberRow(path, said, _range_of(number), updated))


def _together(clusters: Sequence[Counted]) -> Counted:
    """What several clusters counted, added up."""
    events = sum(cluster.events for cluster in clusters)
    return Counted(events, sum(cluster.exposure_years for cluster in clusters))


def _counted_words(seen: Counted, kind: str) -> str:
    number, unit = duration_words(seen.exposure_years, _LEAST_YEARS)
    return f"{seen.events:,} in {number} {kind}-{unit}"


def duration_words(years: float, least_years: float) -> tuple[str, str]:
    """Return a number to three digits and its unit: years from so many on, else days or hours.

    >>> duration_words(3.0, 1.0), duration_words(0.01, 1.0), duration_words(0.0161 / 365.0, 1.0)
    (('3', 'years'), ('3.65', 'days'), ('0.386', 'hours'))
    """
    days = years * _DAYS_PER_YEAR
    amount, unit = (years, "year") if years >= least_years else (days, "day")
    if days < _LEAST_DAYS:
        amount, unit = days * 24.0, "hour"
    number = as_given(float(f"{amount:.3g}"))
    return number, unit if number == "1" else f"{unit}s"


def _divided(product: Range, minutes: Quantity, evidence: str) -> Quantity:
    value, low, high = (end / minutes.value for end in product)
    return Quantity(value, low, high, evidence, minutes_per_year=(*product,))


def _range_of(number: Quantity) -> Range:
    return Range(number.value, number.low, number.high)


def _rounded(updated: Range) -> Range:
    return Range(*(float(f"{end:.{_DIGITS - 1}e}") for end in updated))


def _length_words(lengths: Lengths) -> str:
    ended, ongoing = len(lengths.ended), len(lengths.ongoing)
    words = counted(ended, "outage")
    if ended:
        words += f", {as_given(float(f'{sum(lengths.ended) / ended:.3g}'))} on average"
    return words + (f", and {ongoing:,} cut off" if ongoing else "")


def _struck_words(struck: Sequence[tuple[int, int]]) -> str:
    """How many brokers were struck in how many events, the commonest first."""
    commonest = Counter(struck).most_common()
    words = "; ".join(
        f"{count:,} of {among:,} brokers in {counted(times, 'event')}"
        for (count, among), times in commonest[:3]
    )
    rest = sum(times for _, times in commonest[3:])
    return words + (f"; {counted(rest, 'other event')}" if rest else "")


def _evidence(said: str, number: Quantity, name: str) -> str:
    """What a card says of a number that was learned: what was seen, and what was believed."""
    # Of a card that was learned itself, what it says is not said again.
    source = f", {number.evidence}" if number.evidence in catalog.evidence() else ""
    return f"{OWN_EVIDENCE} {said}; before {number} ({name}{source})"


_SAYS_BEFORE = re.compile(
    rf"{re.escape(OWN_EVIDENCE)} (?P<seen>.+); before (?P<before>.+) \((?P<card>[^(),]+)[^()]*\)"
)


class LearnedNumber(NamedTuple):
    """A number of a card that was learned, as the card itself says.

    number: dotted path.
    seen: what was counted.
    before: value and range before that.
    card: name of the card that said so.
    """

    number: str
    seen: str
    before: str
    card: str


def learned_numbers(model: FailureModel) -> tuple[LearnedNumber, ...]:
    """Return the numbers of a card that were learned; none of one that was written by hand.

    >>> from advisor.reliability.failures.failure_model import load_model
    >>> prior = load_model("three_az_cloud")
    >>> learned_numbers(prior)
    ()
    """
    said = (
        (path, _SAYS_BEFORE.fullmatch(number.evidence)) for path, number in model.quantities.items()
    )
    return tuple(
        LearnedNumber(path, match["seen"], match["before"], match["card"])
        for path, match in said
        if match is not None
    )


def _with_source(number: Quantity, name: str) -> Quantity:
    return replace(number, evidence=_source(number.evidence, name))


def _source(evidence: str, name: str) -> str:
    """Evidence that a card file may cite."""
    if evidence.startswith(OWN_EVIDENCE) or evidence in catalog.evidence():
        return evidence
    return f"{OWN_EVIDENCE} {evidence or 'given without evidence'} ({name})"
