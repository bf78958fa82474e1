"""In a real browser: what the explorer's widget asks the kernel, with a kernel that we play."""

import json
from collections.abc import Iterator

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


def asked(page: Page) -> list[dict[str, object]]:
    """Return questions about settings; what is looked ahead at is asked beside them."""
    sent = page.evaluate("window.sent.filter(question => question.kind !== 'ahead')")
    return [{"id": each["id"], "retries": each["values"]["retries"]} for each in sent]


def test_of_the_questions_that_wait_only_the_latest_is_sent(page: Page, view: Explorer) -> None:
    """The kernel works on one at a time; what was chosen in between is not on the screen."""
    for retries in ("3", "4", "5"):
        choose(page, retries)
    (first,) = asked(page)
    assert first["retries"] == "3"
    page.evaluate("message => reply(message)", {"id": first["id"], "settings": {}, "marks": {}})
    _, second = asked(page)
    assert second["retries"] == "5"
    values = {**view._around.chosen, "retries": "5"}
    settings = {view._around.key(values): view._around.setting(values)}
    page.evaluate("message => reply(message)", {**second, "settings": settings, "marks": {}})
    page.locator(".ae-picture:not(.ae-old)").wait_for(timeout=WAIT_MS)
    assert page.locator(".ae-busy").inner_text() == ""


def test_an_interrupted_answer_is_said(page: Page) -> None:
    """The kernel replies without the setting; the next choice is asked as usual."""
    choose(page, "3")
    (first,) = asked(page)
    page.evaluate("message => reply(message)", {"id": first["id"], "settings": {}, "marks": {}})
    assert "Interrupted. Choose again." in page.locator(".ae-controls").inner_text()
    choose(page, "4")
    assert [each["retries"] for each in asked(page)] == ["3", "4"]
