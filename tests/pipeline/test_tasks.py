"""Tasks on Spark give what they give here."""

from pathlib import Path

import numpy as np
import pytest

from advisor.engines import engine_of, run_here
from advisor.errors import AdvisorError
from advisor.learning.stages import read_in_stages
from advisor.pipeline.tasks import run_on_spark
from advisor.protocol.rules.versions import parse_version
from stored_samples import BROKERS, contents, quiet, restart, samples_of, write


@pytest.mark.usefixtures("spark")
def test_stages_on_spark_give_the_same_bytes(tmp_path: Path) -> None:
    """All data sets and histories, of two clusters in three files."""
    rows = quiet()
    restart(rows, BROKERS[1], 40, 48)
    for row in rows.values():
        row[130:150] = np.nan
    samples = samples_of(rows)
    folder = tmp_path / "files"
    write(folder / "cluster=a" / "1.parquet", samples[:1000])
    write(folder / "cluster=a" / "2.parquet", samples[1000:], "map")
    write(folder / "cluster=b" / "1.parquet", samples)
    here = read_in_stages([folder], str(tmp_path / "here"), run_here)
    on_spark = read_in_stages([folder], str(tmp_path / "spark"), engine_of("spark"))
    assert here == on_spark
    assert contents(tmp_path / "here") == contents(tmp_path / "spark")


@pytest.mark.usefixtures("spark")
def test_results_come_in_order_and_errors_in_a_sentence() -> None:
    """Whatever order tasks end in; nothing to do is nothing."""
    assert run_on_spark(abs, [3, -2, 1]) == [3, 2, 1]
    assert run_on_spark(abs, []) == []
    # A worker imports what it runs, and knows no module of the tests.
    with pytest.raises(AdvisorError, match=r"x\.1"):
        run_on_spark(parse_version, ["x.1"])
