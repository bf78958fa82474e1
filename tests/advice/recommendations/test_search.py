"""The search for settings, mostly with made-up measures whose best setting is known."""

import json
import math
import re
from dataclasses import replace

import pytest

from advisor.advice import Goals, recommend
from advisor.advice.goals import decades_short, judge
from advisor.advice.recommendations.ranking import ranked
from advisor.advice.recommendations.search import assumed_load, candidates, search, usual_config
from advisor.advice.tolerance import Survival
from advisor.cluster import Cluster, Partition, Topic
from advisor.errors import InputError, NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.fault_tolerance import tolerance
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 12}}})
SIX = Cluster.uniform(brokers=6, racks=3)
TWO_RACKS = Cluster.uniform(brokers=4, racks=2)
LOAD = Workload(partitions=1)


def made_up(cluster: Cluster, config: Config, model: FailureModel, load: Workload) -> Reliability:
    """Lose 10^-3 for each copy an acknowledgement needs, refuse less the more may be missing."""
    real = evaluate(cluster, config.changed(replication_factor=1, min_insync_replicas=1), model)
    least = config.min_insync_replicas if config.acks == "all" else 0
    spare = config.replication_factor - max(least, 1)
    lost = 10.0 ** (-3 * least - 1)
    return replace(
        real,
        loss_probability_per_year=lost,
        loss_events_per_year=lost,
        mean_years_to_loss=1 / lost,
        write_unavailability=10.0 ** (-3 * spare - 2),
        read_unavailability=10.0 ** (-3 * config.replication_factor),
        records_refused_per_year=1e6 / (config.delivery_timeout_ms or 1),
        config=config,
        load=load,
        intervals={},
    )


def found(cluster: Cluster = SIX, **goals: object) -> tuple[int, int, object]:
    config = search(made_up, cluster, CARD, LOAD, Goals(**goals)).best.config
    return config.replication_factor, config.min_insync_replicas, config.acks


def test_the_cheapest_without_risks_that_meets_the_goals_wins() -> None:
    """More replicas are chosen where they are needed, a risk only where nothing else meets."""
    assert found() == (3, 2, "all")
    assert found(loss_probability_per_year=1e-3) == (3, 2, "all")
    assert found(loss_probability_per_year=1.0, write_unavailability=1.0) == (3, 2, "all")
    assert found(loss_probability_per_year=1e-9) == (4, 3, "all")
    one = Cluster.uniform(brokers=1, racks=1)
    assert found(one, loss_probability_per_year=1.0, write_unavailability=1.0) == (1, 1, "all")


def test_a_risk_is_taken_where_only_it_meets_the_goals() -> None:
    """The cheapest such setting wins, and between equal ones that with the larger margin."""
    assert found(loss_probability_per_year=1e-2, write_unavailability=1e-7) == (3, 1, "all")
    two = Cluster.uniform(brokers=2, racks=2)
    assert found(two, loss_probability_per_year=1e-5, write_unavailability=1e-2) == (2, 2, "all")
    assert found(two, loss_probability_per_year=1e-3, write_unavailability=1e-4) == (2, 1, "all")


def test_survival_goals_count() -> None:
    """Survive excludes what one rack or broker can stop, whatever the probabilities are."""
    loose = {"loss_probability_per_year": 1.0, "write_unavailability": 1e-7}
    assert found(**loose) == (3, 1, "all")
    assert found(survive="broker", **loose) == (4, 2, "all")
    assert found(survive="rack", **loose) == (5, 3, "all")


def test_two_racks_get_the_best_compromise_and_the_reason() -> None:
    """If no setting meets every goal, the verdict names the missed one and why."""
    answer = search(made_up, TWO_RACKS, CARD, LOAD, Goals(survive="rack"))
    assert not answer.best.meets_all
    assert len(answer.best.unmet) == 1
    assert not any(choice.meets_all for choice in answer.choices)
    assert answer.verdict.startswith("No, ")
    assert "No setting meets every goal" in answer.caveats[0]
    assert "Two racks never give both" in answer.caveats[0]
    fewest = min(len(choice.unmet) for choice in answer.choices)
    assert len(answer.best.unmet) == fewest


def test_goals_that_cannot_be_judged_are_refused() -> None:
    """survive="rack" needs known racks."""
    unknown = Cluster.uniform(brokers=3, racks=None)
    with pytest.raises(InputError, match="needs the rack of every broker"):
        search(made_up, unknown, CARD, LOAD, Goals(survive="rack"))
    assert search(made_up, unknown, CARD, LOAD, Goals(survive="broker")).best.meets_all


