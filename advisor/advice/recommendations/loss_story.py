"""Two examples of a loss: the fewest faults that lose a record, and the likeliest way to lose one.

Both are scenarios to replay, with the brokers back at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from advisor.errors import AdvisorError
from advisor.formatting import capital, percent
from advisor.protocol.exploration.shortest_loss import CRASHES, Loss, shortest_loss
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.player import rewrite
from advisor.reliability.failures.mechanisms import BrokerEvent, Transition, transition, words
from advisor.reliability.results.fault_tolerance import LossPath, LossStep, tolerance
from advisor.reliability.results.reliability import Reliability

_FAULTS = (2, 3)
_MOST_STATES = 60_000
_LOST = "NoAcknowledgedRecordLost"
_WRITE = "produce t-0 10 acks={acks} retries=0"
# Longer paths, and more ways to choose their brokers, are told in words only.
_MOST_STEPS, _MOST_TRIES = 6, 60

# What strikes one broker and several, and the command that does it.
_STRIKES: dict[BrokerEvent, tuple[str, str, str]] = {
    BrokerEvent.CRASH: ("one broker crashes", "{} brokers crash", "kill"),
    BrokerEvent.ISOLATE: ("one broker is cut off", "{} brokers are cut off", "isolate"),
    BrokerEvent.STOP: ("one broker stops", "{} brokers stop", "stop"),
    BrokerEvent.POWER: ("one broker loses power", "{} brokers lose power", "power-off"),
    BrokerEvent.DESTROY: ("one broker loses its disk", "{} brokers lose their disks", "destroy"),
    BrokerEvent.LAG: ("one follower falls behind", "{} followers fall behind", "lag"),
    BrokerEvent.LIMP: (
        "one broker stops serving its followers",
        "{} brokers stop serving followers",
        "limp",
    ),
}
_ENDS: dict[BrokerEvent, tuple[str, str]] = {
    BrokerEvent.BACK: ("one broker is back", "start"),
    BrokerEvent.REPLACED: ("one broker is replaced by an empty one", "start"),
    BrokerEvent.CAUGHT_UP: ("the follower catches up", "catch-up"),
    BrokerEvent.RECOVERED: ("the broker works again", "recover"),
}
_QUORUM = (BrokerEvent.QUORUM_LOST, BrokerEvent.QUORUM_STOPPED)
# What brings a broker back after a command.
_UNDO = {"isolate": "heal", "lag": "catch-up", "limp": "recover"}


@dataclass(frozen=True)
class Story:
    """An example of a loss.

    scenario: scenario text for `advisor play`; "" if none was found that loses a record.
    """

    said: str
    scenario: str


def tell(config: Config) -> Story:
    """Search for the fewest faults, at most three, that lose a record written before the first."""
    for faults in _FAULTS:
        result = shortest_loss(
            config, faults=faults, kinds=CRASHES, writes=1, max_states=_MOST_STATES
        )
        if isinstance(result, Loss):
            sentence = f"{capital(str(result).split(chr(10), 1)[0])}."
            fits = how_it_fits(config, result.faults)
            story = f"{sentence} {fits}" if fits else sentence
            return Story(story, with_brokers_back(result.scenario))
    return Story(f"{capital(str(result))}.", "")


def how_it_fits(config: Config, faults: int) -> str:
    """Return why the fewest faults are more than one above the brokers that may be lost, or ""."""
    safe = tolerance(config).without_loss
    factor, min_isr = config.replication_factor or 1, config.effective_min_insync_replicas
    if faults <= safe + 1 or config.acks != "all":
        return ""
    brokers = "no broker" if safe == 0 else f"only {safe} broker{'' if safe == 1 else 's'}"
    return (
        f"That starts with all {factor} replicas in sync. {capital(brokers)} can be lost safely at "
        f"any time, because the ISR may be down to {min_isr} by then."
    )


def with_brokers_back(scenario: str) -> str:
    """Return the scenario with all brokers back before it looks, if it loses a record still."""
    lines = [line for line in scenario.splitlines() if not line.startswith(">")]
    looks = next((i for i, line in enumerate(lines) if line.startswith("consume")), len(lines))
    played = _lost("\n".join([*lines[:looks], *_returns(lines[:looks]), *lines[looks:]]))
    return played or scenario


def _returns(lines: list[str]) -> list[str]:
    """Return the commands that undo the faults of earlier lines, the last fault first."""
    returns: dict[str, str] = {}
    for line in lines:
        verb, _, arguments = line.lstrip("!").strip().partition(" ")
        broker = arguments.split(" ", 1)[0]
        if verb in ("kill", "stop", "power-off", "destroy", *_UNDO):
            returns.pop(broker, None)
            returns[broker] = f"{_UNDO.get(verb, 'start')} {broker}"
        elif verb in ("start", *_UNDO.values()):
            returns.pop(broker, None)
    return list(reversed(returns.values()))


def _lost(scenario: str) -> str:
    """Return the scenario with its output; "" if it cannot be played or loses nothing."""
    try:
        played = rewrite(scenario + "\n")
    except AdvisorError:
        return ""
    return played if _LOST in played else ""


def likeliest(result: Reliability) -> Story | None:
    """Return the most probable path to a loss, to be replayed if it can; None without any."""
    path = result.likeliest_loss()
    if path is None:
        return None
    steps = ", then ".join(_said(step) for step in path.steps)
    share = percent(path.share)
    sentence = f"{capital(steps)}: {share} of the losses go this way."
    return Story(sentence, _replayed(path, result.config))


def _said(step: LossStep) -> str:
    """One step in words."""
    move = transition(step.rate)
    effect, cause = move.mechanism.effect, words(move.mechanism.name)
    if move.decides:
        return "an operator elects another leader"
    if move.copies:
        return "a new copy is complete"
    if move.death is not None:
        return f"the {'host' if move.death.takes_host else 'process'} of that broker dies"
    if effect in _QUORUM:
        return "the controllers are back" if move.ends else f"no controller is left ({cause})"
    if move.ends:
        return _ENDS[effect.end][0]
    single, several, _ = _STRIKES[BrokerEvent.DESTROY if move.destroys else effect]
    struck = single if step.brokers == 1 else f"{several.format(step.brokers)} at once"
    return f"{struck} ({cause})"


def _replayed(path: LossPath, config: Config) -> str:
    """Return a scenario that follows the path and loses a record; "" if none was found."""
    factor = config.replication_factor or 1
    kinds = [transition(step.rate) for step in path.steps]
    if len(kinds) > _MOST_STEPS:
        return ""
    brokers = range(1, factor + 1)
    sizes = [min(max(step.brokers, 1), factor) for step in path.steps]
    head = _head(config)
    # With acks=all a write is everywhere before the next step; other ones are lost on their way.
    write = ("" if config.acks == "all" else "! ") + _WRITE.format(acks=config.acks)
    for tries, brokers_of_steps in enumerate(
        product(*(combinations(brokers, size) for size in sizes))
    ):
        if tries >= _MOST_TRIES:
            break
        lines = [write]
        for kind, struck in zip(kinds, brokers_of_steps, strict=True):
            lines += [*_commands(kind, struck), write]
        del lines[-1]
        text = "\n".join([*head, *lines, *_returns(lines), "consume t-0", "check"])
        if played := _lost(text):
            return played
    return ""


def _head(config: Config) -> list[str]:
    replicas = ",".join(str(broker + 1) for broker in range(config.replication_factor or 1))
    options = "".join(
        f" {name}={str(getattr(config, name)).lower()}"
        for name in ("eligible_leader_replicas", "unclean_leader_election_enable")
        if name in config.explicit
    )
    return [
        f"cluster brokers={config.replication_factor} kafka={config.kafka_version} "
        f"mode={config.mode}{options}",
        f"topic t replicas={replicas} min_insync_replicas={config.min_insync_replicas}",
    ]


def _commands(kind: Transition, brokers: tuple[int, ...]) -> list[str]:
    """Commands of one step; several brokers are struck at once."""
    if kind.copies or kind.decides:
        return []
    effect = kind.mechanism.effect
    if effect in _QUORUM:
        return ["start-quorum" if kind.ends else "stop-quorum"]
    if kind.death is not None:
        verb = "power-off" if kind.death.takes_host else "kill"
    elif kind.ends:
        verb = "heal" if effect is BrokerEvent.ISOLATE else _ENDS[effect.end][1]
    else:
        verb = _STRIKES[BrokerEvent.DESTROY if kind.destroys else effect][2]
    first, *rest = (f"{verb} {broker}" for broker in brokers)
    return [*(f"! {line}" for line in [first, *rest][:-1]), [first, *rest][-1]]
