"""The commands `advisor play` and `advisor explore`."""

import pytest

from advisor.__main__ import main
from advisor.cli import play
from advisor.kafka_lab.nodes.distribution import jars_for
from advisor.protocol.exploration.shortest_loss import FAULTS
from advisor.protocol.scenario.language import GRAMMAR, MEANINGS

SCENARIO = """\
cluster brokers=3 kafka=3.9
topic t1 replicas=1,2,3 min_insync_replicas=2
produce t1-0 10 acks=all
> acked 10
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text(SCENARIO)
    return path


def test_a_scenario_that_matches(scenario, capsys):
    """The transcript is printed and the exit code is 0."""
    assert main(["play", str(scenario)]) == 0
    assert capsys.readouterr().out == SCENARIO


def test_a_scenario_that_differs(scenario, capsys):
    """Exit 1, naming the line, what was expected and what was printed."""
    scenario.write_text(SCENARIO.replace("acked 10", "acked 9"))
    assert main(["play", str(scenario)]) == 1
    found = capsys.readouterr()
    assert "> acked 10" in found.out
    assert f"{scenario}:4: expected" in found.err
    assert "acked 9" in found.err
    assert "acked 10" in found.err


def test_rewrite_fills_in(scenario):
    """--rewrite replaces the expected lines by the printed ones."""
    scenario.write_text(SCENARIO.replace("acked 10", "acked 9"))
    assert main(["play", str(scenario), "--rewrite"]) == 0
    assert scenario.read_text() == SCENARIO


def test_rewrite_follows_a_symbolic_link(scenario, tmp_path):
    """The link stays, its target is filled in and keeps its mode, and nothing is left beside it."""
    scenario.write_text(SCENARIO.replace("acked 10", "acked 9"))
    scenario.chmod(0o640)
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.txt"
    link.symlink_to(scenario)
    assert main(["play", str(link), "--rewrite"]) == 0
    assert link.is_symlink()
    assert scenario.read_text() == SCENARIO
    assert scenario.stat().st_mode & 0o777 == 0o640
    assert [*folder.iterdir()] == [link]
    assert sorted(tmp_path.iterdir()) == [folder, scenario]


@pytest.mark.parametrize(
    ("old", "new"),
    [("produce t1-0", "prodce t1-0"), ("t1-0 10", "t9-0 10"), ("replicas=1,2,3", "replicas=1,2,7")],
)
def test_a_broken_scenario_names_its_line(scenario, capsys, old, new):
    """Unknown verbs, topics and brokers: one sentence with the line, exit 2, file untouched."""
    broken = SCENARIO.replace(old, new)
    scenario.write_text(broken)
    for arguments in (["play", str(scenario)], ["play", str(scenario), "--rewrite"]):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "line " in error
    assert scenario.read_text() == broken


def test_no_such_file(capsys):
    """A missing file is one sentence."""
    assert main(["play", "nowhere.txt"]) == 2
    assert "nowhere.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "home", "missing"), [("", None, "no java"), ("", "/nowhere", "no java")]
)
def test_real_brokers_need_java(scenario, capsys, monkeypatch, path, home, missing):
    """Without Java, --engine kafka is one sentence that says so, and exit 2."""
    monkeypatch.setenv("PATH", path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    jars_for.cache_clear()
    assert main(["play", str(scenario), "--engine", "kafka"]) == 2
    error = capsys.readouterr().err
    assert missing in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("engine", ["kafak", "Kafka", ""])
def test_an_unknown_engine_is_named(scenario, capsys, engine):
    """An unknown engine is one sentence with the valid ones, and exit 2."""
    assert main(["play", str(scenario), "--engine", engine]) == 2
    error = capsys.readouterr().err
    assert "model, kafka" in error
    assert error.count("\n") == 1


def test_real_brokers_do_not_rewrite(scenario, capsys):
    """--rewrite works with the model only."""
    before = scenario.read_text()
    assert main(["play", str(scenario), "--rewrite", "--engine", "kafka"]) == 2
    assert "--rewrite" in capsys.readouterr().err
    assert scenario.read_text() == before


def test_explore_prints_a_scenario_that_plays(tmp_path, capsys):
    """0.10 loses with two kills; the printed scenario runs as printed, stderr says how many."""
    assert main(["explore", "--kafka-version", "0.10.2", "--kind", "kill"]) == 0
    story, found = tmp_path / "found.txt", capsys.readouterr()
    story.write_text(found.out)
    said = found.err.splitlines()[-1]
    assert said.startswith(
        "2 faults are enough to lose an acknowledged record, and fewer are not ("
    )
    assert said.endswith(" states seen).")
    assert main(["play", str(story)]) == 0


def test_explore_reports_how_far_it_searched(capsys):
    """Where nothing is found the answer says so and how many states were seen."""
    assert main(["explore", "--faults", "1", "--kind", "kill", "--writes", "1"]) == 0
    assert "state" in capsys.readouterr().out


def test_the_help_of_play_says_what_every_verb_does(capsys):
    """Usage and meaning of each verb, one below the other."""
    assert main(["play", "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert MEANINGS.keys() == GRAMMAR.keys()
    for verb, (usage, _, _) in GRAMMAR.items():
        assert lines[lines.index(usage) + 1] == MEANINGS[verb]


def test_the_help_of_explore_names_every_fault(capsys):
    """The help of --kind lists the fault names of the scenario language."""
    assert main(["explore", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{', '.join(FAULTS[:-1])} or {FAULTS[-1]}; repeatable" in said


def test_explore_ends_at_its_limit(capsys):
    """A search that hits the limit says what it completed and how many states it saw.

    With no fault at all there are few states, so that only the search of one fault is cut.
    """
    assert main(["explore", "--faults", "3", "--max-states", "400"]) == 0
    said = capsys.readouterr().out
    assert "no loss found with 1 fault and 2 writes in up to" in said
    assert "none at all with 0 faults; the search ended after 40" in said


@pytest.mark.parametrize(("every_s", "told"), [(0.0, True), (1e9, False)])
def test_explore_reports_progress(capsys, monkeypatch, every_s, told):
    """Progress goes to stderr, the result to stdout."""
    monkeypatch.setattr(play, "_REPORT_INTERVAL_S", every_s)
    assert main(["explore", "--faults", "1", "--kind", "kill", "--writes", "1"]) == 0
    found = capsys.readouterr()
    assert ("states seen, now with 1 fault; no loss so far.\n" in found.err) == told
    assert "so far" not in found.out


def test_a_limit_below_one_is_refused(capsys):
    """--max-states 0 is one sentence and exit 2."""
    assert main(["explore", "--max-states", "0"]) == 2
    assert "max_states must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--rewrite"]])
def test_errors_name_the_file(tmp_path, scenario, capsys, more):
    """An error in a line names the file too, and a folder is called one."""
    scenario.write_text(SCENARIO.replace("produce", "prodce"))
    assert main(["play", str(scenario), *more]) == 2
    assert f"advisor: {scenario}, line 3: unknown verb" in capsys.readouterr().err
    assert main(["play", str(tmp_path), *more]) == 2
    assert f"{tmp_path} is a folder; name a scenario file in it." in capsys.readouterr().err
