"""A second Python process that answers questions of the explorer while this one goes on."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence

from advisor.present.interactive.neighbourhood import Answer, Neighbourhood, Values

_PROGRAM = "from advisor.present.interactive.second_process import main; main()"


class SecondProcess:
    """Answers questions in the order asked; if it fails, this process answers them.

    A program of its own rather than `multiprocessing`, which runs a user's script once more where
    the script has no ``if __name__ == "__main__"``.

    Parameters
    ----------
    around : Neighbourhood
        What is asked about.
    questions : sequence of mapping of str to str
        Values of the controls; none starts no process.
    """

    def __init__(self, around: Neighbourhood, questions: Sequence[Values]) -> None:
        self._around = around
        self._questions = [dict(values) for values in questions]
        self._process: subprocess.Popen[bytes] | None = None
        if not self._questions:
            return
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stdin:
                stdin.write(pickle.dumps((around.forgetful(), self._questions)))
        except OSError:
            self.stop()

    def answers(self) -> list[Answer]:
        """Wait for the answers."""
        if self._process is not None:
            assert self._process.stdout is not None
            try:
                with self._process.stdout as stdout:
                    found = stdout.read()
                if self._process.wait() == 0:
                    answers: list[Answer] = pickle.loads(found)
                    return answers
            finally:
                self.stop()
        return [self._around.answer(values) for values in self._questions]

    def stop(self) -> None:
        """End the process, for instance because the user interrupted this one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Answer what stands on the standard input, on the standard output."""
    around, questions = pickle.load(sys.stdin.buffer)
    # What the solver may print must not get between the bytes of the answer.
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    pickle.dump([around.answer(values) for values in questions], out)
    out.flush()
