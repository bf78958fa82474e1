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
    """Return the rows as a pandas DataFrame.

    Parameters
    ----------
    rows : sequence of mappings or tuples
    columns : sequence of str, optional
        Names of the columns; those of the mappings unless given.
    what : str
        What needs pandas, for the error.

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
    """Return the rows as an HTML table, every value escaped; "" for no rows."""
    if not rows:
        return ""
    head = "".join(f"<th scope='col'>{html.escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
