"""Why anyone should believe a card: its numbers with their sources, and those these name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from advisor import catalog
from advisor.catalog import Evidence
from advisor.formatting import span
from advisor.present.labels import as_given, short
from advisor.reliability.failures.failure_model import FailureModel, Quantity

_NAMED = re.compile(r"\[([a-z0-9-]+)\]")


def card_in_words(model: FailureModel) -> dict[str, Any]:
    """Return the numbers of a card, each with its evidence.

    Returns
    -------
    dict
        "title"; "rows" with "path", "value", "range" ("" for a number without one) and
        "evidence"; and "sources": those that the evidence names in brackets, with "name",
        "counted", "figure" and "source".
    """
    cited = [quantity.evidence for quantity in model.quantities.values()]
    return {
        "title": f"{model.title} ({model.name})",
        "rows": [_row(path, quantity) for path, quantity in model.quantities.items()],
        "sources": [_source(known) for known in _named_by(cited)],
    }


def range_in_words(low: float, high: float) -> str:
    """Return "0.2 to 2.8"; "" without a width."""
    return span(as_given(low), as_given(high)) if low < high else ""


def _row(path: str, quantity: Quantity) -> dict[str, str]:
    known = catalog.evidence().get(quantity.evidence)
    return {
        "path": path,
        "value": as_given(quantity.value),
        "range": range_in_words(quantity.low, quantity.high),
        "evidence": quantity.evidence if known is None else f"{_where(known)}: {known.note}",
    }


def _named_by(names: Iterable[str]) -> list[Evidence]:
    """Follow the names in brackets to all rows that they lead to, in the catalogue's order."""
    catalogue = catalog.evidence()
    cited = {name for name in names if name in catalogue}
    found: set[str] = set()
    ahead = set(cited)
    while ahead:
        named = set(_NAMED.findall(catalogue[ahead.pop()].note)) & set(catalogue)
        ahead |= named - found
        found |= named
    return [known for name, known in catalogue.items() if name in found - cited]


def _source(known: Evidence) -> dict[str, str]:
    low, value, high = (short(figure, 3) for figure in (known.low, known.value, known.high))
    ends = f" ({span(low, high)})" if known.low < known.high else ""
    return {
        "name": known.id,
        "counted": known.quantity,
        "figure": f"{value}{ends} {known.unit.replace('_', ' ')}",
        "source": f"{_where(known)}: {known.note}",
    }


def _where(known: Evidence) -> str:
    """Return who says so, when and where."""
    if known.verified == "assumption":
        return "our judgement"
    # A plain address, not a link: the file must not lead anywhere by itself.
    address = known.url.removeprefix("https://").removeprefix("http://")
    where = "" if address in known.source else f", {address}"
    return f"{known.source}, {known.year}{where}"
