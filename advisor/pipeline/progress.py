"""A progress bar on terminals and in notebooks only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Short runs should not flicker or leave traces in notebook outputs.
_SHOWN_AFTER_S = 2.0


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
        yield _ignore
        return
    with bar(total=total, unit=unit, unit_scale=True, leave=False, delay=_SHOWN_AFTER_S) as shown:
        yield shown.update


def _ignore(_done: int) -> None:
    """Show no progress."""


def _is_interactive() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _bar_class() -> type | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar: type = tqdm
    return bar
