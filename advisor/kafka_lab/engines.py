"""`advisor.play`: run a scenario on the protocol model or on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from advisor.arguments import names_checked
from advisor.errors import InputError, MissingExtraError, shown
from advisor.protocol.scenario import player as model
from advisor.protocol.scenario.player import Play

ENGINES = ("model", "kafka")


@names_checked
def play(
    source: str | Path, engine: str = "model", progress: Callable[[str], None] | None = None
) -> Play:
    r"""Run a scenario on the protocol model or on real brokers.

    Parameters
    ----------
    source : str or Path
        Text of a scenario, or path of its file. A string that contains a newline or starts with
        ``cluster`` is a text.
    engine : {"model", "kafka"}, default "model"
        ``kafka`` starts real brokers of the scenario's version, in about a minute. It needs Java
        17, Maven and the extra ``live``; network faults also need Linux and root. Session and lag
        timeouts are shortened, and the times in the scenario in proportion.
    progress : callable, optional
        With ``kafka``, called with a line before each command.

    Returns
    -------
    Play
        The transcript, and the lines that differ from what the scenario expects.

    Raises
    ------
    InputError
        If the file cannot be read, the engine is unknown, or the scenario is invalid; the message
        names the line.
    AdvisorError
        If real brokers cannot run on this machine; the message says what is missing.

    See Also
    --------
    assign : Replica assignment of new topics.
    evaluate : Exact reliability of a configuration.

    Examples
    --------
    >>> import advisor
    >>> advisor.play("cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all").transcript
    'cluster brokers=1\ntopic t replicas=1\nproduce t-0 2 acks=all\n> acked 2\n'
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress={shown(progress)}: give a function, or None")
    if engine not in ENGINES:
        raise InputError(
            f"there is no engine={shown(engine)}; expected one of {', '.join(ENGINES)}"
        )
    if engine == "model":
        return model.play(source)
    try:
        from advisor.kafka_lab.player import play as on_brokers
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "kafka":
            raise
        raise MissingExtraError("playing a scenario on real brokers", "live") from None
    return on_brokers(source, progress or _ignore)


def _ignore(_line: str) -> None:
    """Show no progress."""
