"""Bad files, cards, loads and options: one sentence each, and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.__main__ import main
from advisor.catalog import model_names
from advisor.cli import commands
from closed_ports import closed_port
from command_line import (
    CARD,
    LINE,
    PLANNED,
    TOPIC,
    describe,
    good,
    one_sentence,
)

BAD_FILES = {
    "empty": "",
    "cut mid-line": TOPIC.format(n=1, rf=3, m=2) + "\tTopic: t\tPartition: 0\tLeader: 1\tRepl",
    "no partition": TOPIC.format(n=5, rf=3, m=2),
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
        ["audit", good(tmp_path)],
        ["audit", str(bare), "--model", card],
        ["evaluate", str(bare), "--model", card],
        ["frobnicate"],
    ):
        assert main(line) == 2
        one_sentence(capsys)
    with closed_port() as closed:
        assert main(["audit", f"127.0.0.1:{closed}", "--model", card]) == 2
    one_sentence(capsys)


def test_odd_but_real_input_is_a_finding(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Min ISR above RF, no leader, internal topics at RF 1 and unknown racks are findings."""
    inner = "Topic: __consumer_offsets\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    inner += "\tTopic: __consumer_offsets\tPartition: 0\tLeader: none\tReplicas: 1\tIsr: 1\n"
    cluster = describe(tmp_path, Path(good(tmp_path, m=4)).read_text() + inner)
    line = ["audit", cluster, "--model", card, "--racks", "1=a,2=b", "--kafka-version", "3.6"]
    line += ["--explain"]
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
    main(["audit", good(tmp_path), "--model", "single_rack", "--explain"])
    assert "advisor evaluate gives 95 % intervals" in capsys.readouterr().out


def test_who_names_no_card_is_told_which_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence with the name of every shipped card, by every command that needs one."""
    path = good(tmp_path)
    for line in (["audit", path], ["recommend", path], ["learn", "--years", "3"]):
        assert main(line) == 2
        said = one_sentence(capsys)
        assert f"{line[0]} --help" in said
        assert [name for name in model_names() if name not in said] == []
