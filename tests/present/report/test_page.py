"""The report: self-contained, escaped, deterministic."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from advised import MODEL, described
from advisor.advice import Audit, Goals, Recommendation, audit, recommend
from advisor.cluster import Cluster, load_cluster
from advisor.errors import InputError
from advisor.formatting import significant
from advisor.learning import learn
from advisor.pipeline.simulate import simulate
from advisor.present import plot_recommendation, plot_reliability, write_report
from advisor.present.interactive.settings_grid import verdict_at
from advisor.present.outcome import GIVEN_UP, compared_outcomes, notes, outcomes, shares
from advisor.present.report.page import render_report, sampled_check
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.results.sampled import Estimate
from explorer_pages import words_at

EVIL = "<script>alert('x')</script>"
VOID = {"meta", "br", "link", "input", "hr", "img"}


class Page(HTMLParser):
    """Checks that elements nest, and keeps what a reader or a browser would look for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.starts: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.starts.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.starts.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.starts if name == tag]


@pytest.fixture(scope="module")
def advice() -> Recommendation:
    return recommend(described(), MODEL, goals=Goals(survive="rack"))


@pytest.fixture(scope="module")
def audited() -> Audit:
    return audit(described(), MODEL)


@pytest.fixture(scope="module")
def text(advice: Recommendation, audited: Audit) -> str:
    return render_report(advice, audited)


@pytest.fixture(scope="module")
def switchable(advice: Recommendation, audited: Audit) -> str:
    """A page that switches to another card."""
    return render_report(advice, audited, cards=("two_az",))


def test_the_report_loads_nothing(text: str) -> None:
    """No address, import, image, script or style from outside."""
    page = Page(text)
    assert not re.search(r"https?:|@import|//[a-z]+\.", text)
    for _, attributes in page.starts:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    assert not page.all("link")


def test_the_report_is_accessible(text: str) -> None:
    """Language, one h1, no skipped heading level, table captions and scopes, unique ids."""
    page = Page(text)
    assert page.all("html")[0]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.starts if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(header.get("scope") in ("row", "col") for header in page.all("th"))
    assert len(page.ids) == len(set(page.ids))
    assert all(chart.get("aria-label") for chart in page.all("svg"))
    # The script makes the lists, with their labels: see the axe test in a browser.
    assert page.all("select") == []


def test_the_verdict_comes_first_and_everything_is_there(text: str, advice: Recommendation) -> None:
    """Verdict, goals, tolerances, topics, plan, charts, reasons, stories, evidence: in order."""
    verdict = advice.quick_verdict
    wanted = [
        f'<h1 class="av-headline">{verdict.headline}</h1>',
        verdict.text,
        ">orders</th>",
        advice.goals.sentence,
        "without losing acknowledged records",
        "Every topic, worst first",
        'id="do"',
        'id="curves-wide"',
        "Main causes",
        'id="stories"',
        'id="sure"',
        "broker.crash.per_year",
    ]
    places = [text.index(words) for words in wanted]
    assert places == sorted(places)
    assert advice.plan.rollback[-1].split()[0] in text


def test_a_broken_topic_is_not_ok() -> None:
    """A topic without a leader is said first, and missed in the table, however rare its losses."""
    lines = "Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    lines += "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1,2,3\tIsr: 2\n"
    cluster = load_cluster(lines)
    text = render_report(recommend(cluster, MODEL), audit(cluster, MODEL))
    words = "1 of 1 partition without a leader"
    assert text.index('<div class="av-now">') < text.index(words) < text.index("<h1")
    assert f"missed: {words}" in text


def test_each_topic_has_its_plan_beside_today() -> None:
    """The table of topics has today's setting, the planned one, and the risks that are taken."""
    cluster = described()
    goals = Goals(survive="rack")
    text = render_report(recommend(cluster, MODEL, goals=goals), audit(cluster, MODEL))
    page = text[text.index("Every topic, worst first") :]
    planned = "<td data-searched>RF 3, min ISR 1, acks=all</td><td>RF 3, min ISR 2, acks=all</td>"
    assert planned in page
    assert "as recommended here" not in text
    risky = Goals(loss_probability_per_year=1.0, write_unavailability=1e-9)
    advice = recommend(cluster, MODEL, goals=risky)
    text = render_report(advice, audit(cluster, MODEL))
    assert advice.risks_taken
    assert all(risk.detail in text for risk in advice.risks_taken)


def test_settings_differ_by_delivery_timeout(text: str, advice: Recommendation) -> None:
    """Settings that differ in delivery.timeout.ms differ in the text shown for them."""
    best = advice.best.config
    same = [c for c in advice.choices if c.config.changed(delivery_timeout_ms=None) == best]
    shown = {o.brief for c in same for o in outcomes(c.reliability) if o.measure == GIVEN_UP}
    assert len(shown) == len(same) > 1
    assert all(brief in text for brief in shown)


