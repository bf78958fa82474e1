"""Spark sessions whose Java process dies: the next call has a new one, and says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SETTING = """
import json, os, signal, sys, threading, time, warnings
from pathlib import Path
from advisor import AdvisorError, Cluster, Config, FailureModel, Workload, simulate
from advisor.pipeline.session import spark_session

CARD = {"broker": {"crash": {"per_year": 10.0, "minutes": 60.0},
                   "destroyed": {"per_year": 1.0, "hours": 24.0, "shape": 2.0}}}
MODEL = FailureModel.from_dict(CARD)
CONFIG = Config(replication_factor=3, min_insync_replicas=2)

def run(engine="spark", years=96, **options):
    cluster, load = Cluster.uniform(3, 3), Workload(partitions=4)
    return simulate(cluster, CONFIG, MODEL, load, years, 11, engine, **options).to_dict()

def kill_java():
    process = spark_session().sparkContext._gateway.proc
    os.kill(process.pid, signal.SIGKILL)
    return process

spark_session("local[2,4]")
"""

BETWEEN = """
first, said = run(), []
kill_java().wait()
second = run(progress=said.append)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    third = run()
    spark_session().sparkContext._jsc.stop()
    fourth = run()
print(json.dumps({
    "same": first == second == third == fourth == run("local"),
    "said": said,
    "warned": [str(each.message) for each in warned],
}))
"""

# On a busy machine it may have all blocks before it is killed: then it samples again elsewhere.
MIDWAY = """
years = int(sys.argv[2])

def killed_midway(where):
    def kill_midway():
        while len(list(where.glob("*.parquet"))) < 3:
            time.sleep(0.01)
        kill_java()

    killer = threading.Thread(target=kill_midway)
    killer.start()
    message = ""
    try:
        run(years=years, checkpoint=where, progress=lambda _: None)
    except AdvisorError as error:
        message = str(error)
    killer.join()
    return message

for attempt in range(5):
    where = Path(sys.argv[1]) / str(attempt)
    message = killed_midway(where)
    if message:
        break
kept = {path.name: path.stat().st_mtime_ns for path in where.glob("*.parquet")}
said = []
found = run(years=years, checkpoint=where, progress=said.append)
after = {path.name: path.stat().st_mtime_ns for path in where.glob("*.parquet")}
print(json.dumps({
    "message": message,
    "where": str(where),
    "said": said,
    "kept": len(kept),
    "all": len(after),
    "untouched": kept == {name: after[name] for name in kept},
    "same": found == run("local", years),
}))
"""


def answer(code: str, *arguments: object) -> dict[str, object]:
    command = [sys.executable, "-c", SETTING + code, *map(str, arguments)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def test_after_the_java_process_died_the_next_call_starts_a_new_session() -> None:
    """It says so in one sentence, once, and results are the same; so with a stopped context."""
    found = answer(BETWEEN)
    assert found["same"]
    (sentence,) = found["said"]
    assert sentence.startswith("Spark's session has ended (its log is ")
    assert sentence.endswith("spark.log); a new one was started.")
    (warned,) = found["warned"]
    assert warned.startswith("Spark's session has ended")


def test_a_java_process_that_dies_midway_is_one_sentence_and_keeps_blocks(tmp_path: Path) -> None:
    """The error names log and checkpoint; the next call runs the missing blocks alone."""
    found = answer(MIDWAY, tmp_path, 400_000)
    where = found["where"]
    assert "Spark's Java process ended while it sampled (its log is " in found["message"]
    assert f"repeat the call: it starts a new one, and {where} keeps" in found["message"]
    assert any(str(sentence).startswith("Spark's session has ended") for sentence in found["said"])
    assert 3 <= found["kept"] < found["all"]
    assert found["untouched"]
    assert found["same"]
