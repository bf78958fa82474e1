"""Hostile text in every field that comes from outside, shown on every target.

What the readers refuse is refused with a sentence; what they take is harmless on a terminal, in
scripts that are run here, in YAML, properties, JSON, SARIF and other files, and on pages.
"""

import ast
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

import advisor
from advisor.__main__ import main
from advisor.advice.migration.tools import Tools
from advisor.cluster.live.client import TOPIC as OF_TOPIC
from advisor.cluster.live.client import Answers
from advisor.cluster.live.reader import cluster_from_answers
from advisor.errors import AdvisorError
from advisor.pipeline.sampled_grid import cluster_name
from advisor.present.report.page import render_report
from hostile_text import HOSTILE
from patience import PATIENCE_S
from saved_cluster import places, saved, write_tools

CARD = """
title = {text}
when_to_use = {text}
[broker.destroyed]
per_year = {{ value = 0.1, low = 0.05, high = 0.2, evidence = {own} }}
hours = {{ value = 12, low = 6, high = 24, evidence = {own} }}
"""
TAGS = {"img", "iframe", "object", "embed", "link", "base", "form"}


def toml(text: str) -> str:
    """Return a text as TOML writes it; JSON's escapes are TOML's, but for control characters."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def with_text(document: dict[str, Any], path: tuple[Any, ...], text: str, key: bool) -> Any:
    """Return a copy of a document with one value, or its key, replaced."""
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    if key:
        inner[text] = inner.pop(path[-1])
    else:
        inner[path[-1]] = text
    return copy


def taken_or_refused(read: Callable[..., Any], *given: Any) -> Any:
    """Return what is read; None if it is refused, with one printable line."""
    try:
        return read(*given)
    except AdvisorError as error:
        check_terminal(f"{error}")
        return None


@cache
def hostile_cluster(text: str) -> str:
    """Return a saved cluster with the text in every field whose reader takes it there.

    What is refused is refused with one printable line.
    """
    document, taken = saved(), 0
    document["topics"][0]["configs"] |= {"retention.ms": "1000", "cleanup.policy": "compact"}
    for path in list(places(document)):
        for key in (False, True):
            if key and not isinstance(path[-1], str):
                continue
            changed = with_text(document, path, text, key)
            described = taken_or_refused(advisor.load_cluster, json.dumps(changed) + "\n")
            # Other fields are found by their keys.
            if described is not None and not key:
                document, taken = changed, taken + 1
    assert taken >= 2  # source and notes take any
    return json.dumps(document) + "\n"


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE)
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def file_named(folder: Path, text: str, suffix: str, content: str) -> str:
    """Write a file with the hostile name, or as much of it as a file system takes."""
    name = re.sub(r"[\0/\n]", "", text)[:100] + suffix
    # Not an option of the command line, whose parser would take it for one.
    path = folder / f"f{name}"
    path.write_text(content)
    return str(path)


def check_terminal(shown: str) -> None:
    """No character that a terminal obeys but the line break, and no forged line."""
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert not [line for line in shown.splitlines() if line.strip().startswith(("FORGED", "touch"))]


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.handlers: list[str] = []
        self.scripts: list[str] = []
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self._inside = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts.append(data)


def check_page(page: str, plain: str) -> None:
    """The same elements as with harmless text, no handler, and nothing that turns text around."""
    drawn, expected = Page(page), Page(plain)
    for tag in ("script", "style", *TAGS):
        assert drawn.elements[tag] == expected.elements[tag], tag
    assert drawn.handlers == []
    assert not any("HIT()" in script and "</" in script for script in drawn.scripts)
    assert {char for char in page if not char.isprintable()} <= {"\n", "\t"}


def scripts_run(folder: Path, tools: Path) -> Iterator[str]:
    """Run every script of a plan in bash and in sh, with stand-ins for Kafka's tools."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    for script in sorted(folder.glob("*.sh")):
        for shell in ("bash", "sh"):
            arguments = ["lower"] if script.name == "rack-loss.sh" else []
            done = subprocess.run(
                [shell, script.name, *arguments],
                cwd=folder,
                env={"PATH": path, "RESTART": "true"},
                capture_output=True,
                timeout=PATIENCE_S,
                check=False,
            )
            assert done.returncode == 0, (script.name, done.stderr)
            yield script.name


