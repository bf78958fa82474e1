"""A real standalone master of Spark and its workers, on the loopback, from the pyspark package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy

import pyspark

from advisor.pipeline.java import find_java
from patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "127.0.0.1"


def wait_for(what: str, log: Path, seconds: float = PATIENCE_S) -> str:
    """Wait until a log says something, and return the log."""
    end = time.monotonic() + seconds
    while what not in (text := log.read_text(errors="replace")):
        assert time.monotonic() < end, f"{log} never says {what!r}:\n{text[-2000:]}"
        time.sleep(0.05)
    return text


@dataclass
class Standalone:
    """A running master with its workers.

    Attributes
    ----------
    folder : Path
        For logs, configuration and the workers' files.
    url : str
        The master's address.
    workers : list of Popen
    """

    folder: Path
    url: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> None:
        """Start one more worker of one core, and wait until the master knows it."""
        number = len(self.workers)
        options = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work")]
        log = self._start(f"worker-{number}", "worker.Worker", *options, self.url)
        self.workers.append(self.started[-1])
        wait_for("Successfully registered with master", log)

    def start_master(self) -> None:
        """Start the master on a port that it chooses and says."""
        said = wait_for("I have been elected leader", self._start("master", "master.Master"))
        found = re.search(r"Starting Spark master at (spark://\S+)", said)
        assert found is not None, said
        self.url = found[1]

    def stop(self) -> None:
        """End everything that was started, and wait for it."""
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10.0)
            if process.poll() is None:
                process.kill()
                process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> Path:
        java = find_java()
        home = Path(pyspark.__file__).parent
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environ |= {
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_NO_DAEMONIZE": "1",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}"]
        where = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            self.started.append(
                subprocess.Popen(
                    [*command, *where, *arguments], env=environ, stdout=out, stderr=out
                )
            )
        return log


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """A master with workers, ended in the end."""
    found = Standalone(folder)
    try:
        found.start_master()
        for _ in range(workers):
            found.start_worker()
        yield found
    finally:
        found.stop()


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the installed build backend, so that nothing is fetched."""
    line = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run([*line, str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def configured(folder: Path, url: str, wheel: Path) -> dict[str, str]:
    """Install the wheel for the driver alone, and return the environment of a program there.

    The workers get the wheel as the documents say, as a zip file.
    """
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    shipped = folder / "advisor.zip"
    copy(wheel, shipped)
    conf = folder / "conf"
    conf.mkdir()
    settings = {
        "spark.master": url,
        "spark.submit.pyFiles": shipped,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.executor.memory": "512m",
        "spark.cores.max": 2,
    }
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (conf / "spark-defaults.conf").write_text("".join(lines))
    return {**os.environ, "SPARK_CONF_DIR": str(conf), "PYTHONPATH": str(site)}
