"""Rows of plain values as the tables that notebooks show."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from advisor.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def data_frame(rows: Sequence[Mapping[str, object]], what: str) -> pd.DataFrame:
    """Return the rows as a pandas DataFrame.

    Raises
    ------
    MissingExtraError
        pandas is not installed; `what` says what needs it.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError(what, "notebook") from None
    return pd.DataFrame([dict(row) for row in rows])


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
