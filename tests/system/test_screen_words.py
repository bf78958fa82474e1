"""Every word that a user can see: verdicts of 25 words, operators' terms, numbers to believe."""

import ast
import html
import itertools
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import advisor
from advisor.__main__ import main
from advisor.catalog import evidence, model_names
from advisor.cli.commands import advisor as command_line
from advisor.formatting import RAREST_YEARS
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled
from package_graph import MODULES, module_name
from wrong_words import wrong_words

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = ROOT / "data" / "clusters"
MOST_WORDS = 25


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that are not docstrings, f-strings with "0" for values."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "0" for p in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name_only = node.value.isidentifier() and node.value.isupper()
            if not name_only and id(node) not in docstrings | inside:
                yield node.lineno, node.value


def visible(page: str) -> str:
    """Return the text of a page: no tags, scripts or styles; attributes that are read out."""
    spoken = re.findall(r'(?:aria-label|title|alt|placeholder)="([^"]*)"', page)
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(" ".join([re.sub(r"<[^>]+>", " ", bare), *spoken]))


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_no_string_of_the_package_has_them(path: Path) -> None:
    """Messages, errors, findings, labels and help, whatever path of the code prints them."""
    found = [
        (line, words) for line, text in strings(path.read_text()) for words in wrong_words(text)
    ]
    assert found == []


def test_commands_describe_themselves_without_them() -> None:
    """`--help` of the group and of each command, docstrings included."""
    from click.testing import CliRunner

    for line in ([], *([name] for name in command_line.commands)):
        shown = CliRunner().invoke(command_line, [*line, "--help"])
        assert shown.exit_code == 0
        assert wrong_words(shown.output) == []


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "advisor" / "present").rglob("*.jinja"))
    + sorted((ROOT / "advisor" / "present").rglob("*.js")),
    ids=lambda path: path.name,
)
def test_templates_and_scripts_are_free_of_them(path: Path) -> None:
    """The report's fixed text and what scripts write into a page."""
    assert wrong_words(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name
)
def test_notebooks_are_free_of_them(path: Path) -> None:
    """Markdown and stored outputs, as text or as a page."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        texts = ["".join(cell["source"])] if cell["cell_type"] == "markdown" else []
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            texts += ["".join(output.get("text", ())), "".join(data.get("text/plain", ()))]
            texts.append(visible("".join(data.get("text/html", ()))))
        found += [words for text in texts for words in wrong_words(text)]
    assert found == []


SIX = CLUSTERS / "three-az-six-brokers.txt"
FOUR = CLUSTERS / "two-az-four-brokers.txt"


def line_of(path: Path, card: str) -> list[str]:
    racks = path.with_suffix(".racks.toml")
    return [str(path), *(["--racks", str(racks)] if racks.exists() else []), "--model", card]


COMMANDS = {
    "evaluate": ["evaluate", *line_of(SIX, "three_az_cloud")],
    "evaluate acks=0": ["evaluate", *line_of(SIX, "three_az_cloud"), "--acks", "0"],
    "evaluate one replica": ["evaluate", *line_of(FOUR, "two_az"), "--rf", "1", "--min-isr", "1"],
    "evaluate never": [
        *("evaluate", *line_of(SIX, "single_rack"), "--kafka-version", "3.6"),
        *("--rf", "2", "--min-isr", "3"),
    ],
    "evaluate metal": ["evaluate", *line_of(CLUSTERS / "bare-metal-3.9.toml", "bare_metal_racks")],
    "simulate": [
        *("simulate", *line_of(SIX, "three_az_cloud")),
        *("--years", "200", "--engine", "local"),
    ],
    "audit": ["audit", *line_of(SIX, "three_az_cloud")],
    "audit four": ["audit", *line_of(FOUR, "two_az"), "--acks", "1"],
    "audit broken": ["audit", *line_of(CLUSTERS / "testp3-3-broker-1-killed.txt", "single_rack")],
    "recommend": ["recommend", *line_of(FOUR, "two_az")],
    "cards": ["cards"],
    "a card": ["cards", "single_rack"],
    "explore": ["explore", "--faults", "1"],
    "play": ["play", str(ROOT / "tests" / "scenarios" / "l07-last-replica-standing.txt")],
    "error": ["evaluate", str(ROOT / "missing.txt"), "--model", "three_az_cloud"],
    "error of a card": ["evaluate", str(SIX), "--model", "three_az_clod"],
}


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_command_line_is_free_of_them(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Output of every command on shipped clusters and cards, and errors."""
    main(line)
    shown = capsys.readouterr()
    assert shown.out + shown.err
    assert wrong_words(shown.out + shown.err) == []
    if line[0] in ("evaluate", "simulate") and shown.out:
        said = shown.out.splitlines()
        check_words(next(text for text in said if text.startswith("RF ")))


