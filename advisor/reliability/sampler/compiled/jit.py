"""How the sampler's functions are compiled.

Calls between them are expensive, since each hands over every array: what happens at each event is
put in place (`inlined`), what is rare is called (`called`). Nothing in them allocates, so that no
references need counting; without the counting they run eight times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from numba import njit

from advisor.progress import status_line

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _uncounted() -> dict[str, Any]:
    """Numba's switch for counting references, where this release has it."""
    off: dict[str, Any] = {"_nrt": False}
    try:
        njit(**off)(_uncounted)
    except (KeyError, NameError, TypeError):
        return {}
    return off


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", **_uncounted()}
_INSIDE: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inlined: Callable[[_Function], _Function] = njit(forceinline=True, **_INSIDE)
called: Callable[[_Function], _Function] = njit(**_INSIDE)


@dataclass(frozen=True)
class Entry:
    """The way into a kernel from Python.

    Attributes
    ----------
    compiled : callable
        Numba's dispatcher.
    """

    compiled: Any

    @property
    def can_be_kept(self) -> bool:
        """Whether other processes find what this one compiles."""
        return self.compiled.stats.cache_path is not None

    @property
    def is_ready(self) -> bool:
        """Whether it was compiled, by this process or by an earlier one that kept it."""
        if self.compiled.signatures or not self.can_be_kept:
            return bool(self.compiled.signatures)
        folder, name = Path(self.compiled.stats.cache_path), self.compiled.__qualname__
        return any(folder.glob(f"*.{name}-*.nbi"))

    def __call__(self, *arguments: Any) -> int:
        """Run the kernel; without one that is ready it is compiled first, and a line says so."""
        if self.is_ready:
            return int(self.compiled(*arguments))
        with status_line("Compiling the sampler, once: this takes a minute or two"):
            return int(self.compiled(*arguments))


def entry(function: Callable[..., int], parts: Sequence[ModuleType]) -> Entry:
    """Compile the way in when it is first called, and keep what was compiled.

    It is kept beside the source, else in the user's cache; where neither can be written, every
    process compiles for itself.

    Numba's cache knows the age of the function's own file alone. Its files are named after the
    function, so the name gets a digest of the ``parts``, the modules that it calls: what another
    version of the sources left there is not even opened.
    """
    digest = sha256(b"".join(map(_source, parts))).hexdigest()
    function.__qualname__ = f"{function.__name__.strip('_')}_{digest[:16]}"
    try:
        return Entry(njit(**_OPTIONS, cache=True)(function))
    except RuntimeError:
        return Entry(njit(**_OPTIONS)(function))


def _source(module: Any) -> bytes:
    """The source of a module, also where the package is a zip file that was sent to a worker."""
    found: bytes = module.__spec__.loader.get_data(module.__spec__.origin)
    return found
