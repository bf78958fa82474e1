"""Answers of Prometheus with known truth: what they prove is counted, silence is no health."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import advisor
from advisor.errors import InputError
from advisor.learning.counts import Window, _joined, read_histories
from advisor.learning.evidence import ClusterHistory, Seen
from advisor.learning.metric_causes import BROKER_DOWN, SEVERAL_DOWN
from advisor.learning.metric_names import Metric, bean_pattern, metric_of, name_pattern, version_of
from advisor.reliability.failures.mechanisms import Scope, table

STEP, BEGIN, SAMPLES = 30, 1_735_689_600, 2880
BROKERS, CONTROLLERS = ("b1:9404", "b2:9404", "b3:9404"), ("c1:9404", "c2:9404", "c3:9404")
DAY_YEARS = 1 / 365
NAMES = {
    Metric.UP: "up",
    Metric.START: "process_start_time_seconds",
    Metric.UNDER_REPLICATED: "kafka_server_replicamanager_underreplicatedpartitions",
    Metric.UNDER_MIN_ISR: "kafka_server_replicamanager_underminisrpartitioncount",
    Metric.LEADERS: "kafka_server_replicamanager_leadercount",
    Metric.OFFLINE: "kafka_controller_kafkacontroller_offlinepartitionscount",
    Metric.PARTITIONS: "kafka_controller_kafkacontroller_globalpartitioncount",
    Metric.ACTIVE: "kafka_controller_kafkacontroller_activecontrollercount",
    Metric.APPLIED_LAG_MS: "kafka_controller_kafkacontroller_lastappliedrecordlagms",
}
OF_BROKERS = (Metric.UNDER_REPLICATED, Metric.UNDER_MIN_ISR, Metric.LEADERS)
OF_CONTROLLERS = (Metric.OFFLINE, Metric.PARTITIONS, Metric.ACTIVE, Metric.APPLIED_LAG_MS)
HEALTHY = {Metric.LEADERS: 40.0, Metric.PARTITIONS: 120.0}


class Scraped:
    """A day of a healthy cluster, in which tests change what happened."""

    def __init__(self, step: int = STEP) -> None:
        self.step, self.count = step, 86_400 // step
        self.rows: dict[tuple[Metric, str], np.ndarray] = {}
        for targets, metrics in ((BROKERS, OF_BROKERS), (CONTROLLERS, OF_CONTROLLERS)):
            for target in targets:
                self.rows[Metric.UP, target] = np.ones(self.count)
                self.rows[Metric.START, target] = np.full(self.count, BEGIN - 1e6)
                for metric in metrics:
                    self.rows[metric, target] = np.full(self.count, HEALTHY.get(metric, 0.0))
        self.rows[Metric.ACTIVE, CONTROLLERS[0]][:] = 1.0

    def silent(self, target: str, first: int, last: int, up: float = 0.0) -> None:
        """No answer from one sample to another; all its own series end."""
        for (metric, name), row in self.rows.items():
            if name == target:
                row[first:last] = up if metric is Metric.UP else np.nan

    def restart(self, target: str, first: int, last: int) -> None:
        """Down from one sample on, and a new process that is up at another."""
        self.silent(target, first, last)
        self.rows[Metric.START, target][last:] = BEGIN + last * self.step - self.step / 2

    def asleep(self, first: int, last: int) -> None:
        """Prometheus itself has no sample."""
        for row in self.rows.values():
            row[first:last] = np.nan

    def answer(self, first: int = 0, last: int | None = None, spelled: Any = NAMES) -> Any:
        """Return what query_range would, for a part of the day."""
        result = [
            {
                "metric": {"__name__": spelled[metric], "instance": target, "job": "kafka"},
                "values": [
                    [BEGIN + place * self.step, repr(float(row[place]))]
                    for place in range(first, last or self.count)
                    if not np.isnan(row[place])
                ],
            }
            for (metric, target), row in self.rows.items()
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}

    def history(self) -> ClusterHistory:
        (history,) = read_histories([self.answer()], Window())
        return history


def events(history: ClusterHistory) -> dict[str, int]:
    return {mechanism: seen.events for mechanism, seen in history.seen.items()}


SINGLE = {"broker.crash": 0, "broker.power": 0, "broker.restart": 0}
TOGETHER = {"cluster.crash": 0, "cluster.rollout": 0, "cluster.disk_full": 0}
QUORUM = {"cluster.controller": 0}


def test_a_quiet_day_proves_that_nothing_happened() -> None:
    """Zeros over all the time that was watched, no outage and no gap."""
    history = Scraped().history()
    assert events(history) == SINGLE | TOGETHER | QUORUM
    assert (history.outages, history.gaps, history.brokers) == ((), (), 3)
    for mechanism, exposure in history.exposures.items():
        targets = 3 if mechanism.startswith("broker") else 1
        assert exposure == pytest.approx(targets * DAY_YEARS)
    assert history.exposure_years(Scope.BROKER) == pytest.approx(3 * DAY_YEARS)
    assert history.refused is not None
    assert history.refused.partition_minutes == 0.0


def test_a_broker_that_begins_anew_was_down() -> None:
    """One outage with its times; what stopped it is not said, that nothing else did is."""
    scraped = Scraped()
    scraped.restart(BROKERS[1], 100, 108)
    history = scraped.history()
    (outage,) = history.outages
    assert (outage.mechanism, outage.brokers) == (BROKER_DOWN, (BROKERS[1],))
    assert outage.start.timestamp() == BEGIN + 100 * STEP
    assert outage.end is not None
    assert outage.end.timestamp() == BEGIN + 108 * STEP
    assert events(history) == TOGETHER | QUORUM
    assert history.gaps == ()
    assert "broker.restart" in history.notes[0]


def test_a_restart_between_two_samples_is_seen() -> None:
    """Only the start of the process tells."""
    scraped = Scraped()
    scraped.restart(BROKERS[1], 100, 100)
    history = scraped.history()
    assert [outage.mechanism for outage in history.outages] == [BROKER_DOWN]
    assert events(history) == TOGETHER | QUORUM


@pytest.mark.parametrize("up", [0.0, float("nan")])
def test_a_target_that_goes_on_with_its_process_was_not_down(up: float) -> None:
    """Its silence is a gap: no outage, and off the exposure."""
    scraped = Scraped()
    scraped.silent(BROKERS[0], 100, 400, up)
    history = scraped.history()
    assert history.outages == ()
    assert events(history) == SINGLE | TOGETHER | QUORUM
    (gap,) = history.gaps
    assert (gap.broker, gap.end.timestamp() - gap.start.timestamp()) == (BROKERS[0], 300 * STEP)
    lost = 300 / SAMPLES * DAY_YEARS
    assert history.exposures["broker.crash"] == pytest.approx(3 * DAY_YEARS - lost)
    assert history.exposures["cluster.crash"] == pytest.approx(DAY_YEARS - lost)


def test_what_happens_while_prometheus_sleeps_is_not_counted() -> None:
    """Neither as an outage nor as time without one."""
    scraped = Scraped()
    scraped.restart(BROKERS[0], 150, 160)
    scraped.asleep(100, 400)
    history = scraped.history()
    assert history.outages == ()
    assert {gap.broker for gap in history.gaps} == set(BROKERS)
    assert history.exposures["broker.crash"] == pytest.approx(3 * DAY_YEARS * (1 - 300 / SAMPLES))
    assert history.exposures["cluster.controller"] == pytest.approx(DAY_YEARS * (1 - 300 / SAMPLES))


def test_several_brokers_down_at_once_are_listed_and_not_counted() -> None:
    """Why they stopped is in no metric; nor is a zero claimed where it may have happened."""
    scraped = Scraped()
    scraped.restart(BROKERS[0], 100, 108)
    scraped.restart(BROKERS[1], 101, 110)
    history = scraped.history()
    (outage,) = history.outages
    assert (outage.mechanism, outage.brokers) == (SEVERAL_DOWN, BROKERS[:2])
    assert events(history) == QUORUM
    between = Scraped()
    between.restart(BROKERS[0], 100, 100)
    between.restart(BROKERS[1], 100, 100)
    assert events(between.history()) == QUORUM


def test_rolling_restarts_are_told_by_their_pattern() -> None:
    """All brokers stop one after the other, each once: nothing else does that."""
    scraped = Scraped()
    for place, broker in enumerate(BROKERS):
        scraped.restart(broker, 100 + 20 * place, 108 + 20 * place)
    history = scraped.history()
    assert [outage.mechanism for outage in history.outages] == ["broker.restart"] * 3
    assert events(history) == SINGLE | TOGETHER | QUORUM | {"broker.restart": 3}
    assert history.seen["broker.restart"].lengths["minutes"].ended == (4.0, 4.0, 4.0)
    twice = Scraped()
    for place, broker in enumerate((BROKERS[0], BROKERS[1], BROKERS[0])):
        twice.restart(broker, 100 + 20 * place, 108 + 20 * place)
    assert [outage.mechanism for outage in twice.history().outages] == [BROKER_DOWN] * 3


def test_long_steps_do_not_show_what_is_together() -> None:
    """At five minutes no zero is claimed for what stops several brokers."""
    history = Scraped(step=300).history()
    assert events(history) == SINGLE | QUORUM
    assert "300 s" in " ".join(history.notes)


def test_a_broker_with_another_address_leaves_it_open() -> None:
    """It dies under one name and returns under another: no zero is claimed of brokers."""
    scraped = Scraped()
    scraped.silent(BROKERS[2], 1000, SAMPLES, up=float("nan"))
    for metric in (Metric.UP, Metric.START, *OF_BROKERS):
        row = scraped.rows[metric, BROKERS[1]].copy()
        row[:1100] = np.nan
        scraped.rows[metric, "b9:9404"] = row
    history = scraped.history()
    assert events(history) == QUORUM
    assert "another address" in " ".join(history.notes)


def test_a_broker_that_does_not_return_is_missed_by_others() -> None:
    """It is down to the end where others lack it, else it is only silent."""
    scraped = Scraped()
    scraped.silent(BROKERS[2], 2000, SAMPLES)
    assert scraped.history().outages == ()
    scraped.rows[Metric.UNDER_REPLICATED, BROKERS[0]][2001:] = 17.0
    (outage,) = scraped.history().outages
    assert (outage.mechanism, outage.end) == (BROKER_DOWN, None)


def test_a_lost_quorum_is_counted_with_its_length() -> None:
    """No active controller while the survivor falls behind; a failover of seconds is none."""
    scraped = Scraped()
    scraped.silent(CONTROLLERS[0], 100, 120)
    scraped.silent(CONTROLLERS[1], 100, 120)
    lag = scraped.rows[Metric.APPLIED_LAG_MS, CONTROLLERS[2]]
    lag[100:120] = 1000.0 * STEP * np.arange(1, 21)
    scraped.rows[Metric.ACTIVE, CONTROLLERS[0]][500:501] = 0.0
    history = scraped.history()
    assert events(history) == SINGLE | TOGETHER | {"cluster.controller": 1}
    (length,) = history.seen["cluster.controller"].lengths["minutes"].ended
    assert length == 10.0


def test_an_unseen_active_controller_is_no_lost_quorum() -> None:
    """Where the active one is not scraped, the sum is 0 and proves nothing."""
    scraped = Scraped()
    scraped.silent(CONTROLLERS[0], 100, 400)
    history = scraped.history()
    assert events(history) == SINGLE | TOGETHER | QUORUM
    assert history.exposures["cluster.controller"] < DAY_YEARS * (1 - 299 / SAMPLES)


def test_a_lost_quorum_without_proof_is_not_counted() -> None:
    """Without a lag, or where no controller answers, neither a loss nor a zero is claimed."""
    without_lag = Scraped()
    for controller in CONTROLLERS:
        del without_lag.rows[Metric.APPLIED_LAG_MS, controller]
    without_lag.rows[Metric.ACTIVE, CONTROLLERS[0]][100:120] = 0.0
    silent = Scraped()
    for controller in CONTROLLERS:
        silent.silent(controller, 100, 120)
    for scraped in (without_lag, silent):
        history = scraped.history()
        assert events(history) == SINGLE | TOGETHER
        assert "cluster.controller" in " ".join(history.notes)


def test_controllers_that_are_not_scraped_prove_nothing() -> None:
    """Two of three report, neither is active and neither falls behind: the third is active."""
    scraped = Scraped()
    for key in [key for key in scraped.rows if key[1] == CONTROLLERS[0]]:
        del scraped.rows[key]
    assert events(scraped.history()) == SINGLE | TOGETHER


def test_refused_minutes_need_all_brokers() -> None:
    """What a broker that is not scraped leads may have been refused, too."""
    scraped = Scraped()
    for key in [key for key in scraped.rows if key[1] == BROKERS[0]]:
        del scraped.rows[key]
    assert scraped.history().refused is None


def test_a_controller_that_starts_says_nothing() -> None:
    """Its lag is the time since 1970 for a moment, which is no lost quorum."""
    scraped = Scraped()
    scraped.silent(CONTROLLERS[0], 100, 400)
    scraped.rows[Metric.APPLIED_LAG_MS, CONTROLLERS[1]][100:110] = 1.8e12
    assert events(scraped.history())["cluster.controller"] == 0


def test_refused_minutes_add_up() -> None:
    """Partitions below min ISR over brokers, and the most that any controller says is offline."""
    scraped = Scraped()
    scraped.rows[Metric.UNDER_MIN_ISR, BROKERS[0]][100:120] = 3.0
    scraped.rows[Metric.UNDER_MIN_ISR, BROKERS[1]][100:120] = 1.0
    for controller in CONTROLLERS:
        scraped.rows[Metric.OFFLINE, controller][200:210] = 2.0
    refused = scraped.history().refused
    assert refused is not None
    assert refused.partition_minutes == pytest.approx(4 * 10.0 + 2 * 5.0)
    assert refused.any_minutes == pytest.approx(15.0)
    assert refused.minutes == pytest.approx(50.0 / 120.0)
    assert refused.years == pytest.approx(DAY_YEARS)


def test_without_starts_nothing_is_claimed_of_brokers() -> None:
    """A restart between two samples would not be seen."""
    scraped = Scraped()
    for broker in BROKERS:
        del scraped.rows[Metric.START, broker]
    history = scraped.history()
    assert events(history) == QUORUM
    assert "process_start_time_seconds" in history.notes[0]


SPELLINGS = {
    "UP": ["up"],
    "START": ["process_start_time_seconds"],
    "UNDER_MIN_ISR": [
        "kafka_server_ReplicaManager_UnderMinIsrPartitionCount",
        "kafka_server_replicamanager_underminisrpartitioncount_value",
        "kafka.replication.under_min_isr_partition_count",
        "UnderMinIsrPartitionCount",
        "kafka_server_replicamanager_value{UnderMinIsrPartitionCount}",
        "kafka_server_ReplicaManager_Value{UnderMinIsrPartitionCount}",
    ],
    "UNDER_REPLICATED": [
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka.replication.under_replicated_partitions",
    ],
    "LEADERS": [
        "kafka_server_replicamanager_leadercount",
        "kafka.replication.leader_count",
        "LeaderCount",
        "kafka_server_replicamanager_leadercount{kafka}",
    ],
    "ISR_SHRINKS": [
        "kafka_server_replicamanager_isrshrinks_total",
        "kafka_server_replicamanager_isrshrinkspersec_count",
        "kafka_server_replicamanager_isrshrinkspersec_count_total",
        "kafka_server_replicamanager_isrshrinkspersec_total",
        "kafka_server_ReplicaManager_Count{IsrShrinksPerSec}",
    ],
    "FAILED_PRODUCE": ["kafka_server_brokertopicmetrics_failedproducerequests_total"],
    "ACTIVE": ["kafka_controller_KafkaController_ActiveControllerCount_Value"],
    "OFFLINE": ["OfflinePartitionsCount", "kafka.replication.offline_partitions_count"],
    "REGISTRATION": ["kafka_controller_kafkacontroller_brokerregistrationstate"],
    "SHUTTING_DOWN": ["kafka_controller_kafkacontroller_controlledshutdownbrokercount"],
    "OFFLINE_LOG_DIRS": ["kafka_log_logmanager_offlinelogdirectorycount"],
    "BROKER_STATE": ["kafka_server_kafkaserver_brokerstate"],
    "VERSION": ["kafka_server_app_info", "kafka_server_app_info_version"],
    "": [
        "kafka_server_replicamanager_partitioncount",
        "kafka_server_replicamanager_isrshrinkspersec_oneminuterate",
        "kafka_server_ReplicaManager_OneMinuteRate{IsrShrinksPerSec}",
        "node_startup",
        "",
    ],
}


@pytest.mark.parametrize(
    ("spelled", "metric"), [(name, metric) for metric, names in SPELLINGS.items() for name in names]
)
def test_one_bean_has_many_spellings(spelled: str, metric: str) -> None:
    """By the end of its name, whatever case, suffix or label; a server is asked for it, too."""
    name, _, bean = spelled.rstrip("}").partition("{")
    read = metric_of({"__name__": name, **({"name": bean} if bean else {})})
    assert (read.name if read else "") == metric
    asked = re.fullmatch(name_pattern(), name) or re.fullmatch(bean_pattern(), bean)
    assert metric in ("", "UP", "START") or asked


@pytest.mark.parametrize("label", ["topic", "partition", "quantile"])
def test_parts_of_a_number_are_not_read(label: str) -> None:
    """A topic's failed requests are in its broker's already."""
    name = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    assert metric_of({"__name__": name, label: "orders"}) is None


def test_versions_are_numbers() -> None:
    """So that a change is a change of a number."""
    assert version_of({"version": "4.1.0-rc1"}) == 40100
    assert version_of({"version": "unknown"}) is None


def written(folder: Path, answers: Iterable[Any]) -> Path:
    for number, answer in enumerate(answers):
        (folder / f"{number}.json").write_text(json.dumps(answer))
    return folder


def test_files_are_put_together(tmp_path: Path) -> None:
    """A folder, or a list, with months one after the other, is one cluster."""
    scraped = Scraped()
    scraped.restart(BROKERS[1], 100, 108)
    folder = written(tmp_path, [scraped.answer(0, 1500), scraped.answer(1500)])
    whole = scraped.history()
    (joined,) = read_histories([folder], Window())
    (listed,) = read_histories(sorted(folder.glob("*.json")), Window())
    assert joined == listed == whole


def test_counts_beside_metrics_are_of_their_cluster(tmp_path: Path) -> None:
    """In the same time unless they say another; what was typed goes before what metrics prove."""
    scraped = Scraped()
    scraped.restart(BROKERS[1], 100, 108)
    folder = written(tmp_path, [scraped.answer()])
    (alone,) = read_histories([folder], Window())
    counts = {"racks": 3, "events": {"broker.crash": 1, **dict.fromkeys(TOGETHER, 1)}}
    (joined,) = read_histories([folder, counts], Window())
    assert joined.name == alone.name
    assert joined.racks == 3
    assert joined.seen["broker.crash"].events == 1
    crash, together = table()["broker.crash"], table()[next(iter(TOGETHER))]
    assert joined.exposure_of(crash) == pytest.approx(3 * alone.years)
    assert joined.seen[together.name].events == 1
    assert joined.exposure_of(together) == pytest.approx(alone.years)
    assert {name: joined.seen[name] for name in QUORUM} == {n: alone.seen[n] for n in QUORUM}
    assert any(all(name in note for name in TOGETHER) for note in joined.notes)
    longer = {"brokers": 3, "years": 2, "events": {"broker.crash": 1}}
    (named,) = read_histories([folder, {**longer, "name": "payments"}], Window())
    assert named.name == "payments"
    assert named.exposure_of(crash) == 6.0
    assert named.exposures.items() >= {n: alone.exposure_of(table()[n]) for n in QUORUM}.items()


def test_counts_beside_several_clusters_say_of_which_they_are() -> None:
    """By name; without one they are refused, and another name is another cluster."""
    first, second = (Scraped().history() for _ in range(2))
    both = [replace(first, name="a"), replace(second, name="b")]
    typed = replace(first, name="counts", seen={"broker.crash": Seen(2)}, exposures={})
    assert [h.name for h in _joined(both, [replace(typed, name="b", named=True)])] == ["a", "b"]
    assert [h.name for h in _joined(both, [replace(typed, named=True)])] == ["a", "b", "counts"]
    with pytest.raises(InputError, match="of which cluster the counts are"):
        _joined(both, [replace(typed, named=False)])


def test_a_card_is_learned_from_metrics(tmp_path: Path) -> None:
    """Counts, coverage, what was refused beside what is expected, notes and a picture."""
    scraped = Scraped()
    scraped.restart(BROKERS[1], 100, 108)
    folder = written(tmp_path, [scraped.answer()])
    learned = advisor.learn(folder, prior="three_az_cloud")
    assert {row.mechanism for row in learned.counts} == {*TOGETHER, *QUORUM}
    assert learned.observed is not None
    assert learned.observed.any_refused_minutes == 0.0
    assert learned.coverage[0].brokers == 3
    assert any("broker.restart" in note for note in learned.notes)
    (ax,) = learned.timeline().axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [BROKERS[1]]


def test_time_can_be_cut(tmp_path: Path) -> None:
    """Since and until leave out what lies outside."""
    folder = written(tmp_path, [Scraped().answer()])
    learned = advisor.learn(
        folder, prior="three_az_cloud", since="2025-01-01T06:00", until="2025-01-01T18:00"
    )
    assert learned.coverage[0].years == pytest.approx(0.5 * DAY_YEARS)


def dumped(scraped: Scraped, open_metrics: bool = False) -> str:
    """What promtool dumps: each target scraped at moments of its own, some milliseconds off."""
    rng = np.random.default_rng(3)
    lines = []
    for (metric, target), row in scraped.rows.items():
        moment = 7.0 * (sum(map(ord, target)) % 4)
        late = rng.integers(0, 40, len(row)) / 1000.0
        was_there = False
        for place, value in enumerate(row):
            seconds = BEGIN + place * STEP + moment + late[place]
            if not np.isnan(value) or was_there:
                time = f"{seconds:.3f}" if open_metrics else f"{1000 * seconds:.0f}"
                name = NAMES[metric]
                labels = f'instance="{target}",job="a \\"quoted\\" job"'
                start = f"{name}{{" if open_metrics else f'{{__name__="{name}", '
                lines.append(f"{start}{labels}}} {value:g} {time}")
            was_there = not np.isnan(value)
    return "\n".join(["# a dump", *lines, "# EOF", ""])


@pytest.mark.parametrize("open_metrics", [False, True])
def test_a_dump_says_the_same(tmp_path: Path, open_metrics: bool) -> None:
    """Text of blocks or OpenMetrics, at the times of the scrapes, ended series included."""
    scraped = Scraped()
    scraped.restart(BROKERS[1], 100, 108)
    scraped.asleep(500, 700)
    scraped.silent(BROKERS[0], 1000, 1100)
    scraped.rows[Metric.UNDER_MIN_ISR, BROKERS[2]][2000:2040] = 3.0
    path = tmp_path / "dump.txt"
    path.write_text(dumped(scraped, open_metrics))
    (history,) = read_histories([path], Window())
    answer = scraped.history()
    assert history.seen == answer.seen
    assert history.exposures == pytest.approx(answer.exposures, rel=1e-3)
    assert [o.mechanism for o in history.outages] == [o.mechanism for o in answer.outages]
    moved = history.outages[0].start - answer.outages[0].start
    assert abs(moved.total_seconds()) <= STEP
    assert len(history.gaps) == len(answer.gaps) == 4
    assert history.refused is not None
    assert history.refused.partition_minutes == pytest.approx(60.0, rel=1e-3)


def test_a_broken_dump_is_refused(tmp_path: Path) -> None:
    """With its line."""
    path = tmp_path / "dump.txt"
    path.write_text('{__name__="up", instance="b"} 1 1735689600000\n{__name__="up"} oops\n')
    with pytest.raises(InputError, match=r"dump\.txt:2: it is no sample"):
        read_histories([path], Window())


GOOD = {"__name__": "up", "instance": "b1"}
ROWS = [[BEGIN, "1"], [BEGIN + 30, "1"]]


def matrix(*result: Any) -> Any:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": "error", "error": "query timed out"}, "query timed out"),
        ({"status": "success"}, "query_range"),
        ({"status": "success", "data": {"resultType": "vector", "result": []}}, "query_range"),
        ({"status": "success", "data": {"resultType": "matrix", "result": 3}}, "no list"),
        (matrix(), "no series of a broker"),
        (matrix({"values": ROWS}), "no labels"),
        (matrix({"metric": GOOD, "values": [[1], [2]]}), "no pairs"),
        (matrix({"metric": GOOD, "values": None}), "no pairs"),
        (matrix({"metric": GOOD, "values": [[1, "x"]]}), "no pairs"),
        (matrix({"metric": GOOD, "values": ROWS[::-1]}), "do not ascend"),
        (matrix({"metric": GOOD, "values": ROWS[:1]}), "no series has two times"),
        (matrix({"metric": GOOD, "values": ROWS}), "no target reports"),
        (matrix({"metric": GOOD, "values": [*ROWS, [BEGIN + 75, "1"]]}), "apart everywhere"),
        (
            matrix(
                {"metric": GOOD, "values": ROWS},
                {"metric": {**GOOD, "job": "other"}, "values": [[BEGIN, "0"], [BEGIN + 30, "0"]]},
            ),
            "both of",
        ),
        (matrix({"metric": GOOD, "values": [[0, "1"], [1, "1"], [1e12, "1"]]}), "since 1970"),
        (matrix({"metric": GOOD, "values": [[0, "1"], [1, "1"], [1e9, "1"]]}), "since 1970"),
    ],
)
def test_a_wrong_answer_is_refused(answer: Any, said: str) -> None:
    """Errors, other kinds of answers, broken and mixed series, each in a sentence."""
    with pytest.raises(InputError, match=said) as refused:
        read_histories([answer], Window())
    assert "\n" not in str(refused.value)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """There is nothing in it to read."""
    with pytest.raises(InputError, match="no answer of Prometheus"):
        advisor.learn(tmp_path, prior="three_az_cloud")
