"""The catalog finds shipped files, in the source tree and in an installed wheel."""

from pathlib import Path

import pytest

from advisor import catalog
from advisor.errors import InputError, ModelError

ROOT = Path(__file__).resolve().parents[1]


def test_source_tree_keeps_models_and_data_beside_the_package():
    """In a checkout both directories are those of the repository."""
    assert catalog.models_dir() == ROOT / "models"
    assert catalog.data_dir() == ROOT / "data"


def test_installed_wheel_keeps_models_and_data_inside_the_package(tmp_path, monkeypatch):
    """`_shipped`, present in a wheel, takes precedence over a directory beside the package."""
    for name in ("models", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / "advisor" / "_shipped" / name).mkdir(parents=True)
    (tmp_path / "advisor" / "_shipped" / "models" / "mine.toml").touch()
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "advisor")
    assert catalog.models_dir() == tmp_path / "advisor" / "_shipped" / "models"
    assert catalog.data_dir() == tmp_path / "advisor" / "_shipped" / "data"
    assert catalog.model_names() == ("mine",)


def test_model_names_are_the_shipped_cards():
    """The names are the sorted stems of models/*.toml, the documented three among them."""
    names = catalog.model_names()
    assert names == tuple(sorted(path.stem for path in (ROOT / "models").glob("*.toml")))
    assert {"three_az_cloud", "two_az", "bare_metal_racks"} <= set(names)


@pytest.mark.parametrize("name", catalog.model_names())
def test_a_name_leads_to_its_card(name):
    """A shipped name is a file in models/."""
    assert catalog.model_path(name) == ROOT / "models" / f"{name}.toml"


def test_a_path_leads_to_itself(tmp_path):
    """A user's own file is found by its path, with any name."""
    for name in ("mine.toml", "card"):
        path = tmp_path / name
        path.touch()
        assert catalog.model_path(path) == path
        assert catalog.model_path(str(path)) == path


def test_a_shipped_name_precedes_a_file_of_that_name(tmp_path, monkeypatch):
    """A stray file in the working directory does not shadow a shipped card."""
    (tmp_path / "two_az").touch()
    monkeypatch.chdir(tmp_path)
    assert catalog.model_path("two_az") == ROOT / "models" / "two_az.toml"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("three-az-cloud", "Did you mean three_az_cloud?"),
        ("bare_metal", "Did you mean bare_metal_"),
    ],
)
def test_an_unknown_card_is_refused_with_the_nearest_name(asked, hint):
    """The error has the given name, the closest card and all cards."""
    with pytest.raises(ModelError) as caught:
        catalog.model_path(asked)
    assert f"'{asked}'" in str(caught.value)
    assert hint in str(caught.value)
    assert ", ".join(catalog.model_names()) in str(caught.value)


def test_an_unknown_card_that_resembles_none_gets_no_guess():
    """Without a similar name the error has no suggestion, only the list."""
    with pytest.raises(ModelError, match="These ship: bare_metal_racks") as caught:
        catalog.model_path("xyzzy")
    assert "Did you mean" not in str(caught.value)


def test_a_missing_toml_file_is_refused_by_its_path(tmp_path):
    """A name that looks like a path is reported as a missing file."""
    with pytest.raises(ModelError, match=r"no file .*gone\.toml"):
        catalog.model_path(tmp_path / "gone.toml")


def test_data_path_finds_files_and_directories():
    """The table of evidence and the sample clusters are found."""
    assert catalog.data_path("failure_rates.csv").is_file()
    assert catalog.data_path("clusters") == (ROOT / "data" / "clusters").resolve()


@pytest.mark.parametrize("relative", ["gone.csv", "../pyproject.toml", "/etc/hosts"])
def test_data_path_refuses_what_does_not_ship(relative):
    """A missing name and a path out of data/ are both refused."""
    with pytest.raises(InputError, match="no data file"):
        catalog.data_path(relative)
