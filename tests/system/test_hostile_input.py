"""Input that once ended in an internal error, or never: refused in seconds, with a sentence."""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import advisor
from advisor.cluster.live.client_properties import load_properties
from advisor.cluster.racks import read_racks
from advisor.errors import AdvisorError
from patience import PATIENCE_S

QUICK_S = 5.0
BOMB = "kind: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
)
MANY_DIGITS = "9" * 5000
DEEP = 100_000
HEADER = "Topic: t\tPartitionCount: {n}\tReplicationFactor: 1\tConfigs: {configs}\n"
LINE = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: {ids}\tIsr: 1\n"
SAVED = {"brokers": {"1": "a"}, "topics": []}


def refused(work: Callable[..., object], *arguments: object) -> str:
    """Return the sentence with which a call is refused, in time."""
    gc.freeze()  # else each collection goes through what other tests have left
    started = time.thread_time()
    with pytest.raises(AdvisorError) as caught:
        work(*arguments)
    spent_s = time.thread_time() - started
    gc.unfreeze()
    assert spent_s < QUICK_S
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", BOMB),
        (".yaml", "a: &a {x: 1}\nkind: {<<: *a}\n"),
        (".yaml", "kind: " + "[" * DEEP),
        (".yaml", "kind: " + "{a: " * DEEP),
        (".yaml", "- " * DEEP + "\nkind: x"),
        (".yaml", 'kind: "\\ud800"\napiVersion: kafka.strimzi.io/v1\n'),
        (".yaml", "? [a]\n: b\n"),
        (".yaml", "kind: " + "a" * 5_000_000),
        (".json", '{"brokers": ' * DEEP),
        (".json", "[" * DEEP),
        (".json", '{"brokers": {"1": "a"}, "x": ' + "[" * 500 + "]" * 500 + "}"),
        (".json", '{"brokers": {"' + MANY_DIGITS + '": "a"}}'),
        (".json", '{"brokers": {"1": ' + MANY_DIGITS + "}}"),
        (".json", '{"brokers": {"1": "\\ud800"}}'),
        (".json", '{"brokers": {"1": "a"}, "notes": ["\\ud800"]}'),
        (".json", json.dumps({**SAVED, "kafka_version": "4." + MANY_DIGITS})),
        (".toml", "brokers = " + "[" * DEEP),
        (".toml", "brokers = " + MANY_DIGITS),
        (".toml", "a." * DEEP + "a = 1"),
        (".toml", "[" + "a." * DEEP + "a]"),
        (".toml", "brokers = 3\nx = {" + "a." * DEEP + "a = 1}"),
        (".toml", "brokers=3\n[[topic]]\nname='t'\npartitions=2000000000\nreplication_factor=3"),
        (".toml", "brokers=3\n[[topic]]\nname='t'\npartitions=1\nreplication_factor=2000000000"),
        (".txt", HEADER.format(n=0, configs="")),
        (".txt", HEADER.format(n=MANY_DIGITS, configs="") + LINE.format(ids="1")),
        (".txt", HEADER.format(n=1, configs="") + LINE.format(ids=MANY_DIGITS)),
        (".txt", HEADER.format(n=1, configs="min.insync.replicas=" + MANY_DIGITS)),
        (".txt", LINE.format(ids="1" + " " * 1_000_000 + ".")),
        (".txt", LINE.format(ids="1,²")),
        (".txt", "\n" * 1_000_000 + "x"),
        (".txt", "Partition: 1" + "\n" * 1_000_000 + "x"),
    ],
    ids=lambda value: value[:40].replace("\n", " ") if isinstance(value, str) else None,
)
def test_a_hostile_cluster_is_refused(suffix: str, text: str, tmp_path: Path) -> None:
    """Bombs, endless digits, deep nesting, half surrogates and huge counts."""
    path = tmp_path / f"x{suffix}"
    path.write_text(text)
    refused(advisor.load_cluster, path)


def test_many_wrapped_lines_are_read_in_time() -> None:
    """The time to join wrapped lines grows with their number, not its square."""
    refused(advisor.load_cluster, "Topic: t\tPartition: 0\n" + "Isr: 1\n" * 300_000)


@pytest.mark.parametrize(
    "text",
    [
        "[broker.crash]\nper_year = " + MANY_DIGITS,
        "[broker.crash]\nper_year = " + "[" * DEEP,
        "[broker.crash]\nper_year = " + "{a=" * 300 + "1" + "}" * 300,
        "[broker.crash]\nper_year." + "a." * DEEP + "a = 1",
        "[broker.destroyed]\nper_year = 1\nhours = 2147483648",
        "[broker.crash]\nper_year = 1\nminutes = 1e14",
        "[broker.crash]\nper_year = nan\nminutes = inf",
    ],
    ids=lambda text: text[:50].replace("\n", " "),
)
def test_a_hostile_card_is_refused(text: str, tmp_path: Path) -> None:
    """Endless digits, deep nesting and outages longer than a year."""
    path = tmp_path / "card.toml"
    path.write_text(text)
    refused(advisor.load_model, path)


def test_a_nested_card_as_a_dict_is_refused() -> None:
    """A message does not print a value that is too deep to print."""
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    refused(advisor.FailureModel.from_dict, {"broker": {"crash": {"per_year": deep}}})


READERS = {
    "cluster": advisor.load_cluster,
    "card": advisor.load_model,
    "scenario": advisor.play,
    "properties": load_properties,
    "racks": lambda path: read_racks(str(path)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["/dev/zero", "/dev/tty", "pipe", "folder", "large", "loop"])
def test_only_regular_files_are_read(reader: str, kind: str, tmp_path: Path) -> None:
    """Devices, pipes, folders and files above the limit are refused at once."""
    path = Path(kind) if kind.startswith("/") else tmp_path / "x.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(200_000_000)
    refused(READERS[reader], path)


def test_standard_input_is_read_from_a_pipe_up_to_the_limit() -> None:
    """`-` takes a pipe; an endless one is refused."""
    command = [sys.executable, "-m", "advisor", "audit", "-", "--model", "three_az_cloud"]
    with Path("/dev/zero").open("rb") as zeros:
        endless = subprocess.run(
            command, stdin=zeros, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert endless.returncode == 2
    assert "more than 160,000,000 bytes" in endless.stderr
    read = subprocess.run(
        command,
        input="brokers = 3\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "there are no topics to audit" in read.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.6", "4.1"])
def test_the_largest_min_isr_is_evaluated(version: str) -> None:
    """Above the replication factor every min ISR is the same, however large."""
    card = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}})
    cluster = advisor.Cluster.uniform(3)

    def unavailable(min_isr: int) -> float:
        config = advisor.Config(
            replication_factor=2, min_insync_replicas=min_isr, acks="all", kafka_version=version
        )
        return advisor.evaluate(cluster, config, card).write_unavailability

    assert unavailable(2**31 - 1) == unavailable(3)
