"""The recorded logs are complete, reveal no host details, and their counts are consistent."""

import datetime
import gzip
import ipaddress
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from advisor.catalog import data_path

FOLDER = data_path("logs")
RUNS = {path.parent.name: tomllib.loads(path.read_text()) for path in FOLDER.glob("*/counts.toml")}
EXPECTED = {"kraft-3.9", "zookeeper-3.9", "kraft-4.3-elr"}
FILES = sorted(FOLDER.glob("*/*/*.log.gz"))
LINE = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
LARGEST_BYTES = 1_000_000
KAFKAS_OWN = {"/tmp/kafka-logs", "/usr/bin/kinit"}  # Defaults that a broker prints when it starts.


def partitions():
    return [(run, name) for run, counts in RUNS.items() for name in counts["partition"]]


def read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def name_of(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def test_every_run_is_there():
    """Both controllers, and ELR: three runs, each with its counts."""
    assert set(RUNS) == EXPECTED


@pytest.mark.parametrize("run", RUNS)
def test_every_node_handed_in_its_logs(run):
    """Each broker has a server and a state-change log; each controller has a controller log."""
    found = {str(path.relative_to(FOLDER / run)) for path in FILES if path.parts[-3] == run}
    wanted = {
        f"broker-{broker}/{name}.log.gz"
        for broker in RUNS[run]["brokers"]
        for name in ("server", "state-change")
    }
    kraft = {"controller/controller.log.gz", "controller/server.log.gz"}
    zookeeper = {f"broker-{broker}/controller.log.gz" for broker in RUNS[run]["brokers"]}
    wanted |= kraft if RUNS[run]["mode"] == "kraft" else zookeeper
    assert found >= wanted


def test_they_are_small_enough_to_ship():
    """The logs go into the wheel, so all together stay below a megabyte."""
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < LARGEST_BYTES


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_lines_have_kafkas_pattern_and_lie_within_the_run(path):
    """A file begins with a timestamp, and none is outside the run by over two minutes."""
    counts = RUNS[path.parts[-3]]
    text = read(path)
    assert LINE.match(text), text[:200]
    # Nodes are started before the first decision, and stopped after the last.
    slack = datetime.timedelta(minutes=2)
    for line in text.splitlines():
        found = LINE.match(line)
        if found:
            at = datetime.datetime.strptime(found[1] + "+0000", "%Y-%m-%d %H:%M:%S,%f%z")
            assert counts["began"] - slack <= at <= counts["ended"] + slack, line


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_log_tells_of_the_machine(path):
    """No folder of a user or build, no environment of the host, only private addresses."""
    text = read(path)
    folders = set(re.findall(r"/(?:root|home|work|tmp|usr)/[^\s,\]]*|\.m2\b", text))
    assert folders <= KAFKAS_OWN
    assert set(re.findall(r"environment:[\w.]+=(\S*)", text)) <= {"-"}
    for found in set(re.findall(r"(?<![\w.])(\d+\.\d+\.\d+\.\d+)(?![\w.])", text)):
        address = ipaddress.ip_address(found)
        assert address.is_private or address.is_unspecified, found


@pytest.mark.parametrize(("run", "name"), partitions())
def test_who_left_and_who_joined_add_up_to_the_last_isr(run, name):
    """All replicas begin in sync, so replicas that left and joined give the final ISR."""
    found = RUNS[run]["partition"][name]
    left, joined = found["members_left"], found["members_joined"]
    assert found["replicas"] - left + joined == len(found["final_isr"])
    assert len(found["final_isr"]) == found["replicas"]
    assert found["isr_shrinks_by_leader"] <= found["isr_shrinks"] <= left
    assert found["isr_expansions"] <= joined


@pytest.mark.parametrize(("run", "name"), partitions())
def test_leaders_add_up_to_the_last_epoch(run, name):
    """KRaft counts elections and losses of a leader; ZooKeeper also its controller's shrinks."""
    found = RUNS[run]["partition"][name]
    moves = found["elections"] + found["leaderless"]
    assert 0 < found["leaderless"] <= found["elections"]
    if RUNS[run]["mode"] == "kraft":
        assert found["final_leader_epoch"] == moves
    else:
        by_controller = found["isr_shrinks"] - found["isr_shrinks_by_leader"]
        assert moves <= found["final_leader_epoch"] <= moves + by_controller


@pytest.mark.parametrize("run", RUNS)
def test_brokers_add_up(run):
    """Every broker serves at the end, so it started more often than it ended."""
    acts = Counter((act["act"], act["node"]) for act in RUNS[run]["acts"])
    for number, found in RUNS[run]["broker"].items():
        node = int(number)
        ended = found["clean_stops"] + found["kills"]
        assert found["unfenced"] == found["fenced"] + 1
        assert found["fenced"] == ended + found["isolations"]
        assert found["starts"] >= ended + 1
        if RUNS[run]["mode"] == "kraft":
            assert found["starts"] == ended + 1
        keys = {"clean_stops": "stop", "kills": "kill", "isolations": "isolate", "lags": "lag"}
        assert {key: found[key] for key in keys} == {k: acts[a, node] for k, a in keys.items()}
        assert found["starts"] == 1 + acts["start", node]


@pytest.mark.parametrize("run", RUNS)
def test_a_lagging_follower_leaves_each_isr_once(run):
    """Broker 2 lagged once: only the leaders of its partitions shrank an ISR for lag."""
    by_leader = {name: p["isr_shrinks_by_leader"] for name, p in RUNS[run]["partition"].items()}
    held = [act["node"] for act in RUNS[run]["acts"] if act["act"] == "lag"]
    assert held == [2]
    assert set(by_leader.values()) == {0, 1}
    assert by_leader["clicks-2"] == 0  # On brokers 3 and 1.


@pytest.mark.parametrize("run", RUNS)
def test_decisions_are_in_the_span_of_the_acts(run):
    """Faults are in order, between the first and the last recorded decision."""
    times = [act["at"] for act in RUNS[run]["acts"]]
    assert times == sorted(times)
    assert RUNS[run]["began"] < times[0]
    assert times[-1] < RUNS[run]["ended"]
