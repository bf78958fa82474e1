"""Text from outside, made harmless for where it is shown."""

from __future__ import annotations


def one_line(text: object) -> str:
    r"""Return a text in one line, without what a terminal obeys or cannot encode.

    >>> one_line("a\nb\x1b[2J\u202e")
    'a b\\x1b[2J\\u202e'
    """
    return _harmless(f"{text}", "")


def printable(text: str) -> str:
    r"""Return lines of text without what a terminal obeys; line breaks and tabs stay.

    >>> printable("a\nb\x1b[2J")
    'a\nb\\x1b[2J'
    """
    return _harmless(text, "\n\t")


def _harmless(text: str, allowed: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in allowed
        else " "
        if char.isspace()
        else ascii(char)[1:-1]
        for char in text
    )
