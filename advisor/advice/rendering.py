"""Where what draws plots and reports is plugged in: that is a higher room's work.

The package sets both when it is imported; without them, or without the libraries they need, the
methods that use them say in one sentence what to install.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.errors import MissingExtraError

renderer: Callable[..., Any] | None = None
"""Called as renderer(recommendation, path, audit=None); writes the HTML report."""

plotter: Callable[..., Any] | None = None
"""Called as plotter(recommendation, ax); draws the curves and returns the axes."""


def render(*arguments: Any, **options: Any) -> Any:
    """Write the HTML report with what is plugged in.

    Raises
    ------
    MissingExtraError
        Nothing is plugged in.
    """
    if renderer is None:
        raise MissingExtraError("The HTML report", "notebook")
    return renderer(*arguments, **options)


def draw(*arguments: Any, **options: Any) -> Any:
    """Draw with what is plugged in.

    Raises
    ------
    MissingExtraError
        Nothing is plugged in.
    """
    if plotter is None:
        raise MissingExtraError("A plot", "notebook")
    return plotter(*arguments, **options)
