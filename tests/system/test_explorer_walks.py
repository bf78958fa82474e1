"""In a real browser: random changes of all controls, with a kernel that we play and without one.

Also of what the cluster has seen, which only a kernel can learn from. Every change is answered:
texts, picture and commands are those of one setting, as Python computes it; a refused value is
marked, and nothing can be copied until it is mended. `WALK_STEPS=200` takes a longer walk.
"""

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from advised import MODEL, described
from advisor.learning import learn
from advisor.present.interactive import seen
from advisor.present.interactive.controls import CONTEXT, PRICE
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.present.interactive.explorer_model import ExplorerModel
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from browsing import NEEDS_BROWSER, chromium, new_page

pytestmark = NEEDS_BROWSER
STEPS = int(os.environ.get("WALK_STEPS", "30"))
SEED = int(os.environ.get("WALK_SEED", "1"))
# Typed values: Kafka refuses some always, others together with other controls.
TYPED = {
    "retries": ("0", "1", "5", "-1", "", "2147483647"),
    "delivery_timeout_ms": ("30000", "10", "30004", "60000", "600000", "120000"),
    seen.YEARS: ("3", "3", "0.5", "12", "", "0", "x"),
    seen.BROKERS: ("", "12", "6", "0"),
}
COUNTS = ("", "0", "0", "1", "4", "1.5", "999999999")
MINUTES = ("", "40", "40, 12", "0")
STARTED = """
(async ([source, page, values]) => {
  const made = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const widget = (await import(made)).default();
  const held = { page, values };
  const heard = {};
  window.sent = [];
  window.held = held;
  widget.render({ el: document.body, model: {
    get: (name) => held[name],
    set: (name, value) => { held[name] = value; },
    save_changes: () => {},
    on: (name, call) => { heard[name] = call; },
    off: () => {},
    send: (question) => { window.sent.push(question); },
  } });
  window.reply = (message) => heard["msg:custom"](message);
  window.choose = (values) => { held.values = values; heard["change:values"](); };
})
"""
# What the page shows, and what Copy copies.
SEEN = """() => {
  const root = document.querySelector(".advisor-explorer");
  const text = (part) => root.querySelector(part).textContent;
  const texts = (part) => [...root.querySelectorAll(part)].map((found) => found.textContent);
  const of = (field) => field.closest(".ae-row").querySelector("[id]").id.replace(/^.*?-\\d+-/, "");
  const copied = [];
  document.execCommand = () => copied.push(document.querySelector(".ae-clip").value) > 0;
  root.querySelectorAll(".ae-commands button").forEach((button) => button.click());
  return {
    state: root.dataset.state,
    invalid: [...root.querySelectorAll("[aria-invalid]")].map(of),
    refusals: texts(".ae-refusal"),
    headline: text(".ae-headline"),
    verdict: text(".ae-verdict"),
    badge: text(".ae-badge"),
    lines: texts(".ae-more li"),
    shown: texts(".ae-legend li").find((said) => said.startsWith("shown: ")),
    commands: texts(".ae-commands pre"),
    greyed: root.querySelectorAll(".ae-old").length,
    copied,
  };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explorer(described(), MODEL, cards=[])


def field_of(page: Page, key: str) -> Any:
    return page.locator(f".ae-row [id$='-{key}']")


def controls_of(page: Page, prices: list[str]) -> dict[str, str]:
    """Return what the controls show."""
    values: dict[str, str] = page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('.ae-row select, .ae-row input')]"
        ".map(field => [field.id.replace(/^advisor-\\d+-/, ''), field.value]))"
    )
    return {**seen.UNCOUNTED, **values, PRICE: prices[int(values[PRICE])]}


def change(page: Page, draw: random.Random) -> str:
    """Change a control at random; return which."""
    keys = page.evaluate(
        "() => [...document.querySelectorAll('.ae-row select, .ae-row input')]"
        ".filter(field => !field.disabled).map(field => field.id.replace(/^advisor-\\d+-/, ''))"
    )
    key = str(draw.choice(keys))
    field = field_of(page, key)
    if field.evaluate("field => field.tagName") == "SELECT":
        options = field.evaluate("field => [...field.options].map(option => option.value)")
        field.select_option(draw.choice(options))
    elif key == PRICE:
        field.fill(str(draw.randrange(int(field.get_attribute("max")) + 1)))
    else:
        field.fill(draw.choice(TYPED.get(key, MINUTES if key.endswith("minutes") else COUNTS)))
        field.press("Enter")
    return key


def learned_card(model: ExplorerModel, shown: Mapping[str, str]) -> FailureModel:
    """Return the card with what the controls count, by `advisor.learn`."""
    prior = model.model if shown["card"] == model.model.name else load_model(shown["card"])
    events: dict[str, Any] = {}
    for name in seen.MECHANISMS:
        minutes = shown.get(f"seen.{name}.minutes", "").replace(",", " ").split()
        if typed := shown[f"seen.{name}"]:
            events[name] = int(typed)
            if minutes:
                events[name] = {"events": int(typed), "minutes": [*map(float, minutes)]}
    if not events:
        return prior
    brokers = int(shown[seen.BROKERS] or len(model.cluster.brokers))
    document = {"brokers": brokers, "years": float(shown[seen.YEARS]), "events": events}
    return learn(document, prior=prior, cluster=model.cluster).model


def walk(
    page: Page,
    model: ExplorerModel,
    answered: Callable[[], None],
    held: Callable[[Mapping[str, str]], Mapping[str, str] | None] = dict,
) -> int:
    """Change controls and check what is shown after each; return how often a value was refused.

    `held` says as which setting the page holds what the controls show; None if it does not.
    """
    draw, prices = random.Random(SEED), list(model.prices)
    page.evaluate("() => document.querySelectorAll('.ae-seen').forEach(fold => fold.open = true)")
    answered()
    shown, refusals = controls_of(page, prices), 0
    for step in range(STEPS):
        key = change(page, draw)
        answered()
        seen, controls = page.evaluate(SEEN), controls_of(page, prices)
        where = f"step {step}, {key}: {controls}"
        instead = {name: shown[name] for name in seen["invalid"]}
        known = held(controls)
        refused = known is None or "refusal" in model.setting(known)
        assert (seen["state"] == "refused") == refused == bool(instead), where
        assert len(seen["refusals"]) == len(instead), where
        shown = {**controls, **instead}
        setting = held(shown)
        assert setting is not None, where
        if refused:
            refusals += 1
            assert all(controls[name] != value for name, value in instead.items()), where
        matches(seen, model, setting, refused, where)
    return refusals


def matches(
    seen: Mapping[str, Any],
    model: ExplorerModel,
    shown: Mapping[str, str],
    refused: bool,
    where: str,
) -> None:
    """Check that everything on the screen is of one setting, and that its numbers are right."""
    setting, verdict = model.setting(shown), model.verdicts(shown)[shown[PRICE]]
    assert (seen["headline"], seen["verdict"]) == (verdict.headline, verdict.text), where
    assert verdict.severity in seen["badge"], where
    assert seen["shown"] == f"shown: {setting['name']}", where
    assert seen["lines"] == setting["lines"], where
    texts = [(text, copied) for _, text, copied in setting["commands"]]
    assert seen["commands"] == [text for text, _ in texts], where
    assert seen["copied"] == [text for text, copied in texts if copied and not refused], where
    assert bool(seen["greyed"]) == refused, where
    config = model.config(shown)
    question = model.question(shown, config)
    card = learned_card(model, shown)
    exact = evaluate(model.cluster, config, card, question.load, placement=question.today.placement)
    assert setting["loss"][0] == pytest.approx(exact.loss_probability_per_year, rel=1e-4), where
    assert setting["refused"][0] == pytest.approx(exact.write_unavailability, rel=1e-4), where
    (action,) = verdict.actions
    assert action.refused_today == pytest.approx(exact.write_unavailability * 525_600), where


def test_every_change_of_the_widget_is_answered(browser: Browser, view: Explorer) -> None:
    """The kernel answers what the page lacks; its traits are what the page shows."""
    page, model = new_page(browser), view._explorer_model
    page.set_content("<body></body>")
    page.evaluate(STARTED, [view._esm, view.page, dict(view.values)])
    replies = list[dict[str, Any]]()
    view.send = replies.append

    def answered() -> None:
        while questions := page.evaluate("() => window.sent.splice(0)"):
            for question in questions:
                if question["kind"] == "setting":
                    view._asked(view, question, [])
            while replies:
                page.evaluate("message => reply(message)", replies.pop(0))
        view.values = page.evaluate("() => window.held.values")
        (action,) = view.verdict.actions
        assert action.today.config == view.setting == model.config(view.values)
        counted = model.learned(view.values)
        assert (view.learned is None) == (counted is None)
        assert view.learned is None or view.learned.model == learned_card(model, view.values)

    refusals = walk(page, model, answered)
    assert refusals > STEPS / 20
    # What Python chooses is shown, too, and ends what was refused.
    for topic in ("", "orders"):
        view.topic = topic
        page.evaluate("values => choose(values)", view.values)
        answered()
    assert page.evaluate(SEEN)["state"] == "answered"
    assert (
        controls_of(page, list(model.prices))
        == dict(view.values)
        == {
            **model.today("orders"),
            **{name: view.values[name] for name in (*CONTEXT, PRICE)},
        }
    )
    page.close()


def test_every_change_of_an_exported_page_is_answered(browser: Browser, view: Explorer) -> None:
    """What the page does not hold is said at the control that asked for it."""
    page, html = new_page(browser), view.html
    data = json.loads(html.split('<script type="application/json">')[1].split("</script>")[0])
    page.set_content(f"<body>{html}</body>")
    model = view._explorer_model

    def held(values: Mapping[str, str]) -> Mapping[str, str] | None:
        if model.key(values) in data["settings"]:
            return values
        # Such a min ISR is the replication factor since 3.7, and the page says so.
        if int(values["min_insync_replicas"]) > int(values["replication_factor"]):
            capped = {**values, "min_insync_replicas": values["replication_factor"]}
            return capped if model.key(capped) in data["settings"] else None
        return None

    walk(page, model, lambda: None, held)
    page.close()
