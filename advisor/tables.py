"""Rows of plain values, as a pandas DataFrame or an HTML table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from advisor.arguments import missing_attribute
from advisor.errors import MissingExtraError
from advisor.rendering import Html, html, html_joined, joined, markup

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

MOST_ROWS = 30
"""Rows that a repr shows of what may have thousands."""

_LEFT = markup(" style='text-align:left'")
_WHOLE = markup(" style='white-space:nowrap'")
_NOTHING = markup("")
_MOST_LETTERS = 12  # of a number that is not broken over lines


def data_frame(
    rows: Sequence[Any], columns: Sequence[str] | None = None, what: str = "to_frame()"
) -> pd.DataFrame:
    """Return rows as a pandas DataFrame; `what` is named if pandas is missing."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError(what, "notebook") from None
    if columns is None:
        return pd.DataFrame([dict(row) for row in rows])
    return pd.DataFrame(rows, columns=list(columns))


def html_table(rows: Sequence[Mapping[str, object]], caption: str = "") -> Html:
    """Return rows as an HTML table with escaped values; "" without rows.

    The first column heads its row. It and columns of words are aligned left. A table wider than the
    page scrolls, by keyboard too. Colours are left to the page, so that dark pages work.
    """
    if not rows:
        return _NOTHING
    texts = [[str(value) for value in row.values()] for row in rows]
    columns = list(zip(*texts, strict=True))
    left = [place == 0 or _is_words(column) for place, column in enumerate(columns)]
    head = html_joined(
        markup("<th scope='col'{}>{}</th>", _LEFT if aside else _NOTHING, html(name))
        for name, aside in zip(rows[0], left, strict=True)
    )
    body = html_joined(_html_row(row, left) for row in texts)
    title = markup("<caption>{}</caption>", html(caption)) if caption else _NOTHING
    label = markup(" aria-label='{}'", html(caption)) if caption else _NOTHING
    table = markup(
        "<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>", title, head, body
    )
    scrolls = "<div style='overflow-x:auto' tabindex='0' role='group'{}>{}"
    return markup(scrolls, label, table)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or (text[:1] == "-" and text[1:2].isdigit())


def _is_words(column: Sequence[str]) -> bool:
    """Whether a column has texts, and no number; "none" and a dash stand for either."""
    return not any(map(_is_number, column)) and not {*column} <= {"", "none", "–"}


def _html_row(texts: Sequence[str], left: Sequence[bool]) -> Html:
    name, *cells = texts
    words = html_joined(
        markup("<td{}>{}</td>", _style(cell, aside), html(cell))
        for cell, aside in zip(cells, left[1:], strict=True)
    )
    return markup("<tr><th scope='row'{}>{}</th>{}</tr>", _LEFT, html(name), words)


def _style(cell: str, aside: bool) -> Html:
    if aside:
        return _LEFT
    return _WHOLE if _is_plain(cell) else _NOTHING


def _is_plain(text: str) -> bool:
    """Whether a text is a short number that a browser could break, such as 4.0e-5."""
    return _is_number(text) and "-" in text and len(text) <= _MOST_LETTERS


def more_rows(rows: Sequence[object], noun: str, where: str) -> str:
    """Return how many rows are not shown, and where all are; "" if `MOST_ROWS` show all."""
    hidden = len(rows) - MOST_ROWS
    return f"And {hidden:,} more {noun} are not shown; {where} has all." if hidden > 0 else ""


def html_verdict(verdict: str, *paragraphs: str) -> Html:
    """Return a verdict in bold and paragraphs below it as HTML, escaped."""
    return markup("<p><strong>{}</strong></p>{}", html(verdict), html_paragraphs(paragraphs))


def html_paragraphs(texts: Iterable[str]) -> Html:
    """Return texts as HTML paragraphs, escaped; empty ones are left out."""
    return html_joined(markup("<p>{}</p>", html(text)) for text in texts if text)


def html_list(items: Iterable[object]) -> Html:
    """Return items as an HTML list, escaped."""
    return markup("<ul>{}</ul>", html_joined(markup("<li>{}</li>", html(i)) for i in items))


def html_folded(title: str, content: Html) -> Html:
    """Return HTML that is opened by a click on its title."""
    return markup("<details><summary>{}</summary>{}</details>", html(title), content)


class HasRow(Protocol):
    """An entry of a `RowTable`: a candidate setting, or an audited topic."""

    def row(self, intervals: bool) -> dict[str, object]:
        """Return the entry as one row of plain values."""
        ...


