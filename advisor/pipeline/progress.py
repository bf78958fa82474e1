"""A progress bar where a person is watching, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Shorter work shall not flicker, nor leave traces in a notebook's outputs.
_SHOWN_AFTER_S = 2.0


@contextmanager
def progress_bar(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Show how much of the work is done, on a terminal or in a notebook.

    Yields
    ------
    callable
        Takes what was done since the last call.
    """
    bar = _bar_class() if _watched() else None
    if bar is None:
        yield _nothing
        return
    with bar(total=total, unit=unit, unit_scale=True, leave=False, delay=_SHOWN_AFTER_S) as shown:
        yield shown.update


def _nothing(_done: int) -> None:
    """Show nothing."""


def _watched() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _bar_class() -> type | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar: type = tqdm
    return bar
