"""Notebook views and data frames of the values that users build: settings, loads, goals, cards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from advisor.tables import data_frame, html_table

if TYPE_CHECKING:
    import pandas as pd


class FieldTable(ABC):
    """Mixin: the notebook view of a value with a name for each of its fields."""

    @abstractmethod
    def to_dict(self) -> Mapping[str, object]:
        """Return every field by name."""

    def _html_caption(self) -> str:
        """Return the heading of the table."""
        return type(self).__name__

    def _html_notes(self) -> Mapping[str, str]:
        """Return what stands beside fields, by name."""
        return {}

    def _repr_html_(self) -> str:
        notes = self._html_notes()
        rows = [
            {"name": name, "value": "none" if value is None else value}
            | ({"from": notes.get(name, "")} if notes else {})
            for name, value in self.to_dict().items()
        ]
        return html_table(rows, self._html_caption()).text


class QuantityTable(ABC):
    """Mixin: a card as text, as a frame and in a notebook, one row per number."""

    @abstractmethod
    def _numbers(self) -> tuple[str, Mapping[str, Any]]:
        """Return a caption, and the numbers by dotted path."""

    def _texts(self) -> Mapping[str, tuple[str, str]]:
        """Return what is no number, by dotted path: a text and its evidence."""
        return {}

    def __repr__(self) -> str:
        caption, numbers = self._numbers()
        rows = [(path, f"{quantity}  {quantity.evidence}") for path, quantity in numbers.items()]
        rows += [(path, f"{text}  {evidence}") for path, (text, evidence) in self._texts().items()]
        width = max((len(path) for path, _ in rows), default=0)
        return "\n".join([caption, *(f"  {path:<{width}}  {text}".rstrip() for path, text in rows)])

    def to_frame(self) -> pd.DataFrame:
        """Return one line per number: its value, range, unit and evidence.

        What is no number, such as a distribution of times, has a text as its value.

        Returns
        -------
        pandas.DataFrame
            Indexed by "number", the dotted path; columns "value", "low", "high", "unit" (the last
            word of the path) and "evidence".

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_dict : The whole card as nested tables.

        Examples
        --------
        >>> import advisor
        >>> frame = advisor.load_model("three_az_cloud").to_frame()
        >>> list(frame.columns)
        ['value', 'low', 'high', 'unit', 'evidence']
        >>> float(frame.loc["flush.seconds", "value"])
        35.0
        """
        columns = ("number", "value", "low", "high", "unit", "evidence")
        rows = [
            (path, q.value, q.low, q.high, path.rpartition(".")[2], q.evidence)
            for path, q in self._numbers()[1].items()
        ]
        rows += [
            (path, text, None, None, path.rpartition(".")[2], evidence)
            for path, (text, evidence) in self._texts().items()
        ]
        return data_frame(rows, columns).set_index("number")

    def _repr_html_(self) -> str:
        caption, numbers = self._numbers()
        columns = ("number", "value", "low", "high", "evidence")
        rows = [
            dict(zip(columns, (path, *quantity.texts, quantity.evidence), strict=True))
            for path, quantity in numbers.items()
        ]
        rows += [
            dict(zip(columns, (path, text, "", "", evidence), strict=True))
            for path, (text, evidence) in self._texts().items()
        ]
        return html_table(rows, caption).text
