"""In a real browser: what the explorer's widget asks the kernel, with a kernel that we play."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from advised import MODEL, described
from advisor.present.interactive.explorer import Explorer, explorer
from browsing import NEEDS_BROWSER, WAIT_MS, chromium

pytestmark = NEEDS_BROWSER
START = """
(async () => {
  const made = URL.createObjectURL(new Blob([%s], { type: "text/javascript" }));
  const widget = (await import(made)).default();
  window.sent = [];
  const heard = {};
  const model = {
    get: () => (%s),
    on: (name, call) => { heard[name] = call; },
    off: () => {},
    send: (question) => { window.sent.push(question); },
  };
  window.reply = (message) => heard["msg:custom"](message);
  widget.render({ model, el: document.body });
})()
"""


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explorer(described(), MODEL, cards=[])


@pytest.fixture
def page(view: Explorer) -> Iterator[Page]:
    with chromium() as browser:
        opened = browser.new_page()
        opened.set_content("<body></body>")
        opened.evaluate(START % (json.dumps(view._esm), json.dumps(view.page)))
        yield opened


def choose(page: Page, retries: str) -> None:
    field = page.get_by_label("retries", exact=True)
    field.fill(retries)
    field.press("Enter")


def asked(page: Page, kind: str = "setting") -> list[dict[str, Any]]:
    """Return questions: for a setting, for the curve around it, or for what is ahead."""
    found: list[dict[str, Any]] = page.evaluate(
        "kind => window.sent.filter(question => question.kind === kind)", kind
    )
    return found


def retries_asked(page: Page) -> list[str]:
    return [question["values"]["retries"] for question in asked(page)]


def answer(page: Page, view: Explorer, question: dict[str, Any]) -> None:
    """Reply with the setting that a question asks for."""
    values = question["values"]
    settings = {view._explorer_model.key(values): view._explorer_model.setting(values)}
    reply = {"id": question["id"], "settings": settings, "marks": {}}
    page.evaluate("message => reply(message)", reply)
    page.locator(".ae-picture:not(.ae-old)").wait_for(timeout=WAIT_MS)


def test_of_the_questions_that_wait_only_the_latest_is_sent(page: Page, view: Explorer) -> None:
    """The kernel works on one at a time; what was chosen in between is not on the screen."""
    for retries in ("3", "4", "5"):
        choose(page, retries)
    (first,) = asked(page)
    assert retries_asked(page) == ["3"]
    page.evaluate("message => reply(message)", {"id": first["id"], "settings": {}, "marks": {}})
    _, second = asked(page)
    assert retries_asked(page) == ["3", "5"]
    answer(page, view, second)
    assert page.locator(".ae-busy").inner_text() == ""


def test_a_picture_that_comes_first_is_drawn_and_the_question_stays_open(
    page: Page, view: Explorer
) -> None:
    """The kernel sends the setting with the first retries; failed sends follow."""
    model = view._explorer_model
    page.get_by_label("acks", exact=True).select_option("1")
    choose(page, "3")
    first, *_ = asked(page)
    page.evaluate("message => reply(message)", {"id": first["id"], "settings": {}, "marks": {}})
    *_, question = asked(page)
    assert question["values"]["retries"] == "3"
    assert page.locator(".ae-picture.ae-old").count() == 1
    pictured = {**question["values"], "retries": model.chosen["retries"]}
    settings = {model.key(pictured): model.setting(pictured)}
    reply = {"id": question["id"], "settings": settings, "marks": {}, "more": True}
    page.evaluate("message => reply(message)", reply)
    page.locator(".ae-picture:not(.ae-old)").wait_for(timeout=WAIT_MS)
    assert page.locator(".ae-busy").inner_text() == "Computing failed sends …"
    assert page.locator(".ae-verdict").inner_text().startswith(model.setting(pictured)["verdict"])
    answer(page, view, question)
    assert page.locator(".ae-busy").inner_text() == ""


def test_an_interrupted_answer_is_said(page: Page) -> None:
    """The kernel replies without the setting; the next choice is asked as usual."""
    choose(page, "3")
    (first,) = asked(page)
    page.evaluate("message => reply(message)", {"id": first["id"], "settings": {}, "marks": {}})
    assert "Interrupted. Choose again." in page.locator(".ae-controls").inner_text()
    choose(page, "4")
    assert retries_asked(page) == ["3", "4"]


def test_the_answer_below_is_named_by_what_changed(page: Page) -> None:
    """A setting without an answer differs from the one below; the same name would not say how."""
    version, acks = page.get_by_label("Kafka version"), page.get_by_label("acks", exact=True)
    before, name = version.input_value(), "RF 3, min ISR 1, acks=all"
    version.select_option("3.9")
    refuse(page)
    assert below(page) == f"Kafka version {before}"
    acks.select_option("0")
    refuse(page)
    assert below(page) == f"{name}, Kafka version {before}"
    version.select_option(before)
    refuse(page)
    assert below(page) == name


def below(page: Page) -> str:
    said = page.locator(".ae-verdict").inner_text()
    return said.removeprefix("Below is the answer before this change: ").removesuffix(".")


def refuse(page: Page) -> None:
    """Reply to what was asked last that there is no answer."""
    reply = {"id": asked(page)[-1]["id"], "settings": {}, "marks": {}}
    page.evaluate("message => reply(message)", reply)


def test_a_choice_does_not_wait_for_the_curve_of_the_last(page: Page, view: Explorer) -> None:
    """The next setting is asked at once; what comes late for the last one is remembered."""
    version, legend = page.get_by_label("Kafka version"), page.locator(".ae-legend")
    version.select_option("3.9")
    answer(page, view, asked(page)[0])
    (around,) = asked(page, "around")
    version.select_option("3.7")
    assert [each["values"]["kafka_version"] for each in asked(page)] == ["3.9", "3.7"]
    answer(page, view, asked(page)[1])
    context = "|".join(around["values"][name] for name in view.page["context"])
    late = {"id": around["id"], "settings": {}, "marks": {context: []}}
    page.evaluate("message => reply(message)", late)
    words = "recommended: none with up to 3 replicas meets your goals"
    assert words not in legend.inner_text()
    version.select_option("3.9")
    assert words in legend.inner_text()
