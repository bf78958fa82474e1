"""What each door says about the topics of a cluster, read back as numbers from what it shows.

A door is a command, a page, a text or a widget. Every reader takes what a user sees and returns a
`Said`; none of them looks at the `Verdict` behind it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from advisor.present.interactive.settings_grid import verdict_at
from explorer_pages import words_at

Bounds = tuple[float, float]
"""Between which the true number lies, of which a screen shows two digits."""
ANY: Bounds = (0.0, math.inf)

_YEARS = {"y": 1.0, "year": 1.0, "mo": 1 / 12, "month": 1 / 12, "d": 1 / 365, "day": 1 / 365}
_YEARS |= {"h": 1 / 8760, "hour": 1 / 8760, "million year": 1e6, "thousand year": 1e3}
_MINUTES = {"min": 1.0, "minute": 1.0, "h": 60.0, "hour": 60.0, "day": 1440.0, "d": 1440.0}
_MINUTES |= {"s": 1 / 60, "second": 1 / 60, "ms": 1 / 60_000}
_NEVER, _ALL_YEAR = (math.inf, math.inf), 0.995 * 525_600.0
_WORDS = {
    "years": {"never": _NEVER, "all the time": (0.0, 1 / 8760)},
    "minutes": {
        "none": (0.0, 0.0),
        "never": (0.0, 0.0),
        "under 1 s": (0.0, 1 / 60),
        "less than a second": (0.0, 1 / 60),
        "all year": (_ALL_YEAR * 0.999, math.inf),
        "all the time": (_ALL_YEAR, math.inf),
    },
}
_AMOUNT = re.compile(r"(over |less often than every )?([\d.,]+) ?([a-z ]*)")
_DIGITS = 0.0501


@dataclass(frozen=True)
class Row:
    """What a door says of one topic; bounds that hold anything for what it does not show.

    Attributes
    ----------
    severity : str
    years : tuple of Bounds
        Years between losses, today and after the change.
    minutes : tuple of Bounds
        Minutes a year without writes, today and after the change.
    """

    severity: str
    years: tuple[Bounds, Bounds] = (ANY, ANY)
    minutes: tuple[Bounds, Bounds] = (ANY, ANY)


@dataclass(frozen=True)
class Said:
    """What a door says: its topics by name, all of its text, and the worst of the topics."""

    rows: Mapping[str, Row]
    text: str
    worst: Row | None = None

    def says(self, headline: str) -> bool:
        """Whether the headline is there: what to do in one piece, what is broken before it."""
        text = " ".join(self.text.split())
        *broken, to_do = re.split(r"(?<=\.) (?=(?:Change|Keep|Set|Spread) )", headline)
        places = [text.find(words) for words in (*broken, to_do)]
        return min(places) >= 0 and places == sorted(places)


def amount(words: str, kind: str, unit: str = "") -> Bounds:
    """Return between which numbers an amount lies.

    >>> amount("over 2,000 years", "years")
    (1900.0, inf)
    >>> [round(bound, 2) for bound in amount("30 min", "minutes")]
    [28.5, 31.5]
    """
    words = words.strip()
    if words in _WORDS[kind]:
        return _WORDS[kind][words]
    match = _AMOUNT.fullmatch(words)
    assert match, (words, kind)
    size = {"years": _YEARS, "minutes": _MINUTES}[kind][_unit(match[3]) or unit]
    value = float(match[2].replace(",", "")) * size
    return value * (1 - _DIGITS), math.inf if match[1] else value * (1 + _DIGITS)


def _unit(words: str) -> str:
    return words.strip().removesuffix("s") if words.strip() != "s" else "s"


def change(words: str, kind: str, arrow: str) -> tuple[Bounds, Bounds]:
    """Return an amount today and after the change, which may share a unit."""
    today, _, after = words.partition(arrow)
    if not after:
        return amount(today, kind), amount(today, kind)
    match = _AMOUNT.fullmatch(after.strip())
    return amount(today, kind, _unit(match[3]) if match else ""), amount(after, kind)


def of_terminal(text: str) -> Said:
    """Read the output of `advisor audit` and `advisor recommend`: aligned columns, or two lines."""
    rows: dict[str, Row] = {}
    columns: list[int] = []
    topic, severity = "", ""
    for line in text.splitlines():
        if line.split()[:2] == ["topic", "today"]:
            columns = [line.index(head) for head in _HEADS]
        elif re.match(r"ok +[\d,]+( more)?: ", line):
            names = line.partition(": ")[2].split(" and ")[0]
            rows |= {name: Row("ok") for name in names.split(", ")}
        elif re.match(r"(critical|warning|ok) ", line):
            severity, topic = line.split(maxsplit=2)[:2]
            if columns:
                cells = [line[a:b] for a, b in zip(columns, [*columns[1:], None], strict=True)]
                rows[topic] = _row(severity, *cells[3:])
        elif match := re.match(rf" +{_HEADS[3]}:? (.*); {_HEADS[4]}: (.*)", line):
            rows[topic] = _row(severity, *match.groups())
    return Said(rows, text)


_HEADS = ("topic", "today", "set to", "a loss every", "no writes/year")


def _row(severity: str, losses: str, minutes: str) -> Row:
    return Row(
        severity, change(losses.strip(), "years", "->"), change(minutes.strip(), "minutes", "->")
    )


def of_json(text: str) -> Said:
    """Read a verdict as plain data, which has every digit."""
    verdict = json.loads(text)["verdict"]
    rows = {
        action["topic"]: Row(
            action["severity"],
            (_exactly(action["loss_today"], True), _exactly(action["loss_after"], True)),
            (_exactly(action["refused_today"]), _exactly(action["refused_after"])),
        )
        for action in verdict["actions"]
    }
    return Said(rows, verdict["headline"])


def _exactly(number: Any, inverse: bool = False) -> Bounds:
    value = float(number)
    value = (1.0 / value if value else math.inf) if inverse else value
    return value * (1 - 1e-9), value * (1 + 1e-9)


class _Tables(HTMLParser):
    """The text of a page, and the rows of its tables of topics."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.rows: list[list[tuple[str, str]]] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("class") or ""
        if tag == "table":
            self._inside = kind
        if self._inside == "av-topics" and tag == "tr":
            self.rows.append([])
        if self._inside == "av-topics" and tag in ("td", "th") and self.rows:
            self.rows[-1].append((dict(attrs).get("data-label") or tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._inside = ""

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._inside == "av-topics" and self.rows and self.rows[-1]:
            name, before = self.rows[-1][-1]
            self.rows[-1][-1] = name, before + data


def of_page(page: str) -> Said:
    """Read the first screen of a page or a notebook's output."""
    read = _Tables(page)
    rows = {}
    for cells in read.rows:
        by_name = dict(cells)
        if "A loss every" not in by_name:
            continue
        severity = cells[0][1].split()[-1]
        rows[by_name["th"]] = Row(
            severity,
            change(by_name["A loss every"], "years", "→"),
            change(by_name["Without writes"], "minutes", "→"),
        )
    text = "".join(read.text)
    return Said(rows, text, _worst(page))


def _worst(page: str) -> Row:
    """The two numbers beside the headline: of the worst topic, today and after the change."""
    shown = [re.sub(r"<[^>]+>", "", words) for words in re.findall(r"<dd[^>]*>(.*?)</dd>", page)]
    numbers = [words.removeprefix("today: ").removeprefix("after: ") for words in shown[:4]]
    if len(shown) < 4 or not shown[0].startswith("today: "):
        numbers = [numbers[0], numbers[0], numbers[1], numbers[1]]
    years = amount(numbers[0], "years"), amount(numbers[1], "years")
    return Row("", years, (amount(numbers[2], "minutes"), amount(numbers[3], "minutes")))


def of_explorer(page: str) -> Said:
    """Read what an explorer without a kernel shows first: one topic as it is today."""
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    data = json.loads(text)
    chosen, price = data["chosen"], data["price"]
    keys = [control["key"] for control in data["controls"] if control["key"] != price]
    setting = data["settings"]["|".join(chosen[key] for key in keys)]
    verdict = verdict_at(data, setting, chosen[price])

    def numbers(shown: Mapping[str, Any] | None) -> tuple[Bounds, Bounds]:
        if shown is None:
            return ANY, ANY
        losses, minutes = -math.log1p(-shown["loss"][0]), shown["refused"][0] * 525_600.0
        return _about(1.0 / losses if losses else math.inf), _about(minutes)

    today, after = numbers(setting), numbers(verdict["better"] or setting)
    row = Row(verdict["severity"], (today[0], after[0]), (today[1], after[1]))
    return Said({chosen["topic"]: row}, words_at(data, verdict["headline"]))


def _about(value: float) -> Bounds:
    """Bounds around a number of which all digits but the last few are shown."""
    return value * (1 - 1e-3), value * (1 + 1e-3)


_TOPIC_LINE = re.compile(
    r"^ *(\S+) \([^)]*\): (critical|warning|ok), loses records (.*?), "
    r"stops writes (.*?)(?: a year)?(?:;|\.$)",
    re.MULTILINE,
)


def of_text(text: str) -> Said:
    """Read the text of an audit, which shows each topic as it is today."""
    rows = {}
    for name, severity, losses, minutes in _TOPIC_LINE.findall(text):
        often = losses.removeprefix("every ")
        years = amount(often if often[0].isdigit() or " " in often else _one(often), "years")
        stopped = amount(minutes, "minutes")
        rows[name] = Row(severity, (years, ANY), (stopped, ANY))
    return Said(rows, text)


def _one(unit: str) -> str:
    return unit if unit == "never" else f"1 {unit}"
