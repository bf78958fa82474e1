r"""Text for its target. Each target has a type of its own, and only this module makes one.

Names of topics and racks, files, cards, notes and answers of brokers come from outside. They reach
a terminal, a script, a file or a page through the functions here, which take away what the target
would obey: an escape sequence, a second line, a quote, an element. What emits (`cli/terminal.py`,
`files.py`, the report) takes a rendered type and no `str`, so that mypy refuses a text that did not
come through here; `tests/system/test_emitters.py` checks what mypy cannot see.

`shell`, `markup` and their like take a template that stands in the source, never an outside text.
Public functions go on returning `str`: the `text` of what is made here.
"""

from __future__ import annotations

import html as _html
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Terminal:
    """Lines for a terminal: nothing in them is obeyed but line breaks and tabs."""

    text: str


@dataclass(frozen=True, slots=True)
class ShellWord:
    """One word of a shell's line, quoted."""

    text: str


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A line of a script, or a piece of one: a command or a comment."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.isprintable():
            raise ValueError("a line of a script has a character that is not printable")


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A whole script."""

    text: str


@dataclass(frozen=True, slots=True)
class Yaml:
    """YAML documents and comments."""

    text: str


@dataclass(frozen=True, slots=True)
class Properties:
    """Lines of a Java properties file."""

    text: str


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON document, such as a SARIF log: printable but for line breaks."""

    text: str


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of another program's file, in which no value begins a line: Go, Python, Kafka's own."""

    text: str


@dataclass(frozen=True, slots=True)
class Html:
    """HTML or SVG, a whole page or elements of one."""

    text: str

    def __html__(self) -> str:
        """Tell Jinja that this is escaped."""
        return self.text


FileText = ShellScript | Yaml | Properties | Json | FileLines | Html
"""What may be written to a file."""

_Joinable = TypeVar("_Joinable", Yaml, Properties, Html)


class _Template(Protocol):
    """A `jinja2.Template`, which not every installation has."""

    @property
    def environment(self) -> Any: ...
    def render(self, *args: Any, **kwargs: Any) -> str: ...


def one_line(text: object) -> str:
    r"""Return a text in one line, without what a terminal obeys or cannot encode.

    That is every control character, the marks that change the direction of text, and characters
    of no width. For words from outside that stand in a longer text, which is still to be rendered.

    >>> one_line("a\nb\x1b[2J\u202e")
    'a b\\x1b[2J\\u202e'
    """
    return _harmless(f"{text}")


def printable(text: str) -> str:
    """Return lines of text without what a terminal obeys; line breaks and tabs stay."""
    return "\n".join(_harmless(line, "\t") for line in text.split("\n"))


def _harmless(text: str, allowed: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in allowed else _shown(char) for char in text)


def _shown(char: str) -> str:
    return " " if char.isspace() else ascii(char)[1:-1]


# Terminal


def terminal_lines(lines: Iterable[object]) -> Terminal:
    """Return texts as lines, one each."""
    return Terminal("\n".join(map(one_line, lines)))


def terminal_blocks(blocks: Iterable[Sequence[object]]) -> Terminal:
    """Return blocks of lines with an empty line between them; empty blocks are left out."""
    return Terminal("\n\n".join(terminal_lines(block).text for block in blocks if block))


def terminal_text(text: str) -> Terminal:
    """Return a text of several lines, such as a transcript."""
    return Terminal(printable(text))


def terminal_json(document: Json) -> Terminal:
    """Return a JSON document for a terminal, where it is as harmless as in a file."""
    return Terminal(document.text)


# Shell


def shell_word(text: str) -> ShellWord:
    """Return a text as one word of a shell's line.

    Raises ValueError if it is not printable: a line break would end the comment that the line may
        stand in.
    """
    if not text.isprintable():
        raise ValueError(f"{text!r} is not printable, and no word of a shell's line")
    return ShellWord(shlex.quote(text))


def shell_quoted(text: str) -> ShellWord:
    """Return a text as one word in quotes, also where it needs none, as a list of names may."""
    word = shell_word(text)
    return word if word.text.startswith("'") else ShellWord(f"'{word.text}'")


def shell(template: str, *pieces: ShellWord | ShellLine | int) -> ShellLine:
    """Return a line of shell code; a template with pieces doubles its own braces.

    >>> shell("BS=${{BS:-{}}}", shell_word("b 1")).text
    "BS=${BS:-'b 1'}"
    """
    return ShellLine(_filled(template, pieces))


def shell_lines(template: str, *pieces: ShellWord | ShellLine | int) -> tuple[ShellLine, ...]:
    """Return lines of shell code, as `shell` one."""
    return tuple(map(ShellLine, _filled(template, pieces).splitlines()))


def shell_comment(text: str) -> ShellLine:
    """Return a text as a comment of one line."""
    return ShellLine(f"# {one_line(text)}")


def shell_commented(line: ShellLine, before: str = "  ") -> ShellLine:
    """Return a line as a comment, behind some words."""
    return ShellLine(f"# {one_line(before)}{line.text}")


def shell_joined(pieces: Iterable[ShellWord | ShellLine]) -> ShellLine:
    """Return pieces of a line as one, with spaces between them."""
    return ShellLine(" ".join(piece.text for piece in pieces))


def shell_script(lines: Iterable[ShellLine]) -> ShellScript:
    """Return a script that stops at the first line that fails only if a line says so."""
    return ShellScript("".join(f"{line.text}\n" for line in lines))


# Files


def yaml_document(document: Mapping[str, object], begins: bool = False) -> Yaml:
    """Return a document as YAML, its keys in their order; `begins` as one of several."""
    import yaml

    # That of libyaml is ten times as fast, and writes the same but for folded lines.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, width=_ANY_WIDTH)
    return Yaml(f"---\n{text}" if begins else text)


def yaml_comments(lines: Iterable[str]) -> Yaml:
    """Return texts as comments of one line each."""
    return Yaml("".join(f"# {one_line(line)}\n" for line in lines))


def yaml_commented(document: Yaml) -> Yaml:
    """Return a document as a comment, indented."""
    return yaml_comments(f"  {line}" for line in document.text.splitlines())


def properties(settings: Mapping[str, object]) -> Properties:
    """Return settings as lines of a properties file."""
    rows = ((_property(key, is_key=True), _property(f"{settings[key]}")) for key in settings)
    return Properties("".join(f"{key}={value}\n" for key, value in rows))


def property_comments(lines: Iterable[str]) -> Properties:
    """Return texts as comments of one line each."""
    return Properties("".join(f"# {one_line(line)}\n" for line in lines))


def _property(text: str, is_key: bool = False) -> str:
    """Return a key or value as `java.util.Properties` writes it."""
    text = text.replace("\\", "\\\\")
    for char, escape in {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}.items():
        text = text.replace(char, escape)
    if is_key:
        text = re.sub(r"([ :=#!])", r"\\\1", text)
    elif text.startswith(" "):
        text = f"\\{text}"
    return "".join(char if char.isascii() and char.isprintable() else _utf16(char) for char in text)


def json_text(document: object, indent: int | None = None) -> Json:
    """Return a document as JSON; what is not printable is escaped."""
    return Json(_json(document, indent=indent, allow_nan=False))


def json_file(document: object) -> Json:
    """Return a document as a JSON file of lines."""
    return Json(f"{json_text(document, indent=2).text}\n")


def json_rows(head: Mapping[str, object], key: str, rows: Iterable[object]) -> Json:
    """Return an object with a list as its last entry, whose rows have a line each."""
    entries = "".join(f"{_json(name)}: {_json(value)}, " for name, value in head.items())
    lines = ",\n".join(f"  {_json(row)}" for row in rows)
    return Json(f"{{{entries}{_json(key)}: [\n{lines}\n]}}\n")


def _json(document: object, **options: Any) -> str:
    text = json.dumps(document, ensure_ascii=False, **options)
    return "\n".join(
        line
        if line.isprintable()
        else "".join(char if char.isprintable() else _utf16(char) for char in line)
        for line in text.split("\n")
    )


def _utf16(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def sarif_message(text: object) -> str:
    r"""Return a text as a SARIF message, where ``[a](b)`` is a link and ``{0}`` an argument.

    Source: sarif-v2.1.0-os, sections 3.11.5 (placeholders) and 3.11.6 (embedded links).

    >>> sarif_message("[here](http://x) {0} [1, 2]")
    '\\[here\\](http://x) {{0}} \\[1, 2\\]'
    """
    words = re.sub(r"\{(\d+)\}", r"{{\1}}", one_line(text))
    return re.sub(r"[\[\]\\]", r"\\\g<0>", words) if "](" in words else words


def file_lines(lines: Iterable[str]) -> FileLines:
    """Return texts as lines of a file; tabs stay."""
    return FileLines("".join(f"{line}\n" for line in (_harmless(raw, "\t") for raw in lines)))


# HTML


def html(text: object) -> Html:
    """Return a text, escaped for an element or for a quoted attribute."""
    return Html(_html.escape(printable(f"{text}")))


def markup(template: str, *pieces: Html | int | float) -> Html:
    """Return HTML that stands in the source, filled in; with pieces it doubles its own braces."""
    return Html(_filled(template, pieces))


def html_joined(pieces: Iterable[Html], between: str = "") -> Html:
    """Return pieces of HTML one after another."""
    return Html(between.join(piece.text for piece in pieces))


def html_data(document: object) -> Html:
    """Return a document as JSON that may stand in a ``<script>``; the same one, the same bytes."""
    return Html(_json(document, separators=(",", ":")).replace("<", "\\u003c"))


def html_figure(svg: str) -> Html:
    """Return what matplotlib drew, which escapes its texts."""
    return Html(svg)


def html_page(template: _Template, context: Mapping[str, object]) -> Html:
    """Fill a template whose environment escapes what it is given (`jinja_options`)."""
    assert template.environment.autoescape is True
    return Html(template.render(**context))


def jinja_options() -> dict[str, Any]:
    """Return the options of a `jinja2.Environment` that make outside text harmless."""
    return {"autoescape": True, "finalize": _for_page}


def _for_page(value: Any) -> Any:
    # What has `__html__` came through here before, in a macro.
    return value if hasattr(value, "__html__") or not isinstance(value, str) else printable(value)


# All targets


def joined(*texts: _Joinable) -> _Joinable:
    """Return texts of one target one after another; at least one."""
    return type(texts[0])("".join(text.text for text in texts))


def _filled(template: str, pieces: Sequence[Any]) -> str:
    texts = [f"{piece}" if isinstance(piece, int | float) else piece.text for piece in pieces]
    return template.format(*texts) if texts else template


_ANY_WIDTH = 1_000_000
