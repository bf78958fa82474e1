"""Where many independent tasks run: in this process, or where `pipeline` takes them.

`advisor/__init__.py` fills the registry; the registered function imports `advisor.pipeline` when
called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from advisor.errors import InputError, shown

Engine = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Takes a function and its arguments, both picklable, and gives the results in their order."""

_MOST_THREADS = 4


def run_here(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
    """Run tasks in threads, a few at a time: what takes long leaves Python's lock."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as pool:
        yield from pool.map(function, tasks)


engines: dict[str, Engine] = {"local": run_here}
"""By name."""


def engine_of(name: str) -> Engine:
    """Return the engine of a name."""
    if name not in engines:
        raise InputError(f"engine={shown(name)}: give {' or '.join(sorted(engines))}.")
    return engines[name]
