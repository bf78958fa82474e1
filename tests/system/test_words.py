"""The package speaks as Kafka operators and reliability engineers do."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from package_graph import MODULES, module_name

# Whole words, whatever their case. In identifiers, camel case and underscores part words.
BANNED = [
    "all is well",
    "alike",
    "at hand",
    "befalls?",
    "befell",
    "brinks?",
    "for want of",
    "happenings?",
    "laggards?",
    "lives? through",
    "machines(?<!state machines)",
    "meetings?",
    "mended",
    "mends",
    "nobody",
    "perils?",
    "somebody",
    "spells?",
    "suffer(s|ed|ing)?",
    "those who",
    "told apart",
    "tells? apart",
    "well again",
    "whoever",
    "whomever",
    "(is|are|was|were|be) asked for",
    # The noun; "worth reading" and "worth it" pass.
    r"worths?(?! \w+ing\b| it\b)",
]
PATTERN = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)

# Phrases that users see and that must not change: module, then the phrase with its banned word.
EXCUSED: dict[str, list[str]] = {}


def words_of(name: str) -> str:
    """Return an identifier with spaces between its words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield every comment, identifier and string of a module, docstrings included, by line."""
    comments: list[tuple[int, list[str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            if not comments or comments[-1][0] + len(comments[-1][1]) != line:
                comments.append((line, []))
            comments[-1][1].append(token.string.lstrip("#"))
        elif token.type == tokenize.NAME:
            yield token.start[0], words_of(token.string)
    yield from ((line, " ".join(parts)) for line, parts in comments)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, f"{node.value} {words_of(node.value)}"


def banned_words(source: str, excused: list[str]) -> list[str]:
    """List the banned words of a module, with their lines."""
    found = set()
    for line, text in texts(source):
        for phrase in excused:
            text = text.replace(phrase, "")
        flat = " ".join(text.split())
        found |= {(line, match[0].lower()) for match in PATTERN.finditer(flat)}
    return [f"line {line}: {word}" for line, word in sorted(found)]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_no_private_words(path: Path) -> None:
    """Docstrings, comments, names and messages use none of the banned words."""
    assert banned_words(path.read_text(), EXCUSED.get(module_name(path), [])) == []


def test_every_excuse_is_needed() -> None:
    """An excused phrase is still in its module, and holds a banned word."""
    sources = {module_name(path): path.read_text() for path in MODULES}
    for module, phrases in EXCUSED.items():
        for phrase in phrases:
            assert PATTERN.search(phrase)
            assert any(phrase in text for _, text in texts(sources[module])), phrase


@pytest.mark.parametrize(
    "source",
    [
        '"""Nobody is left."""',
        "# the brink of loss",
        "def f():\n    '''What befalls a broker\n    is a spell.'''",
        "def lose_alike(): ...",
        "class BrinkOfLoss: ...",
        "nobody_leads = 1",
        "x = f'{1} of those who wait'",
        "x = 'is asked\\n  for'",
        "settled_worth = 2",
        "y = rates['worth']",
        "# a broker's worth is small",
        "# two machines fail",
        "x = 1  # what was asked\n# is asked\n# for",
    ],
)
def test_a_banned_word_is_found(source: str) -> None:
    """A banned word is found in docstrings, comments, names and strings, across lines too."""
    assert len({found.split(": ")[1] for found in banned_words(source, [])}) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "# spelled as Kafka spelled it",
        "'a state machine and other state machines on this machine'",
        "'worth reading, and worth it'",
        "somebodyelse = 1",
    ],
)
def test_ordinary_words_pass(source: str) -> None:
    """Words that only resemble a banned one, and their plain uses, are let through."""
    assert banned_words(source, []) == []


def test_an_excused_phrase_passes() -> None:
    """An excuse covers its phrase and no other use of the word."""
    source = "x = 'nobody knows'\ny = 'nobody cares'"
    assert banned_words(source, ["nobody knows"]) == ["line 2: nobody"]
