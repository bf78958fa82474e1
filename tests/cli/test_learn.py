"""`advisor learn`: a card and a verdict from counts, and one sentence for every mistake."""

import json
from pathlib import Path

import pytest

import advisor
from advisor.__main__ import main
from advisor.cli.learning import MOST_LINES
from command_line import CLUSTERS, one_sentence
from stored_samples import contents, quiet, samples_of, write

PRIOR = ["learn", "--prior", "three_az_cloud"]
FRAME = [*PRIOR, "--brokers", "12", "--years", "3"]
MECHANISMS = [
    *("broker.power=4", "broker.crash=20", "broker.lag=100", "broker.gray=1", "rack.power=0"),
    *("broker.restart=300", "cluster.crash=1", "cluster.rollout=0", "cluster.controller=0"),
]
SIX = CLUSTERS / "three-az-six-brokers.txt"


def counts(mechanisms: list[str]) -> list[str]:
    return [word for mechanism in mechanisms for word in ("--count", mechanism)]


def test_counts_become_a_card_and_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The decision first, what moved, the card; another command takes the card."""
    path = tmp_path / "my_card.toml"
    line = [*FRAME, *counts(["broker.power=4", "cluster.crash=1"])]
    line += ["--minutes", "cluster.crash=40", "--output", str(path)]
    assert main(line) == 0
    said = capsys.readouterr().out
    assert said.startswith("Keep RF 3, min ISR 2, acks=all.\n")
    assert "4 in 36 broker-years" in said
    assert "12 brokers in 3" in said
    assert said.endswith(f"Card: {path}\n")
    card = advisor.load_model(path)
    learned = advisor.learn(
        {
            "brokers": 12,
            "years": 3,
            "events": {"broker.power": 4, "cluster.crash": [{"minutes": 40}]},
        },
        prior="three_az_cloud",
    )
    assert card.quantities == learned.model.quantities
    assert main(["cards", str(path)]) == 0
    assert main(line) == 0


@pytest.mark.parametrize(
    "command",
    [["evaluate"], ["audit", "--no-how-sure"], ["recommend", "--no-how-sure", "--explain"]],
)
def test_commands_say_that_a_card_was_learned(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a line, with the card that it was before; nothing of one that was not."""
    path, (verb, *options) = tmp_path / "my_card.toml", command
    assert main([*FRAME, "--count", "broker.power=4", "--output", str(path)]) == 0
    for card, said in ((str(path), 1), ("three_az_cloud", 0)):
        capsys.readouterr()
        assert main([verb, str(SIX), "--model", card, *options]) in (0, 1)
        printed = " ".join(capsys.readouterr().out.split())
        sentence = "Card my_card: three_az_cloud with what this cluster has seen."
        assert printed.count(sentence) == said


def test_the_screen_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    """At most 25 lines of 100 columns, whatever was counted; --explain has every number."""
    line = [*FRAME, "--racks", "3", *counts(MECHANISMS)]
    assert main(line) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 100
    assert main([*line, "--explain"]) == 0
    said = capsys.readouterr().out
    assert all(mechanism.partition("=")[0] in said for mechanism in MECHANISMS)


