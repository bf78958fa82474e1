"""The wheel works outside the checkout, and with the base dependencies alone."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(sysconfig.get_path("purelib"))
SAMPLE = ROOT / "data" / "clusters" / "three-az-six-brokers.txt"
EVALUATE = """
import advisor
model = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}})
cluster = advisor.Cluster.uniform(brokers=3, racks=3)
config = advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all")
print(advisor.evaluate(cluster, config, model, advisor.Workload()).mean_years_to_loss)
"""
SAMPLE_ON_SPARK = """
import advisor
model = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}})
cluster = advisor.Cluster.uniform(brokers=2, racks=None)
config = advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all")
try:
    advisor.simulate(cluster, config, model, advisor.Workload(), years=10, seed=1)
except advisor.AdvisorError as error:
    print(error)
"""


def project() -> dict[str, object]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert isinstance(table, dict)
    return table


def base_requirements() -> list[Requirement]:
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    return [Requirement(line) for line in dependencies]


def closure(requirements: list[Requirement]) -> Iterator[importlib.metadata.Distribution]:
    """Yield the installed distributions that these requirements need, each once."""
    seen: set[str] = set()
    queue = list(requirements)
    while queue:
        requirement = queue.pop()
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if not applies or requirement.name.lower() in seen:
            continue
        seen.add(requirement.name.lower())
        found = importlib.metadata.distribution(requirement.name)
        queue += [Requirement(line) for line in found.requires or []]
        yield found


def top_level(found: importlib.metadata.Distribution) -> set[str]:
    """Return the names that a distribution puts directly into site-packages."""
    names = {path.parts[0] for path in found.files or []}
    return {name for name in names if name not in {"..", "__pycache__"} and (SITE / name).exists()}


class Environment:
    """A fresh virtual environment that holds the wheel and nothing of the checkout."""

    def __init__(self, home: Path, wheel: Path) -> None:
        venv.create(home, with_pip=False, symlinks=True)
        self.python = home / "bin" / "python"
        self.site = next(home.glob("lib/python*/site-packages"))
        self.home = home
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet"]
        options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*pip, *options, wheel], check=True)

    def run(self, *command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        env = {name: value for name, value in os.environ.items() if name not in hidden}
        line = [str(self.home / "bin" / str(command[0])), *map(str, command[1:])]
        return subprocess.run(line, cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the installed build backend, so that nothing is fetched."""
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the wheel where every dependency and extra can be imported."""
    environment = Environment(tmp_path_factory.mktemp("full") / "venv", wheel)
    # Directories named in a .pth file come last, and .pth files inside them (the one of an
    # editable install among them) are not read.
    (environment.site / "dependencies.pth").write_text(f"{SITE}\n")
    return environment


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the wheel with the base dependencies only."""
    environment = Environment(tmp_path_factory.mktemp("base") / "venv", wheel)
    for found in closure(base_requirements()):
        for name in top_level(found):
            (environment.site / name).symlink_to(SITE / name)
    return environment


@pytest.fixture
def describe(tmp_path: Path) -> Path:
    """Copy a describe output to a folder outside the checkout."""
    return Path(shutil.copy(SAMPLE, tmp_path / "describe.txt"))


def test_wheel_ships_models_and_data(wheel: Path) -> None:
    """Every card and data file of the source tree is in the wheel, byte for byte."""
    with zipfile.ZipFile(wheel) as archive:
        for folder in ("models", "data"):
            files = [path for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
            assert files
            for path in files:
                name = f"advisor/_shipped/{path.relative_to(ROOT).as_posix()}"
                assert archive.read(name) == path.read_bytes()


def test_wheel_ships_nothing_else(wheel: Path) -> None:
    """The wheel holds the package and its own metadata: no tests, no notebooks."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"advisor"}


@pytest.mark.parametrize("kind", ["full", "base"])
def test_the_installed_package_is_the_one_imported(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """In both environments the package comes from the wheel, not from the checkout."""
    environment: Environment = request.getfixturevalue(kind)
    done = environment.run("python", "-c", "import advisor; print(advisor.__file__)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(environment.site)


@pytest.mark.parametrize("kind", ["full", "base"])
def test_recommend_runs_outside_the_checkout(
    kind: str, request: pytest.FixtureRequest, describe: Path
) -> None:
    """`advisor recommend` reads a describe output and uses a card from the wheel."""
    environment: Environment = request.getfixturevalue(kind)
    command = ["advisor", "recommend", describe, "--model", "three_az_cloud", "--commands"]
    done = environment.run(*command, cwd=describe.parent)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "min.insync.replicas" in done.stdout
    assert list(describe.parent.iterdir()) == [describe]


@pytest.mark.parametrize(
    "module", ["pyspark", "pandas", "pyarrow", "matplotlib", "ipywidgets", "IPython", "kafka"]
)
def test_base_has_no_extras(base: Environment, tmp_path: Path, module: str) -> None:
    """Packages of extras cannot be imported in the base environment."""
    done = base.run("python", "-c", f"import {module}", cwd=tmp_path)
    assert "ModuleNotFoundError" in done.stderr


def test_base_has_its_dependencies(base: Environment, tmp_path: Path) -> None:
    """Every base dependency can be imported in the base environment, compiled parts included."""
    code = "import click, numba, numpy, scipy.linalg, yaml; print(numba.njit(lambda: 1)())"
    done = base.run("python", "-c", code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_base_evaluates(base: Environment, tmp_path: Path) -> None:
    """The exact answer needs the base dependencies only, and is right."""
    done = base.run("python", "-c", EVALUATE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1563544660.14 / 8760, rel=1e-9)


def test_base_says_what_spark_needs(base: Environment, tmp_path: Path) -> None:
    """Sampling on Spark without Spark says in one sentence which extra to install."""
    done = base.run("python", "-c", SAMPLE_ON_SPARK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "pip install 'kafka-replication-advisor[spark]'" in done.stdout


def test_every_dependency_is_pinned_without_an_address() -> None:
    """The lock pins one version of each dependency, and names no place to get it from."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [re.fullmatch(r"([a-z0-9._-]+)==([0-9][a-z0-9.]*)( ; [^@]+)?", line) for line in lines]
    assert [line for line, match in zip(lines, pinned, strict=True) if match is None] == []
    versions = {match[1]: match[2] for match in pinned if match is not None}
    assert len(versions) == len(lines)
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    wanted = base_requirements() + [
        Requirement(line) for extra in extras.values() for line in extra
    ]
    for requirement in wanted:
        name = requirement.name.lower().replace("_", "-")
        if name == project()["name"]:
            continue
        assert requirement.specifier.contains(versions[name]), name
