"""One Java process of a cluster: started, waited for, stopped, killed by its own process id."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, Jars

_STOPPED_WITHIN_S = 300
_LOOK_EVERY_S = 0.05

# Small, and quick to start: a broker that lives for a minute gains nothing from the compiler.
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class JavaProcess:
    """A process that runs one main class.

    Parameters
    ----------
    jars : Jars
    command : sequence of str
        Main class and its arguments.
    log : Path
        Where its output is appended.
    prefix : sequence of str
        What the command is run through, such as ``ip netns exec``.
    options : sequence of str
        For the virtual machine.
    """

    def __init__(
        self,
        jars: Jars,
        command: Sequence[str],
        log: Path,
        prefix: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        self.log = log
        self._began_at = log.stat().st_size if log.is_file() else 0
        parts = [*prefix, *_dies_with_us(), jars.java, *_JVM, *options]
        parts += ["-cp", jars.class_path, *command]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                parts,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def output(self) -> str:
        """What it has written since it was started."""
        with self.log.open("rb") as log:
            log.seek(self._began_at)
            return log.read().decode(errors="replace")

    def wait_for(self, pattern: str, within_s: float) -> None:
        """Wait until its output has a match.

        Raises
        ------
        BrokersUnavailableError
            If it ends before, or takes longer; with the last lines of its output.
        """
        deadline = time.monotonic() + within_s
        while True:
            ended = not self.running
            output = self.output()
            if re.search(pattern, output):
                return
            if ended or time.monotonic() > deadline:
                what = "ended" if ended else f"was not ready after {within_s:g} s"
                last = "\n".join(output.splitlines()[-15:])
                raise BrokersUnavailableError(f"a process of the cluster {what}:\n{last}")
            time.sleep(_LOOK_EVERY_S)

    def wait_until_ended(self, within_s: float) -> int:
        """Wait for it to end by itself, and kill it if it does not; its return code."""
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def kill(self) -> None:
        """SIGKILL, at once; what it wrote stays in the page cache."""
        self._process.kill()
        self._process.wait()

    def stop(self, within_s: float = _STOPPED_WITHIN_S) -> None:
        """SIGTERM, and wait; after a while SIGKILL."""
        self._process.terminate()
        self.wait_until_ended(within_s)

    def suspend(self) -> None:
        """SIGSTOP: it stands still and its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)


def _dies_with_us() -> tuple[str, ...]:
    """Where the system offers it, a broker never outlives the process that started it."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL") if setpriv else ()