def test_a_longer_delivery_timeout_is_chosen_only_for_a_limit() -> None:
    """A longer delivery timeout is compared, and chosen if refused records are limited."""
    answer = search(made_up, SIX, CARD, LOAD)
    assert answer.best.config.delivery_timeout_ms == 120_000
    assert {c.config.delivery_timeout_ms for c in answer.choices} == {120_000, 600_000, 1_800_000}
    limited = search(made_up, SIX, CARD, LOAD, Goals(records_refused_per_year=1.0))
    assert limited.best.config.delivery_timeout_ms == 1_800_000
    assert limited.best.meets_all


def test_settings_that_cannot_be_computed_are_noted() -> None:
    """Replication factors beyond the exact model are noted, and the others are ranked."""

    def limited(
        cluster: Cluster, config: Config, model: FailureModel, load: Workload
    ) -> Reliability:
        if (config.replication_factor or 0) > 3:
            raise NotComputedError("too large")
        return made_up(cluster, config, model, load)

    answer = search(limited, SIX, CARD, LOAD, Goals(loss_probability_per_year=1e-9))
    assert answer.best.config.replication_factor == 3
    assert sum("was left out: too large" in note for note in answer.notes) == 2

    def never(*_: object) -> Reliability:
        raise NotComputedError("never")

    with pytest.raises(NotComputedError, match="never"):
        search(never, SIX, CARD, LOAD)


def test_every_ranked_settings_assumptions_are_noted_once() -> None:
    """Assumptions of all settings and of the present one, those of the best first."""

    def assuming(
        cluster: Cluster, config: Config, model: FailureModel, load: Workload
    ) -> Reliability:
        own = f"min ISR {config.min_insync_replicas} with acks={config.acks}"
        return replace(made_up(cluster, config, model, load), assumptions=("racks", own))

    today = Config(replication_factor=2, min_insync_replicas=1, acks=0)
    answer = search(assuming, SIX, CARD, LOAD, current=today, kafka_version="4.1")
    assert answer.best.config.min_insync_replicas == 2
    assert answer.notes[:2] == ("Racks.", "Min ISR 2 with acks=all.")
    assert answer.notes[-1] == "Min ISR 1 with acks=0."
    assert sorted(answer.notes) == sorted(
        {"Racks.", *(f"Min ISR {least} with acks=all." for least in (1, 2, 3))}
        | {f"Min ISR 1 with acks={acks}." for acks in (0, 1)}
    )


def test_missed_goals_are_named_with_their_limits() -> None:
    """Singular and plural, value and limit; "just beyond" if no digit differs."""
    one_rack = Cluster.uniform(brokers=3, racks=1)

    def missed(**goals: float | None) -> str:
        said = " ".join(search(made_up, one_rack, CARD, LOAD, Goals(**goals)).caveats)
        missed = said.partition("No setting meets every goal; this one misses the ")[2]
        return missed.partition(" An audit calls it a risk")[0]

    assert missed(loss_probability_per_year=1e-12, write_unavailability=1e-9) == (
        "goals for lost records (a 1 in 10 million chance a year; the goal is a 1 in 1 trillion "
        "chance a year) and time without writes (5.3 minutes a year; the goal is less than a "
        "second a year)."
    )
    only = {"loss_probability_per_year": None}
    assert missed(**only, records_refused_per_year=0.5) == (
        "goal for failed sends (0.56 a year; the goal is 0.5 a year)."
    )
    assert missed(**only, write_unavailability=9e-9) == (
        "goal for time without writes (1.0e-8; the goal is 9.0e-9)."
    )
    assert missed(**only, write_unavailability=0.99999e-8) == (
        "goal for time without writes (1.0e-8, just beyond the goal)."
    )


def test_the_html_table_has_short_numbers() -> None:
    """Delivery timeouts and measures without needless digits or exponents."""

    def patient(
        cluster: Cluster, config: Config, model: FailureModel, load: Workload
    ) -> Reliability:
        made = made_up(cluster, config, model, load)
        return replace(made, records_refused_per_year=179e6 / (config.delivery_timeout_ms or 1))

    page = search(patient, SIX, CARD, LOAD)._repr_html_().partition("<tbody>")[2]
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in page.split("<tr>")]
    assert {(row[2], row[6]) for row in rows if row} == {
        ("120", "1,500"),
        ("600", "300"),
        ("1,800", "99"),
    }
    old = search(made_up, SIX, CARD, LOAD, kafka_version="2.0")._repr_html_()
    assert "<td>none</td>" in old


