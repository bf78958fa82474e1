"""Answers of CloudWatch for MSK: what a minute proves, and what an hour cannot tell."""

import json
from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.errors import InputError
from advisor.learning.cloudwatch import UNDER_REPLICATED
from advisor.learning.counts import Window, read_histories
from advisor.learning.evidence import ClusterHistory
from advisor.reliability.failures.mechanisms import table

BEGIN, MINUTE, HOUR = 1_735_689_600, 60, 3600
BROKERS = ("1", "2", "3")
STOPPING = {"broker.crash", "broker.power", "broker.restart"}
TOGETHER = {"cluster.crash", "cluster.rollout", "cluster.disk_full"}
QUORUM = "cluster.controller"


class Reported:
    """A day of MSK by some period, in which tests change values."""

    def __init__(self, period: int = MINUTE, statistic: str = "Average", days: int = 1) -> None:
        self.period, self.statistic = period, statistic
        self.count = days * 86_400 // period
        self.rows: dict[tuple[str, str], list[float | None]] = {}
        for broker in BROKERS:
            for name in ("UnderReplicatedPartitions", "UnderMinIsrPartitionCount", "CpuUser"):
                self.rows[name, broker] = [0.0] * self.count
        for name, value in (
            ("OfflinePartitionsCount", 0.0),
            ("ActiveControllerCount", 1.0),
            ("GlobalPartitionCount", 120.0),
        ):
            self.rows[name, ""] = [value] * self.count

    def put(self, name: str, broker: str, places: range, value: float | None) -> None:
        for place in places:
            self.rows[name, broker][place] = value

    def answer(self, begin: int = BEGIN) -> dict[str, Any]:
        """As the command prints it, the last first."""
        results = []
        for number, ((name, broker), values) in enumerate(self.rows.items()):
            pairs = [
                (begin + place * self.period, value)
                for place, value in enumerate(values)
                if value is not None
            ][::-1]
            results.append(
                {
                    "Id": f"m{number}",
                    "Label": f"{name} {broker} cluster=payments {self.statistic}",
                    "Timestamps": [moment for moment, _ in pairs],
                    "Values": [value for _, value in pairs],
                    "StatusCode": "Complete",
                }
            )
        return {"MetricDataResults": results, "Messages": []}

    def history(self) -> ClusterHistory:
        (history,) = read_histories([self.answer()], Window())
        return history


def events(history: ClusterHistory) -> dict[str, int]:
    return {mechanism: seen.events for mechanism, seen in history.seen.items()}


def test_the_mechanisms_are_those_of_the_table() -> None:
    """Names in this file exist."""
    assert {*STOPPING, *TOGETHER, QUORUM} <= set(table().names)


def test_a_quiet_day_by_the_minute_proves_zeros() -> None:
    """Of all that would leave a replica missing, and of a lost quorum."""
    history = Reported().history()
    assert events(history) == dict.fromkeys([*STOPPING, *TOGETHER, QUORUM], 0)
    assert (history.name, history.brokers, history.outages, history.gaps) == ("payments", 3, (), ())
    assert history.exposures["broker.crash"] == pytest.approx(3 / 365)
    assert history.exposures["cluster.crash"] == pytest.approx(1 / 365)
    assert history.refused is not None
    assert history.refused.partition_minutes == 0.0


def test_missing_replicas_prove_nothing() -> None:
    """They are on the timeline; what was the matter is not known."""
    reported = Reported()
    reported.put("UnderReplicatedPartitions", "2", range(100, 110), 7.0)
    history = reported.history()
    assert events(history) == {QUORUM: 0}
    (outage,) = history.outages
    assert outage.mechanism == UNDER_REPLICATED
    assert outage.end is not None
    assert (outage.end - outage.start).total_seconds() == 600.0


def test_a_lost_quorum_by_the_minute_is_counted() -> None:
    """With its length."""
    reported = Reported()
    reported.put("ActiveControllerCount", "", range(100, 112), 0.0)
    seen = reported.history().seen[QUORUM]
    assert (seen.events, seen.lengths["minutes"].ended) == (1, (12.0,))


def test_an_hour_does_not_tell_a_lost_quorum() -> None:
    """Not one that is shorter, so that no zero is claimed either."""
    history = Reported(HOUR, days=30).history()
    assert QUORUM not in history.seen
    assert QUORUM in " ".join(history.notes)
    assert events(history) == dict.fromkeys([*STOPPING, *TOGETHER], 0)


