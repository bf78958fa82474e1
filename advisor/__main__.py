"""The command line: `advisor`, or `python -m advisor`.

Whatever goes wrong is one sentence on stderr and exit code 2; ADVISOR_DEBUG=1 shows where it
happened.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from advisor.cli.commands import advisor
from advisor.errors import AdvisorError

FAILED = 2
INTERRUPTED = 130
NOBODY_READS = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; those of the process unless given.
    """
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        # Not `advisor.main`: for click a closed pipe is exit code 1, which means something here.
        with advisor.make_context("advisor", given) as context:
            code = advisor.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return FAILED
    except click.ClickException as error:
        return _fail(_with_help(error))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more; the interpreter's own last flush must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
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


def _with_help(error: click.ClickException) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", "advisor")
    return f"{error.format_message().rstrip('.')}; see {command} --help"


def _fail(sentence: str) -> int:
    error = sys.exception()
    if error is not None and os.environ.get("ADVISOR_DEBUG") == "1":
        raise error
    one_line = " ".join(sentence.split())
    ended = one_line if one_line.endswith("?") else f"{one_line.rstrip('.')}."
    click.echo(f"advisor: {ended}", err=True)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
