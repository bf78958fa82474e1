"""Registry of plotting functions, so that results can plot without importing `present`.

`advisor/__init__.py` fills it; the registered functions import `advisor.present` when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.errors import MissingExtraError

plot_functions: dict[str, Callable[..., Any]] = {}
"""By kind of result: "reliability", "sampled", "recommendation" and "tornado" plot on axes;
"report" writes an HTML file, "story" draws the steps of a scenario, "verdict" returns HTML."""


def draw(kind: str, *arguments: Any, **options: Any) -> Any:
    """Call the plotting function registered for a kind of result."""
    plot_function = plot_functions.get(kind)
    if plot_function is None:
        raise MissingExtraError("drawing plots and reports", "report")
    return plot_function(*arguments, **options)
