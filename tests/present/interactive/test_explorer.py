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
from advisor.present.interactive.settings_grid import setting_key, verdict_at
from advisor.present.interactive.switches import switchable
from advisor.present.second_process import SecondProcess
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.workload import Workload
from explorer_pages import words_at

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


def judged(setting: dict[str, Any], price: float = 10_080) -> Any:
    """Return what the page says of a setting at a price of a loss."""
    return setting["verdicts"][f"{price:g}"]


def test_the_badge_is_that_of_the_verdict() -> None:
    """A min ISR of 3 stops writes with each broker; the setting that would be better is drawn."""
    explorer_model = ExplorerModel(described(), load_model("three_az_cloud"), LOAD, Goals(), START)
    kept, stopping = chosen(explorer_model), chosen(explorer_model, min_insync_replicas="3")
    assert (judged(kept)["severity"], judged(kept)["better"]) == ("ok", None)
    assert judged(stopping)["severity"] == "critical"
    assert judged(stopping)["better"]["at"] == [3, 2]
    for name in ("loss", "refused"):
        assert judged(stopping)["better"][name] == kept[name]
    assert judged(stopping)["better"]["values"]["min_insync_replicas"] == "2"


def test_every_price_of_a_loss_has_a_verdict_and_the_break_even_on_its_scale() -> None:
    """For metrics a min ISR of 1 is kept, for payments not: the verdicts of the same numbers."""
    cluster, card = Cluster.uniform(brokers=3, racks=3), load_model("three_az_cloud")
    model = ExplorerModel(cluster, card, LOAD, Goals(minutes_per_loss=300.0), START)
    values = {**model.chosen, "min_insync_replicas": "1"}
    setting = model.setting(values)
    assert list(setting["verdicts"]) == ["10", "60", "300", "1440", "10080", "43200"]
    least, _ = judged(setting, 43_200)["pays"]
    assert 10 < least < 43_200
    for price in map(float, setting["verdicts"]):
        verdict = model.verdicts(values)[f"{price:g}"]
        assert judged(setting, price)["headline"] == verdict.headline
        assert judged(setting, price)["severity"] == verdict.severity
        goals = Goals(minutes_per_loss=price)
        other = ExplorerModel(cluster, card, LOAD, goals, START)
        alone = other.setting({**values, "minutes_per_loss": f"{price:g}"})["verdicts"]
        assert alone[f"{price:g}"] == judged(setting, price)
    assert judged(setting, 10)["better"] is None
    assert judged(setting, 43_200)["better"]["at"] == [3, 2]


def test_nothing_is_known_to_be_sure_before_the_interval() -> None:
    """The page colours a badge only then; a card without ranges has nothing to wait for."""
    cluster, card = Cluster.uniform(brokers=3, racks=3), load_model("three_az_cloud")
    model = ExplorerModel(cluster, card, LOAD, Goals(), START)
    quick = judged(model.setting(model.chosen))
    assert (quick["known"], quick["confidence"]) == (False, "")
    whole = judged(model.setting(model.chosen, intervals=True))
    assert whole["known"]
    assert whole["confidence"] in ("sure", "likely", "depends")
    certain = FailureModel.from_dict({"broker": {"crash": {"per_year": 1.0, "minutes": 5.0}}})
    exact = ExplorerModel(cluster, certain, LOAD, Goals(), START)
    assert judged(exact.setting(exact.chosen))["known"]


def test_goal_line_and_verdict_agree() -> None:
    """A limit below the least of all settings is out of reach, one above the setting's is met."""
    at_middle = ExplorerModel(described(), MODEL, LOAD, Goals(), START)
    writes = at_middle.setting(at_middle.chosen)["refused"][0]
    for limit, unreached in ((2.0 * writes, []), (1e-9 * writes, ["refused"])):
        goals = Goals(write_unavailability=limit)
        model = ExplorerModel(described(), MODEL, LOAD, goals, START)
        said = judged(model.setting(model.chosen))
        assert said["unreached"] == unreached
        (outcome,) = model.verdicts(model.chosen)["10080"].actions[0].goals
        assert (outcome.state == "out of reach") == bool(unreached)
        assert len(said["goals"]) == 1


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


@pytest.mark.parametrize(
    ("changes", "controls"),
    [
        ({"delivery_timeout_ms": "30000"}, {"delivery_timeout_ms"}),
        (
            {"kafka_version": "3.7", "eligible_leader_replicas": "true"},
            {"eligible_leader_replicas", "kafka_version"},
        ),
        (
            {"kafka_version": "3.6", "replication_factor": "1"},
            {"min_insync_replicas", "replication_factor"},
        ),
        ({"retries": "many"}, {"retries"}),
        ({"card": "no_such_card"}, {"card"}),
    ],
)
def test_a_refusal_names_the_controls_that_conflict(
    explorer_model: ExplorerModel, changes: dict[str, str], controls: set[str]
) -> None:
    """The page marks the one that was changed, and mending any of them ends the refusal."""
    setting = chosen(explorer_model, **changes)
    assert set(setting["by"]) == controls
    assert set(changes) <= controls | {"kafka_version"}


