"""How functions are compiled: the sampler's, and those that solve a chain for many draws.

Calls between them are expensive, since each hands over every array: what happens at each event is
put in place (`inlined`), what is rare is called (`called`). Nothing in them allocates, so that no
references need counting; without the counting they run eight times as fast.
"""

from __future__ import annotations

import glob
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from numba import __version__, config, njit, typeof
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from advisor.caches import cache_folder, is_private_file
from advisor.progress import status_line

_config: Any = config
_DIGEST_BYTES = 32
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
    """A compiled kernel, as Python calls it; the words are said while it is compiled."""

    compiled: Any
    words: str = "Compiling the sampler, once: this takes a minute or two"

    @property
    def shortest_way_in(self) -> Callable[..., int]:
        """What it was compiled to, for arguments of the same types as before.

        Numba's dispatcher looks it up by the types of all arrays at each call.
        """
        versions = list(self.compiled.overloads.values())
        way_in: Callable[..., int] = (
            versions[0].entry_point if len(versions) == 1 else self.compiled
        )
        return way_in

    @property
    def can_be_kept(self) -> bool:
        """Whether other processes find what this one compiles."""
        return self.compiled.stats.cache_path is not None

    @property
    def is_ready(self) -> bool:
        """Whether it was compiled, by this process or by an earlier one that kept it."""
        if self.compiled.signatures or not self.can_be_kept:
            return bool(self.compiled.signatures)
        return bool(self.compiled._cache.has_kernel)

    def __call__(self, *arguments: Any) -> int:
        """Run the kernel; without one that is ready it is compiled first, and a line says so."""
        if not self.compiled.signatures:
            with nullcontext() if self.is_ready else status_line(self.words):
                self.compiled.compile(tuple(map(typeof, arguments)))
        with interrupts_deferred():
            return int(self.compiled(*arguments))


class _Place:
    """Where numba keeps what it compiled, wherever the sources are: a private folder.

    A checkout, a wheel and the zip file of Spark's workers find it there, or in
    ``NUMBA_CACHE_DIR``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = function.__code__.co_filename  # numba reads it for a warning
        self._folder = cache_folder(f"numba-{__version__}", _config.CACHE_DIR)

    def ensure_cache_path(self) -> None:
        """Make the folder again if it was removed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return nothing: the function's name has a digest of all sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what numba puts into the file's name."""
        return "kernel"


class _KernelFiles(IndexDataCacheFile):
    """Numba's index and data files, each with a digest, which shows what is torn."""

    def drop_unusable(self) -> bool:
        """Remove files that are torn or another user's; return whether a kernel is left."""
        index = Path(self._index_path)
        kernels = list(index.parent.glob(f"{glob.escape(index.stem)}.*.nbc"))
        try:
            for path in (index, *kernels):
                if not self._is_usable(path):
                    path.unlink()
        except OSError:
            return False
        return index.exists() and any(path.exists() for path in kernels)

    def _is_usable(self, path: Path) -> bool:
        if not is_private_file(path):
            return False
        # Numba writes its version first.
        start = len(pickle.dumps(self._version, protocol=-1)) if path.suffix == ".nbi" else 0
        content = path.read_bytes()[start:]
        return sha256(content[:-_DIGEST_BYTES]).digest() == content[-_DIGEST_BYTES:]

    def _dump(self, content: Any) -> bytes:
        numba: Any = super()
        pickled: bytes = numba._dump(content)
        return pickled + sha256(pickled).digest()

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[Any]:
        with super()._open_for_write(path) as file:
            os.chmod(file.name, 0o600)
            yield file
            file.flush()
            os.fsync(file.fileno())


class _KernelNames(CompileResultCacheImpl):
    """Names and content of the files, as numba has them, without its search for a folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function)
        name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}"
        numba: Any = super()
        self._filename_base = numba.get_filename_base(name, getattr(sys, "abiflags", ""))


class KernelCache(FunctionCache):
    """Compiled kernels that earlier processes of the user kept, if no other user touched them.

    Numba unpickles what it finds there, which runs what a file says.
    """

    _impl_class = _KernelNames

    def __init__(self, function: Callable[..., Any]) -> None:
        initialize: Any = super().__init__
        initialize(function)
        names, place = self._impl.filename_base, self._impl.locator
        files: Any = _KernelFiles
        self._cache_file: Any = files(self._cache_path, names, place.get_source_stamp())

    @property
    def has_kernel(self) -> bool:
        """Whether one is there and whole; what is not is removed."""
        is_left: bool = self._cache_file.drop_unusable()
        return is_left

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for some types of arguments, None if there is none."""
        if not self.has_kernel:
            return None
        numba: Any = super()
        try:
            return numba.load_overload(sig, target_context)
        except Exception:  # of another numpy or llvmlite, say: pickles may raise anything
            with suppress(OSError):
                numba.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel; on a full disk it is not kept, and works all the same."""
        numba: Any = super()
        with suppress(OSError):
            numba.save_overload(sig, data)


def entry(
    function: Callable[..., int], parts: Sequence[ModuleType] = (), words: str = Entry.words
) -> Entry:
    """Compile the way in when it is first called, and keep what was compiled.

    Its files are named after the function, so the name gets a digest of its module and of the
    ``parts``, those that it calls: what another version of the sources left there is not even
    opened. Where no folder can be made, every process compiles for itself.
    """
    sources = map(_source, (sys.modules[function.__module__], *parts))
    digest = sha256(b"".join(sources)).hexdigest()
    function.__qualname__ = f"{function.__name__.strip('_')}_{digest[:16]}"
    compiled: Any = njit(**_OPTIONS)(function)
    with suppress(OSError):
        compiled._cache = KernelCache(function)
    return Entry(compiled, words)


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


def _source(module: Any) -> bytes:
    """The source of a module, also where the package is a zip file that was sent to a worker."""
    source: bytes = module.__spec__.loader.get_data(module.__spec__.origin)
    return source
