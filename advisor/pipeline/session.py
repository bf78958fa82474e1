"""One quiet Spark session per process.

Starting a session takes seconds, so a process has one and keeps it. The JVM's own lines (host
name, addresses, warnings) go to a file, never to a notebook or a terminal. Everything listens on
127.0.0.1 only when Spark runs on this machine.
"""

import atexit
import os
import shutil
import site
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.errors import AdvisorError, MissingExtraError
from advisor.pipeline.java import Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Plain local[*] fails the job with the first task; a killed Python worker shall be started again.
LOCAL_MASTER = "local[*,4]"
_LOOPBACK = "127.0.0.1"
_STARTING = threading.Lock()


def spark_session(master: str = LOCAL_MASTER) -> "SparkSession":
    """Return this process's Spark session, starting it when there is none.

    A session that is already running, whoever started it, is returned as it is: its settings stay
    untouched, `master` is not looked at, and nothing here ever stops it.

    Parameters
    ----------
    master
        Spark's master URL. The default runs on all cores of this machine and tries a task four
        times.

    Returns
    -------
    pyspark.sql.SparkSession
        Do not use it as a context manager: leaving the block would stop it for everybody.

    Raises
    ------
    MissingExtraError
        pyspark is not installed.
    JavaNotFoundError
        There is no Java 17 or newer.
    AdvisorError
        Spark did not start; the message names its log.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError("Sampling on Spark", "spark") from error
    with _STARTING:
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        if SparkContext._active_spark_context is not None:
            return SparkSession.builder.getOrCreate()
        return _start(master)


def _start(master: str) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    java = find_java()
    directory = Path(tempfile.mkdtemp(prefix="advisor-spark-"))
    log = directory / "spark.log"
    conf = SparkConf().setAll(sorted(session_settings(master, directory).items()))
    try:
        with _environment(_launch_environment(master, java)):
            gateway = None if SparkContext._gateway is not None else _launch(conf, log)
            context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError, OSError) as error:
        raise AdvisorError(
            f"Spark ({master}) did not start on Java {java.version} ({java.source}, {java.home}); "
            f"its log is {log}{_complaint(log)}"
        ) from error
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    context.setLogLevel("ERROR")
    return SparkSession(context)


def session_settings(master: str, directory: Path) -> dict[str, str]:
    """List the Spark settings of a new session.

    Parameters
    ----------
    master
        Spark's master URL.
    directory
        Where Spark may put its scratch files; nothing appears in the working directory.

    Returns
    -------
    dict
        Setting to value.
    """
    settings = {
        "spark.app.name": "kafka-replication-advisor",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.local.dir": str(directory),
            # Two hundred, Spark's default, is mostly start-up time on one machine.
            "spark.sql.shuffle.partitions": "8",
        }
    checkout = _import_path()
    if checkout is not None:
        settings["spark.executorEnv.PYTHONPATH"] = checkout
    return settings


def _import_path() -> str | None:
    """Say where Python workers find this package, unless it is installed and they know."""
    parent = Path(__file__).resolve().parents[2]
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    # A site-packages directory on PYTHONPATH would come before the standard library.
    return None if any(parent == Path(path).resolve() for path in installed) else str(parent)


def _launch_environment(master: str, java: Java) -> dict[str, str]:
    import pyspark

    environment = {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if master.startswith("local"):
        # Spares the look-up of the host's name, which fails on machines that cannot resolve it.
        environment["SPARK_LOCAL_IP"] = _LOOPBACK
    package = Path(pyspark.__file__).parent
    if (package / "jars").is_dir():
        # A SPARK_HOME of another release would not fit the installed pyspark.
        environment["SPARK_HOME"] = str(package)
    return environment


def _launch(conf: object, log: Path) -> object:
    """Start the JVM with both its outputs in a file that Python workers inherit."""
    from pyspark.java_gateway import launch_gateway

    with log.open("wb") as output:
        return launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change environment variables for a while, then put back what was there."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _complaint(log: Path) -> str:
    """Return a log's last line that is no stack frame, as the end of a sentence; or nothing."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    said = [line for line in lines if line and not line.startswith(("at ", "... "))]
    return f", which ends: {said[-1]}" if said else ""