def check_files(folder: Path) -> None:
    """Every file can be read back as what it is, and says what was meant."""
    for path in folder.iterdir():
        content = path.read_text()
        assert {char for char in content if not char.isprintable()} <= {"\n", "\t"}, path
        assert not re.search(r"^\s*(FORGED|touch)", content, re.MULTILINE), path
        if path.suffix == ".json":
            assert json.loads(content)["partitions"]
        elif path.suffix == ".yaml":
            for document in yaml.safe_load_all(content):
                assert set(document) <= {"apiVersion", "kind", "metadata", "spec", "spring"}
        elif path.suffix == ".py":
            ast.parse(content)
        elif path.suffix == ".properties":
            lines = [line for line in content.splitlines() if not line.startswith("#")]
            assert all(re.fullmatch(r"[a-z.]+=[\w.-]+", line) for line in lines), path


def test_a_recommendation_is_harmless_everywhere(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, as JSON, as files and as scripts that are run; the names of the files too."""
    cluster = file_named(tmp_path, text, ".json", hostile_cluster(text))
    own = toml(f"own: {text}")
    card = file_named(tmp_path, text, ".toml", CARD.format(text=toml(text), own=own))
    folder = tmp_path / "plan"
    command = ["recommend", cluster, "--model", card, "--allow-lower-durability"]
    command += ["--survive", "rack"]
    if not (text.isprintable() and len(text) < 1_000):
        # The name of a card is what a user types.
        said = main(command), capsys.readouterr().err
        check_terminal(said[1])
        card = str(tmp_path / "card.toml")
        Path(card).write_text(CARD.format(text=toml(text), own=own))
        command[3] = card
    assert main([*command, "--files", str(folder)]) == 0
    check_terminal(capsys.readouterr().out)
    assert {"commands.sh", "rolling-restart.sh", "reassign.json"} <= set(os.listdir(folder))
    check_files(folder)
    tools = write_tools(tmp_path / "tools")
    assert "rollback.sh" in list(scripts_run(folder, tools))
    assert not list(tmp_path.rglob("HIT"))
    assert main([*command, "--json"]) == 0
    printed = capsys.readouterr().out
    check_terminal(printed)
    assert json.loads(printed)["files"] == {p.name: p.read_text() for p in folder.iterdir()}


def test_an_audit_is_harmless_everywhere(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed and as SARIF, whose messages have no link and no argument."""
    cluster = file_named(tmp_path, text, ".json", hostile_cluster(text))
    card = tmp_path / "card.toml"
    card.write_text(CARD.format(text=toml(text), own=toml(f"own: {text}")))
    sarif = tmp_path / "findings.sarif"
    assert main(["audit", cluster, "--model", str(card), "--sarif", str(sarif)]) in (0, 1)
    said = capsys.readouterr()
    check_terminal(said.out)
    check_terminal(said.err)
    log = sarif.read_text()
    check_terminal(log)
    for result in json.loads(log)["runs"][0]["results"]:
        message = result["message"]["text"]
        assert message.isprintable()
        assert not re.search(r"(?<!\\)\]\(", message)
    assert main(["cards", str(card)]) == 0
    check_terminal(capsys.readouterr().out)


def test_results_in_python_are_harmless(text: str) -> None:
    """As text and as HTML, for a notebook: the cluster, the card, an audit, a recommendation."""
    plain, shown = views("harmless"), views(text)
    assert plain.keys() == shown.keys()
    for name, (words, page) in shown.items():
        check_terminal(words)
        check_page(page, plain[name][1])


@cache
def views(text: str) -> dict[str, tuple[str, str]]:
    """Return what a user of Python sees, by what it is of: as text, and as HTML."""
    cluster = advisor.load_cluster(hostile_cluster(text))
    number = {"value": 0.1, "evidence": f"own: {text}"}
    model = advisor.FailureModel.from_dict(
        {
            "title": text,
            "when_to_use": text,
            "broker": {"destroyed": {"per_year": number, "hours": 12}},
        },
        name=text,
    )
    load = advisor.Workload(partitions=1)
    advice = advisor.recommend(cluster, model, load, allow_lower_durability=True)
    audited = advisor.audit(cluster, model, load)
    exact = advisor.evaluate(cluster, advice.best.config, model, load)
    play = advisor.play(f"# {one_comment(text)}\ncluster brokers=1\ntopic t replicas=1\nlog 1 t-0")
    return {
        "cluster": (f"{cluster!r}\n{cluster_name(cluster)}", cluster._repr_html_()),
        "card": (repr(model), model._repr_html_()),
        "advice": (f"{advice!r}\n{advice}", advice._repr_html_()),
        "audit": (f"{audited!r}\n{audited.explain()}", audited._repr_html_()),
        "exact": (f"{exact!r}\n{exact.explain()}", exact._repr_html_()),
        "play": (repr(play), play._repr_html_()),
    }


def one_comment(text: str) -> str:
    """Return a text as a comment of a scenario, which ends with its line."""
    return " ".join(text.split())


def test_a_report_is_harmless() -> None:
    """Everything at once, on the page with its charts, tables, scripts and the explorer."""
    pages = []
    for text in ("harmless", " ".join(words for words in HOSTILE.values() if len(words) < 1_000)):
        cluster = advisor.load_cluster(hostile_cluster(text))
        number = {"value": 0.1, "evidence": f"own: {text}"}
        tables = {"title": text, "broker": {"destroyed": {"per_year": number, "hours": 12}}}
        model = advisor.FailureModel.from_dict(tables, name=text)
        load = advisor.Workload(partitions=1)
        advice = advisor.recommend(cluster, model, load, allow_lower_durability=True)
        pages.append(render_report(advice, advisor.audit(cluster, model, load)))
    plain, page = pages
    check_page(page, plain)
    assert "FORGED" in page


LIVE_ROW = {
    "partition_index": 0,
    "leader_id": 1,
    "replica_nodes": [1],
    "isr_nodes": [1],
}


def test_answers_of_a_live_cluster_are_harmless(
    text: str,
) -> None:
    """Racks, ids, versions, names and errors are refused, or made one harmless line."""
    orders = {"name": "orders", "error_code": 0, "partitions": [LIVE_ROW]}
    told: dict[str, Any] = {"topics": [orders], "racks": {1: "a"}, "versions": {1: "4.1"}}
    changes: list[dict[str, Any]] = [
        {"racks": {1: text}},
        {"cluster_id": text},
        {"features": {text: 1}},
        {"topics": [orders, {**orders, "name": text}]},
        {"topics": [orders, {"name": text, "error_code": 3, "partitions": []}]},
        {"settings_errors": {(OF_TOPIC, text): text}},
        {"missing": {text: text}},
    ]
    taken = 0
    for change in changes:
        answers = Answers(**{**told, **change})
        cluster = taken_or_refused(cluster_from_answers, answers, "kafka:9092")
        if cluster is not None:
            taken += 1
            check_terminal("\n".join((*cluster.notes, repr(cluster))))
    assert taken >= 3


def test_a_mistake_on_the_command_line_is_one_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of files, racks, options and commands in errors are harmless."""
    sample = ["--model", "three_az_cloud"]
    for command in (
        ["audit", text, *sample],
        ["audit", "x.txt", "--model", text],
        ["audit", "x.txt", "--racks", text, *sample],
        ["evaluate", "x.txt", "--kafka-version", text, *sample],
        ["play", text],
        [text],
    ):
        assert main(command) == 2
        said = capsys.readouterr()
        assert said.out == ""
        check_terminal(said.err)
        assert said.err.count("\n") == 1


def test_a_transcript_is_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Comments of a scenario are printed without what a terminal obeys; tabs stay."""
    for text in HOSTILE.values():
        scenario = tmp_path / "x.txt"
        scenario.write_text(f"# {one_comment(text)}\ncluster brokers=1\ntopic t replicas=1\n")
        main(["play", str(scenario)])
        said = capsys.readouterr()
        check_terminal(said.out.replace("\t", " "))


def test_a_name_that_looks_like_an_option_is_a_value() -> None:
    """A topic may be called --delete; no tool takes it for an option."""
    tools = Tools("4.1")
    lines = [tools.describe("--delete"), tools.create("--delete", 1, 1, {})]
    lines += [tools.alter_topic("-x", {"a": "b"}), Tools("0.8.2").unset_topic("--delete", "k")]
    for line in lines:
        assert re.search(r"--(topic|entity-name)='?-", line.text), line