def test_losing_a_rack_is_a_table(text: str, advice: Recommendation) -> None:
    """One row per possible RF; with three racks only 3/2 keeps data and writes."""
    page = text[text.index("Losing one rack, with acks=all") :]
    page = page[: page.index("</table>")]
    assert page.count("K + W") == 1
    assert page.count('scope="row"') == len(advice.cluster.brokers)


def data_of(text: str) -> Any:
    """Return what the explorer of a report draws from."""
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_explorer_begins_with_the_worst_topic(text: str, advice: Recommendation) -> None:
    """As it is today; up to three replicas no min ISR or acks is missing, and each is judged."""
    page = data_of(text)
    options = {c["key"]: [option[0] for option in c["options"]] for c in page["controls"]}
    assert options["topic"] == ["", "orders"]
    assert set(options) == {
        "topic",
        "replication_factor",
        "min_insync_replicas",
        "acks",
        "delivery_timeout_ms",
        "minutes_per_loss",
    }
    assert page["chosen"]["topic"] == "orders"
    for acks, timeout in product(options["acks"], options["delivery_timeout_ms"]):
        for factor in options["replication_factor"]:
            for least in range(1, int(factor) + 1):
                setting = page["settings"][f"orders|{factor}|{least}|{acks}|{timeout}"]
                assert len(setting["verdicts"]) == len(options["minutes_per_loss"])
                assert "commands" not in setting
    start = page["settings"]["|".join(page["chosen"].values()).removesuffix("|10080")]
    assert page["judged"]["prices"] == options["minutes_per_loss"]
    said, verdict = verdict_at(page, start, "10080"), advice.quick_verdict
    assert words_at(page, said["headline"]) == verdict.headline
    assert words_at(page, said["text"]) == verdict.text
    assert (said["severity"], said["known"]) == (verdict.severity, True)
    assert [mark["mark"] for mark in page["marks"]["orders"]] == ["today"]


def test_the_explorer_switches_topic_and_card(advice: Recommendation, switchable: str) -> None:
    """A topic has its own load, a new one that of the report; both are there with every card."""
    page = data_of(switchable)
    options = {c["key"]: c["options"] for c in page["controls"]}
    for name, card in ((MODEL.name, MODEL), ("two_az", load_model("two_az"))):
        assert [name, name] in options["card"]
        config = advice.best.config.changed(min_insync_replicas=3)
        for topic in ("", "orders"):
            exact = evaluate(advice.cluster, config, card, advice.load)
            chosen = {**page["chosen"], "topic": topic, "card": name, "min_insync_replicas": "3"}
            setting = page["settings"]["|".join(chosen.values()).removesuffix("|10080")]
            assert setting["loss"][0] == pytest.approx(exact.loss_probability_per_year, rel=1e-4)
            assert setting["refused"][0] == pytest.approx(exact.write_unavailability, rel=1e-4)


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, switchable: str) -> None:
    """A file of an equal recommendation and audit is equal to the page."""
    again = recommend(described(), MODEL, goals=Goals(survive="rack"))
    path = write_report(
        again, tmp_path / "two.html", audit(described(), MODEL), cards=["two_az"], how_sure=False
    )
    assert path.read_bytes().decode() == switchable


def test_names_are_escaped(advice: Recommendation) -> None:
    """A rack or a card named like a script is shown, not run."""
    racks = {1: EVIL, 2: "</title><b>", 3: '"><img onerror=x>'}
    model = FailureModel.from_dict({**MODEL.to_dict(), "title": EVIL}, name=EVIL)
    cluster = described(racks)
    text = render_report(recommend(cluster, model), audit(cluster, model))
    assert EVIL not in text
    assert "<img onerror" not in text
    assert len(Page(text).all("script")) == len(Page(render_report(advice)).all("script")) == 5
    own = re.sub(r"<script>\n(\(function|// What the report|// Copies the command)", "", text)
    assert EVIL.split("alert")[0] not in own


