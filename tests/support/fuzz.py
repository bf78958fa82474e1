"""Try mutated files on every reader, and drawn arguments on every public call.

Run as a program, it prints each one that ends in anything but an `AdvisorError`, or takes more than
5 seconds of processor time or 1 GiB of memory, and each mutation of the corpus of public outputs
that is misread without a word, and exits with 1 if there is any. A call that the
user asks to take long, such as a sample of many years, is left out.
"""

import argparse
import contextlib
import random
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from advisor.errors import AdvisorError
from compiled_kernels import compile_kernels
from corpus import try_mutations
from drawn_calls import calls, drawn_arguments
from drawn_files import mutated, readers

LIMIT_S = 5.0
LIMIT_BYTES = 2**30


class TooSlowError(BaseException):
    """A call used more processor time than it may."""


def limited(work: Callable[[], object]) -> BaseException | None:
    """Return what a call raised that it should not have; an `AdvisorError` is one sentence."""
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        work()
    except AdvisorError as error:
        sentence = str(error)
        if not sentence.strip() or "\n" in sentence:
            return ValueError(f"not one sentence: {sentence!r}")
        try:
            sentence.encode()
        except UnicodeEncodeError as unprintable:
            return unprintable
    except (Exception, TooSlowError) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _stop(_number: int, _frame: object) -> None:
    raise TooSlowError(f"over {LIMIT_S:g} seconds")


def _limit_memory() -> None:
    """Allow 1 GiB more than is in use now."""
    pages = Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]
    limit = int(pages) * 1024 + LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _fail(what: str, error: BaseException) -> None:
    text = "".join([what, "\n", *traceback.format_exception(error, limit=-6)])
    print(text.encode(errors="backslashreplace").decode())


def try_inputs(seed: int, count: int, folder: Path) -> int:
    """Read mutated files; return how many ended in a mistake."""
    failed = 0
    found = readers()
    every = [content for reader in found for content in reader.contents]
    for index in range(count):
        draw = random.Random(f"{seed}-input-{index}")
        reader = draw.choice(found)
        chosen = draw.randrange(len(reader.contents))
        suffixes = reader.suffixes if draw.random() < 0.2 else ("", reader.suffixes[0])
        suffix = draw.choice(suffixes) if len(reader.suffixes) > 1 else reader.suffixes[0]
        path = folder / f"drawn{suffix}"
        content = mutated(draw, reader.contents[chosen], every)
        path.write_bytes(content)
        error = limited(partial(reader.read, path))
        if error is not None:
            failed += 1
            kept = folder.parent / f"fuzz-{seed}-{index}{path.suffix}"
            kept.write_bytes(content)
            _fail(f"input {index} of seed {seed}, {reader.name}, kept as {kept}:", error)
    return failed


def try_calls(seed: int, count: int) -> int:
    """Call with drawn arguments; return how many ended in a mistake."""
    failed = 0
    known = calls()
    for index in range(count):
        draw = random.Random(f"{seed}-call-{index}")
        name = draw.choice(list(known))
        function, valid, required = known[name]
        arguments = drawn_arguments(draw, valid, required)
        years = arguments.get("years", 0)
        if type(years) in (int, float) and 1e4 < years < 1e15:
            continue  # so many years are sampled for as long as the user asks
        error = limited(partial(function, **arguments))
        if error is not None:
            failed += 1
            said = {key: repr(value)[:60] for key, value in arguments.items()}
            _fail(f"call {index} of seed {seed}, {name}({said}):", error)
    return failed


def try_corpus(seed: int, count: int) -> int:
    """Mutate public outputs; return how many are read as something else, and nothing is said."""
    failed = 0
    for name, wrong, text in try_mutations(str(seed), count):
        failed += 1
        print(f"{name}: {wrong}\n{text}")
    return failed


def main() -> int:
    """Try inputs, mutations and calls; print each mistake."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--mutations", type=int, default=50_000)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    failed = try_corpus(options.seed, options.mutations)
    # Seconds for each, from a cold cache: no call is to be charged for it.
    compile_kernels()
    signal.signal(signal.SIGPROF, _stop)
    calls()
    _limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        failed += try_inputs(options.seed, options.inputs, Path(folder))
        # Some drawn arguments name folders, which are made where the process is.
        with contextlib.chdir(folder):
            failed += try_calls(options.seed, options.calls)
    tried = f"{options.inputs:,} inputs, {options.mutations:,} mutations of the corpus and "
    tried += f"{options.calls:,} calls of seed {options.seed}"
    print(f"{tried}: {failed} ended in a mistake")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
