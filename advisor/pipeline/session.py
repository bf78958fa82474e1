"""One Spark session per process, without console output, on loopback where its master is local.

A session takes seconds to start and is kept; the output of its JVM goes to a file. Where it runs is
configured as for any program of Spark: by `spark-submit`, PYSPARK_SUBMIT_ARGS, or the file
spark-defaults.conf in SPARK_CONF_DIR; without any of these on this machine.
"""

import atexit
import logging
import os
import shutil
import site
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import AdvisorError, MissingExtraError
from advisor.pipeline.java import Java, find_java
from advisor.progress import Notify, warn

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# With plain local[*] one failed task fails the job; retries cover a killed Python worker.
LOCAL_MASTER = "local[*,4]"
_LOOPBACK = "127.0.0.1"
# Java only hands blocks to Python: its second compiler and parallel collection of garbage take more
# processor time than they save.
_FOR_SHORT_RUNS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Variables that configure Spark; the first is set by spark-submit.
_CONFIGURED_BY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
# What spark-submit takes where no master is given.
_SPARKS_OWN_MASTER = "local[*]"
_START_LOCK = threading.Lock()
_logs: list[Path] = []


def spark_session(master: str | None = None, notify: Notify = warn) -> "SparkSession":
    """Return this process's Spark session, starting it when there is none or it has ended.

    An existing session is returned unchanged, and never stopped: do not use it as a context
    manager, which would stop it.

    master: Spark's master URL. Default: the configured one; without any, all cores of this machine,
        four attempts per task.
    notify: called with a sentence if an ended session is replaced. Default: a Python warning.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError("Sampling on Spark", "spark") from error
    # py4j logs tracebacks to the root logger, also when it forgets objects of a Java that is gone.
    logging.root.addFilter(_not_of_py4j)
    with _START_LOCK:
        ended = _forget_ended_session()
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        if SparkContext._active_spark_context is not None:
            return SparkSession.builder.getOrCreate()
        ended_log = log_words()
        session = _start(master)
    if ended:
        notify(f"Spark's session has ended{ended_log}; a new one was started.")
    return session


def has_ended(context: "SparkContext") -> bool:
    """Return whether the Java process of a context is gone, or has stopped the context."""
    process = getattr(context._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return True
    try:
        return bool(context._jsc is None or context._jsc.sc().isStopped())
    except Exception:
        # py4j raises errors of its own, of sockets and of its protocol.
        return True


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _say_nothing(*_request: object) -> None:
    """Stand in for `socketserver.BaseServer.handle_error`."""


def log_words() -> str:
    """Return where the log of the last session is, as an insertion in a sentence, or ""."""
    return f" (its log is {_logs[-1]})" if _logs else ""


def _forget_ended_session() -> bool:
    """Clear pyspark's references to a session that has ended; return whether there was one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None or not has_ended(context):
        return False
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        context.stop()
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    gateway = SparkContext._gateway
    if gateway is not None and not _answers(gateway):
        with suppress(Exception):
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
    return True


def _answers(gateway: Any) -> bool:
    try:
        gateway.jvm.java.lang.System.currentTimeMillis()
    except Exception:
        return False
    return True


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment says where Spark runs, in one of Spark's own ways."""
    return any(environ.get(name) for name in _CONFIGURED_BY)


def _start(master: str | None) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    java = find_java()
    directory = Path(tempfile.mkdtemp(prefix="advisor-spark-"))
    log = directory / "spark.log"
    configured = master is None and is_configured(os.environ)
    master = master or (None if configured else LOCAL_MASTER)
    settings = {} if master is None else session_settings(master, directory)
    try:
        with _changed_environment(_launch_environment(master, java)):
            gateway = SparkContext._gateway
            if gateway is None:
                gateway = _launch(SparkConf().setAll([*settings.items()]), log)
            if master is None:
                settings = _settings_beside(_given_settings(gateway), directory)
            conf = SparkConf().setAll([*settings.items()])
            context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError, OSError) as error:
        where = master or "as configured"
        raise AdvisorError(
            f"Spark ({where}) did not start on Java {java.version} ({java.source}, {java.home}); "
            f"its log is {log}{_last_log_line(log)}"
        ) from error
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    _logs.append(log)
    # It would print a traceback when the Java process dies.
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = _say_nothing
    context.setLogLevel("ERROR")
    return SparkSession(context)


def _given_settings(gateway: Any) -> dict[str, str]:
    """Return the settings that Spark's launcher took from its configuration."""
    pairs = gateway.jvm.org.apache.spark.SparkConf(True).getAll()
    return {pair._1(): pair._2() for pair in pairs}


def _settings_beside(given: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the master and our settings, without those that are configured."""
    master = given.get("spark.master", _SPARKS_OWN_MASTER)
    # With plain local[*] one failed task fails the job.
    master = LOCAL_MASTER if master == _SPARKS_OWN_MASTER else master
    wanted = session_settings(master, directory)
    settings = {name: value for name, value in wanted.items() if name not in given}
    return {**settings, "spark.master": master}


def session_settings(master: str, directory: Path) -> dict[str, str]:
    """Return the Spark settings of a new session, with scratch files in a directory."""
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
            "spark.driver.extraJavaOptions": _FOR_SHORT_RUNS,
            # Spark's default of 200 is mostly overhead on one machine.
            "spark.sql.shuffle.partitions": "8",
        }
    import_path = _worker_import_path()
    if import_path is not None:
        settings["spark.executorEnv.PYTHONPATH"] = import_path
    return settings


def _worker_import_path() -> str | None:
    """Return the directory for PYTHONPATH of the workers; None if the package is installed."""
    parent = Path(__file__).resolve().parents[2]
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    # Never site-packages: on PYTHONPATH it would precede the standard library.
    return None if any(parent == Path(path).resolve() for path in installed) else str(parent)


def _launch_environment(master: str | None, java: Java) -> dict[str, str]:
    """Return variables for Spark's launcher; without a master it is configured elsewhere."""
    import pyspark

    environment = {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if master is None and os.environ.get("PYSPARK_PYTHON"):
        # Python stands elsewhere on the workers.
        environment["PYSPARK_PYTHON"] = os.environ["PYSPARK_PYTHON"]
    if master is not None and master.startswith("local"):
        # Avoids a lookup of the host name, which fails where it cannot be resolved.
        environment["SPARK_LOCAL_IP"] = _LOOPBACK
    package = Path(pyspark.__file__).parent
    if (package / "jars").is_dir():
        # A SPARK_HOME of another release does not match the installed pyspark.
        environment["SPARK_HOME"] = str(package)
    return environment


def _launch(conf: object, log: Path) -> object:
    """Start the JVM with stdout and stderr, also of Python workers, in a file."""
    from pyspark.java_gateway import launch_gateway

    with log.open("wb") as output:
        return launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})


@contextmanager
def _changed_environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change environment variables temporarily."""
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


def _last_log_line(log: Path) -> str:
    """Return the last log line that is not a stack frame, as the end of a sentence, or ""."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    messages = [line for line in lines if line and not line.startswith(("at ", "... "))]
    return f", which ends: {messages[-1]}" if messages else ""