def test_todays_setting_and_the_better_one_are_those_of_recommend() -> None:
    """The topic is judged as `recommend` judges it, and the page shows the same words."""
    cluster, goals = described(), Goals(loss_probability_per_year=1e-3, write_unavailability=1e-3)
    card = load_model("three_az_cloud")
    explorer_model = ExplorerModel(cluster, card, LOAD, goals, START, "orders")
    advice = recommend(cluster, card, LOAD, goals).quick_verdict
    (action,) = advice.actions
    ((today,),) = explorer_model.marked(explorer_model.chosen).marks.values()
    setting = explorer_model.setting(explorer_model.chosen)
    said = judged(setting)
    assert today["at"] == setting["at"] == [3, action.today.min_insync_replicas]
    assert (said["headline"], said["severity"]) == (advice.headline, action.severity)
    assert said["better"]["at"] == [3, action.after.min_insync_replicas]


def block_texts(setting: dict[str, Any]) -> dict[str, str]:
    """Return the texts of what brings a topic to a setting, by title."""
    return {title: text for title, text, _ in setting["commands"]}


def test_commands_create_a_topic_or_change_one(explorer_model: ExplorerModel) -> None:
    """The lines are those of the migration plan; the producer's settings come along."""
    new = block_texts(chosen(explorer_model))
    assert "--create --topic my-topic --partitions 3 --replication-factor 3" in new["Commands"]
    assert "acks=all" in new["producer.properties"]
    changed = block_texts(chosen(explorer_model, topic="orders"))
    assert "--alter --entity-type topics --entity-name orders" in changed["Commands"]
    assert "min.insync.replicas=2" in changed["Commands"]


def test_no_commands_lower_durability(explorer_model: ExplorerModel) -> None:
    """For fewer replicas than the topic has there are none to copy, and it says why."""
    setting = chosen(explorer_model, topic="orders", replication_factor="2")
    blocks = block_texts(setting)
    assert "Commands" not in blocks
    assert "orders has 3 replicas today" in blocks["No commands"]
    assert [copied for *_, copied in setting["commands"]] == [False, True]


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
    assert (
        "takes a min.insync.replicas above the replication factor"
        in page["capped"][START.kafka_version]
    )
    places = [(factor, least) for factor in "123" for least in "123" if least <= factor]
    names = ("acks", "unclean_leader_election_enable", "delivery_timeout_ms")
    wanted = {
        around_key(page, replication_factor=factor, min_insync_replicas=least, **dict(chosen))
        for factor, least in places
        for chosen in product(*([(name, value) for value in options[name]] for name in names))
    }
    orders = {**page["today"]["orders"], "topic": "orders"}
    elsewhere = {
        around_key(page, **orders | {"replication_factor": factor, "min_insync_replicas": least})
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
    return setting_key(list(page["chosen"]), {**page["chosen"], **changes})


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
        assert [mark["mark"] for mark in marks] == ["today"] * (topic == "orders")
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
        verdict = verdict_at(page, setting, "10080")
        assert words_at(page, verdict["headline"]) == "Keep RF 2, min ISR 1, acks=all."


def test_a_page_stores_equal_verdicts_once(explorer_model: ExplorerModel) -> None:
    """Rows, texts and better settings are all different, and give back what was judged."""
    shown = [explorer_model.chosen, *explorer_model.curve_settings(explorer_model.chosen)]
    for values in shown:
        explorer_model.setting(values)
    page = explorer_model.page()
    for stored in (page["texts"], page["judged"]["rows"], page["judged"]["better"]):
        assert stored
        assert len({json.dumps(value) for value in stored}) == len(stored)
    for values in shown:
        whole = explorer_model.setting(values)
        for price, verdict in whole["verdicts"].items():
            found = verdict_at(page, page["settings"][explorer_model.key(values)], price)
            for name in ("headline", "text", "floor", "sure"):
                assert words_at(page, found[name]) == verdict[name]
            for name in ("severity", "known", "confidence", "unreached", "pays"):
                assert found[name] == verdict[name]
            assert (found["better"] is None) == (verdict["better"] is None)
            if verdict["better"] is not None:
                assert words_at(page, found["better"]["name"]) == verdict["better"]["name"]
                assert found["better"]["values"] == verdict["better"]["values"]


def test_retries_move_no_curve(explorer_model: ExplorerModel) -> None:
    """What the page draws before the kernel answers is what the kernel's answer draws."""
    for changes in ({"acks": "all"}, {"acks": "1"}, {"unclean_leader_election_enable": "true"}):
        before = chosen(explorer_model, **changes)
        for still in ({"retries": "0"}, {"retries": "3", "delivery_timeout_ms": "600000"}):
            after = chosen(explorer_model, **changes, **still)
            for name in ("at", "name", "loss", "refused", "said"):
                assert after[name] == before[name]
            for name in ("severity", "text"):
                assert judged(after)[name] == judged(before)[name]
            # The verdict names another timeout than the usual one.
            headline = judged(after)["headline"].replace(", delivery.timeout.ms=600000", "")
            assert headline == judged(before)["headline"]


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
    value, low, high = page["settings"][around_key(page)]["loss"][:3]
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
