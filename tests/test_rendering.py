"""Hostile text through the renderer of each target: nothing is obeyed, and nothing is lost."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import javaproperties
import pytest
import yaml

from advisor import rendering
from hostile_text import HOSTILE

TEXTS = {**HOSTILE, "half a pair": "a\ud800b", "all": " ".join(HOSTILE.values())}


@pytest.fixture(params=TEXTS.values(), ids=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def obeyed(text: str, allowed: str = "\n") -> set[str]:
    """Return the characters that a terminal obeys or cannot show."""
    return {char for char in text if not char.isprintable()} - set(allowed)


class Shown(HTMLParser):
    """The elements, attributes and words of HTML."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_terminal_shows_one_line_each(text: str) -> None:
    """Texts are lines; a text of several lines keeps them and its tabs, and nothing else."""
    shown = rendering.terminal_lines([text, "last"]).text
    assert shown.count("\n") == len(shown.splitlines()) - 1 == 1
    assert obeyed(shown) == set()
    assert rendering.terminal_blocks([[text], [], ["last"]]).text == shown.replace("\n", "\n\n")
    assert obeyed(rendering.terminal_text(f"\t{text}").text, "\n\t") == set()


def test_a_shell_gets_the_word_back(text: str, tmp_path: Path) -> None:
    """A word is one argument, whatever it says; one that cannot be in a line is refused."""
    if not text.isprintable():
        for make in (rendering.shell_word, rendering.shell_quoted, rendering.ShellLine):
            with pytest.raises(ValueError, match="printable"):
                make(text)
        return
    for word in (rendering.shell_word(text), rendering.shell_quoted(text)):
        line = rendering.shell("printf '%s' {} \"${{X:-{}}}\"", word, rendering.shell("d"))
        assert run(rendering.shell_script([line]), tmp_path) == f"{text}d"
        variable = rendering.shell('X=${{X:-{}}}; printf %s "$X"', word)
        assert run(rendering.shell_script([variable]), tmp_path) == text


def test_a_shell_runs_no_comment(text: str, tmp_path: Path) -> None:
    """A comment is one line, and a line behind a comment's words is not run."""
    lines = [rendering.shell_comment(text), rendering.shell("echo end")]
    lines.insert(1, rendering.shell_commented(rendering.shell("touch HIT"), text))
    assert run(rendering.shell_script(lines), tmp_path) == "end\n"


def run(script: rendering.ShellScript, folder: Path) -> str:
    """Run a script in bash and in sh, which do the same, and make no file."""
    said = set()
    for shell in ("bash", "sh"):
        path = folder / "script"
        path.write_text(script.text)
        done = subprocess.run([shell, path], cwd=folder, capture_output=True, text=True, check=True)
        said.add(done.stdout)
        path.unlink()
    assert list(folder.iterdir()) == []
    (only,) = said
    return only


def test_yaml_is_read_back(text: str) -> None:
    """A key and a value are what they were, and comments are no part of the document."""
    if "\ud800" in text:
        return  # no reader takes it
    document = {"a": text, text: {"b": [text]}}
    written = rendering.joined(
        rendering.yaml_comments([text, "second"]),
        rendering.yaml_document(document, begins=True),
        rendering.yaml_commented(rendering.yaml_document(document)),
    )
    assert yaml.safe_load(written.text) == document
    assert obeyed(written.text) == set()


def test_properties_are_read_back(text: str) -> None:
    """A key and a value are what they were, and comments set nothing."""
    if "\ud800" in text:
        return
    settings = {"a": text, text: f" {text}", "last": "x"}
    written = rendering.joined(
        rendering.property_comments([text]), rendering.properties(settings)
    ).text
    assert javaproperties.loads(written) == settings
    assert obeyed(written) == set()


def test_json_is_read_back(text: str) -> None:
    """A document is what it was, in a file, in lines of rows and in a page's script."""
    rows = rendering.json_rows({"version": 1}, "rows", [{"a": text}, {text: 2}])
    assert json.loads(rows.text) == {"version": 1, "rows": [{"a": text}, {text: 2}]}
    for written in (rendering.json_file({text: [text]}), rendering.json_text({text: [text]})):
        assert json.loads(written.text) == {text: [text]}
        assert obeyed(rendering.terminal_json(written).text) == set()
    data = rendering.html_data({text: [text]})
    page = Shown(rendering.markup("<script>{}</script><i>", data).text)
    assert (json.loads(page.words), page.elements) == ({text: [text]}, ["script", "i"])


def test_a_page_shows_words(text: str) -> None:
    """As an element's words and in a quoted attribute: no element, no other attribute."""
    words = rendering.html(text)
    for quote in "\"'":
        template = f"<b title={quote}{{}}{quote}>{{}}</b>"
        page = Shown(rendering.markup(template, words, words).text)
        assert page.elements == ["b"]
        assert page.attributes == {"title": rendering.printable(text)}
        assert page.words == rendering.printable(text)
        assert obeyed(page.words, "\n\t") == set()


def test_a_sarif_message_has_no_link_and_no_argument(text: str) -> None:
    """Brackets of a link are escaped, and the braces of an argument are doubled."""
    message = rendering.sarif_message(text)
    assert obeyed(message, "") == set()
    assert not re.search(r"(?<!\\)\]\(", message)
    assert not re.search(r"(?<!\{)\{\d+\}(?!\})", message)


def test_a_line_of_a_file_is_one_line(text: str) -> None:
    """No value begins a line; tabs stay."""
    lines = rendering.file_lines([f"\t// {text}", "last"]).text
    assert len(lines.splitlines()) == 2
    assert obeyed(lines, "\n\t") == set()


def test_a_template_of_a_page_escapes() -> None:
    """What is put into a page is escaped and printable, but for what is rendered already."""
    jinja2 = pytest.importorskip("jinja2")
    environment = jinja2.Environment(**rendering.jinja_options())
    template = environment.from_string(
        "{% macro m() %}<i>{{ a }}</i>{% endmacro %}{{ a }} {{ b }} {{ m() }}{{ 1 }}"
    )
    context = {"a": "<\u202e", "b": rendering.markup("<b></b>")}
    page = rendering.html_page(template, context)
    assert page.text == "&lt;\\u202e <b></b> <i>&lt;\\u202e</i>1"
    with pytest.raises(AssertionError):
        rendering.html_page(jinja2.Environment().from_string("{{ a }}"), context)
