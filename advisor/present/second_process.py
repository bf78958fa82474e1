"""A second Python process that computes while this one goes on."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

Task = Callable[[], Any]
_PROGRAM = "from advisor.present.second_process import main; main()"


class SecondProcess:
    """Runs tasks that can be pickled, in order; if it fails, this process runs them.

    `multiprocessing` would run a user's script again that has no ``if __name__ == "__main__"``.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._process: subprocess.Popen[bytes] | None = None
        if not tasks:
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
                stdin.write(pickle.dumps(tasks))
        except OSError:
            self.stop()

    def results(self) -> list[Any]:
        """Wait for the results, in the order of the tasks."""
        if self._process is not None:
            assert self._process.stdout is not None
            try:
                with self._process.stdout as stdout:
                    pickled = stdout.read()
                if self._process.wait() == 0:
                    results: list[Any] = pickle.loads(pickled)
                    return results
            finally:
                self.stop()
        return [task() for task in self._tasks]

    def stop(self) -> None:
        """End the process, for instance because the user interrupted this one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Run the tasks on the standard input; the results go to the standard output."""
    # The process that waits should hardly be slowed down where there are few cores; but it does
    # wait in the end, so that on a busy machine much niceness would make it wait for minutes.
    if hasattr(os, "nice"):
        os.nice(3)
    tasks = pickle.load(sys.stdin.buffer)
    # What the solver may print must not get between the bytes of the results.
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    pickle.dump([task() for task in tasks], out)
    out.flush()
