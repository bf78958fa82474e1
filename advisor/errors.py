"""Errors that say what is wrong, where, and what to do."""

from __future__ import annotations

import math

# Nobody reads on after so many digits or characters.
_MOST_DIGITS, _MOST_SHOWN = 20, 80


class AdvisorError(Exception):
    """Base of every error raised on purpose here; its text is for the person who reads it."""


class InputError(AdvisorError):
    """A file, scenario, address or argument cannot be used as it stands."""


class ConfigError(AdvisorError):
    """Kafka itself would refuse this configuration."""


class ModelError(AdvisorError):
    """A failure-model card is unknown, incomplete or holds an impossible number."""


class NotComputedError(AdvisorError, AttributeError):
    """A measure that the given card or engine does not yield; never answered with 0 or None."""


class MissingExtraError(AdvisorError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra '{extra}': pip install 'kafka-replication-advisor[{extra}]'"
        )


def shown(value: object) -> str:
    """A value as it was given, cut to what a person reads; a long number by its power of ten."""
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        return f"{'-' * (value < 0)}1e{math.floor(math.log10(abs(value)))}"
    try:
        text = repr(value)
    except ValueError:
        # Python writes no number of thousands of digits, wherever it stands.
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
