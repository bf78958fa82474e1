"""`advisor audit` of a published describe output."""

import pytest

from advisor.__main__ import main
from advisor.catalog import data_dir

SAMPLE = data_dir() / "clusters" / "testp3-1-created.txt"


def test_published_outputs_are_audited(capsys: pytest.CaptureFixture[str]) -> None:
    """A describe output of 2017 is audited; its version is inferred from the columns."""
    strict = ["--loss-probability-per-year", "1e-9"]
    assert main(["audit", str(SAMPLE), "--model", "single_rack", *strict, "--explain"]) == 1
    assert "taken as 2.3" in capsys.readouterr().out