def test_refused_minutes_follow_from_averages() -> None:
    """By the hour too; a maximum of an hour does not say how long."""
    averaged = Reported(HOUR, days=30)
    averaged.put("UnderMinIsrPartitionCount", "1", range(5, 6), 0.5)
    refused = averaged.history().refused
    assert refused is not None
    assert refused.partition_minutes == pytest.approx(30.0)
    assert refused.minutes == pytest.approx(30.0 / 120.0)
    most = Reported(HOUR, "Maximum", days=30)
    most.put("UnderMinIsrPartitionCount", "1", range(5, 6), 3.0)
    assert most.history().refused is None
    assert "not known" in " ".join(most.history().notes)
    by_minute = Reported(MINUTE, "Maximum")
    by_minute.put("UnderMinIsrPartitionCount", "1", range(5, 15), 3.0)
    refused = by_minute.history().refused
    assert refused is not None
    assert refused.partition_minutes == pytest.approx(30.0)
    offline = Reported(HOUR, days=30)
    offline.put("OfflinePartitionsCount", "", range(5, 6), 0.5)
    assert offline.history().refused is None


def test_times_without_values_are_not_watched() -> None:
    """A broker that reports nothing is no quiet one."""
    reported = Reported()
    for name in ("UnderReplicatedPartitions", "UnderMinIsrPartitionCount"):
        reported.put(name, "3", range(600, 1320), None)
    history = reported.history()
    assert history.exposures["broker.crash"] == pytest.approx(0.5 * 3 / 365)
    (gap,) = history.gaps
    assert (gap.broker, (gap.end - gap.start).total_seconds()) == ("3", 720 * 60.0)


def test_shorter_periods_count_where_both_are(tmp_path: Path) -> None:
    """A folder with a month by the hour, whose last day is there by the minute, too."""
    hours, minutes = Reported(HOUR, days=30), Reported()
    hours.put("UnderMinIsrPartitionCount", "1", range(29 * 24 + 3, 29 * 24 + 4), 1.0)
    minutes.put("UnderMinIsrPartitionCount", "1", range(180, 200), 3.0)
    (tmp_path / "hours.json").write_text(json.dumps(hours.answer()))
    (tmp_path / "minutes.json").write_text(json.dumps(minutes.answer(BEGIN + 29 * 86_400)))
    (history,) = read_histories([tmp_path], Window())
    assert history.years == pytest.approx(30 / 365)
    assert history.refused is not None
    assert history.refused.partition_minutes == pytest.approx(60.0)


def test_a_card_is_learned(tmp_path: Path) -> None:
    """From a file, as from any source."""
    path = tmp_path / "msk.json"
    path.write_text(json.dumps(Reported().answer()))
    learned = advisor.learn(path, prior="three_az_cloud")
    assert {row.mechanism for row in learned.counts} == {*STOPPING, *TOGETHER, QUORUM}


GOOD = {"Id": "a", "Label": "UnderMinIsrPartitionCount 1", "Timestamps": [0, 60], "Values": [0, 0]}


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (3, "no list"),
        ([3], "no table"),
        ([], "docs/learn.md has the query"),
        ([{**GOOD, "Label": "UnderMinIsrPartitionCount"}], "no broker's number"),
        ([{**GOOD, "StatusCode": "PartialData"}], "not complete"),
        ([{**GOOD, "Values": [0]}], "as many Values"),
        ([{**GOOD, "Timestamps": [0, "yesterday"]}], "cannot be read"),
        ([{**GOOD, "Timestamps": [0, 0]}], "twice"),
        ([{**GOOD, "Values": [0, "NaN"]}], "no number"),
    ],
)
def test_a_wrong_answer_is_refused(results: Any, said: str) -> None:
    """In a sentence."""
    with pytest.raises(InputError, match=said) as refused:
        read_histories([{"MetricDataResults": results}], Window())
    assert "\n" not in str(refused.value)


def test_an_answer_that_goes_on_is_refused() -> None:
    """The rest of it may have an outage."""
    with pytest.raises(InputError, match="goes on"):
        read_histories([{"MetricDataResults": [GOOD], "NextToken": "more"}], Window())
