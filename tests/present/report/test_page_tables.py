"""The report's tables: costs, stalls, internal topics, findings and swings."""

import dataclasses
import re

import pytest
from markupsafe import escape

from advised import MODEL, described
from advisor import catalog
from advisor.advice import Goals, Recommendation, recommend
from advisor.formatting import once_in, years
from advisor.present import plot_reliability
from advisor.present.card_text import card_in_words
from advisor.present.figures.tornado import largest_swings
from advisor.present.labels import time_per_year_label
from advisor.present.outcome import outcomes
from advisor.present.report.page import dependents_in_words, render_report
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.results.cost import in_bytes


@pytest.fixture(scope="module")
def advice() -> Recommendation:
    return recommend(described(), MODEL, goals=Goals(survive="rack"))


@pytest.fixture(scope="module")
def text(advice: Recommendation) -> str:
    return render_report(advice)


def test_every_setting_has_its_cost(text: str, advice: Recommendation) -> None:
    """Bytes stored, bytes between racks and acknowledgement time of every candidate."""
    table = text[text.index("settings as a table") :]
    table = table[: table.index("</table>")]
    rows = re.findall(r'<tr(?: class="best")?><th scope="row">RF \d.*?</tr>', table, re.DOTALL)
    assert len(rows) == len(advice.choices)
    for choice in advice.choices:
        cost = choice.reliability.cost
        between = cost.bytes_per_second_between_racks
        assert between is not None
        said = f'<td class="figure">{in_bytes(choice.bytes_stored)}<br>{in_bytes(between)}/s<br>'
        assert any(f"{said}{cost.acknowledgement_ms:g} ms</td>" in row for row in rows)


def test_stalls_are_shown_for_acks_all(text: str, advice: Recommendation) -> None:
    """acks=all has a row and a bar for stalled writes, acks=1 has none."""
    best = advice.best.reliability
    (stalled,) = (outcome for outcome in outcomes(best) if outcome.measure == "write_stalled")
    assert f'<th scope="row">Writes stalled</th><td>{stalled.said}</td>' in text
    drawn = [words.get_text() for words in plot_reliability(best).texts]
    assert stalled.said in drawn
    alone = evaluate(described(), best.config.changed(acks=1), MODEL)
    assert "Writes stalled" not in [outcome.title for outcome in outcomes(alone)]


def test_dependents_on_internal_topics(text: str, advice: Recommendation) -> None:
    """Groups and transactions with their time, its bounds and their dependencies."""
    found = advice.best.reliability.dependents()
    told = dependents_in_words(advice.best.reliability)
    for row, stopped in zip(told["rows"], (found.consumer_group, found.transaction), strict=True):
        assert row["stopped"] == time_per_year_label(stopped.unavailability)
        assert f'{row["stopped"]}</td><td class="figure">{row["bounds"]}</td>' in text
        assert all(f"{name}: {down}" in text for name, down in row["parts"])
    assert told["assumptions"]
    assert all(f'<p class="note">{escape(words)}</p>' in text for words in told["assumptions"])


def test_a_report_without_an_audit_has_the_findings_of_the_advice(advice: Recommendation) -> None:
    """Each finding about cluster and producer has a row with reason and remedy."""
    assert [finding.code for finding in advice.findings] == []
    strict = Goals(loss_probability_per_year=1e-15, records_refused_per_year=0.0)
    advice = dataclasses.replace(advice, goals=strict)
    text = render_report(advice)
    assert [finding.code for finding in advice.findings] == ["KRA312", "KRA402"]
    for finding in advice.findings:
        assert f'<tr><th scope="row">{finding.code}</th>' in text
        assert str(escape(finding.rule.remedy)) in text


