"""The explorer as data: settings, refusals, marks, commands and the page without a kernel."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from advised import MODEL, described
from advisor.advice import Goals, recommend
from advisor.cluster import Cluster, load_cluster
from advisor.present.interactive.explorer import Explorer, explorer
from advisor.present.interactive.explorer_model import ExplorerModel
from advisor.present.interactive.fragment import html_fragment
from advisor.present.interactive.switches import switchable
from advisor.present.second_process import SecondProcess
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.workload import Workload

EVIL = "</script><script>alert('x')</script>"
LOAD = Workload(partitions=3)
START = Config(replication_factor=3, min_insync_replicas=2, acks="all")


@pytest.fixture(scope="module")
def explorer_model() -> ExplorerModel:
    goals = Goals(loss_probability_per_year=1e-3, write_unavailability=1e-5)
    return ExplorerModel(described(), MODEL, LOAD, goals, START)


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explorer(described(), MODEL, LOAD, config=START, cards=())


def chosen(explorer_model: ExplorerModel, **changes: str) -> dict[str, Any]:
    """Return the setting that some controls change to."""
    return explorer_model.setting({**explorer_model.chosen, **changes})


def page_of(html: str) -> Any:
    """Return the data of a fragment."""
    found = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_numbers_are_those_of_evaluate(explorer_model: ExplorerModel) -> None:
    """A setting's numbers agree with `evaluate` to the digits that are sent."""
    exact = evaluate(described(), START.changed(acks=1), MODEL, LOAD)
    setting = chosen(explorer_model, acks="1")
    assert setting["loss"][0] == pytest.approx(exact.loss_probability_per_year, rel=1e-4)
    assert setting["refused"][0] == pytest.approx(exact.write_unavailability, rel=1e-4)
    assert setting["name"] == "RF 3, min ISR 2, acks=1"


AT_MIDDLE = "Meets your goals at the card's middle values"


def test_the_badge_names_the_missed_goal(explorer_model: ExplorerModel) -> None:
    """A min ISR equal to the replication factor stops writes too often for this goal."""
    kept, missed = chosen(explorer_model), chosen(explorer_model, min_insync_replicas="3")
    assert (kept["met"], kept["badge"]) == (True, AT_MIDDLE)
    assert (missed["met"], missed["badge"]) == (False, "Misses your goals: time without writes")


def test_the_badge_says_when_most_draws_miss_the_goals() -> None:
    """The verdict is that of the card's middle values; the badge is green only if draws agree."""
    cluster, card = Cluster.uniform(brokers=3, racks=3), load_model("three_az_cloud")
    at_middle = ExplorerModel(cluster, card, LOAD, Goals(), START)
    writes = at_middle.setting(at_middle.chosen)["refused"][0]
    for times, unsure in ((1.01, True), (4.0, False)):
        goals = Goals(loss_probability_per_year=None, write_unavailability=times * writes)
        model = ExplorerModel(cluster, card, LOAD, goals, START)
        quick = model.setting(model.chosen)
        assert (quick["unsure"], quick["badge"]) == (False, AT_MIDDLE)
        setting = model.setting(model.chosen, intervals=True)
        said = re.fullmatch(rf"{AT_MIDDLE}, but in only (\d+) of 32 random draws", setting["badge"])
        assert (setting["met"], setting["unsure"]) == (True, unsure)
        assert (said is not None and int(said[1]) < 16) == unsure
        assert unsure or setting["badge"] == "Meets your goals"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"delivery_timeout_ms": "10"},
            "“delivery.timeout.ms should be equal to or larger than linger.ms + "
            "request.timeout.ms”",
        ),
        (
            {"kafka_version": "3.6", "replication_factor": "2", "min_insync_replicas": "3"},
            "“Messages are rejected since there are fewer in-sync replicas than required.”",
        ),
        (
            {"kafka_version": "3.9", "eligible_leader_replicas": "true"},
            "eligible leader replicas needs KRaft and Kafka 4.0 or newer",
        ),
        ({"retries": "many"}, "must be a whole number"),
        ({"retries": "-1"}, "must be a whole number"),
    ],
)
def test_a_refusal_has_kafkas_words(
    explorer_model: ExplorerModel, changes: dict[str, str], words: str
) -> None:
    """A refused combination has its reason in place of numbers."""
    setting = chosen(explorer_model, **changes)
    assert words in setting["refusal"]
    assert "loss" not in setting


def test_a_conflict_with_idempotence_is_refused_in_kafkas_words() -> None:
    """Explicit idempotence refuses acks=1, and retries=0, as Kafka's producer does."""
    start = START.changed(enable_idempotence=True)
    explorer_model = ExplorerModel(described(), MODEL, LOAD, Goals(), start)
    assert (
        "Must set acks to all in order to use the idempotent producer"
        in (chosen(explorer_model, acks="1")["refusal"])
    )
    assert "Must set retries to non-zero" in chosen(explorer_model, retries="0")["refusal"]


