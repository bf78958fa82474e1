"""Parser of the scenario language: one command a line, followed by its expected output.

Checks syntax only: verbs, number of words, option names. Whether a broker or topic exists is
checked when the command runs (``commands``).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from advisor.errors import InputError

# verb -> (usage, words after it, allowed options; None: checked when it runs)
GRAMMAR: dict[str, tuple[str, int, tuple[str, ...] | None]] = {
    "cluster": ("cluster brokers=3 kafka=3.9 mode=kraft", 0, None),
    "topic": ("topic NAME replicas=1,2,3", 1, None),
    "delete": ("delete TOPIC", 1, ()),
    "alter": ("alter TOPIC key=value", 1, None),
    "produce": ("produce TOPIC-PARTITION N acks=all", 2, None),
    "consume": ("consume TOPIC-PARTITION", 1, ()),
    "kill": ("kill BROKER", 1, ()),
    "stop": ("stop BROKER", 1, ()),
    "start": ("start BROKER", 1, ()),
    "power-off": ("power-off BROKER keep=N", 1, ("keep",)),
    "destroy": ("destroy BROKER", 1, ()),
    "isolate": ("isolate BROKER", 1, ()),
    "heal": ("heal BROKER", 1, ()),
    "lag": ("lag BROKER", 1, ()),
    "catch-up": ("catch-up BROKER", 1, ()),
    "limp": ("limp BROKER", 1, ()),
    "recover": ("recover BROKER", 1, ()),
    "wipe": ("wipe BROKER,BROKER", 1, ()),
    "stop-quorum": ("stop-quorum", 0, ()),
    "start-quorum": ("start-quorum", 0, ()),
    "kill-controller": ("kill-controller", 0, ()),
    "flush": ("flush BROKER", 1, ()),
    "elect": ("elect preferred|unclean TOPIC-PARTITION", 2, ()),
    "reassign": ("reassign TOPIC-PARTITION 1,2,3 (or: cancel)", 2, ("throttle",)),
    "wait": ("wait 5s", 1, ()),
    "state": ("state TOPIC-PARTITION", 1, ()),
    "log": ("log BROKER TOPIC-PARTITION", 2, ()),
    "describe": ("describe TOPIC", 1, ()),
    "check": ("check", 0, ()),
    "fence": ("fence BROKER", 1, ()),
    "unfence": ("unfence BROKER", 1, ()),
    "register": ("register BROKER clean|unclean", 2, ()),
    "alter-isr": ("alter-isr TOPIC-PARTITION 1,2", 2, ()),
    "registration": ("registration TOPIC-PARTITION", 1, ()),
}

# What each verb does, for --help.
MEANINGS: dict[str, str] = {
    "cluster": "the brokers, the Kafka version and its mode; first, and once",
    "topic": "create a topic; lists of replicas by partition are separated by ';'",
    "delete": "delete a topic",
    "alter": "change settings of a topic, or add partitions",
    "produce": "send N records and wait for the answer; also retries=, via=BROKER",
    "consume": "how many records a consumer reads from the start",
    "kill": "SIGKILL: disk and page cache survive",
    "stop": "controlled shutdown; without a controller the broker waits for one (KRaft: 5 min)",
    "start": "start a broker; it waits until it can register",
    "power-off": "what is not flushed is gone; keep=N records of each log survive",
    "destroy": "the broker's logs are gone",
    "isolate": "cut a broker off from the other brokers and the controller, not from clients",
    "heal": "end isolate",
    "lag": "a broker's fetchers stop; it stays alive",
    "catch-up": "end lag",
    "limp": "a broker serves clients and keeps its session; it cannot fetch, nor others from it",
    "recover": "end limp",
    "wipe": "the logs of several brokers are gone at the same moment",
    "kill-controller": "the controller fails, another takes over",
    "stop-quorum": "no controller: no election, no ISR change, no registration",
    "start-quorum": "end stop-quorum; what is owed is done",
    "flush": "a broker's logs are flushed to disk",
    "elect": "elect the preferred leader, or uncleanly any live replica",
    "reassign": "move a partition to other replicas; throttle=N records a second",
    "wait": "let time pass",
    "state": "leader, epoch, replicas, ISR, ELR and high watermark",
    "log": "log end offset and leader epochs of a replica",
    "describe": "what kafka-topics.sh --describe prints",
    "check": "every violated invariant",
    "fence": "the broker's session ends (only=controller)",
    "unfence": "the broker is active again (only=controller)",
    "register": "register after that kind of shutdown (only=controller)",
    "alter-isr": "propose an ISR in the leader's name (only=controller)",
    "registration": "the controller's record of a partition",
}


@dataclass(frozen=True)
class Command:
    """One command of a scenario.

    line: line number in the text, from 1.
    options: ``key=value`` words; dots and dashes in a key become underscores.
    waits: whether the cluster settles after it. False with a leading ``!``.
    expected: line number and text of each ``> `` line below it.
    """

    line: int
    verb: str
    words: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    waits: bool = True
    expected: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A parsed scenario: its source lines, and its commands in order."""

    lines: tuple[str, ...]
    commands: tuple[Command, ...]