@pytest.mark.slow
def test_the_report_is_free_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its visible text, the data of its script, and what the command prints."""
    path = tmp_path / "report.html"
    assert main(["report", *line_of(FOUR, "two_az"), "--output", str(path)]) == 0
    assert wrong_words(capsys.readouterr().out) == []
    page = path.read_text(encoding="utf-8")
    assert wrong_words(visible(page)) == []
    # The card and its sources quote numbers as they were published.
    assert re.findall(r".{30}\de-\d", visible(page).partition("The card: ")[0]) == []
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        texts = (text for text in re.findall(r'"((?:[^"\\]|\\.)*)"', data))
        assert [words for text in texts for words in wrong_words(text)] == []


SETTINGS = [
    {"replication_factor": rf, "min_insync_replicas": least, "acks": acks}
    for rf in (1, 2, 3)
    for least in range(1, rf + 1)
    for acks in ("all", 1, 0)
    if acks == "all" or least == 1
]
NEVER = advisor.Config(kafka_version="3.6", replication_factor=2, min_insync_replicas=3, acks="all")
LOAD = advisor.Workload(partitions=6)


@cache
def cards() -> dict[str, advisor.FailureModel]:
    """The shipped cards, and cards without ranges and without what is beyond settings."""
    shipped = {name: advisor.load_model(name) for name in model_names()}
    own = {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    rare = {"broker": {"crash": {"per_year": 1e-9, "minutes": 1.0}}}
    custom = {"one cause": own, "hardly a cause": rare}
    return shipped | {k: advisor.FailureModel.from_dict(v) for k, v in custom.items()}


def check_words(said: str) -> None:
    """Hold a summary."""
    assert len(said.split()) <= MOST_WORDS, said
    assert said.endswith(".")
    assert re.match("RF [0-9] with ", said), said
    assert wrong_words(said) == []


@pytest.mark.parametrize("card", [*model_names(), "one cause", "hardly a cause"])
def test_every_summary_has_25_words(card: str) -> None:
    """All settings: data loss, time without writes, the main cause."""
    cluster = advisor.Cluster.uniform(
        3, {"two_az": 2, "single_rack": 1, "one cause": None}.get(card, 3)
    )
    for config in (*(advisor.Config(kafka_version="4.1", **each) for each in SETTINGS), NEVER):
        result = advisor.evaluate(cluster, config, cards()[card], LOAD)
        said = result.summary
        check_words(said)
        if config is NEVER:
            assert "refuses every write" in said
            continue
        assert re.search("data loss|nothing acknowledged", said)
        assert re.search("writes (never )?refused", said)
        if result.write_unavailability and " modelled" not in said:
            assert re.search(r"\((main cause: )?[a-z -]+\)", said)


@pytest.mark.slow
@pytest.mark.parametrize("acks", ["all", 1, 0])
@pytest.mark.parametrize("years", [1, 400])
def test_every_summary_of_a_sample_has_25_words(acks: str | int, years: int) -> None:
    """Few years that saw nothing, and many."""
    for card, factor in itertools.product(("single_rack", "hardly a cause"), (1, 3)):
        config = advisor.Config(replication_factor=factor, min_insync_replicas=1, acks=acks)
        cluster = advisor.Cluster.uniform(3, 1)
        found: Sampled = advisor.simulate(
            cluster, config, cards()[card], LOAD, years=years, engine="local"
        )
        check_words(found.summary)
        assert repr(found).splitlines()[0] == found.summary


@cache
def result_of(card: str, least: int = 2) -> Reliability:
    config = advisor.Config(replication_factor=3, min_insync_replicas=least, acks="all")
    return advisor.evaluate(advisor.Cluster.uniform(6, 3), config, cards()[card], LOAD)


def test_common_losses_keep_their_number() -> None:
    """The summary gives years and the main cause of loss."""
    assert re.match(
        r"RF 3 with min ISR 1: data loss once in \d+ years \(main cause: half-dead brokers\), ",
        result_of("three_az_cloud", 1).summary,
    )


def test_the_threshold_is_that_of_the_evidence() -> None:
    """The low end of how often people and automation wipe brokers, with its source."""
    assert pytest.approx(1.0 / evidence()["cluster-wiped"].low) == RAREST_YEARS


def test_every_result_names_its_card() -> None:
    """Two lines with numbers, and where they come from."""
    for card in model_names():
        lines = repr(result_of(card)).splitlines()
        numbers = [line for line in lines if re.match("Data loss|Refused writes", line)]
        assert len(numbers) == 2
        assert any(line.startswith(f"Source: failure-model card {card},") for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "Nobody knows.",
        "Producers give up 3 records",
        "once in 550 million years",
        "once in 12,000 years",
        "once in 35 to 3,100 years",
        "which is worked\n out",
        "1.5 billion years",
    ],
)
def test_a_wrong_word_is_found(text: str) -> None:
    """Whatever its case and its line breaks."""
    assert len(wrong_words(text)) == 1


@pytest.mark.parametrize(
    "text", ["once in 480 years", "rarer than once in 2,000 years", "5.7 million records a year"]
)
def test_ordinary_words_pass(text: str) -> None:
    """Numbers that can be believed, and other millions."""
    assert wrong_words(text) == []


def test_strings_are_found_and_docstrings_left_out() -> None:
    """Constants and f-strings of a module; comments and docstrings are no screen."""
    source = (
        '"""Nobody."""\n\ndef f(x):\n    """Seldom."""\n    return f"no{x}body " + "worked out"\n'
    )
    assert sorted(text for _, text in strings(source)) == ["no0body ", "worked out"]


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "models").glob("*.toml")), ROOT / "data" / "failure_rates.csv"],
    ids=lambda path: path.name,
)
def test_cards_and_their_evidence_are_free_of_them(path: Path) -> None:
    """The report and `advisor cards` show their titles and notes."""
    assert wrong_words(path.read_text(encoding="utf-8")) == []
