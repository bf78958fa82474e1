"""The numbers of a failure-model card with their evidence and sources, for the report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from advisor import catalog
from advisor.catalog import Evidence
from advisor.formatting import capital, counted, in_few_digits, significant, span
from advisor.learning.fit import learned_numbers
from advisor.present.labels import as_given_in_words, short
from advisor.reliability.failures.card import unit_of
from advisor.reliability.failures.failure_model import FailureModel, Quantity

_NAMED = re.compile(r"\[([a-z0-9-]+)\]")


def card_in_words(model: FailureModel) -> dict[str, Any]:
    """Return a card's title, its numbers with their evidence, and the sources that this cites."""
    cited = [quantity.evidence for quantity in model.quantities.values()]
    return {
        "title": f"{model.title} ({model.name})",
        "rows": [_row(path, quantity) for path, quantity in model.quantities.items()],
        "sources": [_source(entry) for entry in _named_by(cited)],
    }


def learned_in_words(model: FailureModel) -> dict[str, Any]:
    """Return what a cluster's history did to a card; "card" is "" if nothing was learned."""
    numbers = learned_numbers(model)
    card = numbers[0].card if numbers else ""
    moved = f"{counted(len(numbers), 'number')} of the card {card}"
    return {
        "card": card,
        "said": f"{capital(moved)} moved with what this cluster has seen; the others stay.",
        "rows": [
            {
                "path": row.number,
                "seen": row.seen,
                "before": f"{row.before} {unit_of(row.number)}".rstrip(),
                "now": f"{_brief(model.quantities[row.number])} {unit_of(row.number)}".rstrip(),
            }
            for row in numbers
        ],
    }


def _brief(number: Quantity) -> str:
    value, low, high = map(significant, (number.value, number.low, number.high))
    return f"{value} ({low} to {high})"


def range_in_words(path: str, low: float, high: float) -> str:
    """Return "0.2 to 2.8 per year"; "" if both ends are equal. What is computed gets two digits."""
    ends = span(*(in_few_digits(end, as_given_in_words) for end in (low, high)))
    return f"{ends} {unit_of(path)}".rstrip() if low < high else ""


def value_and_range(quantity: Quantity) -> tuple[str, str]:
    """A number and its range, as given, or to two digits if computed from a count or a product."""
    figures = zip((quantity.value, quantity.low, quantity.high), quantity.texts, strict=True)
    value, low, high = (as_given_in_words(n) if n >= 1e6 else text for n, text in figures)
    return value, span(low, high) if quantity.is_range else ""


def _row(path: str, quantity: Quantity) -> dict[str, str]:
    entry = catalog.evidence().get(quantity.evidence)
    value, ends = value_and_range(quantity)
    return {
        "path": path,
        "value": f"{value} {unit_of(path)}".rstrip(),
        "range": ends,
        "evidence": quantity.evidence if entry is None else f"{_where(entry)}: {entry.note}",
    }


def _named_by(names: Iterable[str]) -> list[Evidence]:
    """Return all entries reachable by names in brackets, in the order of the catalogue."""
    catalogue = catalog.evidence()
    cited = {name for name in names if name in catalogue}
    reached: set[str] = set()
    pending = set(cited)
    while pending:
        mentioned = set(_NAMED.findall(catalogue[pending.pop()].note)) & set(catalogue)
        pending |= mentioned - reached
        reached |= mentioned
    return [entry for name, entry in catalogue.items() if name in reached - cited]


def _source(entry: Evidence) -> dict[str, str]:
    low, value, high = (short(figure, 3) for figure in (entry.low, entry.value, entry.high))
    ends = f" ({span(low, high)})" if entry.low < entry.high else ""
    return {
        "name": entry.id,
        "counted": entry.quantity,
        "figure": f"{value}{ends} {entry.unit.replace('_', ' ')}",
        "source": f"{_where(entry)}: {entry.note}",
    }


def _where(entry: Evidence) -> str:
    """Return source, year and address of an entry."""
    if entry.verified == "assumption":
        return "our judgement"
    # A plain address, not a link: the report has no outside references.
    address = entry.url.removeprefix("https://").removeprefix("http://")
    address_words = "" if address in entry.source else f", {address}"
    return f"{entry.source}, {entry.year}{address_words}"
