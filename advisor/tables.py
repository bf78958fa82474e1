"""Rows of plain values, as a pandas DataFrame or an HTML table."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def data_frame(
    rows: Sequence[Any], columns: Sequence[str] | None = None, what: str = "to_frame()"
) -> pd.DataFrame:
    """Return rows as a pandas DataFrame.

    Parameters
    ----------
    rows : sequence of mappings or tuples
        One item per row.
    columns : sequence of str, optional
        Column names; default: the keys of the mappings.
    what : str
        Feature to name in the error when pandas is missing.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError(what, "notebook") from None
    if columns is None:
        return pd.DataFrame([dict(row) for row in rows])
    return pd.DataFrame(rows, columns=list(columns))


def html_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as an HTML table with escaped values; "" without rows.

    >>> print(html_table([{"n": 1}]))
    <table><thead><tr><th scope='col'>n</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>
    """
    if not rows:
        return ""
    head = "".join(f"<th scope='col'>{html.escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
