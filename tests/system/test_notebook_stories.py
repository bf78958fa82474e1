"""Notebooks 02 and 06: pictures that work in any page, and asserts out of the way."""

import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
LOST, WHY = "02_how_records_are_lost", "06_why_kafka_is_built_this_way"
# What the texts that the project began with tell: the notebook, and the words by which it is found.
CASES = {
    "assignment formulas": (WHY, "(i + j) mod n"),
    "pull and high watermark": (LOST, "the followers pull it"),
    "lag by messages": (LOST, "replica.lag.max.messages"),
    "truncation to the high watermark": (LOST, "Kafka 0.10.2: broker 3 truncates"),
    "truncation by epochs": (LOST, "Kafka 0.11: broker 3 asks"),
    "logs that differ": (LOST, "two logs, A B and A C"),
    "waiting for the ISR": (LOST, "Wait: no leader until"),
    "unclean election": (LOST, "Unclean election: broker 2 leads"),
    "describe transcripts": (LOST, "Five partitions on three brokers"),
    "replicas of an ISR and a majority": (WHY, "a majority 2f + 1"),
    "their latencies": (WHY, "waits for the slowest member"),
    "reads from followers": (WHY, "KIP-392"),
    "order of requests in flight": (WHY, "max_in_flight_requests_per_connection"),
    "load of a dead broker": (WHY, "leaders_by_broker"),
    "paths": (WHY, "all_write_paths"),
    "watches": (WHY, "every follower watches"),
    "batches and queues": (WHY, "queue_load"),
    "locks": (WHY, "herd_size"),
    "flush.messages": (LOST, "flush.messages=1"),
    "what an operator sees": (LOST, "`describe` shows a full ISR again"),
    "schemes under the same failures": (WHY, "compare_schemes("),
    "a partition's node": (WHY, "state_json("),
    "the controller": (WHY, "split_brain_ms("),
    "commits of consumers": (WHY, "enable.auto.commit"),
    "the specification": (WHY, "Kip320"),
}


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def pages(notebook: nbformat.NotebookNode) -> list[str]:
    """The HTML outputs."""
    return [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_told(case: str) -> None:
    """Each case stands in its notebook, in prose, code or a title."""
    name, words = CASES[case]
    assert words in " ".join(" ".join(cell.source for cell in read(name).cells).split())


@pytest.mark.parametrize("name", [LOST, WHY])
def test_every_heading_asks_and_its_text_answers_first(name: str) -> None:
    """Below each question comes the answer in bold, then a picture."""
    cells = read(name).cells
    asked = [place for place, cell in enumerate(cells) if "## " in cell.source]
    assert len(asked) >= 9
    for place in asked:
        heading, _, answer = cells[place].source.partition("## ")[2].partition("\n\n")
        assert heading.endswith("?")
        assert answer.startswith("**")
        assert len(answer.split()) <= 75
        assert "<svg" in cells[place + 1].outputs[0]["data"]["text/html"]


@pytest.mark.parametrize("name", [LOST, WHY])
def test_every_picture_has_words(name: str) -> None:
    """Each drawing is an image with a description; no page asks an address, no widget a kernel."""
    notebook = read(name)
    shown = pages(notebook)
    drawings = [tag for page in shown for tag in re.findall(r"<svg[^>]*>", page)]
    assert len(drawings) > 20
    assert all(re.search(r'role="img" aria-label="[^"]{20,}"', tag) for tag in drawings)
    assert not any(re.search(r"https?://|src=|@import", page) for page in shown)
    mimes = {m for c in notebook.cells for o in c.get("outputs", []) for m in o.get("data", {})}
    assert mimes == {"text/html", "text/plain"}