def test_settings_that_meet_all_goals_rank_first() -> None:
    """The order of the choices is that of the ranking; met goals come before missed ones."""
    goals = Goals()
    answer = search(made_up, SIX, CARD, LOAD, goals)
    assert list(answer.choices) == ranked(answer.choices[::-1], goals, 2)
    met = [choice.meets_all for choice in answer.choices]
    assert met == sorted(met, reverse=True)


@pytest.mark.parametrize(("replicas", "worse"), [(3, 1.04), (5, 1.06)])
def test_fewest_replicas_win_where_losses_hardly_differ(replicas: int, worse: float) -> None:
    """If the goal is missed anyway, 5 % fewer losses do not justify two more replicas.

    Of three replicas min ISR 2 is taken: a broker may go without loss, and one with writes.
    """

    def hopeless(
        cluster: Cluster, config: Config, model: FailureModel, load: Workload
    ) -> Reliability:
        found = made_up(cluster, config, model, load)
        factor, least = config.replication_factor or 0, config.min_insync_replicas or 0
        loss = 0.1 * (1.0 if factor == 5 else worse if factor == 3 else 2.0)
        return replace(
            found,
            loss_probability_per_year=loss * (1.0 - 1e-4 * least),
            loss_events_per_year=loss * (1.0 - 1e-4 * least),
            write_unavailability=1e-6 * (1.0 + 1e-4 * least),
            tolerates=tolerance(config),
        )

    best = search(hopeless, SIX, CARD, LOAD).best
    assert best.config.replication_factor == replicas
    assert replicas == 5 or best.config.min_insync_replicas == 2


def test_a_tolerated_failure_wins_where_goals_are_missed() -> None:
    """Two replicas that lose as often as three rank lower: they tolerate no failure."""

    def site(cluster: Cluster, config: Config, model: FailureModel, load: Workload) -> Reliability:
        found, least = made_up(cluster, config, model, load), config.min_insync_replicas or 0
        return replace(
            found,
            loss_probability_per_year=0.1,
            records_refused_per_year=found.records_refused_per_year - 1e-6 * least,
            mean_years_to_loss=10.0,
            acked_records_lost_per_year=10.0 / config.replication_factor,
            # Every copy that writes wait for costs a fifth: no reason to do with one copy.
            write_unavailability=1e-2 * 1.2**least,
            tolerates=tolerance(config),
        )

    answer = search(site, SIX, CARD, LOAD)
    assert answer.best.name == "RF 3, min.insync.replicas 2, acks=all"
    flat = replace(SIX, brokers=dict.fromkeys(SIX.brokers))
    assert (
        "RF 2 with min.insync.replicas 1 misses the same goals: data loss as often; it tolerates "
        "losing no brokers instead of one broker."
    ) in search(site, flat, CARD, LOAD).why


def test_candidates_follow_the_version() -> None:
    """Every min ISR since 0.8.2, a producer that retries, unclean election off."""
    assert [(c.min_insync_replicas, c.acks) for c in candidates("4.1", 3)] == [
        (1, "all"),
        (1, 1),
        (2, "all"),
        (3, "all"),
    ]
    assert [c.min_insync_replicas for c in candidates("4.1", 5)] == [2, 3, 4]
    assert [c.min_insync_replicas for c in candidates("0.8.1", 3)] == [1, 1]
    assert all(c.retries for v in ("0.8.2", "2.0", "2.1", "4.1") for c in candidates(v, 2))
    assert not any(c.unclean_leader_election_enable for c in candidates("0.10.0", 3))


def test_goals_are_checked() -> None:
    """A limit that is not a number, not finite, negative or above 1 is refused."""
    for wrong in (math.nan, math.inf, -1e-6, 2.0, True, "1e-6"):
        with pytest.raises(InputError):
            Goals(loss_probability_per_year=wrong)
    with pytest.raises(InputError, match="survive='zone'"):
        Goals(survive="zone")
    assert Goals(records_refused_per_year=5e6).limits["records_refused_per_year"] == 5e6