def test_cited_sources_are_listed_once() -> None:
    """Each name in brackets, also of a source cited by a source, has one row."""
    catalogue = catalog.evidence()
    told = card_in_words(load_model("bare_metal_racks"))
    names = [source["name"] for source in told["sources"]]
    assert len(names) == len(set(names)) > 0
    said = [row["evidence"] for row in told["rows"]] + [one["source"] for one in told["sources"]]
    named = set(re.findall(r"\[([a-z0-9-]+)\]", " ".join(said)))
    cited = {quantity.evidence for quantity in load_model("bare_metal_racks").quantities.values()}
    assert named & set(catalogue) - cited == set(names)
    for source in told["sources"]:
        assert catalogue[source["name"]].note in source["source"]
        assert "//" not in source["source"]
        known = catalogue[source["name"]]
        if known.verified != "assumption":
            assert source["source"].count(known.url.split("://")[-1]) == 1


def test_numbers_of_a_card_are_as_they_were_given() -> None:
    """Numbers of shipped cards have a unit, no exponent, and read back as their value.

    What was computed from a product has two digits.
    """
    for name in catalog.model_names():
        card = load_model(name)
        for row, quantity in zip(
            card_in_words(card)["rows"], card.quantities.values(), strict=True
        ):
            digits = max(len(re.sub(r"[^1-9]", "", end)) for end in row["range"].split(" to "))
            computed = quantity.minutes_per_year is not None
            assert digits <= (2 if computed else 4)
            number, _, unit = row["value"].partition(" ")
            assert "e" not in number
            assert unit.removeprefix("million ")
            number = float(number) * (1e6 if unit.startswith("million ") else 1)
            assert number == pytest.approx(quantity.value, rel=0.05 if computed else 1e-5)


def test_the_assumption_that_moves_most_is_shown(text: str, advice: Recommendation) -> None:
    """The card's only number with a range appears once per measure, with both ends."""
    swings = largest_swings(advice.best.reliability)
    assert [row["path"] for row in swings] == ["broker.crash.per_year"] * 2
    assert {row["range"] for row in swings} == {"1 to 5 per year"}
    assert all(row["low"] in text and row["high"] in text for row in swings)
    assert text.count("What to measure first") == 1
    assert "was not computed" not in text


def test_a_large_chain_has_no_swings_unless_cached(advice: Recommendation) -> None:
    """Without cached swings the report says so and evaluates nothing; then it shows them."""
    best = advice.choices[0]
    large = dataclasses.replace(best.reliability, states=10**6, swings={})
    changed = dataclasses.replace(advice)
    # Both are computed when first asked for, and remembered.
    vars(changed)["best"] = dataclasses.replace(best, reliability=large)
    vars(changed)["choices"] = (changed.best, *advice.choices[1:])
    text = render_report(changed)
    assert not large.swings
    assert "moves these numbers most was not computed" in text
    large.tornado()
    assert [row["path"] for row in largest_swings(large)] == ["broker.crash.per_year"] * 2


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_number_has_one_wording(advice: Recommendation, replicas: int) -> None:
    """The frequency of losses reads the same in verdict, tables and swings.

    So it does where a year is nearly sure to have a loss; intervals go from the shortest time to
    the longest everywhere; shares have one space before the sign.
    """
    config = advice.best.config.changed(replication_factor=replicas, min_insync_replicas=1)
    often = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": {"value": 40, "low": 9, "high": 90}, "hours": 12}}}
    )
    result = evaluate(advice.cluster, config, often)
    assert result.loss_probability_per_year > 0.9
    told = once_in(result.mean_years_to_loss)
    low, high = map(years, result.interval("mean_years_to_loss"))
    assert f"data loss {told} (main cause: lost disks)" in result.summary
    assert f"Data loss: {told}; main cause of loss: lost disks." in repr(result)
    lost = outcomes(result)[0]
    assert lost.brief == told
    assert lost.value.endswith(f" / year, {told}")
    assert lost.interval == f"95 %: once in {low} to {high}"
    assert told in result.summary
    assert largest_swings(result)[0]["low"].startswith("once in ")
    assert not re.search(r"[0-9]%", result.explain())
    assert re.search(r"[0-9] %  lost disks", result.explain())