class RowTable(ABC):
    """Mixin: `rows`, `table` and `to_frame` of a result that has one row per entry."""

    if not TYPE_CHECKING:  # a type checker would take it for any attribute
        __getattr__ = missing_attribute

    _INTERVALS: ClassVar[bool]
    """Whether a table has intervals unless the caller says otherwise."""

    @abstractmethod
    def _entries(self) -> Sequence[HasRow]:
        """Return the entries in their order."""

    def rows(self, intervals: bool | None = None) -> list[dict[str, object]]:
        """Return one row of plain values per entry, best (settings) or worst (topics) first.

        Examples
        --------
        >>> import advisor
        >>> card = {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        >>> model = advisor.FailureModel.from_dict(card)
        >>> cluster = advisor.Cluster.uniform(1, racks=1)
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> advice.rows(intervals=False)[0]["acks"]
        'all'
        """
        wanted = self._INTERVALS if intervals is None else intervals
        return [entry.row(wanted) for entry in self._entries()]

    def table(self, intervals: bool | None = None) -> pd.DataFrame:
        """Return `rows` as a pandas DataFrame.

        Parameters
        ----------
        intervals : bool, optional
            Whether each measure has its 95 % interval (columns ``<measure>_low`` and
            ``<measure>_high``), which takes seconds per row. Default: yes for the settings of a
            recommendation, no for the topics of an audit.

        Returns
        -------
        pandas.DataFrame
            One line per entry, in the order of `rows`.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_frame : The same with the default columns.
        to_dict : The whole result as plain JSON data.

        Examples
        --------
        >>> import advisor
        >>> cluster = advisor.Cluster.uniform(brokers=3)
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> load = advisor.Workload(partitions=1)
        >>> advice = advisor.recommend(cluster, model, load)
        >>> frame = advice.table(intervals=False)
        >>> sorted(set(frame["replication_factor"]))
        [1, 2, 3]
        """
        return data_frame(self.rows(intervals), what="a table")

    def to_frame(self) -> pd.DataFrame:
        """Return `table` with its default columns.

        Returns
        -------
        pandas.DataFrame
            One line per entry, in the order of `rows`.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        table : The same, with or without intervals.

        Examples
        --------
        >>> import advisor
        >>> cluster = advisor.Cluster.uniform(brokers=2, racks=None)
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
        >>> sorted(set(advice.to_frame()["replication_factor"]))
        [1, 2]
        """
        return self.table()


def measures_as_fields(cls: type[DataclassInstance], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return measures as arguments of a result; `further` has those that are no field of it."""
    own = {field.name for field in fields(cls)}
    further = {name: value for name, value in values.items() if name not in own}
    return {name: values[name] for name in values if name in own} | {"further": further}


class MeasureTable(ABC):
    """Mixin: `to_frame` and the notebook view of a result that has one row per measure."""

    if not TYPE_CHECKING:  # a type checker would take it for any attribute

        def __getattr__(self, name: str) -> Any:
            """Return a measure without a field of its own."""
            further = vars(self).get("further", {})
            return further[name] if name in further else missing_attribute(self, name)

    _FRAME_COLUMNS: ClassVar[tuple[str, ...]]
    _HTML_COLUMNS: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def summary(self) -> str:
        """The result in one sentence."""

    @abstractmethod
    def _frame_rows(self) -> list[tuple[object, ...]]:
        """Return the values of each measure, by `_FRAME_COLUMNS`."""

    @abstractmethod
    def _html_rows(self) -> list[tuple[str, ...]]:
        """Return the words for each measure, by `_HTML_COLUMNS`."""

    @abstractmethod
    def _paragraphs(self) -> tuple[str, ...]:
        """Return what stands between the summary and the table."""

    def to_frame(self) -> pd.DataFrame:
        """Return one line per measure: its value, 95 % interval and unit.

        Returns
        -------
        pandas.DataFrame
            Indexed by "measure"; columns "value", "low", "high" and "unit"; of a sampled result
            also "seen", "years" (simulated) and "method".

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_dict : The whole result as plain JSON data.

        Examples
        --------
        >>> import advisor
        >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
        ... )
        >>> config = advisor.Config(replication_factor=1)
        >>> frame = advisor.evaluate(cluster, config, model).to_frame()
        >>> list(frame.columns)
        ['value', 'low', 'high', 'unit']
        >>> print(f"{frame.loc['loss_events_per_year', 'value']:.3f}")
        0.100
        """
        return data_frame(self._frame_rows(), self._FRAME_COLUMNS).set_index("measure")

    def _repr_html_(self) -> str:
        rows = [dict(zip(self._HTML_COLUMNS, row, strict=True)) for row in self._html_rows()]
        table = html_table(rows, "Measures with their 95 % intervals")
        return joined(html_verdict(self.summary, *self._paragraphs()), table).text
