"""The one place where the command line prints."""

from __future__ import annotations

import click

from advisor.rendering import Terminal, terminal_lines


def emit(text: Terminal, err: bool = False, newline: bool = True) -> None:
    """Print rendered text on standard output, or on standard error."""
    click.echo(text.text, err=err, nl=newline)


def say(sentence: str) -> None:
    """Print a sentence on standard error: progress, a note, what went wrong."""
    emit(terminal_lines([sentence]), err=True)
