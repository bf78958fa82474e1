"""What a long computation shows: a bar on terminals and in notebooks only, and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Short runs should not flicker or leave traces in notebook outputs.
_SHOWN_AFTER_S = 2.0
# A notebook gets three messages for each, and a client that reads late keeps a thousand.
_BETWEEN_UPDATES_S = 1.0

Notify = Callable[[str], object]
"""Tells the user a sentence."""


def warn(sentence: str) -> None:
    """Issue a sentence as a Python warning."""
    warnings.warn(sentence, stacklevel=2)


@contextmanager
def progress_bar(total: int, unit: str, what: str = "") -> Iterator[Callable[[int], object]]:
    """Show progress, with the time left; yields a function that takes what was done since."""
    bar = _bar_class() if _is_interactive() else None
    if bar is None:
        yield ignore
        return
    shown_as = {"unit": unit, "unit_scale": True, "leave": False, "desc": what or None}
    often = {"delay": _SHOWN_AFTER_S, "mininterval": _BETWEEN_UPDATES_S}
    with bar(total=total, **often, **shown_as) as shown:
        yield shown.update


@contextmanager
def status_bar(total: int, unit: str) -> Iterator[Callable[[int, str], object]]:
    """Show progress with a line of words; yields a function that takes what is done in all."""
    bar = _bar_class() if _is_interactive() else None
    if bar is None:
        yield lambda _done, _words: None
        return
    # The words say how much time is left.
    form = "{percentage:3.0f}%|{bar:12}| {n_fmt}/{total_fmt} " + unit + " in {elapsed}{postfix}"
    shown_as = {"unit_scale": True, "leave": False, "bar_format": form, "dynamic_ncols": True}
    with bar(total=total, delay=_SHOWN_AFTER_S, **shown_as) as shown:

        def show(done: int, words: str) -> None:
            shown.set_postfix_str(words, refresh=False)
            shown.update(done - shown.n)

        yield show


@contextmanager
def status_line(words: str) -> Iterator[None]:
    """Show a line on a terminal or in a notebook while something takes long."""
    bar = _bar_class() if _is_interactive() else None
    if bar is None:
        yield
        return
    with bar(total=1, desc=words, bar_format="{desc}", leave=False):
        yield


def ignore(_what: object) -> None:
    """Show and say nothing."""


def _is_interactive() -> bool:
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _in_notebook() -> bool:
    # Widgets load Jupyter's kernel where none runs, too.
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar_class() -> type | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar: type = tqdm
    return bar
