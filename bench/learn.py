"""How fast samples in Parquet become a history, beside a bare scan of the same files.

Run it with ``python bench/learn.py [share] [--spark]``: which share of a billion samples there are
(ten clusters of 12 brokers, 12 series each, every 30 s, eight months), a sixteenth unless told. It
reads a quarter, a half and all of them, each in a process of its own, and says time, memory and the
ratio to a scan that only decodes the same columns, in processor time. Dumps and saved answers,
which are read at rates of their own, are in the last lines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from advisor.engines import engine_of
from advisor.learning.stages import read_in_stages

CLUSTERS, BROKERS, STEP_S, DAYS = 10, 12, 30, 240
DAYS_OF_FILE = 8
SCRAPES = 86_400 // STEP_S
BEGIN_MS = 1_735_689_600_000
START_S = BEGIN_MS // 1000 - 1_000_000
NAMES = {
    "up": 1.0,
    "process_start_time_seconds": float(START_S),
    "kafka_server_replicamanager_underreplicatedpartitions": 0.0,
    "kafka_server_replicamanager_underminisrpartitioncount": 0.0,
    "kafka_server_replicamanager_atminisrpartitioncount": 0.0,
    "kafka_server_replicamanager_leadercount": 40.0,
    "kafka_server_replicamanager_isrshrinks_total": 0.0,
    "kafka_server_replicamanager_isrexpands_total": 0.0,
    "kafka_server_brokertopicmetrics_failedproducerequests_total": 0.0,
    "kafka_controller_kafkacontroller_offlinepartitionscount": 0.0,
    "kafka_controller_kafkacontroller_globalpartitioncount": 480.0,
    "kafka_controller_kafkacontroller_activecontrollercount": 0.0,
}
COLUMNS = ["timestamp", "value", "metric", "instance", "cluster"]
# One sample in about two thousand differs from the one before.
RESTARTS_PER_DAY = 0.25
DOWN_SCRAPES = 8


def restarts_of(cluster: int, broker: int) -> np.ndarray:
    """The scrapes at which a broker goes down, in all eight months, well apart."""
    rng = np.random.default_rng([cluster, broker])
    places = np.sort(rng.integers(10, DAYS * SCRAPES, rng.poisson(RESTARTS_PER_DAY * DAYS)))
    return places[np.diff(places, prepend=0) > 5 * DOWN_SCRAPES]


def write_file(path: Path, cluster: int, day: int, days: int) -> int:
    """Write the samples of a cluster for some days, series by series; return how many."""
    rng = np.random.default_rng([cluster, day])
    first, count = day * SCRAPES, days * SCRAPES
    scrapes = first + np.arange(count)
    times, values, metrics, instances = [], [], [], []
    for broker in range(BROKERS):
        late = 2_417 * (broker + 1) + rng.integers(0, 5, count)
        moments = BEGIN_MS + 1000 * STEP_S * scrapes + late
        begun = np.full(count, float(START_S))
        is_down = np.zeros(count, dtype=bool)
        for place in restarts_of(cluster, broker):
            is_down |= (scrapes >= place) & (scrapes < place + DOWN_SCRAPES)
            begun[scrapes >= place + DOWN_SCRAPES] = START_S + STEP_S * place
        for number, (name, usual) in enumerate(NAMES.items()):
            row = np.full(count, usual)
            if name.endswith("activecontrollercount") and broker == 0:
                row[:] = 1.0
            if name.startswith("process"):
                row[:] = begun
            row[is_down] = 0.0 if name == "up" else np.nan
            is_there = ~np.isnan(row)
            times.append(moments[is_there])
            values.append(row[is_there])
            metrics.append(np.full(is_there.sum(), number, dtype=np.int32))
            instances.append(np.full(is_there.sum(), broker, dtype=np.int32))
    rows = sum(map(len, times))
    brokers = [f"b{broker}:9404" for broker in range(BROKERS)]
    texts = {
        "metric": (np.concatenate(metrics), list(NAMES)),
        "instance": (np.concatenate(instances), brokers),
        "cluster": (np.zeros(rows, dtype=np.int32), [f"kafka-{cluster}"]),
    }
    columns = {
        "timestamp": pa.array(np.concatenate(times)).cast(pa.timestamp("ms", "UTC")),
        "value": pa.array(np.concatenate(values)),
    }
    for name, (codes, words) in texts.items():
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words))
    parquet.write_table(pa.table(columns), path, row_group_size=1 << 20)
    return rows


def scan(files: list[Path]) -> int:
    """Decode the columns that are read, in as many threads, and do nothing with them."""

    def one(path: Path) -> int:
        file = parquet.ParquetFile(path, read_dictionary=COLUMNS[2:])
        batches = file.iter_batches(batch_size=1 << 20, columns=COLUMNS, use_threads=False)
        return sum(len(batch) for batch in batches)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(one, files))


def learn_here(files: list[str], work: str, engine: str) -> None:
    """Read files, and print what that took; in a process of its own."""
    start, cpu = time.perf_counter(), time.process_time()
    histories = read_in_stages(files, work, engine_of(engine))
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - start,
                "cpu": time.process_time() - cpu,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                # Brokers that go down in the same scrapes are one outage of several.
                "outages": sum(
                    len(outage.brokers) for history in histories for outage in history.outages
                ),
            }
        )
    )


def restarts_until(days: int) -> int:
    """How many brokers went down and returned, all clusters together."""
    brokers = ((cluster, broker) for cluster in range(CLUSTERS) for broker in range(BROKERS))
    return sum(
        int((restarts_of(*names) + DOWN_SCRAPES < days * SCRAPES).sum()) for names in brokers
    )


def measure(files: list[Path], folder: Path, engine: str, samples: int, days: int) -> None:
    """Print a line about some files."""
    start, cpu = time.perf_counter(), time.process_time()
    rows = scan(files)
    bare, bare_cpu = time.perf_counter() - start, time.process_time() - cpu
    with tempfile.TemporaryDirectory(dir=folder) as work:
        names = json.dumps([list(map(str, files)), work, engine])
        command = [sys.executable, __file__, "--child"]
        run = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
    took = json.loads(run.stdout)
    times = took["seconds"] / bare if engine == "spark" else took["cpu"] / bare_cpu
    # Of Spark only the process that waits would be counted.
    of_processor = "" if engine == "spark" else f" ({took['cpu']:.1f} s of processor)"
    print(
        f"{rows / 1e6:8.1f} M samples: {took['seconds']:7.1f} s{of_processor}; {times:.1f} times "
        f"a bare scan ({bare:.1f} s, {bare_cpu:.1f} s of processor); {took['megabytes']:.0f} MB, "
        f"{took['outages']} outages of brokers",
        flush=True,
    )
    assert rows == samples
    assert took["outages"] == restarts_until(days)


def measure_texts(folder: Path) -> None:
    """Print the rates of a dump and of a saved answer, one after the other."""
    table = parquet.read_table(next(iter(sorted(folder.glob("*.parquet"))))).slice(0, 500_000)
    rows = table.to_pylist()
    dump, answer = folder / "dump.txt", folder / "answer.json"
    with dump.open("w") as file:
        for row in rows:
            labels = f'__name__="{row["metric"]}", instance="{row["instance"]}"'
            file.write(f"{{{labels}}} {row['value']:g} {row['timestamp'].timestamp() * 1000:.0f}\n")
    result: dict[tuple[str, str], list[list[object]]] = {}
    for row in rows:
        values = result.setdefault((row["metric"], row["instance"]), [])
        values.append([row["timestamp"].timestamp(), f"{row['value']:g}"])
    series = [
        {"metric": {"__name__": name, "instance": instance}, "values": values}
        for (name, instance), values in result.items()
    ]
    data = {"resultType": "matrix", "result": series}
    answer.write_text(json.dumps({"status": "success", "data": data}))
    for path in (dump, answer):
        start = time.process_time()
        with tempfile.TemporaryDirectory(dir=folder) as work:
            read_in_stages([path], work, engine_of("local"))
        seconds = time.process_time() - start
        print(f"{path.suffix[1:]:>8}: {len(rows) / seconds / 1e6:.2f} M samples a core-second")


def main() -> None:
    """Write files and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("share", nargs="?", type=float, default=1 / 16)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--folder", help="where to write files; a temporary one unless given")
    options = parser.parse_args()
    engine = "spark" if options.spark else "local"
    days = max(4, round(DAYS * options.share))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        samples: dict[Path, int] = {}
        length = min(DAYS_OF_FILE, days // 4)
        for day in range(0, days, length):
            for cluster in range(CLUSTERS):
                path = folder / f"day-{day:03d}-kafka-{cluster}.parquet"
                samples[path] = write_file(path, cluster, day, min(length, days - day))
        files = list(samples)
        size = sum(path.stat().st_size for path in files)
        print(f"{len(files)} files, {size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}", flush=True)
        for share in (4, 2, 1):
            chosen = files[: len(files) // (share * CLUSTERS) * CLUSTERS]
            until = min(days, len(chosen) // CLUSTERS * length)
            measure(chosen, folder, engine, sum(samples[path] for path in chosen), until)
        measure_texts(folder)


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        learn_here(*json.loads(sys.stdin.read()))
    else:
        main()
