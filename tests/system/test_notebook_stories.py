"""Notebook 02: questions with pictures that work in any page, and asserts out of the way."""

import re
from pathlib import Path

import nbformat
import pytest

PATH = Path(__file__).resolve().parents[2] / "notebooks" / "02_how_replication_works.ipynb"
# What the texts that the project began with tell, and the words by which each case is found.
CASES = {
    "assignment formulas": "(i + j) mod n",
    "pull and high watermark": "the followers pull it",
    "lag by messages": "replica.lag.max.messages",
    "truncation to the high watermark": "Kafka 0.10.2: broker 3 truncates",
    "truncation by epochs": "Kafka 0.11: broker 3 asks",
    "logs that differ": "two logs, A B and A C",
    "waiting for the ISR": "Wait: no leader until",
    "unclean election": "Unclean election: broker 2 leads",
    "describe transcripts": "Five partitions on three brokers",
    "replicas of an ISR and a majority": "a majority 2f + 1",
    "their latencies": "waits for the slowest member",
    "reads from followers": "KIP-392",
    "order of requests in flight": "max_in_flight_requests_per_connection",
    "load of a dead broker": "leaders_by_broker",
    "paths": "all_write_paths",
    "watches": "every follower watches",
    "batches and queues": "queue_load",
    "locks": "herd_size",
    "flush.messages": "flush.messages=1",
}


@pytest.fixture(scope="module")
def notebook() -> nbformat.NotebookNode:
    return nbformat.read(PATH, as_version=4)


def pages(notebook: nbformat.NotebookNode) -> list[str]:
    """The HTML outputs."""
    return [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_told(notebook: nbformat.NotebookNode, case: str) -> None:
    """Each case stands in the notebook, in prose, code or a title."""
    sources = " ".join(" ".join(cell.source for cell in notebook.cells).split())
    assert CASES[case] in sources


def test_every_heading_asks_and_its_text_answers_first(notebook: nbformat.NotebookNode) -> None:
    """Below each question comes the answer in bold, then a picture."""
    cells = notebook.cells
    asked = [place for place, cell in enumerate(cells) if cell.source.startswith("## ")]
    assert len(asked) >= 15
    for place in asked:
        heading, _, answer = cells[place].source.partition("\n\n")
        assert heading.endswith("?")
        assert answer.startswith("**")
        assert len(answer.split()) <= 75
        assert "<svg" in cells[place + 1].outputs[0]["data"]["text/html"]


def test_every_picture_has_words(notebook: nbformat.NotebookNode) -> None:
    """Each drawing is an image with a description; no page asks an address, no widget a kernel."""
    shown = pages(notebook)
    drawings = [tag for page in shown for tag in re.findall(r"<svg[^>]*>", page)]
    assert len(drawings) > 100
    assert all(re.search(r'role="img" aria-label="[^"]{20,}"', tag) for tag in drawings)
    assert not any(re.search(r"https?://|src=|@import", page) for page in shown)
    mimes = {m for c in notebook.cells for o in c.get("outputs", []) for m in o.get("data", {})}
    assert mimes == {"text/html", "text/plain"}