def test_goals_are_judged_at_their_limit() -> None:
    """A measure equal to its limit meets it; beyond, the distance counts in decades."""
    goals = Goals(write_unavailability=None)
    assert judge(goals, {"loss_probability_per_year": 1e-6}, None) == {
        "loss_probability_per_year": True
    }
    assert decades_short(goals, {"loss_probability_per_year": 1e-4}) == pytest.approx(2.0)
    assert decades_short(goals, {"loss_probability_per_year": 1e-8}) == 0.0
    met = judge(Goals(), dict.fromkeys(goals.limits | {"write_unavailability": 1}, 0.0), None)
    assert all(met.values())
    half = Survival(share=1, without_loss=True, writable=False, writable_while_patching=False)
    judged = judge(goals, {"loss_probability_per_year": 0.0}, half)
    assert (judged["survive_without_loss"], judged["survive_writable"]) == (True, False)


def test_the_exact_model_answers() -> None:
    """With the real model the verdict says yes, and names the settings, losses and refusals."""
    answer = recommend(SIX, CARD, LOAD)
    yes = "Yes, RF 4 with min ISR 2 meets your goals: negligible data loss, writes refused "
    assert answer.verdict.startswith(yes)
    assert answer.tolerances.startswith("Brokers you can lose at once: ")
    assert repr(answer).startswith(answer.verdict)
    assert answer.explain().startswith(answer.verdict)
    assert answer.verdict.split(": ")[0] in answer._repr_html_()
    table = answer.table()
    assert len(table) == len(answer.choices)
    for measure in ("loss_probability_per_year", "write_unavailability"):
        assert (table[f"{measure}_low"] <= table[measure]).all()
        assert (table[measure] <= table[f"{measure}_high"]).all()
    assert table["meets_all"].tolist() == [choice.meets_all for choice in answer.choices]
    json.dumps(answer.to_dict())


def test_reasons_name_other_replication_factors() -> None:
    """Why RF 3: RF 2 is too few for losing a rack, and RF 4 would be worse."""
    answer = search(made_up, SIX, CARD, LOAD)
    why = " ".join(answer.why)
    assert "RF 2 is too few for losing a rack" in why
    assert "RF 4 would be worse for losing a rack: one rack then holds 2 of the 4" in why
    assert "With acks=1: data loss once in" in why


def test_rare_losses_are_compared_by_their_ratio() -> None:
    """Both too rare to observe: the reason for min ISR 2 is the ratio."""

    def rare(cluster: Cluster, config: Config, model: FailureModel, load: Workload) -> Reliability:
        found = made_up(cluster, config, model, load)
        return replace(found, mean_years_to_loss=1e8 * 1000.0 ** (config.min_insync_replicas or 0))

    why = " ".join(search(rare, SIX, CARD, LOAD).why)
    assert "With min.insync.replicas 1: data loss 1,000 times as often" in why
    assert "With min.insync.replicas 3: data loss less often" in why
    assert why.count("but too rare to observe either way") == 2


def test_topics_and_load_come_from_the_description() -> None:
    """Partitions of user topics are added up; most of them define the present settings."""
    replicas = (1, 2, 3)
    many = Topic("many", tuple(Partition(i, 1, replicas, replicas) for i in range(5)))
    few = Topic("few", (Partition(0, 1, (1,), (1,)),), {"min.insync.replicas": "1"})
    inner = Topic("__consumer_offsets", (Partition(0, 1, (1,), (1,)),))
    cluster = Cluster(SIX.brokers, (inner, few, many), kafka_version="3.9")
    answer = search(made_up, cluster, CARD)
    assert answer.load.partitions == 6
    assert answer.current is not None
    assert answer.current.config.replication_factor == 3
    assert answer.topics == ("__consumer_offsets", "few", "many")
    assert any("6 partitions were assumed" in note for note in answer.notes)
    only = search(made_up, cluster, CARD, topics=["few"])
    assert only.load.partitions == 1
    assert not any("many" in line for line in only.commands())
    with pytest.raises(InputError, match="no topic 'nope'"):
        search(made_up, cluster, CARD, topics=["nope"])
    assert usual_config((inner,), "3.9") is None


@pytest.mark.parametrize(("topics", "internal", "times"), [(1, 0, 1), (3, 1, 3), (0, 1, 1)])
def test_the_assumed_load_grows_with_the_topics(topics: int, internal: int, times: int) -> None:
    """The default rate for each topic that is not Kafka's own, as audits assume."""
    names = [f"t{n}" for n in range(topics)] + ["__consumer_offsets"] * internal
    load, note = assumed_load([Topic(name, (Partition(0, 1, (1, 2), (1, 2)),)) for name in names])
    assert load.records_per_second == times * Workload().records_per_second
    assert load.partitions == max(topics, 1)
    assert ("on average 1,000 a topic" in note) == (topics > 1)
