"""Registry of what decides, so that results have a verdict without importing the room above them.

`advisor/__init__.py` fills it; the registered functions import `advisor.decision` when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

verdict_functions: dict[str, Callable[..., Any]] = {}
"""By kind: "reliability" decides about the setting that was evaluated, "floor" says what no setting
prevents of its measures."""


def verdict_of(kind: str, *arguments: Any, **options: Any) -> Any:
    """Return the `Verdict` (or the `Floor`) of a kind of result."""
    if kind not in verdict_functions:
        raise LookupError(f"nothing decides about {kind!r}; import advisor registers what does")
    return verdict_functions[kind](*arguments, **options)
