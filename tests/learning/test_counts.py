"""What a person types: every form of it, and what is refused, with the place and the next word."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.errors import InputError
from advisor.learning.counts import Window, read_histories
from advisor.learning.evidence import ClusterHistory, Seen, Teaches, evidence_of, length_key
from advisor.learning.posterior import Lengths, Share
from advisor.reliability.failures.mechanism import BrokerEvent, Mechanism, Strikes
from advisor.reliability.failures.mechanisms import MINUTES, PER_YEAR, Scope, registered, table

FRAME = {"brokers": 12, "years": 3, "racks": 3}


def read(source: Any, window: Window | None = None) -> ClusterHistory:
    (history,) = read_histories([source], window or Window())
    return history


def seen(mechanism: str, typed: Any, **frame: Any) -> Seen:
    return read({**FRAME, **frame, "events": {mechanism: typed}}).seen[mechanism]


def test_every_number_that_can_be_counted_has_its_evidence() -> None:
    """Rates and lengths of all mechanisms are learned, shapes and facts about tooling are not."""
    taught = {
        f"{entry.name}.{number.key}": evidence_of(entry).get(number.key)
        for entry in table().entries
        for number in entry.numbers
    }
    untaught = {path for path, kind in taught.items() if kind is None}
    assert {path.rpartition(".")[2] for path in untaught} == {"shape", "overlap"}
    kinds = {path: kind for path, kind in taught.items() if kind is not None}
    assert all(kinds[f"{name}.per_year"] is Teaches.RATE for name in table().names)
    assert kinds["cluster.controller.zookeeper_per_year"] is Teaches.ZOOKEEPER_RATE
    assert kinds["cluster.crash.all"] is Teaches.EVERY_BROKER
    assert kinds["cluster.crash.brokers"] is Teaches.EACH_BROKER
    assert kinds["rack.power.not_returning"] is Teaches.SHARE_OF_BROKERS
    assert kinds["rack.power.spreads"] is Teaches.SHARE_OF_RACKS
    assert kinds["broker.gray.hard"] is Teaches.SHARE_OF_DEATHS
    assert kinds["cluster.controller.stops"] is Teaches.SHARE_OF_EVENTS
    assert length_key(table()["broker.restart"]) == "minutes"
    assert length_key(table()["broker.restart"], "unclean") == "unclean_minutes"
    assert length_key(table()["rack.destroyed"]) == ""


def test_the_document_says_what_to_count() -> None:
    """A row for each mechanism, in order, with the years in which it is counted."""
    document = Path(__file__).parents[2] / "docs" / "learn.md"
    rows = re.findall(r"^\| `(\w+\.\w+)` \| .* \| (\w+)-years \|$", document.read_text(), re.M)
    assert rows == [(entry.name, entry.scope.value) for entry in table().entries]


def test_a_new_mechanism_can_be_counted() -> None:
    """An entry of the table is all that it takes."""
    entry = Mechanism(
        "cluster.flood",
        BrokerEvent.POWER,
        Strikes.POWERED,
        "floods",
        numbers=(PER_YEAR, MINUTES),
        condition=17,
        together=True,
    )
    with registered(entry):
        assert seen("cluster.flood", [{"minutes": 90}]) == Seen(1, {"minutes": Lengths((90.0,))})


def test_a_number_is_a_count() -> None:
    """A zero is a count, too; exposure is in the years of what is struck."""
    history = read({**FRAME, "events": {"broker.power": 4, "cluster.crash": 0}})
    assert history.seen == {"broker.power": Seen(4), "cluster.crash": Seen(0)}
    exposures = [history.exposure_years(scope) for scope in Scope]
    assert exposures == [36.0, 9.0, 3.0]


def test_events_one_by_one() -> None:
    """Lengths in minutes or hours, cut off or not, who was struck, and what came of it."""
    assert seen("broker.destroyed", [{"hours": 3}, {"minutes": 30}, {}]) == Seen(
        3, {"hours": Lengths((3.0, 0.5))}
    )
    assert seen("broker.power", [{"minutes": 40, "ongoing": True}]).lengths == {
        "minutes": Lengths((), (40.0,))
    }
    crash = seen("cluster.crash", [{"minutes": 40, "all": True}, {"brokers": 5}, {}])
    assert (crash.events, crash.struck, crash.shares) == (3, ((12, 12), (5, 12)), {})
    gray = seen("broker.gray", [{"dies": True, "hard": False}, {"dies": False}, {}])
    assert gray.shares == {"dies": Share(1, 2), "hard": Share(0, 1)}
    restart = seen("broker.restart", [{"minutes": 50, "unclean": True}, {"minutes": 4}])
    assert restart.lengths == {"minutes": Lengths((4.0,)), "unclean_minutes": Lengths((50.0,))}
    assert restart.shares == {"unclean": Share(1, 1)}
    power = seen("rack.power", [{"minutes": 60, "racks": 2, "not_returning": 1}])
    assert power.shares == {"not_returning": Share(1, 8), "spreads": Share(1, 2)}


def test_totals() -> None:
    """A count with some lengths and shares, as a table."""
    typed = {"events": 300, "minutes": [4, 6], "unclean_minutes": [50], "unclean": 2}
    assert seen("broker.restart", typed) == Seen(
        300,
        {"minutes": Lengths((4.0, 6.0)), "unclean_minutes": Lengths((50.0,))},
        {"unclean": Share(2, 300)},
    )
    gray = seen("broker.gray", {"events": 7, "dies": 3, "hard": 1})
    assert gray.shares == {"dies": Share(3, 7), "hard": Share(1, 3)}


def test_times_give_lengths_and_outages() -> None:
    """Events before the watch are left out, those that outlast it are cut off."""
    frame = {"brokers": 12, "racks": 3, "since": "2025-01-01", "until": "2026-01-01"}
    events = [
        {"start": "2025-03-01 10:00", "end": "2025-03-01T12:40+02:00", "brokers": [4]},
        {"start": "2024-12-31 23:00", "end": "2025-01-01 03:00"},
        {"start": "2025-12-31 23:00", "end": "2026-01-01 03:00"},
        {"start": "2025-12-31 22:00"},
    ]
    history = read({**frame, "events": {"broker.power": events}})
    assert history.years == pytest.approx(1.0)
    assert history.seen["broker.power"] == Seen(3, {"minutes": Lengths((40.0,), (60.0, 120.0))})
    first, *others = history.outages
    assert (first.brokers, first.mechanism) == ((4,), "broker.power")
    assert first.start == datetime(2025, 3, 1, 10, tzinfo=UTC)
    assert first.end == datetime(2025, 3, 1, 10, 40, tzinfo=UTC)
    assert [outage.end for outage in others] == [None, None]


TOML = """
brokers = 12
years = 3
[events]
broker.power = 4
"broker.gray" = 0
[[events.cluster.crash]]
minutes = 40
"""


def test_files_say_the_same(tmp_path: Path) -> None:
    """TOML with dotted names and nested tables, JSON, and a CSV of counts."""
    files = {
        "counts.toml": TOML,
        "counts.json": '{"brokers": 12, "years": 3, "events": {"broker.power": 4, '
        '"broker.gray": 0, "cluster.crash": [{"minutes": 40}]}}',
        "counts.csv": "mechanism,events,minutes,brokers,years\nbroker.power,4,,12,3\n"
        "# a remark\nbroker.gray,0,,12,3\ncluster.crash,1,40,12,3\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        history = read(tmp_path / name)
        assert (history.brokers, history.years) == (12, 3.0)
        assert history.seen == {
            "broker.power": Seen(4),
            "broker.gray": Seen(0),
            "cluster.crash": Seen(1, {"minutes": Lengths((40.0,))}),
        }


def test_several_clusters(tmp_path: Path) -> None:
    """A fleet as a list, as tables of one file, and as a column of a CSV."""
    (tmp_path / "fleet.toml").write_text(
        '[[clusters]]\nname = "a"\nbrokers = 3\nyears = 1\nevents = {"broker.power" = 1}\n'
        '[[clusters]]\nname = "b"\nbrokers = 6\ndays = 73\nevents = {"broker.power" = 0}\n'
    )
    (tmp_path / "fleet.csv").write_text(
        "cluster,brokers,days,mechanism,events\na,3,365,broker.power,1\nb,6,73,broker.power,0\n"
    )
    for name in ("fleet.toml", "fleet.csv"):
        both = read_histories([tmp_path / name], Window())
        assert [(h.name, h.brokers, h.years) for h in both] == [("a", 3, 1.0), ("b", 6, 0.2)]
        assert [h.seen["broker.power"].events for h in both] == [1, 0]
    names = [h.name for h in read_histories([FRAME | {"events": {}}] * 2, Window())]
    assert len(set(names)) == 2


INCIDENTS = """start,end,what,brokers
2025-03-01 10:00,2025-03-01 10:40,cluster.crash,"1,2,3"
2025-04-01 08:00,2025-04-01 08:10,host failures,4
2024-04-01 08:00,2024-04-01 08:10,broker.power,5
"""
YEAR = Window(
    brokers=12,
    racks=3,
    since=datetime(2025, 1, 1, tzinfo=UTC),
    until=datetime(2026, 1, 1, tzinfo=UTC),
)


def test_incidents_become_counts(tmp_path: Path) -> None:
    """Rows with times become outages, and counts of the mechanisms that occur."""
    path = tmp_path / "incidents.csv"
    path.write_text(INCIDENTS)
    frame = {"brokers": 12, "since": "2025-01-01", "until": "2026-01-01", "incidents": str(path)}
    for history in (read(path, YEAR), read(frame)):
        assert history.seen == {
            "cluster.crash": Seen(1, {"minutes": Lengths((40.0,))}, {}, ((3, 12),)),
            "broker.power": Seen(1, {"minutes": Lengths((10.0,))}),
        }
        assert [outage.brokers for outage in history.outages] == [(1, 2, 3), (4,)]


def test_zeros_stand_beside_incidents(tmp_path: Path) -> None:
    """What no incident is of was watched for only if a zero says so."""
    path = tmp_path / "incidents.csv"
    path.write_text(INCIDENTS)
    frame = {"brokers": 12, "since": "2025-01-01", "until": "2026-01-01", "incidents": str(path)}
    history = read({**frame, "events": {"broker.gray": 0}})
    assert {name: seen.events for name, seen in history.seen.items()} == {
        "broker.gray": 0,
        "broker.power": 1,
        "cluster.crash": 1,
    }
    assert len(history.outages) == 2
    with pytest.raises(InputError, match=r"broker\.power is in"):
        read({**frame, "events": {"broker.power": 0}})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"years": 3, "events": {}}, "how many brokers"),
        ({"brokers": 12, "events": {}}, "for how long"),
        ({**FRAME}, "give events"),
        ({**FRAME, "event": {}}, "did you mean events"),
        ({**FRAME, "days": 3, "events": {}}, "one way"),
        ({**FRAME, "brokers": -1, "events": {}}, "from 1 to"),
        ({**FRAME, "brokers": 2.5, "events": {}}, "whole number"),
        ({**FRAME, "brokers": True, "events": {}}, "whole number"),
        ({**FRAME, "brokers": 10**6, "events": {}}, "from 1 to 100,000"),
        ({**FRAME, "years": float("nan"), "events": {}}, "finite"),
        ({**FRAME, "years": 0, "events": {}}, "more than 0"),
        ({**FRAME, "years": 300, "events": {}}, "at most 30"),
        ({**FRAME, "racks": 13, "events": {}}, "from 1 to 12"),
        ({**FRAME, "mode": "raft", "events": {}}, "kraft or zookeeper"),
        ({**FRAME, "refused_minutes": 1e9, "events": {}}, "more than all the time"),
        ({**FRAME, "events": {"broker.pwer": 4}}, "did you mean broker.power"),
        ({**FRAME, "events": {"broker": {"pwer": 4}}}, "did you mean broker.power"),
        ({**FRAME, "events": {"broker.power": -4}}, "0 or more"),
        ({**FRAME, "events": {"broker.power": float("inf")}}, "whole number"),
        ({**FRAME, "events": {"broker.power": "4"}}, "whole number"),
        ({**FRAME, "events": {"broker.power": 10**7}}, "more than one an hour"),
        ({**FRAME, "events": {"broker.power": [{"minuts": 4}]}}, "did you mean minutes"),
        ({**FRAME, "events": {"broker.power": [{"minutes": 0}]}}, "more than 0"),
        ({**FRAME, "events": {"broker.power": [{"minutes": 1e9}]}}, "no more than all the time"),
        ({**FRAME, "events": {"broker.power": [{"minutes": 4, "hours": 1}]}}, "once"),
        ({**FRAME, "events": {"broker.power": [{"brokers": 2}]}}, "strikes one broker"),
        ({**FRAME, "events": {"broker.power": [4]}}, "an event is a table"),
        ({**FRAME, "events": {"broker.power": {"minutes": [4]}}}, "how many events"),
        ({**FRAME, "events": {"broker.power": {"events": 1, "minutes": 4}}}, "give a list"),
        ({**FRAME, "events": {"broker.power": {"events": 1, "minutes": [4, 5]}}}, "more lengths"),
        ({**FRAME, "events": {"broker.gray": [{"dies": 1}]}}, "true or false"),
        ({**FRAME, "events": {"broker.gray": [{"hard": True}]}}, "say dies"),
        ({**FRAME, "events": {"broker.gray": {"events": 2, "dies": 3}}}, "from 0 to 2"),
        ({**FRAME, "events": {"broker.restart": {"events": 2, "overlap": 1}}}, "no key"),
        ({**FRAME, "events": {"cluster.crash": [{"brokers": 13}]}}, "from 1 to 12"),
        ({**FRAME, "events": {"cluster.crash": [{"brokers": 5, "all": True}]}}, "which"),
        ({**FRAME, "events": {"cluster.crash": [{"all": False}]}}, "how many brokers"),
        ({"brokers": 12, "years": 3, "events": {"rack.power": 0}}, "how many racks"),
        ({**FRAME, "events": {"broker.power": [{"start": "soon"}]}}, "must be a time"),
        ({**FRAME, "events": {"broker.power": [{"end": "2025-01-01"}]}}, "no start"),
        ("no-such.toml", "cannot be read"),
        ("127.0.0.1:9090", "begins with http://"),
        (7, "give a mapping"),
    ],
)
def test_what_cannot_be_is_refused(source: Any, said: str) -> None:
    """Each mistake is one sentence that says where it is and what to do."""
    with pytest.raises(InputError, match=said) as refused:
        read(source)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "must name the columns"),
        ("start,end,what\n2025-02-01,2025-02-02\n", ":2: 2 fields, but 3 columns"),
        ("start,end,what\n2025-02-01,2025-02-02,broker.pwer\n", ":2: .*did you mean broker.power"),
        ("start,end,what\n2025-02-01,2025-01-02,broker.power\n", ":2: it ends before"),
        ("start,end,what\n2025-02-01,2025-02-01,broker.power\n", ":2: .*more than 0"),
        ("start,what,what\n,,\n", "twice"),
        ('start,what\n"2025,x\n', "not valid CSV"),
        ("mechanism,events\nbroker.power,many\n", "whole number"),
        ("mechanism,events\nbroker.power,1\nbroker.power,2\n", ":3: .*earlier row"),
    ],
)
def test_a_wrong_csv_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With its line."""
    path = tmp_path / "incidents.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read(path, YEAR)