def test_a_min_isr_above_the_replication_factor_is_capped_since_3_7(
    explorer_model: ExplorerModel,
) -> None:
    """It is drawn where Kafka puts it, and said."""
    setting = chosen(explorer_model, replication_factor="2", min_insync_replicas="3")
    assert setting["at"] == [2, 2]
    assert any("takes it for 2" in words for _, words in setting["notes"])


def test_a_card_without_an_answer_says_so(explorer_model: ExplorerModel) -> None:
    """An unknown card is refused with its reason rather than an error in the notebook."""
    assert "no_such_card" in chosen(explorer_model, card="no_such_card")["refusal"]


def test_marks_are_what_recommend_says() -> None:
    """The recommended setting is that of `recommend`, the present one that of the topic."""
    cluster, goals = described(), Goals(loss_probability_per_year=1e-3, write_unavailability=1e-3)
    explorer_model = ExplorerModel(cluster, MODEL, LOAD, goals, START, "orders")
    advice = recommend(cluster, MODEL, LOAD, goals, kafka_version=START.kafka_version)
    _, marks = explorer_model.marks(explorer_model.chosen)
    named = {mark["mark"]: mark["at"] for mark in marks}
    best, today = advice.best.config, advice.current
    assert advice.best.meets_all
    assert named["best"] == [best.replication_factor, best.min_insync_replicas]
    assert today is not None
    assert named["today"] == [3, today.config.min_insync_replicas]


def test_commands_create_a_topic_or_change_one(explorer_model: ExplorerModel) -> None:
    """The lines are those of the migration plan; the producer's settings come along."""
    new = dict(chosen(explorer_model)["commands"])
    assert "--create --topic my-topic --partitions 3 --replication-factor 3" in new["Commands"]
    assert "acks=all" in new["producer.properties"]
    changed = dict(chosen(explorer_model, topic="orders")["commands"])
    assert "--alter --entity-type topics --entity-name orders" in changed["Commands"]
    assert "min.insync.replicas=2" in changed["Commands"]


def test_no_commands_lower_durability(explorer_model: ExplorerModel) -> None:
    """For fewer replicas than the topic has there are no commands, and it says why."""
    blocks = dict(chosen(explorer_model, topic="orders", replication_factor="2")["commands"])
    assert "Commands" not in blocks
    assert "orders has 3 replicas today" in blocks["No commands"]


def test_the_page_is_the_same_every_time(view: Explorer) -> None:
    """The same inputs give the same bytes, of less than 300 kB, and ask no address."""
    again = explorer(described(), MODEL, LOAD, config=START, cards=())
    assert view.html == again.html
    assert len(view.html) < 300_000
    assert not re.search("https?:", view.html)


def test_the_page_offers_what_was_computed(view: Explorer) -> None:
    """Every combination of the choices for the initial topic has a setting in the page.

    A min ISR above the replication factor is that factor since Kafka 3.7: the page says so.
    """
    page = page_of(view.html)
    options = {c["key"]: [option[0] for option in c["options"]] for c in page["controls"]}
    assert options["topic"] == ["", "orders"]
    assert "takes a min.insync.replicas above the replication factor" in page["capped"]
    places = [(factor, least) for factor in "123" for least in "123" if least <= factor]
    names = ("acks", "unclean_leader_election_enable", "delivery_timeout_ms")
    wanted = {
        around_key(page, replication_factor=factor, min_insync_replicas=least, **dict(chosen))
        for factor, least in places
        for chosen in product(*([(name, value) for value in options[name]] for name in names))
    }
    elsewhere = {
        around_key(page, topic="orders", replication_factor=factor, min_insync_replicas=least)
        for factor, least in places
    }
    assert len(wanted) == 6 * 3 * 2 * 2
    elr = {
        around_key(
            page,
            replication_factor=factor,
            min_insync_replicas=least,
            acks=acks,
            eligible_leader_replicas=value,
        )
        for factor, least in places
        for acks in options["acks"]
        for value in ("false", "true")
    }
    assert options["eligible_leader_replicas"] == ["default", "false", "true"]
    assert set(page["settings"]) == wanted | elsewhere | elr


def around_key(page: Any, **changes: str) -> str:
    """Return the key of the initial setting with changes."""
    return "|".join({**page["chosen"], **changes}.values())


