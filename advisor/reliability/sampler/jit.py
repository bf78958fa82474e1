"""How the sampler's functions are compiled.

Calls between them are expensive, since each hands over every array: what happens at each event is
put in place (`inlined`), what is rare is called (`called`). Nothing in them allocates, so that no
references need counting; without the counting they run eight times as fast.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from numba import __version__, config, njit, typeof
from numba.core.caching import UserWideCacheLocator

from advisor.files import cache_folder
from advisor.progress import status_line

_config: Any = config
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
    """A compiled kernel, as Python calls it.

    Attributes
    ----------
    compiled : callable
        Numba's dispatcher.
    """

    compiled: Any

    @property
    def shortest_way_in(self) -> Callable[..., int]:
        """What it was compiled to, for arguments of the same types as before.

        Numba's dispatcher looks it up by the types of all arrays at each call.
        """
        known = list(self.compiled.overloads.values())
        found: Callable[..., int] = known[0].entry_point if len(known) == 1 else self.compiled
        return found

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
        words = "Compiling the sampler, once: this takes a minute or two"
        if not self.compiled.signatures:
            with nullcontext() if self.is_ready else status_line(words):
                self.compiled.compile(tuple(map(typeof, arguments)))
        with interrupts_deferred():
            return int(self.compiled(*arguments))


class ContentCacheLocator(UserWideCacheLocator):
    """Tells numba to keep what it compiled in a folder of the user, wherever the sources are.

    A checkout, an installed wheel and the zip file that Spark's workers get all find it there.
    ``NUMBA_CACHE_DIR`` names another folder.
    """

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(Path(_config.CACHE_DIR or cache_folder(), f"numba-{__version__}"))

    def get_source_stamp(self) -> str:
        """Return nothing: the function's name has a digest of all sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what numba puts into the file's name."""
        return "kernel"

    @classmethod
    def from_function(cls, py_func: Callable[..., int], py_file: str) -> ContentCacheLocator | None:
        """Return None where nothing can be written."""
        found: Any = cls(py_func, py_file)
        try:
            found.ensure_cache_path()
        except (OSError, RuntimeError):  # the latter without a home
            return None
        kept: ContentCacheLocator = found
        return kept


# By numba's own name: beside the source.
_PLACES = f"{__name__}.{ContentCacheLocator.__name__},InTreeCacheLocator"


def entry(function: Callable[..., int], parts: Sequence[ModuleType]) -> Entry:
    """Compile the way in when it is first called, and keep what was compiled.

    It is kept in a folder of the user, else beside the source; where neither can be written, every
    process compiles for itself. A numba that takes no folder from us keeps it beside the source.

    Numba's cache knows the age of the function's own file alone. Its files are named after the
    function, so the name gets a digest of its module and of the ``parts``, those that it calls:
    what another version of the sources left there is not even opened.
    """
    sources = map(_source, (sys.modules[function.__module__], *parts))
    digest = sha256(b"".join(sources)).hexdigest()
    function.__qualname__ = f"{function.__name__.strip('_')}_{digest[:16]}"
    with _kept_in(_PLACES):
        try:
            return Entry(njit(**_OPTIONS, cache=True)(function))
        except RuntimeError:
            return Entry(njit(**_OPTIONS)(function))


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let an interrupt wait until the kernel returns.

    On the way into a kernel numba calls Python to find the addresses of the random generator, and
    does not check whether that failed: an interrupt there ends the process (numba 0.68).
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


@contextmanager
def _kept_in(places: str) -> Iterator[None]:
    """Set where numba keeps what is decorated meanwhile."""
    before = getattr(_config, "CACHE_LOCATOR_CLASSES", "")
    _config.CACHE_LOCATOR_CLASSES = places
    try:
        yield
    finally:
        _config.CACHE_LOCATOR_CLASSES = before


def _source(module: Any) -> bytes:
    """The source of a module, also where the package is a zip file that was sent to a worker."""
    found: bytes = module.__spec__.loader.get_data(module.__spec__.origin)
    return found
