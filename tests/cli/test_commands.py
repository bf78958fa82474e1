"""The command line: results, and one sentence for every error."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.__main__ import main
from advisor.pipeline.simulate import ENGINES, QUICKEST
from advisor.reliability.sampler.methods import METHODS
from command_line import (
    LINE,
    TOPIC,
    describe,
    good,
    one_sentence,
)


def test_evaluate_prints_the_verdict(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict, then the explanation of the described settings; JSON matches the options."""
    cluster = good(tmp_path)
    assert main(["evaluate", cluster, "--model", card]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Keep RF 3, min ISR 2, acks=all.\nIt loses records ")
    assert re.search(r"\nok  this setting  RF 3, min ISR 2  keep +over 2,000 y ", said)
    assert "\n\nRF 3 with min ISR 2: " in said
    assert "\nA consumer group is down " in said
    assert "Assumed: Kafka's version is not stated" in said
    assert "Assumed: No load was given" in said
    lines = [line.startswith("Assumed: ") for line in said.splitlines()]
    assert lines == sorted(lines)
    assert re.search(r"Failed sends: [\d.,]+ a year .*delivery.timeout.ms=120000\.", said)
    assert main(["evaluate", cluster, "--model", card, "--rf", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"]["headline"].startswith("Set RF 3")
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
    assert "\nRF 3 with min ISR 2: " in out
    assert (
        "Assumed: The settings are those of topic orders, the most frequent: 2 of 3 partitions "
        "have them."
    ) in out
    assert main([*line, "--min-isr", "1"]) == 0
    out = capsys.readouterr().out
    assert "Assumed: Settings that no option gives are those of topic orders, the most" in out
    assert main([*line, "--rf", "3", "--min-isr", "1"]) == 0
    assert "are those of topic" not in capsys.readouterr().out


def test_options_say_what_topics_have_where_the_description_does_not(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A min ISR that is given holds for topics without one; one that cannot be used is said."""
    bare = LINE.format(leader=1, isr="1,2,3", replicas="1,2,3")
    options = ["--model", card, "--no-how-sure", "--min-isr"]
    for command, code in (("audit", 1), ("recommend", 0)):
        assert main([command, describe(tmp_path, bare), *options, "3", "--json"]) == code
        (action,) = json.loads(capsys.readouterr().out)["verdict"]["actions"]
        assert action["today"] == "RF 3, min ISR 3, acks=all"
    assert main(["recommend", good(tmp_path), *options, "3", "--rf", "5", "--json"]) == 0
    told = capsys.readouterr()
    (action,) = json.loads(told.out)["verdict"]["actions"]
    assert action["today"] == "RF 3, min ISR 2, acks=all"
    assert told.err.splitlines() == [
        "--rf 5 is not used: every topic has the replicas described.",
        "min.insync.replicas=3 is not used: every topic states its own.",
    ]


def test_recommend_prints_the_verdict_and_on_demand_the_rest(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands and reasons with their options only; files go to a folder, never over others."""
    folder = tmp_path / "files"
    line = ["recommend", good(tmp_path, m=1), "--model", card, "--survive", "broker"]
    assert main([*line, "--files", str(folder)]) == 0
    brief = capsys.readouterr().out
    assert brief.startswith("Change t to RF 3, min ISR 2, acks=all.\n")
    assert len(brief.splitlines()) <= 25
    assert "kafka-configs.sh" not in brief
    change = "--entity-name t --add-config min.insync.replicas=2"
    assert main([*line, "--commands"]) == 0
    with_commands = capsys.readouterr().out
    assert with_commands.startswith(brief)
    assert change in with_commands
    assert "\nRollback:\n" in with_commands
    assert "\nWhy:\n" not in with_commands
    assert main([*line, "--explain"]) == 0
    explained = capsys.readouterr().out
    assert explained.index("\nWhy:\n") < explained.index("\nAssumed:\n") < explained.index(change)
    assert "acks=all\n" in (folder / "producer.properties").read_text()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main([*line, "--files", str(folder)]) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_how_sure_is_said_unless_it_is_left_out(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From draws of the card; the rest of what is printed stays the same."""
    monkeypatch.setattr("advisor.advice.deciding.DRAWS", 2)
    for command in ("recommend", "audit"):
        line = [command, good(tmp_path, m=1), "--model", card]
        main([*line, "--no-how-sure"])
        brief = capsys.readouterr().out
        main(line)
        sure = capsys.readouterr().out
        assert "How sure: " in sure
        assert "How sure: " not in brief
        assert sure.replace("How sure: sure. ", "") == brief


def test_audit_exit_code(tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 for critical settings, missed goals, and warnings if asked; else 0."""
    line = ["audit", good(tmp_path), "--model", card, "--no-how-sure"]
    assert main([*line, "--loss-probability-per-year", "0.5"]) == 0
    brief = capsys.readouterr().out
    assert "Goal loss_probability_per_year: met." in brief
    assert len(brief.split()) <= 150
    loose = ["audit", good(tmp_path, m=1), "--model", "three_az_cloud", "--no-how-sure"]
    loose += ["--minutes-per-loss", "40320"]
    assert main(loose) == 0
    assert main([*loose, "--fail-on", "warning"]) == 1
    assert main([*loose, "--fail-on", "note"]) == 2
    assert "give critical or warning" in capsys.readouterr().err
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
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Keep RF 3, min ISR 2, acks=all.\n")


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


def test_the_help_of_simulate_names_every_method_and_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What --method and --engine take is what the sampler has."""
    assert main(["simulate", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    (method,) = re.findall(r"--method TEXT ([^-]+) --", said)
    assert set(re.findall(r"\w+", method)) >= set(METHODS)
    (engine,) = re.findall(r"--engine TEXT ([^-]+) --", said)
    assert set(re.findall(r"\w+", engine)) >= {*ENGINES, QUICKEST}


def test_simulate_stops_early_on_the_command_line(
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--relative-width` and `--seconds` end a run, which says why; a wrong one is refused."""
    line = ["simulate", good(tmp_path), "--model", card, "--engine", "local", "--years", "1e8"]
    line += ["--rf", "1", "--min-isr", "1"]
    for option, why in (
        ("--relative-width", "interval narrow enough"),
        ("--seconds", "time is up"),
    ):
        assert main([*line, option, "0.5"]) == 0
        told = capsys.readouterr()
        assert f"Stopped after these years: {why}.\n" in told.out
        assert "Sampling at most 100,000,000 years takes" in told.err
        assert main([*line, option, "0"]) == 2
        assert "give a number above 0" in one_sentence(capsys)


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
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--checkpoint` belongs to `--sampled-years`; an old report is replaced."""
    monkeypatch.setattr("advisor.catalog.model_names", list)  # no card to switch to
    folder, page = tmp_path / "blocks", tmp_path / "page.html"
    page.write_text("<!doctype html><p>an old page")
    line = ["report", good(tmp_path), "--model", card, "--output", str(page)]
    line += ["--checkpoint", str(folder)]
    assert main(line) == 2
    assert "--checkpoint is for --sampled-years" in one_sentence(capsys)
    assert main([*line, "--sampled-years", "64", "--loss-probability-per-year", "0.01"]) == 0
    assert len(list(folder.glob("block-*.parquet"))) == 32
    assert "an old page" not in page.read_text()


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
    tmp_path: Path, card: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict and the path are printed, and only the page is written; no folder is made."""
    monkeypatch.setattr("advisor.catalog.model_names", list)  # no card to switch to
    output = tmp_path / "out" / "report.html"
    line = ["report", good(tmp_path), "--model", card, "--output", str(output)]
    assert main(line) == 2  # before anything is computed
    assert f"{output.parent} is not a writable directory" in capsys.readouterr().err
    output.parent.mkdir()
    assert main(line) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Keep RF 3, min ISR 2, acks=all."
    assert any(line.startswith("ok  ") for line in lines)
    assert lines[-1] == f"Report: {output}"
    assert list(output.parent.iterdir()) == [output]
    assert output.read_text().lower().lstrip().startswith("<!doctype html")