def test_a_page_switches_topic_and_card() -> None:
    """Numbers are those of `evaluate` with the topic's load and the card; both are marked."""
    view = explorer(described(), MODEL, LOAD, config=START, cards=["two_az"])
    page = page_of(view.html)
    for topic, card in product(("", "orders"), (MODEL.name, "two_az")):
        load = replace(LOAD, partitions=3)
        model = MODEL if card == MODEL.name else load_model(card)
        exact = evaluate(described(), START.changed(min_insync_replicas=3), model, load)
        key = around_key(page, topic=topic, card=card, min_insync_replicas="3")
        setting = page["settings"][key]
        assert setting["loss"][0] == pytest.approx(exact.loss_probability_per_year, rel=1e-4)
        assert setting["refused"][0] == pytest.approx(exact.write_unavailability, rel=1e-4)
        marks = page["marks"][f"{topic}|{START.kafka_version}|{card}"]
        assert ("today" in [mark["mark"] for mark in marks]) == (topic == "orders")
    for card in (MODEL.name, "two_az"):
        value, low, high = page["settings"][around_key(page, card=card)]["loss"][:3]
        assert low < value < high
    for acks in (1, 0):
        other = evaluate(described(), START.changed(acks=acks), load_model("two_az"), LOAD)
        setting = page["settings"][around_key(page, card="two_az", acks=str(acks))]
        assert setting["loss"][0] == pytest.approx(other.loss_probability_per_year, rel=1e-4)
        assert (
            around_key(page, topic="orders", card="two_az", acks=str(acks))
            not in (page["settings"])
        )
    assert page["note"].startswith(
        "Not on this page: other topics or Kafka versions with acks other than all; other topics, "
    )


def test_a_page_switches_version_and_elr() -> None:
    """Numbers are those of `evaluate`, and each version has its recommendation."""
    view = explorer(Cluster.uniform(brokers=2, racks=2), MODEL, LOAD, cards=[MODEL.name])
    page = page_of(view.html)
    start = view._explorer_model.start
    for changes, config in (
        ({"kafka_version": "3.6"}, start.changed(kafka_version="3.6")),
        ({"kafka_version": "3.9"}, start.changed(kafka_version="3.9")),
        ({"eligible_leader_replicas": "false"}, start.changed(eligible_leader_replicas=False)),
    ):
        exact = evaluate(Cluster.uniform(brokers=2, racks=2), config, MODEL, LOAD)
        setting = page["settings"][around_key(page, **changes)]
        assert setting["loss"][0] == pytest.approx(exact.loss_probability_per_year, rel=1e-4)
        marks = page["marks"][f"|{config.kafka_version}|{MODEL.name}"]
        assert [mark["mark"] for mark in marks] == ["best"]


def test_retries_move_no_curve(explorer_model: ExplorerModel) -> None:
    """What the page draws before the kernel answers is what the kernel's answer draws."""
    for changes in ({"acks": "all"}, {"acks": "1"}, {"unclean_leader_election_enable": "true"}):
        before = chosen(explorer_model, **changes)
        for still in ({"retries": "0"}, {"retries": "3", "delivery_timeout_ms": "600000"}):
            after = chosen(explorer_model, **changes, **still)
            for name in ("at", "name", "loss", "refused", "said", "badge", "verdict"):
                assert after[name] == before[name]


def test_a_second_process_answers_as_this_one_does(
    explorer_model: ExplorerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answers come from it, and from here if it cannot start."""
    task = partial(
        explorer_model.without_cache().answer, {**explorer_model.chosen, "topic": "orders"}
    )
    here = [task()]
    assert SecondProcess([task]).results() == here
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    assert SecondProcess([task]).results() == here


def test_only_topics_of_users_are_switched_to() -> None:
    """Kafka's own and those of very many partitions are left out; those named come first."""
    lines = [
        f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
        for name in ("__consumer_offsets", *"abcdefgh")
    ]
    cluster = load_cluster("".join(lines))
    assert switchable(cluster, ["h", "__consumer_offsets"]) == ["h", *"abcde"]


def test_the_chosen_setting_has_intervals(view: Explorer) -> None:
    """The initial setting's intervals are computed for pages without a kernel."""
    page = page_of(view.html)
    value, low, high = page["settings"]["|".join(page["chosen"].values())]["loss"][:3]
    assert low < value < high


def test_a_topics_name_cannot_end_the_script() -> None:
    """Text of the cluster stays data."""
    explorer_model = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    page = explorer_model.page()
    assert page["settings"]
    page["texts"][0] = EVIL
    html = html_fragment(page).text
    assert EVIL not in html
    assert page_of(html)["texts"][0] == EVIL


def test_without_scripts_there_is_a_table(view: Explorer) -> None:
    """The settings of the first curve stand in a table that the script replaces."""
    rows = re.findall(r'<th scope="row">(.*?)</th>', view.html)
    assert rows == [
        f"RF {factor}, min ISR {least}, acks=all"
        for factor in (1, 2, 3)
        for least in range(1, factor + 1)
    ]


def test_the_first_picture_waits_for_its_curve_only() -> None:
    """A new explorer has one curve and what is marked; its HTML computes the rest, once."""
    view = explorer(described(), MODEL, LOAD, config=START, cards=())
    first = view.page
    assert {key.split("|")[3] for key in first["settings"]} == {"all"}
    assert len(first["settings"]) == 6
    assert list(first["marks"]) == [f"|{START.kafka_version}|{MODEL.name}"]
    html = view.html
    assert len(page_of(html)["settings"]) > 72
    assert set(first["settings"]) < set(view.page["settings"]) == set(page_of(html)["settings"])
    assert view.html == html
