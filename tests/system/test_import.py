"""What ``import advisor`` loads, and which names it offers."""

import json
import subprocess
import sys

import pytest

import advisor

HEAVY = ["pyspark", "py4j", "matplotlib", "ipywidgets", "IPython", "pandas", "pyarrow", "numba"]
HEAVY += ["scipy", "kafka"]
NAMES = ["AdvisorError", "Cluster", "Config", "FailureModel", "Goals", "Workload", "assign"]
NAMES += ["audit", "evaluate", "load_cluster", "load_model", "recommend", "simulate"]


def modules_after(statement: str) -> set[str]:
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_loads_nothing_heavy() -> None:
    """Importing the package loads none of the large libraries."""
    assert not modules_after("import advisor") & set(HEAVY)


def test_heavy_modules_would_be_noticed() -> None:
    """The check above sees a library that is loaded."""
    assert "scipy" in modules_after("import advisor, scipy")


@pytest.mark.parametrize("name", NAMES)
def test_public_name(name: str) -> None:
    """Every public name exists and is listed."""
    assert hasattr(advisor, name)
    assert name in advisor.__all__


def test_all_names_exist() -> None:
    """Every listed name can be imported."""
    assert all(getattr(advisor, name) is not None for name in advisor.__all__)
