"""`make docs` builds a site with every public name and notebook, and it needs no network."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import advisor
from patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "picture.svg"
DOCUMENTS = ["ARCHITECTURE", "GLOSSARY", "DECISIONS", "CHANGELOG", "CONTRIBUTING", "QUESTIONS"]
# Attributes that make a browser fetch something; a link is followed by people only.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


class Fetches(HTMLParser):
    """Collects the addresses that a page fetches by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(FETCHED.get(tag, "")) or ""
        used = tag != "link" or RELATIONS & set((given.get("rel") or "").split())
        if used and re.match(r"(https?:)?//", address):
            self.found.append(address)


def outside(page: str) -> list[str]:
    """List the outside addresses that a page or a style sheet loads."""
    parser = Fetches()
    parser.feed(page)
    return parser.found + re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')\s]+)", page)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the documentation as `make docs` does."""
    make = shutil.which("make")
    # A developer's machine may lack the extra; continuous integration must have it.
    if make is None or not all(importlib.util.find_spec(n) for n in ("furo", "myst_nb")):
        missing = "needs make and the extra 'docs'"
        pytest.fail(missing) if "CI" in os.environ else pytest.skip(missing)
    folder = tmp_path_factory.mktemp("docs") / "docs"
    venv = Path(sys.executable).parents[1]
    variables = [f"VENV={venv}", "READY=", f"DOCS={folder}"]
    done = subprocess.run(
        [make, "docs", *variables], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_name_notebook_and_document_has_a_page(site: Path) -> None:
    """Public names have a page with their example; notebooks and documents have one each."""
    for name in advisor.__all__:
        page = (site / "reference" / f"advisor.{name}.html").read_text(encoding="utf-8")
        assert "&gt;&gt;&gt; " in page, name
    config = (site / "reference" / "advisor.Config.html").read_text(encoding="utf-8")
    assert 'id="advisor.Config.changed"' in config
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        assert (site / "notebooks" / f"{notebook.stem}.html").exists()
    for document in DOCUMENTS:
        assert (site / f"{document}.html").exists()


def test_pages_load_nothing_from_outside(site: Path) -> None:
    """No page and no style sheet of the site asks another address for anything."""
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 40
    found = {str(p.relative_to(site)): outside(p.read_text(encoding="utf-8")) for p in files}
    assert {name: addresses for name, addresses in found.items() if addresses} == {}


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/x.css">',
        "<style>@import 'https://cdn.example/x.css'</style>",
        "<style>p { background: url(https://cdn.example/x.png) }</style>",
    ],
)
def test_an_outside_address_is_found(page: str) -> None:
    """Scripts, styles and pictures from elsewhere are reported, links are not."""
    assert len(outside(page)) == 1
    assert outside('<a href="https://kafka.apache.org">Kafka</a>') == []


def test_the_picture_of_the_readme_is_current() -> None:
    """`make picture` draws the committed file again, to the byte; it is small and shown."""
    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.picture() == module.picture()
    drawn = PICTURE.read_text(encoding="utf-8")
    # Text only: positions follow numbers that may differ in their last digits.
    words = re.findall(r">([^<>\n]+)</text>", drawn)
    assert words == re.findall(r">([^<>\n]+)</text>", module.picture())
    assert "no setting gets here" in words
    assert PICTURE.stat().st_size < 100_000
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"!\[[^]]{40,}\]\(docs/picture\.svg\)", readme)
