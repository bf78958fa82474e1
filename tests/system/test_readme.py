"""What the README shows is what the user gets."""

import re
from pathlib import Path

from advisor import load_cluster, load_model, recommend
from advisor.cli.text import reported

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "clusters" / "three-az-six-brokers"


def test_the_first_answer_is_the_one_shown() -> None:
    """`make report` prints the README's block, numbers included, to its last line."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"`make report` prints:\n\n```\n(.*?)```", readme, flags=re.DOTALL)
    assert found is not None
    cluster = load_cluster(SAMPLE.with_suffix(".txt"), racks=SAMPLE.with_suffix(".racks.toml"))
    model = load_model("three_az_cloud")
    answer = recommend(cluster, model)
    assert found[1].strip() == reported(answer, answer.verdict, "out/report.html").text
