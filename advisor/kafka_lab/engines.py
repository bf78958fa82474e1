"""`advisor.play`: a scenario on the protocol's own simulation, or on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from advisor.errors import InputError, MissingExtraError
from advisor.protocol.scenario import player as model
from advisor.protocol.scenario.player import Play

ENGINES = ("model", "kafka")


def play(
    source: str | Path, engine: str = "model", progress: Callable[[str], None] | None = None
) -> Play:
    r"""Run a scenario.

    Parameters
    ----------
    source : str or Path
        The text of a scenario, or the path of its file. A string with a line break, or one that
        begins with ``cluster ``, is a text.
    engine : {"model", "kafka"}
        ``kafka`` starts real brokers of the scenario's version. That takes a minute, Java 17,
        Maven and the extra ``live``; faults of the network also take Linux and root. Sessions and
        lag times are made short, and what the scenario says of time is shortened with them.
    progress : callable, optional
        With ``kafka``, is handed a line before each command runs.

    Returns
    -------
    Play

    Raises
    ------
    InputError
        If the file cannot be read, the engine is unknown, or the scenario is wrong; the message
        names the line and what was expected.
    AdvisorError
        If real brokers cannot be run here; the message says what is missing.

    Examples
    --------
    >>> play("cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all").transcript
    'cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all\n> acked 2\n'
    """
    if engine not in ENGINES:
        raise InputError(f"there is no engine={engine!r}; expected one of {', '.join(ENGINES)}")
    if engine == "model":
        return model.play(source)
    try:
        from advisor.kafka_lab.player import play as on_brokers
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "kafka":
            raise
        raise MissingExtraError("playing a scenario on real brokers", "live") from None
    return on_brokers(source, progress or _silently)


def _silently(_line: str) -> None:
    """Tell nobody."""
