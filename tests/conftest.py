"""What all tests share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("MPLBACKEND", "Agg")

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("advisor", settings(), deadline=None)
settings.load_profile("advisor")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """The Spark session of the test process, started by the first test that asks for it."""
    from advisor.pipeline.session import spark_session

    return spark_session("local[2,4]")
