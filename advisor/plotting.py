"""Where drawing is plugged in: results know how to be drawn, but this room draws nothing.

The package fills the table when it is imported; the functions import what they need when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.errors import MissingExtraError

painters: dict[str, Callable[..., Any]] = {}
"""By name: "reliability", "sampled", "recommendation" and "tornado" draw on axes; "report" writes
a file."""


def draw(what: str, *arguments: Any, **options: Any) -> Any:
    """Draw with what is plugged in.

    Raises
    ------
    MissingExtraError
        Nothing is plugged in, or the libraries that draw are not installed.
    """
    painter = painters.get(what)
    if painter is None:
        raise MissingExtraError("drawing plots and reports", "notebook")
    return painter(*arguments, **options)
