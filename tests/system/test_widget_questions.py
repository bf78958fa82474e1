"""In a real browser: what the explorer's widget asks the kernel, with a kernel that we play."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from advised import MODEL, described
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.protocol.rules.versions import NEWEST_KNOWN
from browsing import NEEDS_BROWSER, WAIT_MS, chromium, new_page

pytestmark = NEEDS_BROWSER
START = """
(async () => {
  const made = URL.createObjectURL(new Blob([%s], { type: "text/javascript" }));
  const widget = (await import(made)).default();
  window.sent = [];
  const heard = {};
  const held = { page: %s };
  const model = {
    get: (name) => held[name],
    set: (name, value) => { held[name] = value; },
    save_changes: () => {},
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
        opened = new_page(browser)
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
    page.locator(".ae-answer:not(.ae-old)").wait_for(timeout=WAIT_MS)


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
    assert not page.locator(".ae-busy").is_visible()


def test_numbers_that_come_first_are_drawn_without_a_verdict(page: Page, view: Explorer) -> None:
    """The kernel sends a long setting's numbers; nothing can be copied until it is judged."""
    model = view._explorer_model
    page.get_by_label("acks", exact=True).select_option("1")
    (question,) = asked(page)
    reply = {"id": question["id"], "settings": model.numbers(question["values"]).settings}
    page.evaluate("message => reply(message)", {**reply, "marks": {}, "more": True})
    assert "acks=1" in page.locator(".ae-legend").inner_text()
    assert page.locator(".ae-verdict").inner_text() == ""
    assert page.locator(".ae-commands button:enabled").count() == 0
    assert page.locator(".ae-busy").is_visible()
    answer(page, view, question)
    assert page.locator(".ae-verdict").inner_text() != ""
    assert page.locator(".ae-commands button:enabled").count() > 0


def test_an_interrupted_answer_is_said(page: Page) -> None:
    """The kernel replies without the setting; the next choice is asked as usual."""
    field = page.get_by_label("retries", exact=True)
    before = field.input_value()
    choose(page, "3")
    (first,) = asked(page)
    page.evaluate("message => reply(message)", {"id": first["id"], "settings": {}, "marks": {}})
    assert page.locator(".ae-held").inner_text().startswith("Not computed.")
    assert field.input_value() == before
    assert page.locator(".advisor-explorer").get_attribute("data-state") == "answered"
    choose(page, "4")
    assert retries_asked(page) == ["3", "4"]


def test_what_takes_long_shows_progress_and_can_be_cancelled(page: Page) -> None:
    """The seconds are counted; after a cancel the controls show what is on the screen."""
    field = page.get_by_label("retries", exact=True)
    before = field.input_value()
    choose(page, "3")
    assert page.locator(".ae-busy").inner_text().startswith("Computing RF 3, min ISR 1")
    page.get_by_role("button", name="Cancel").click(timeout=WAIT_MS)
    assert field.input_value() == before
    assert not page.locator(".ae-busy").is_visible()
    (first,), (cancelled,) = asked(page), asked(page, "cancel")
    assert cancelled["id"] == first["id"]


def test_the_refused_value_is_marked_until_it_or_its_opposite_is_mended(
    page: Page, view: Explorer
) -> None:
    """Other controls are answered meanwhile, with the last value that was not refused."""
    version, elr = page.get_by_label("Kafka version"), page.get_by_label("eligible leader replicas")
    state = page.locator(".advisor-explorer")

    def settle(*, refused: list[str]) -> None:
        for question in iter(lambda: pending(page), None):
            reply_to(page, view, question)
        names = page.locator("[aria-invalid]").evaluate_all("fields => fields.map(f => f.id)")
        assert [name.rsplit("-", 1)[-1] for name in names] == refused
        assert state.get_attribute("data-state") == ("refused" if refused else "answered")
        assert (page.locator(".ae-commands button:enabled").count() == 0) == bool(refused)

    elr.select_option("true")
    settle(refused=[])
    version.select_option("3.7")
    settle(refused=["kafka_version"])
    page.get_by_label("acks", exact=True).select_option("1")
    settle(refused=["kafka_version"])
    said = page.locator(".ae-held").inner_text()
    assert f"Kafka version 3.7 has no answer, so this is with {NEWEST_KNOWN}" in said
    assert "acks=1" in page.locator(".ae-legend").inner_text()
    elr.select_option("default")  # the other side of the conflict
    settle(refused=[])
    assert page.locator(".ae-held").inner_text() == ""


def pending(page: Page) -> Any:
    """Return the last question about a setting, once."""
    return page.evaluate(
        "() => { const last = window.sent.filter(q => q.kind === 'setting').pop();"
        " window.sent = []; return last || null; }"
    )


def reply_to(page: Page, view: Explorer, question: dict[str, Any]) -> None:
    """Reply as the kernel does, be it a refusal."""
    values = question["values"]
    settings = {view._explorer_model.key(values): view._explorer_model.setting(values)}
    page.evaluate(
        "message => reply(message)", {"id": question["id"], "settings": settings, "marks": {}}
    )


def test_a_choice_does_not_wait_for_the_curve_of_the_last(page: Page, view: Explorer) -> None:
    """The next setting is asked at once; what comes late for the last one is remembered."""
    version, legend = page.get_by_label("Kafka version"), page.locator(".ae-legend")
    version.select_option("3.9")
    answer(page, view, asked(page)[0])
    (around,) = asked(page, "around")
    version.select_option("3.7")
    assert [each["values"]["kafka_version"] for each in asked(page)] == ["3.9", "3.7"]
    answer(page, view, asked(page)[1])
    marked = view._explorer_model.marked(around["values"])
    late = {"id": around["id"], "settings": {}, "marks": marked.marks}
    page.evaluate("message => reply(message)", late)
    assert "today:" not in legend.inner_text()
    version.select_option("3.9")
    assert "today:" in legend.inner_text()
