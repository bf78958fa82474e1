"""The list of questions names findings, headings, files and columns that exist."""

import json
import re
from pathlib import Path

import pytest

import advisor
from advisor.advice.findings.catalogue import _RULES
from advisor.advice.migration.plan import make_plan
from advisor.catalog import data_path

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = re.split(
    r"^## ", (ROOT / "QUESTIONS.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)[1:]
NOTEBOOKS = {path.stem: path for path in (ROOT / "notebooks").glob("*.ipynb")}


def headings(path: Path) -> str:
    """All markdown of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def files() -> set[str]:
    """Every file that a plan for the sample cluster has, or one for two zones."""
    sample = data_path("clusters/three-az-six-brokers.txt")
    cluster = advisor.load_cluster(sample, racks=sample.with_suffix(".racks.toml"))
    found = advisor.recommend(cluster, "three_az_cloud", allow_lower_durability=True).files()
    both = advisor.Config(replication_factor=2, min_insync_replicas=2)
    two = advisor.Cluster.uniform(brokers=2, racks=2)
    return {*found, *make_plan(two, both, advisor.Workload()).files}


def test_there_are_26() -> None:
    """Every question of the list, in order, with an answer and what to do."""
    heads = [section.split("\n")[0] for section in SECTIONS]
    assert [head.split(".")[0] for head in heads] == [str(number) for number in range(1, 27)]
    for section in SECTIONS:
        _, _, answer, *_ = section.split("\n")
        assert answer.strip("- ") == answer != "", section
        assert section.count("\n- To do it: ") == 1, section


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split(".")[0])
def test_what_a_section_names_exists(section: str, files: set[str]) -> None:
    """Findings are in the catalogue, quoted headings in the notebook, files in the plan."""
    text = " ".join(section.split())
    assert set(re.findall(r"KRA\d+", text)) <= {rule.code for rule in _RULES}
    named = re.findall(r"`(0\d_\w+)`", text)
    assert set(named) <= set(NOTEBOOKS)
    for heading in re.findall(r"`0\d_\w+`, \"([^\"]+)\"", text):
        assert any(f"## {heading}" in headings(NOTEBOOKS[name]) for name in named), heading
    written = re.findall(
        r"`([\w-]+\.(?:sh|properties|yaml|py|go|json))`", text.split("- To do it: ")[1]
    )
    assert set(written) <= files
