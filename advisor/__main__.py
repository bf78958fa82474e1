"""The command line: `advisor`, or `python -m advisor`.

Every error is one sentence on stderr and exit code 2; ADVISOR_DEBUG=1 prints the traceback.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from advisor.cli.commands import advisor
from advisor.cli.terminal import emit, say
from advisor.errors import AdvisorError
from advisor.rendering import terminal_text

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # A large cluster is millions of objects, and looking for garbage after every 700 takes a tenth
    # of the time.
    gc.set_threshold(50_000, 20, 50)
    with _stopping_tidily():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        # Not `advisor.main`: click exits 1 on a closed pipe, and 1 has a meaning here.
        with advisor.make_context("advisor", words) as context:
            code = advisor.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        emit(terminal_text(error.format_message()))
        return EXIT_ERROR
    except click.ClickException as error:
        return _fail(_with_help(error))
    except (click.Abort, KeyboardInterrupt) as interrupt:
        say(str(interrupt) or "Interrupted.")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader is gone; keep the interpreter's final flush from raising again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except AdvisorError as error:
        return _fail(str(error))
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}")
    except Exception as error:
        return _fail(
            f"this is a mistake in advisor itself ({type(error).__name__}: {error}); run it again "
            "with ADVISOR_DEBUG=1 to see where, and report it"
        )


@contextmanager
def _stopping_tidily() -> Iterator[None]:
    """Let SIGTERM unwind like an interrupt, so that no temporary file is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_exit(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _with_help(error: click.ClickException) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", "advisor")
    return f"{error.format_message().rstrip('.')}; see {command} --help"


def _fail(sentence: str) -> int:
    error = sys.exception()
    if error is not None and os.environ.get("ADVISOR_DEBUG") == "1":
        raise error
    one_line = " ".join(sentence.split())
    sentence = one_line if one_line.endswith("?") else f"{one_line.rstrip('.')}."
    say(f"advisor: {sentence}")
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