def test_a_failed_write_keeps_the_old_file(
    tmp_path: Path, advice: Recommendation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, the old file unchanged, and no partial file."""
    target = tmp_path / "report.html"
    target.write_text("mine")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("advisor.present.report.page.render_report", lambda *_, **__: "page")
    monkeypatch.setattr("advisor.present.report.page.os.replace", full)
    with pytest.raises(InputError, match=r"report\.html: this cannot be written \(No space left"):
        write_report(advice, target, cards=[])
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "mine"
    with pytest.raises(InputError, match="cannot be written"):
        write_report(advice, tmp_path / "nowhere" / "report.html", cards=[])


@pytest.mark.parametrize(
    ("version", "words"), [("3.6", "refuses every write"), ("3.7", "takes it")]
)
def test_a_min_isr_above_the_replication_factor_is_explained(version: str, words: str) -> None:
    """Before 3.7 it refuses every write, in Kafka's own words; since 3.7 it is capped."""
    config = Config(kafka_version=version, replication_factor=2, min_insync_replicas=3, acks="all")
    assert words in notes(config)[0][1]
    assert ("fewer in-sync replicas than required" in notes(config)[0][1]) == (version == "3.6")


def test_shares_add_up_to_the_whole() -> None:
    """The largest causes are named and the others summed."""
    causes = {f"m{n}": float(n) for n in range(8)}
    named = shares(causes, most=3)
    assert [words for words, _ in named] == ["m7", "m6", "m5", "all others"]
    assert sum(share for _, share in named) == pytest.approx(1.0, rel=1e-15)
    assert shares({"m": 0.0}) == ()


def test_results_draw_on_axes_given_to_them(advice: Recommendation) -> None:
    """Both plots draw on the user's axes and return them; without axes they make their own."""
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    assert plot_recommendation(advice, ax) is ax
    assert ax.lines
    figure.clear()
    ax = figure.add_subplot()
    assert plot_reliability(advice.best.reliability, ax) is ax
    assert ax.patches
    assert len(plot_recommendation(advice)) == 3
    assert plot_reliability(advice.best.reliability).patches
    pyplot.close("all")


def test_an_unsampled_loss_is_a_bound() -> None:
    """A sample without a loss says "at most", one with losses gives an interval."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    safe = simulate(described(), config, MODEL, years=2000, engine="local")
    lost, refused, _ = compared_outcomes(safe)
    assert lost.brief.startswith("not seen; at most once in")
    assert lost.interval == ""
    assert refused.interval.startswith("95 %: ")
    weak = simulate(
        described(),
        config.changed(min_insync_replicas=1, replication_factor=1),
        MODEL,
        years=2000,
        engine="local",
    )
    assert outcomes(weak)[0].interval
    assert plot_reliability(weak).patches


def test_a_shipped_card_shows_its_evidence() -> None:
    """Every number of a card has its source."""
    cluster = Cluster.uniform(brokers=2, racks=2)
    text = render_report(recommend(cluster, load_model("two_az")))
    assert "our judgement" in text
    assert "www." in text


def test_sampled_and_exact_results_are_compared():
    """A sampled run of the recommended setting has its own table, and agrees."""
    answer = recommend(described(racks={1: "a", 2: "b", 3: "c"}), MODEL)
    sampled = simulate(
        answer.cluster, answer.best.config, MODEL, answer.load, years=2000, engine="local"
    )
    text = render_report(answer, sampled=sampled)
    assert "2,000 years of faults" in text
    check = sampled_check(answer.best.reliability, sampled)
    assert [row["agrees"] for row in check["rows"]] == [True, True, True]
    assert "years of faults" not in render_report(answer)


def test_a_narrow_interval_has_enough_digits() -> None:
    """The ends of a narrow interval and the exact value never read the same."""
    cluster = described(racks={1: "a", 2: "b", 3: "c"})
    config = Config(replication_factor=1)
    exact = evaluate(cluster, config, MODEL)
    sampled = simulate(cluster, config, MODEL, years=500, engine="local")
    near = Estimate(1e-6, 0.996e-6, 1.004e-6, 500, "made up")
    rows = sampled_check(
        replace(exact, read_unavailability=1.005e-6), replace(sampled, read_unavailability=near)
    )["rows"]
    assert rows[-1]["exact"] == "31.69 s/year"
    assert rows[-1]["sampled"] == "31.54 s/year (95 %: 31.41 to 31.66 s/year)"
    assert not rows[-1]["agrees"]


def test_a_sample_that_disagrees_is_marked():
    """Against another setting's exact values the table says no."""
    cluster = described(racks={1: "a", 2: "b", 3: "c"})
    sampled = simulate(cluster, Config(replication_factor=1), MODEL, years=500, engine="local")
    check = sampled_check(evaluate(cluster, Config(replication_factor=3), MODEL), sampled)
    assert not any(row["agrees"] for row in check["rows"])
    assert all(row["words"].startswith("no") for row in check["rows"])
    # Between two and four standard errors off is no proof, and is said as what it is.
    found = sampled.estimate("read_unavailability")
    near = replace(
        evaluate(cluster, Config(replication_factor=1), MODEL),
        read_unavailability=found.high * (found.high / found.value) ** 0.5,
    )
    row = sampled_check(near, sampled)["rows"][-1]
    assert row["words"].startswith("just outside: the sample has ")
    assert row["words"].endswith("% less")


def test_a_learned_card_is_said_to_be_learned() -> None:
    """At the top, and in a section with what was seen, before and now; else there is neither."""
    card = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": {"value": 0.1, "low": 0.01, "high": 1}, "hours": 12}}}
    )
    learned = learn(
        {"brokers": 12, "years": 3, "events": {"broker.destroyed": 2}},
        prior=replace(card, name="ours"),
    )
    (row,) = learned.numbers
    page = render_report(recommend(described(), learned.model))
    section = page.partition('id="learned"')[2].partition("</section>")[0]
    for said in (
        "2 in 36 broker-years",
        "0.1 (0.01 to 1)",
        f"{significant(row.posterior.value)} ({significant(row.posterior.low)} to",
    ):
        assert said in section
    assert "which is ours with what this cluster has seen" in page
    assert page.count('href="#learned"') == 1
    assert "learned" not in "".join(Page(render_report(recommend(described(), card))).ids)