def test_a_described_cluster_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    """Its topics, with its brokers and racks as the exposure."""
    racks = str(SIX.with_suffix(".racks.toml"))
    line = [*PRIOR, "--cluster", str(SIX), "--racks", racks, "--years", "2"]
    assert main([*line, *counts(["broker.power=1", "rack.power=0"])]) == 0
    said = capsys.readouterr().out
    assert "payments" in said
    assert "No cluster was given" not in said
    assert len(said.splitlines()) <= MOST_LINES
    assert main([*line, *counts(["broker.power=1", "rack.power=0"]), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["broker_years"] or row["rack_years"] for row in data["counts"]] == [12.0, 6.0]


def test_files_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts as TOML, and incidents with the zeros beside them as options."""
    path = tmp_path / "counts.toml"
    path.write_text('brokers = 12\nyears = 3\n[events]\n"broker.power" = 4\n')
    assert main([*PRIOR, str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"][0]["events"] == 4
    incidents = tmp_path / "incidents.csv"
    incidents.write_text("start,end,what\n2025-03-01 10:00,2025-03-01 10:40,broker.power\n")
    window = ["--brokers", "12", "--since", "2025-01-01", "--until", "2026-01-01"]
    zero = counts(["broker.gray=0"])
    assert main([*PRIOR, str(incidents), *window, *zero, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["mechanism"]: row["events"] for row in data["counts"]} == {
        "broker.gray": 0,
        "broker.power": 1,
    }
    assert data["outages"][0]["start"] == "2025-03-01T10:00:00+00:00"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*FRAME, "--count", "broker.pwer=4"], "did you mean broker.power"),
        ([*FRAME, "--count", "broker.power"], "write it like"),
        ([*FRAME, "--count", "broker.power=x"], "is no number"),
        ([*FRAME, "--count", "broker.power=1.5"], "whole number"),
        ([*FRAME, "--count", "broker.power=-1"], "from 0 on"),
        ([*FRAME, "--count", "broker.power=nan"], "from 0 on"),
        ([*FRAME, *counts(["broker.power=1", "broker.power=1"])], "twice"),
        ([*FRAME, "--count", "rack.power=0"], "how many racks"),
        ([*FRAME, *counts(["broker.power=1"]), "--minutes", "broker.crash=1"], "how many events"),
        ([*FRAME, *counts(["broker.power=1"]), "--minutes", "broker.power=1,2"], "more lengths"),
        ([*PRIOR, "--brokers", "12", "--count", "broker.power=4"], "--years 3"),
        ([*PRIOR, "--years", "3", "--count", "broker.power=4"], "--brokers 12"),
        ([*PRIOR, "--brokers", "12", "--years", "nan", "--count", "broker.power=4"], "finite"),
        (PRIOR, "nothing to learn from"),
        ([*PRIOR, "no-such.toml"], "cannot be read"),
        ([*PRIOR, "counts.toml", "--brokers", "12"], "only CSV and metrics take"),
        (["learn", "--prior", "no_such", *FRAME[3:], "--count", "broker.power=4"], "no_such"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong and what to do, exit code 2, and no card written."""
    path = tmp_path / "card.toml"
    assert main([*words, "--output", str(path)]) == 2
    assert said in one_sentence(capsys)
    assert not path.exists()


def test_another_file_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is no learned card is refused before anything is computed."""
    path = tmp_path / "card.toml"
    path.write_text("mine = 1\n")
    assert main([*FRAME, "--count", "broker.power=4", "--output", str(path)]) == 2
    assert "not overwritten" in one_sentence(capsys)
    assert path.read_text() == "mine = 1\n"


def test_samples_go_to_a_folder_of_data_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read once; Spark is for Parquet, and says so."""
    path = write(tmp_path / "files" / "a.parquet", samples_of(quiet()))
    line = [*PRIOR, str(path.parent), "--work", str(tmp_path / "work")]
    assert main(line) == 0
    first = capsys.readouterr().out
    assert "3 brokers" in first
    before = contents(tmp_path / "work")
    assert {name.partition("/")[0] for name in before} == {
        *("runs", "rejects", "transitions", "counts", "fits")
    }
    assert main(line) == 0
    assert capsys.readouterr().out == first
    assert contents(tmp_path / "work") == before
    assert main([*FRAME, *counts(["broker.power=4"]), "--spark"]) != 0
    assert "Parquet" in one_sentence(capsys)


def test_counts_go_with_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options count what metrics do not say, in the same cluster and time; a file of counts not."""
    write(tmp_path / "metrics" / "a.parquet", samples_of(quiet()))
    line = [*PRIOR, str(tmp_path / "metrics"), "--count", "broker.destroyed=1"]
    assert main([*line, "--explain"]) == 0
    said = capsys.readouterr().out
    assert "1 in " in next(row for row in said.splitlines() if "broker.destroyed.per_year" in row)
    file = tmp_path / "counts.toml"
    file.write_text("brokers = 3\nyears = 1\n[events]\n'broker.crash' = 1\n")
    assert main([*PRIOR, str(file), "--count", "broker.destroyed=1"]) == 2
    assert "only CSV and metrics take the options" in one_sentence(capsys)
