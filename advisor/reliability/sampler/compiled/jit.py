"""How the sampler's functions are compiled.

Calls between them are expensive, since each hands over every array: what happens at each event is
put in place (`inlined`), what is rare is called (`called`). Nothing in them allocates, so that no
references need counting; without the counting they run eight times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from types import ModuleType
from typing import Any, TypeVar

from numba import njit

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


def entry(function: Callable[..., int], parts: Sequence[ModuleType]) -> Callable[..., int]:
    """Compile the way in from Python, and keep what was compiled for the next process.

    It is kept beside the source, else in the user's cache; where neither can be written, every
    process compiles for itself, which takes some seconds.

    Numba's cache knows the age of the function's own file alone. Its files are named after the
    function, so the name gets a digest of the ``parts``, the modules that it calls: what another
    version of the sources left there is not even opened.
    """
    digest = sha256(b"".join(map(_source, parts))).hexdigest()
    function.__qualname__ = f"{function.__name__.strip('_')}_{digest[:16]}"
    try:
        compiled: Callable[..., int] = njit(**_OPTIONS, cache=True)(function)
    except RuntimeError:
        compiled = njit(**_OPTIONS)(function)
    return compiled


def _source(module: Any) -> bytes:
    """The source of a module, also where the package is a zip file that was sent to a worker."""
    found: bytes = module.__spec__.loader.get_data(module.__spec__.origin)
    return found