def test_incidents_need_the_time_that_was_watched(tmp_path: Path) -> None:
    """A list of incidents alone does not say for how long none happened."""
    path = tmp_path / "incidents.csv"
    path.write_text(INCIDENTS)
    with pytest.raises(InputError, match="for how long"):
        read(path, Window(brokers=12))
    with pytest.raises(InputError, match="since and until"):
        read({"brokers": 12, "years": 1, "incidents": str(path)})


def test_events_outside_the_time_are_said(tmp_path: Path) -> None:
    """A wrong year would else be a better card without a word."""
    path = tmp_path / "incidents.csv"
    path.write_text(
        "start,end,what\n"
        "2024-03-01 10:00,2024-03-01 11:00,broker.power\n"
        "2023-03-01 10:00,2023-03-01 11:00,broker.power\n"
        "2025-03-01 10:00,2025-03-01 11:00,broker.crash\n"
    )
    learned = advisor.learn(
        {"brokers": 12, "since": "2024-01-01", "until": "2025-01-01", "incidents": str(path)},
        prior="three_az_cloud",
    )
    assert {row.mechanism: row.events for row in learned.counts} == {
        "broker.power": 1,
        "broker.crash": 0,
    }
    assert "Not counted: 2 events that began outside" in learned.seen_words
    with pytest.raises(InputError, match="until is not after since"):
        advisor.learn(
            {"brokers": 12, "since": "2025-01-01", "until": "2024-01-01", "incidents": str(path)},
            prior="three_az_cloud",
        )


def test_what_has_to_be_unpacked_or_is_empty_is_said(tmp_path: Path) -> None:
    """Neither is called a file of counts."""
    packed = tmp_path / "dump.txt.gz"
    packed.write_bytes(bytes([0x1F, 0x8B, 8, 0]))
    with pytest.raises(InputError, match="unpack it first"):
        advisor.learn(packed, prior="three_az_cloud")
    empty = tmp_path / "counts.toml"
    empty.write_text(" \n")
    with pytest.raises(InputError, match="it is empty"):
        advisor.learn(empty, prior="three_az_cloud")


def test_a_description_of_a_cluster_is_called_that(tmp_path: Path) -> None:
    """Not a broken file of counts: it goes with --cluster. A broken file of counts still is one."""
    path = tmp_path / "describe.txt"
    path.write_text("Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n")
    told = "this is the output of kafka-topics.sh --describe, .* with --cluster"
    with pytest.raises(InputError, match=told):
        read(path)
    path.write_text("brokers = 12\nyears = \n")
    with pytest.raises(InputError, match="not valid TOML"):
        read(path)
