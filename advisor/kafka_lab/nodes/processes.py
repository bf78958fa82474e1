"""`JavaProcess`: start, wait for, stop and kill one JVM."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, Jars

# Without a controller a KRaft broker stops after five minutes (BrokerServer.shutdown).
_STOP_TIMEOUT_S = 330
_POLL_INTERVAL_S = 0.05

# Optimised for startup: a broker that runs for a minute gains nothing from the C2 compiler.
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class JavaProcess:
    """A JVM process that runs one main class, behind a prefix such as ``ip netns exec``."""

    def __init__(
        self,
        jars: Jars,
        command: Sequence[str],
        log: Path,
        prefix: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        self.log = log
        self._log_start = log.stat().st_size if log.is_file() else 0
        parts = [*prefix, *_parent_death_signal(), jars.java, *_JVM, *options]
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
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def output(self) -> str:
        """Return its output since it was started."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def wait_for(self, pattern: str, timeout_s: float) -> None:
        """Wait until its output matches a regular expression."""
        deadline = time.monotonic() + timeout_s
        while True:
            ended = not self.running
            output = self.output()
            if re.search(pattern, output):
                return
            if ended or time.monotonic() > deadline:
                what = "ended" if ended else f"was not ready after {timeout_s:g} s"
                last = "\n".join(output.splitlines()[-15:])
                raise BrokersUnavailableError(f"a process of the cluster {what}:\n{last}")
            time.sleep(_POLL_INTERVAL_S)

    def wait_until_ended(self, timeout_s: float) -> int:
        """Wait for it to exit, kill it after the timeout, and return its exit code."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def kill(self) -> None:
        """Send SIGKILL; its writes stay in the page cache."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Send SIGTERM and wait; SIGKILL after the timeout."""
        self.terminate()
        self.wait_until_ended(timeout_s)


def _parent_death_signal() -> tuple[str, ...]:
    """Return a prefix that kills the broker when its parent exits, if available."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL") if setpriv else ()
