"""What a long computation shows: a bar on terminals and in notebooks only, and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Short runs should not flicker or leave traces in notebook outputs.
_SHOWN_AFTER_S = 2.0

Say = Callable[[str], object]


def warn(sentence: str) -> None:
    """Say a sentence as a Python warning."""
    warnings.warn(sentence, stacklevel=2)


@contextmanager
def progress_bar(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Show progress on a terminal or in a notebook.

    Yields
    ------
    callable
        Takes the amount done since the last call.
    """
    bar = _bar_class() if _is_interactive() else None
    if bar is None:
        yield ignore
        return
    with bar(total=total, unit=unit, unit_scale=True, leave=False, delay=_SHOWN_AFTER_S) as shown:
        yield shown.update


def ignore(_what: object) -> None:
    """Show and say nothing."""


def _is_interactive() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _bar_class() -> type | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar: type = tqdm
    return bar
