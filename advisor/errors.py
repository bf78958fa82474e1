"""Errors that say what is wrong, where, and what to do."""

from __future__ import annotations

import math
from pathlib import Path
from types import UnionType
from typing import Any

from advisor.rendering import one_line

# Longer numbers and texts are abbreviated in messages.
_MAX_DIGITS, _MAX_CHARACTERS = 20, 80
_MAKEFILE = Path(__file__).resolve().parents[1] / "Makefile"


class AdvisorError(Exception):
    """Base class of the errors that this package raises on purpose.

    The message is one sentence for the user: what is wrong, where, and what to do about it.

    Parameters
    ----------
    message : str
        The sentence; line breaks and characters that a terminal obeys are replaced.

    See Also
    --------
    InputError : A file, scenario, address or argument is unusable.
    ConfigError : Kafka would refuse the configuration.
    ModelError : A failure-model card is unusable.
    NotComputedError : A measure is not available.
    MissingExtraError : An optional dependency is not installed.

    Examples
    --------
    >>> import advisor
    >>> try:
    ...     advisor.load_cluster("no-such-file.txt")
    ... except advisor.AdvisorError as error:
    ...     print(type(error).__name__, "-", str(error).split(";")[0])
    InputError - no-such-file.txt: there is no such file
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class InputError(AdvisorError):
    """A file, scenario, address or argument cannot be used."""


class ConfigError(AdvisorError):
    """Kafka itself would refuse the configuration."""


class ModelError(AdvisorError):
    """A failure-model card is unknown, incomplete or has a number out of range."""


class NotComputedError(AdvisorError, AttributeError):
    """A measure cannot be computed from this card or by this engine: not 0, not None.

    It is also an `AttributeError`, so that `getattr` with a default and `hasattr` work.
    """


class UnknownArgumentError(InputError, TypeError):
    """No argument has this name; the message says which may be meant. Also a `TypeError`."""


class UnknownAttributeError(InputError, AttributeError):
    """No attribute has this name; the message says which may be meant. Also an `AttributeError`."""


class MissingExtraError(AdvisorError, ImportError):
    """An optional dependency is not installed; `what` needs it."""

    def __init__(self, what: str, extra: str) -> None:
        pip = f"pip install 'kafka-replication-advisor[{extra}]'"
        # `make report` installs less than a checkout's other commands and notebooks need.
        checkout = "; in this checkout: make install" * _MAKEFILE.is_file()
        super().__init__(f"{what} needs the extra '{extra}': {pip}{checkout}")


def expect(name: str, value: Any, kind: type | UnionType, wanted: str) -> Any:
    """Check the type of an argument, and return it; a bool is no number."""
    is_number = kind in (int, float, int | float, int | None, int | float | None)
    if not isinstance(value, kind) or (is_number and isinstance(value, bool)):
        raise InputError(f"{name}={shown(value)}: give {wanted}")
    return value


def shown(value: object) -> str:
    """Return the repr of a value, abbreviated; a long integer as its power of ten."""
    if isinstance(value, int) and abs(value) >= 10**_MAX_DIGITS:
        return f"{'-' * (value < 0)}1e{math.floor(math.log10(abs(value)))}"
    try:
        text = repr(value)
    except Exception:
        # Python refuses to print integers of thousands of digits, nested ones included; others
        # are nested too deep, or their class has a mistake.
        text = f"<{type(value).__name__}>"
    # repr leaves line breaks in objects of other classes, and half surrogate pairs in none.
    text = " ".join(text.encode(errors="backslashreplace").decode().split())
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
