"""The command line: results, and one sentence for every error."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.__main__ import main
from advisor.cli import commands

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = ROOT / "data" / "clusters"
SAMPLE = str(CLUSTERS / "testp3-1-created.txt")
CARD = """
[broker.destroyed]
per_year = { value = 1, low = 0.5, high = 2, evidence = "broker-destroyed-cloud" }
hours = { value = 12, low = 6, high = 24, evidence = "broker-destroyed-cloud-hours" }
"""
PLANNED = """
[broker.restart]
per_year = { value = 12, low = 4, high = 52, evidence = "broker-restart" }
minutes = { value = 8, low = 1, high = 20, evidence = "broker-restart-minutes" }
"""
TOPIC = "Topic: t\tPartitionCount: {n}\tReplicationFactor: {rf}\tConfigs: min.insync.replicas={m}\n"
LINE = "\tTopic: t\tPartition: 0\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\n"


@pytest.fixture
def card(tmp_path: Path) -> str:
    """Write a small card, for small chains."""
    path = tmp_path / "card.toml"
    path.write_text(CARD)
    return str(path)


def describe(tmp_path: Path, text: str) -> str:
    path = tmp_path / "describe.txt"
    path.write_text(text)
    return str(path)


def good(tmp_path: Path, **changes: object) -> str:
    values = {"n": 1, "rf": 3, "m": 2, "leader": 1, "replicas": "1,2,3", "isr": "1,2,3", **changes}
    return describe(tmp_path, TOPIC.format(**values) + LINE.format(**values))


def test_evaluate_prints_the_verdict(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The described settings are evaluated unless options override them; JSON matches."""
    cluster = good(tmp_path)
    assert main(["evaluate", cluster, "--model", card]) == 0
    said = capsys.readouterr().out
    assert said.startswith("RF 3 with min ISR 2: data loss ")
    assert said.splitlines()[1].startswith("No setting changes ")
    assert "\nA consumer group is down " in said
    assert "Assumed: Kafka's version is not stated" in said
    assert "Assumed: No load was given" in said
    lines = [line.startswith("Assumed: ") for line in said.splitlines()]
    assert lines == sorted(lines)
    assert re.search(r"Failed sends: [\d.,]+ a year .*delivery.timeout.ms=120000\.", said)
    assert main(["evaluate", cluster, "--model", card, "--rf", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["config"]["replication_factor"] == 2
    assert data["measures"]["loss_probability_per_year"] > 0
    assert 0 < data["dependents"]["transaction"]["unavailability"] < 1


def test_evaluate_says_whose_settings_it_used(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --rf the settings are a topic's, which is named; with --rf nothing is assumed."""
    values = {"leader": 1, "isr": "1,2,3", "replicas": "1,2,3"}
    many = TOPIC.replace("Topic: t", "Topic: orders").format(n=2, rf=3, m=2)
    many += LINE.replace("Topic: t", "Topic: orders").format(**values)
    many += many.splitlines()[1].replace("Partition: 0", "Partition: 1") + "\n"
    few = TOPIC.format(n=1, rf=3, m=1) + LINE.format(**values)
    line = ["evaluate", describe(tmp_path, few + many), "--model", card]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert out.startswith("RF 3 with min ISR 2: ")
    assert (
        "Assumed: The settings are those of topic orders, the most frequent: 2 of 3 partitions "
        "have them."
    ) in out
    assert main([*line, "--min-isr", "1"]) == 0
    out = capsys.readouterr().out
    assert "Assumed: Settings that no option gives are those of topic orders, the most" in out
    assert main([*line, "--rf", "3", "--min-isr", "1"]) == 0
    assert "are those of topic" not in capsys.readouterr().out


def test_recommend_prints_verdict_commands_and_rollback(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict precedes the commands; files go to the given folder, never over others."""
    folder = tmp_path / "files"
    line = ["recommend", good(tmp_path, m=1), "--model", card, "--files", str(folder)]
    line += ["--loss-probability-per-year", "1e-4", "--survive", "broker"]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert out.startswith("Yes, RF 3 with min ISR 2 meets your goals: data loss ")
    assert "--entity-name t --add-config min.insync.replicas=2" in out
    assert "acks=all\n" in (folder / "producer.properties").read_text()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(line) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_audit_exit_code(tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 if every topic meets the goals, 1 otherwise, for text and JSON."""
    line = ["audit", good(tmp_path), "--model", card]
    assert main([*line, "--loss-probability-per-year", "0.5"]) == 0
    assert capsys.readouterr().out.startswith("Yes, the only topic meets your goals; ")
    assert main([*line, "--loss-probability-per-year", "1e-12", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is False
    assert data["topics"][0]["topic"] == "t"


def test_every_described_partition_is_evaluated(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evaluate and recommend use all user partitions unless an option says otherwise."""
    values = {"rf": 3, "m": 2, "leader": 1, "replicas": "1,2,3", "isr": "1,2,3"}
    lines = [LINE.replace("Partition: 0", f"Partition: {p}").format(**values) for p in range(4)]
    cluster = describe(tmp_path, TOPIC.format(n=4, **values) + "".join(lines))
    for extra, partitions in (([], 4), (["--record-bytes", "9"], 4), (["--partitions", "2"], 2)):
        assert main(["evaluate", cluster, "--model", card, "--json", *extra]) == 0
        assert json.loads(capsys.readouterr().out)["load"]["partitions"] == partitions


def test_a_description_may_come_through_a_pipe(tmp_path: Path, card: str) -> None:
    """`-` is standard input."""
    line = [sys.executable, "-m", "advisor", "audit", "-", "--model", card]
    text = Path(good(tmp_path)).read_text()
    done = subprocess.run(line, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("No, 1 of 1 topic misses your goals")


def test_simulate_with_the_local_engine(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--engine local` samples in this process, reproducibly."""
    line = ["simulate", good(tmp_path), "--model", card, "--engine", "local", "--years", "200"]
    said = []
    for _ in range(2):
        assert main(line) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert said[0].startswith("RF 3 with min ISR 2: ")
    assert main([*line[:-1], "nan"]) == 2
    one_sentence(capsys)


def test_a_checkpoint_on_the_command_line(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run reads the blocks; a torn one is named on stderr and sampled again."""
    folder = tmp_path / "blocks"
    line = ["simulate", good(tmp_path), "--model", card, "--engine", "local", "--years", "200"]
    assert main(line) == 0
    without = capsys.readouterr()
    assert main([*line, "--checkpoint", str(folder)]) == 0
    assert capsys.readouterr() == without
    files = {path: path.read_bytes() for path in folder.iterdir()}
    assert len(files) == 32
    torn = folder / "block-00000007.parquet"
    torn.write_bytes(files[torn][:100])
    assert main([*line, "--checkpoint", str(folder)]) == 0
    again = capsys.readouterr()
    assert again.out == without.out
    assert again.err == f"{torn} is damaged; its block is sampled again.\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == files
    assert main([*line, "--checkpoint", str(folder), "--seed", "8"]) == 2
    assert "keeps blocks of other inputs" in one_sentence(capsys)


def test_a_report_keeps_the_blocks_that_it_samples(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--checkpoint` belongs to `--sampled-years`."""
    folder, page = tmp_path / "blocks", tmp_path / "page.html"
    line = ["report", good(tmp_path), "--model", card, "--output", str(page)]
    line += ["--checkpoint", str(folder)]
    assert main(line) == 2
    assert "--checkpoint is for --sampled-years" in one_sentence(capsys)
    assert main([*line, "--sampled-years", "64", "--loss-probability-per-year", "0.01"]) == 0
    assert len(list(folder.glob("block-*.parquet"))) == 32


def test_simulate_prints_its_assumptions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Assumptions of the sample and of the input are printed, a sentence each."""
    network = tmp_path / "network.toml"
    network.write_text(
        '[rack.network]\nper_year = { value = 1, evidence = "own: x" }\n'
        'minutes = { value = 5, evidence = "own: x" }\n'
    )
    line = ["simulate", good(tmp_path), "--model", str(network), "--engine", "local"]
    assert main([*line, "--years", "10"]) == 0
    assumed = [each for each in capsys.readouterr().out.splitlines() if "Assumed: " in each]
    assert "the rack of no broker is known" in assumed[0]
    assert all(each.endswith(".") for each in assumed)


def test_cards_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name all cards are listed; with one, its numbers."""
    assert main(["cards"]) == 0
    assert "three_az_cloud" in capsys.readouterr().out
    assert main(["cards", "two_az"]) == 0
    assert "broker.crash.per_year" in capsys.readouterr().out


def test_report_prints_the_verdict_and_writes_one_file(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verdict, tolerance and path are printed, and only the page is written."""
    output = tmp_path / "out" / "report.html"
    line = ["report", good(tmp_path), "--model", card, "--output", str(output)]
    assert main(line) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match("Yes|No, ", lines[0])
    assert lines[1].startswith("No setting changes ")
    assert any(line.startswith("Brokers you can lose at once: ") for line in lines)
    assert lines[-1] == f"Report: {output}"
    assert list(output.parent.iterdir()) == [output]
    assert output.read_text().lower().lstrip().startswith("<!doctype html")
    assert main(line) == 0


BAD_FILES = {
    "empty": "",
    "cut mid-line": TOPIC.format(n=1, rf=3, m=2) + "\tTopic: t\tPartition: 0\tLeader: 1\tRepl",
    "cut between lines": TOPIC.format(n=5, rf=3, m=2)
    + LINE.format(leader=1, replicas="1,2,3", isr="1"),
    "in Isr but not in Replicas": TOPIC.format(n=1, rf=2, m=1)
    + LINE.format(leader=1, replicas="1,2", isr="1,3"),
    "garbage": "\0\1\2",
}
BAD_CARDS = {
    "negative rate": CARD.replace("low = 0.5", "low = -0.5").replace("value = 1,", "value = -1,"),
    "NaN rate": CARD.replace("value = 1,", "value = nan,"),
    "no evidence": CARD.replace(', evidence = "broker-destroyed-cloud" }', " }"),
    "not TOML": "[broker",
}
BAD_LOADS = {
    "many partitions": ("--partitions", "1" + 400 * "0", "from 1 to 10,000,000"),
    "many records": ("--records-per-second", "1e300", "from 0 to 1e+18"),
    "large records": ("--record-bytes", "1" + 400 * "0", "from 0 to 1e+18"),
    "long retention": ("--retention-hours", "1e17", "together keep"),
}
BAD_OPTIONS = {
    "acks=2": ["evaluate", "--acks", "2"],
    "RF above the brokers": ["evaluate", "--rf", "7"],
    "RF 0": ["evaluate", "--rf", "0"],
    "unknown card": ["evaluate", "--model", "no_such_card"],
    "not a number": ["evaluate", "--rf", "three"],
    "unknown option": ["evaluate", "--colour", "red"],
    "no such topic": ["recommend", "--topic", "nope"],
    "goal is NaN": ["recommend", "--loss-probability-per-year", "nan"],
    "goal is negative": ["audit", "--write-unavailability", "-1"],
    "rack without racks": ["recommend", "--survive", "rack"],
    "unknown thing to survive": ["audit", "--survive", "planet"],
    "load is negative": ["evaluate", "--records-per-second", "-5"],
    "load is NaN": ["evaluate", "--records-per-second", "nan"],
    "no partitions": ["evaluate", "--partitions", "0"],
    "unknown version": ["evaluate", "--kafka-version", "vier"],
    "racks that contradict": ["evaluate", "--racks", "1=a,1=b"],
    "timeout too short": ["evaluate", "--delivery-timeout-ms", "1"],
}


def one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the output after checking that it is one line on stderr."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("advisor: ")
    assert said.err.count("\n") == 1
    assert said.err.endswith((".\n", "?\n"))
    assert not said.err.endswith("?.\n")
    assert "Traceback" not in said.err
    assert "mistake in advisor itself" not in said.err
    return said.err


@pytest.mark.parametrize("command", ["evaluate", "simulate", "recommend", "audit"])
@pytest.mark.parametrize(("option", "number", "named"), BAD_LOADS.values(), ids=BAD_LOADS)
def test_an_invalid_load_is_one_sentence(
    command: str, option: str, number: str, named: str, tmp_path: Path, card: str, capsys
) -> None:
    """The error names the number, abbreviated, and the allowed range."""
    assert main([command, good(tmp_path), "--model", card, option, number]) == 2
    said = one_sentence(capsys)
    assert named in said
    assert len(said) < 250


@pytest.mark.parametrize("text", BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_cluster_is_one_sentence(
    text: str, tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names an unreadable cluster file, and nothing is overwritten."""
    cluster, page = describe(tmp_path, text), tmp_path / "report.html"
    page.write_text("<!doctype html>mine")
    assert main(["report", cluster, "--model", card, "--output", str(page)]) == 2
    assert cluster in one_sentence(capsys)
    assert page.read_text() == "<!doctype html>mine"


@pytest.mark.parametrize("text", BAD_CARDS.values(), ids=BAD_CARDS)
def test_a_bad_card_is_one_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names an invalid card, and nothing is overwritten."""
    card, page = tmp_path / "card.toml", tmp_path / "report.html"
    card.write_text(text)
    page.write_text("<!doctype html>mine")
    assert main(["report", good(tmp_path), "--model", str(card), "--output", str(page)]) == 2
    assert str(card) in one_sentence(capsys)
    assert page.read_text() == "<!doctype html>mine"


@pytest.mark.parametrize("options", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_a_bad_option_is_one_sentence(
    options: list[str], tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An invalid option is one sentence and exit code 2."""
    model = [] if "--model" in options else ["--model", card]
    command, *rest = options
    assert main([command, good(tmp_path), *model, *rest]) == 2
    one_sentence(capsys)


def test_missing_things_are_one_sentence(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing cluster, file, model, topics or settings: one sentence each."""
    bare = tmp_path / "bare.toml"
    bare.write_text("brokers = 3\n")
    for line in (
        ["audit"],
        ["audit", str(tmp_path / "absent.txt"), "--model", card],
        ["audit", str(tmp_path), "--model", card],
        ["audit", "localhost:9092", "--model", card],
        ["audit", good(tmp_path)],
        ["audit", str(bare), "--model", card],
        ["evaluate", str(bare), "--model", card],
        ["frobnicate"],
    ):
        assert main(line) == 2
        one_sentence(capsys)


def test_odd_but_real_input_is_a_finding(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Min ISR above RF, no leader, internal topics at RF 1 and unknown racks are findings."""
    inner = "Topic: __consumer_offsets\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    inner += "\tTopic: __consumer_offsets\tPartition: 0\tLeader: none\tReplicas: 1\tIsr: 1\n"
    cluster = describe(tmp_path, Path(good(tmp_path, m=4)).read_text() + inner)
    line = ["audit", cluster, "--model", card, "--racks", "1=a,2=b", "--kafka-version", "3.6"]
    assert main(line) == 1
    out = capsys.readouterr().out
    for code in ("KRA103", "KRA104", "KRA201", "KRA309"):
        assert code in out
    assert "KRA315" not in out
    assert main([*line, "--controllers", "7=a,8=a,9=b"]) == 1
    assert "losing a stops elections" in capsys.readouterr().out
    assert main([*line, "--controllers", "7"]) == 2
    one_sentence(capsys)


@pytest.mark.parametrize("existing", ["notes.txt", "folder"])
def test_a_report_overwrites_html_only(
    existing: str, tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not HTML, or a folder, is rejected before any work."""
    path = tmp_path / existing
    path.mkdir() if existing == "folder" else path.write_text("mine")
    assert main(["report", good(tmp_path), "--model", card, "--output", str(path)]) == 2
    one_sentence(capsys)
    assert existing == "folder" or path.read_text() == "mine"


def test_internal_errors_are_one_sentence(
    tmp_path: Path,
    card: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An unexpected error is one sentence; a traceback needs ADVISOR_DEBUG=1."""

    def broken(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(commands, "_cluster_and_model", broken)
    line = ["audit", good(tmp_path), "--model", card]
    assert main(line) == 2
    assert "mistake in advisor itself (KeyError: 'surprise')" in capsys.readouterr().err
    monkeypatch.setenv("ADVISOR_DEBUG", "1")
    with pytest.raises(KeyError, match="surprise"):
        main(line)


def test_json_has_no_infinity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An infinite time is null in JSON."""
    quiet = tmp_path / "quiet.toml"
    quiet.write_text(PLANNED)
    assert main(["evaluate", good(tmp_path), "--model", str(quiet), "--json"]) == 0
    data = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert data["measures"]["mean_years_to_loss"] is None


def test_a_closed_pipe_is_no_error(tmp_path: Path, card: str) -> None:
    """A closed pipe is exit code 141, without a message."""
    line = [sys.executable, "-m", "advisor", "recommend", good(tmp_path), "--model", card]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_audit_says_that_it_has_no_intervals(tmp_path: Path, capsys) -> None:
    """The table of an audit says that it has no intervals, and how to get them."""
    main(["audit", good(tmp_path), "--model", "single_rack"])
    assert "These values have no 95 % intervals" in capsys.readouterr().out
