"""`advisor audit`: of a published describe output, and how much it prints."""

from pathlib import Path

import pytest

from advisor.__main__ import main
from advisor.catalog import data_dir
from command_line import CARD, PLANNED, TOPIC

SAMPLE = data_dir() / "clusters" / "testp3-1-created.txt"


def test_published_outputs_are_audited(capsys: pytest.CaptureFixture[str]) -> None:
    """A describe output of 2017 is audited; its version is inferred from the columns."""
    strict = ["--loss-probability-per-year", "1e-9"]
    assert main(["audit", str(SAMPLE), "--model", "single_rack", *strict, "--explain"]) == 1
    assert "taken as 2.3" in capsys.readouterr().out


RACKS = "1=a,2=b,3=c,4=a,5=b,6=c"
MOST_WORDS, MOST_LINES = 150, 25


def described(number: int, dead: int | None) -> str:
    """Describe topics with min ISR 1, 3 and 2 by turns; a dead broker is in no ISR."""
    text = ""
    for place in range(number):
        name, least = f"topic-{place}", (1, 3, 2)[place % 3]
        text += TOPIC.format(n=6, rf=3, m=least).replace("Topic: t", f"Topic: {name}")
        for partition in range(6):
            held = [(partition + step) % 6 + 1 for step in range(3)]
            isr = [broker for broker in held if broker != dead]
            text += (
                f"\tTopic: {name}\tPartition: {partition}\tLeader: {isr[0]}\t"
                f"Replicas: {','.join(map(str, held))}\tIsr: {','.join(map(str, isr))}\n"
            )
    return text


@pytest.mark.parametrize("dead", [None, 2])
@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_little_is_printed(
    number: int, dead: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One to three topics in 150 words and six in 25 lines, by both commands."""
    file, card = tmp_path / "describe.txt", tmp_path / "card.toml"
    file.write_text(described(number, dead))
    card.write_text(CARD + PLANNED)
    for command in ("audit", "recommend"):
        assert main([command, str(file), "--racks", RACKS, "--model", str(card)]) in (0, 1)
        shown = capsys.readouterr().out
        assert ("roken now" in shown) == (dead is not None and number > 1), shown
        assert number > 3 or len(shown.split()) <= MOST_WORDS, shown
        assert len(shown.rstrip("\n").split("\n")) <= MOST_LINES, shown
