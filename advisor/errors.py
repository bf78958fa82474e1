"""Errors that say what is wrong, where, and what to do."""


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