def bad(line: int, message: str) -> InputError:
    """Error message that names the line of a scenario."""
    return InputError(f"line {line}: {message}")


def suggestion(word: str, known: tuple[str, ...] | list[str]) -> str:
    """``; did you mean 'x'?``, or a list of all known words if none is similar."""
    swapped = [k for k in known if sorted(k) == sorted(word)]
    near = swapped or difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are {', '.join(sorted(known))}" if known else ""


def parse(text: str) -> Scenario:
    """Parse a scenario; an error names the line and what was expected there."""
    lines = tuple(text.splitlines())
    commands: list[Command] = []
    expected: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, start=1):
        if is_expectation(raw):
            if not commands:
                raise bad(number, "expected a command before the first '>' line")
            expected.append((number, expectation(raw)))
            continue
        command = _command(number, raw)
        if command is None:
            continue
        _attach_expected(commands, expected)
        commands.append(command)
    _attach_expected(commands, expected)
    if not commands:
        raise InputError("line 1: expected a command such as 'cluster brokers=3', found none")
    if commands[0].verb != "cluster":
        raise bad(
            commands[0].line,
            f"expected 'cluster brokers=...' first, found '{commands[0].verb}'",
        )
    return Scenario(lines, tuple(commands))


def is_expectation(raw: str) -> bool:
    """Whether a line is expected output (starts with ``>``)."""
    return raw.lstrip().startswith(">")


def expectation(raw: str) -> str:
    """Text of a ``> `` line."""
    text = raw.lstrip()[1:]
    return text[1:] if text.startswith(" ") else text


def _attach_expected(commands: list[Command], expected: list[tuple[int, str]]) -> None:
    """Attach the expected output read so far to the last command."""
    if commands and expected:
        last = commands[-1]
        commands[-1] = Command(
            last.line, last.verb, last.words, last.options, last.waits, tuple(expected)
        )
    expected.clear()


def _command(number: int, raw: str) -> Command | None:
    text = re.split(r"(?:^|\s)#", raw, maxsplit=1)[0].strip()
    if not text:
        return None
    waits = not text.startswith("!")
    parts = text.removeprefix("!").split()
    if not parts:
        raise bad(number, "expected a command after '!'")
    verb = parts[0]
    if verb not in GRAMMAR:
        raise bad(number, f"unknown verb '{verb}'{suggestion(verb, list(GRAMMAR))}")
    usage, count, known = GRAMMAR[verb]
    words = tuple(p for p in parts[1:] if "=" not in p)
    if len(words) != count:
        raise bad(number, f"expected '{usage}', found '{text}'")
    options = _options(number, [p for p in parts[1:] if "=" in p], known, usage)
    return Command(number, verb, words, options, waits)


def _options(
    number: int, parts: list[str], known: tuple[str, ...] | None, usage: str
) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in parts:
        key, _, value = word.partition("=")
        key = key.replace(".", "_").replace("-", "_")
        if known is not None and key not in known:
            if not known:
                raise bad(number, f"unknown option '{key}'; expected '{usage}'")
            raise bad(number, f"unknown option '{key}'{suggestion(key, known)}")
        if key in options:
            raise bad(number, f"option '{key}' is given twice")
        if not value:
            raise bad(number, f"option '{key}' has no value; expected '{usage}'")
        options[key] = value
    return options
