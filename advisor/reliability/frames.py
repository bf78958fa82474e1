"""Rows as a pandas DataFrame, where pandas is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from advisor.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def data_frame(rows: Sequence[Any], columns: Sequence[str]) -> pd.DataFrame:
    """The rows, tuples or mappings, under these columns.

    Raises
    ------
    MissingExtraError
        Without pandas.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("to_frame()", "notebook") from None
    return pd.DataFrame(rows, columns=list(columns))
