"""A failure mechanism is one entry of a table, and no other module knows its name."""

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate
from advisor.errors import ModelError
from advisor.reliability.failures.mechanisms import (
    MINUTES,
    PER_YEAR,
    SHAPE,
    BrokerEvent,
    Mechanism,
    Number,
    Scope,
    Strikes,
    Table,
    registered,
    table,
    words,
)
from advisor.reliability.partition import reduced_state
from advisor.reliability.statespace.successors import PARTITION_EVENT
from sampled_runs import FAR, YEAR, off_by

ADVISOR = Path(__file__).resolve().parents[2] / "advisor"
TABLE = ADVISOR / "reliability" / "failures" / "mechanisms.py"
# What a table is, and how the names of rates follow from those of mechanisms.
NAMES_OF_RATES = TABLE.with_name("mechanism.py")
DOCUMENTED = ADVISOR.parent / "data" / "README.md"

# A number of its own: conditions are numbered without gaps.
NEXT = len(table().begun) + 1
BROKERS = Number("brokers", "probability that a running broker is struck", probability=True)
COOLING = Mechanism(
    "rack.cooling",
    BrokerEvent.CRASH,
    Strikes.RUNNING,
    "racks overheating",
    condition=NEXT,
)
STUCK = Mechanism(
    "broker.stuck",
    BrokerEvent.CRASH,
    Strikes.RUNNING,
    "broker processes getting stuck",
    condition=NEXT,
)
BAD_CONFIG = Mechanism(
    "cluster.bad_config",
    BrokerEvent.CRASH,
    Strikes.RUNNING,
    "bad configuration changes",
    numbers=(PER_YEAR, BROKERS, MINUTES, SHAPE),
    condition=NEXT,
    together=True,
    share=BROKERS,
)


def strings(path: Path) -> Iterator[ast.Constant]:
    """Yield every string of a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documents:
            yield node


def naming(text: str) -> bool:
    """Whether a string holds a mechanism's name, a part to compare names with, or a rate's."""
    parts = {name.partition(".")[2] for name in table().names}
    whole = "|".join(map(re.escape, table().names))
    ends = "|".join(rf"\.{part}" for part in sorted(parts))
    scopes = "|".join(rf"{scope.value}\." for scope in Scope)
    return bool(
        re.search(rf"\b({whole})\b", text) or re.fullmatch(f"{ends}|{scopes}|repair ", text)
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("broker.lag", True),
        ("repair rack.power", True),
        ("see cluster.power.not_returning", True),
        ("rack.", True),
        (".power", True),
        ("broker.id", False),
        ("the power of two", False),
    ],
)
def test_a_name_is_recognised(text: str, names: bool) -> None:
    """Whole names, and the parts that names are told apart by."""
    assert naming(text) == names


@pytest.mark.parametrize(
    "path", [p for p in sorted(ADVISOR.rglob("*.py")) if p != TABLE], ids=lambda p: p.stem
)
def test_no_module_but_the_table_names_a_mechanism(path: Path) -> None:
    """Names stand in the table, in cards and in data; docstrings may give examples."""
    found = [f"{path.name}:{node.lineno}: {node.value}" for node in strings(path)]
    if path == NAMES_OF_RATES:
        found = [line for line in found if not line.endswith(": repair ")]
    assert not [line for line in found if naming(line.partition(": ")[2])]


def config(replicas: int) -> Config:
    """Return a configuration that is writable while every replica is in sync."""
    return Config(
        kafka_version="4.1",
        replication_factor=replicas,
        min_insync_replicas=replicas,
        acks="all",
        replica_lag_time_max_ms=1,
    )


LOAD = Workload(partitions=4, records_per_second=10, replication_delay_ms=0.0)


def test_a_rack_wide_entry_is_computed_and_sampled() -> None:
    """It crashes a rack's brokers, each back by itself; both answers agree, and with theory.

    With r of the rate times the duration, n brokers are all well for 1 / ((1 + r) (1 + r/2) ...
    (1 + r/n)) of the time.
    """
    numbers = {"rack": {"cooling": {"per_year": 40.0, "minutes": 600.0}}}
    cluster = Cluster.uniform(brokers=3, racks=1)
    with pytest.raises(ModelError, match=r"rack\.cooling"):
        FailureModel.from_dict(numbers)
    with registered(COOLING):
        model = FailureModel.from_dict(numbers)
        assert model.mechanisms == ("rack.cooling",)
        exact = evaluate(cluster, config(3), model, LOAD)
        sampled = simulate(cluster, config(3), model, LOAD, years=5000, seed=7, engine="local")
        told = exact.explain(), sampled.explain()
    r = 40.0 * 10.0 / YEAR
    assert exact.write_unavailability == pytest.approx(
        1.0 - 1.0 / ((1.0 + r) * (1.0 + r / 2.0) * (1.0 + r / 3.0)), rel=1e-9
    )
    assert abs(off_by(sampled.write_unavailability, exact.write_unavailability)) < FAR
    assert abs(off_by(sampled.read_unavailability, exact.read_unavailability)) < FAR
    assert set(exact.causes["write_unavailability"]) == {"rack.cooling"}
    for text in told:
        assert "racks overheating (rack.cooling)" in text


def test_an_entry_of_one_broker_stands_beside_those_of_the_table() -> None:
    """A single replica is down for its share of two mechanisms, each in its own name."""
    numbers = {
        "broker": {
            "stuck": {"per_year": 30.0, "minutes": 240.0},
            "crash": {"per_year": 60.0, "minutes": 60.0},
        }
    }
    cluster = Cluster.uniform(brokers=3, racks=3)
    with registered(STUCK):
        model = FailureModel.from_dict(numbers)
        exact = evaluate(cluster, config(1), model, LOAD)
        sampled = simulate(cluster, config(1), model, LOAD, years=5000, seed=8, engine="local")
        assert words("broker.stuck") == STUCK.words
    stuck, crashed = 30.0 * 4.0 / YEAR, 60.0 * 1.0 / YEAR
    whole = 1.0 + stuck + crashed
    assert exact.write_unavailability == pytest.approx((stuck + crashed) / whole, rel=1e-9)
    causes = exact.causes["write_unavailability"]
    assert causes["broker.stuck"] == pytest.approx(stuck / whole, rel=1e-9)
    assert causes["broker.crash"] == pytest.approx(crashed / whole, rel=1e-9)
    assert abs(off_by(sampled.write_unavailability, exact.write_unavailability)) < FAR
    mine = sampled.causes["write_unavailability"]["broker.stuck"]
    assert mine == pytest.approx(causes["broker.stuck"], rel=0.02)


def test_an_entry_may_strike_each_broker_by_chance() -> None:
    """Each of two replicas is struck with probability p, and all come back together.

    They leave health at the rate l (1 - (1 - p)^2), and are back at the rate m.
    """
    numbers = {"cluster": {"bad_config": {"per_year": 60.0, "brokers": 0.3, "minutes": 300.0}}}
    cluster = Cluster.uniform(brokers=4, racks=2)
    with registered(BAD_CONFIG):
        with pytest.raises(ModelError, match="must not exceed 1"):
            FailureModel.from_dict(
                {"cluster": {"bad_config": {"per_year": 1.0, "brokers": 2.0, "minutes": 1.0}}}
            )
        model = FailureModel.from_dict(numbers)
        exact = evaluate(cluster, config(2), model, LOAD)
        sampled = simulate(cluster, config(2), model, LOAD, years=5000, seed=9, engine="local")
    load = 60.0 * (1.0 - 0.7**2) * 5.0 / YEAR
    assert exact.write_unavailability == pytest.approx(load / (1.0 + load), rel=1e-9)
    assert abs(off_by(sampled.write_unavailability, exact.write_unavailability)) < FAR
    assert abs(off_by(sampled.read_unavailability, exact.read_unavailability)) < FAR


def test_the_table_is_as_it_was_afterwards() -> None:
    """An entry that a test adds is gone with its block, even after an error."""
    before = table()
    with pytest.raises(RuntimeError, match="stop"), registered(STUCK):
        raise RuntimeError("stop")
    assert table() is before
    assert "broker.stuck" not in table()


def test_conditions_are_numbered_without_gaps() -> None:
    """Two entries may not share a number, and none may be left out."""
    for wrong in (1, NEXT + 1):
        entry = Mechanism("broker.x", BrokerEvent.CRASH, Strikes.RUNNING, "", condition=wrong)
        with pytest.raises(ValueError, match="conditions must be"):
            _ = Table((*table().entries, entry)).outages


def test_every_end_is_known() -> None:
    """Every entry has an end of its own or borrows one, and its probability is in the card."""
    known = table()
    for entry in known.entries:
        assert bool(entry.condition) != bool(entry.ends_as), entry.name
        assert bool(entry.duration[0]) == bool(entry.condition), entry.name
        assert entry.share is None or entry.share in entry.numbers
        assert known.condition_of(entry) > 0
        for other in (entry.ends_as, entry.turns_into):
            assert not other or known[other].effect is BrokerEvent.DESTROY
        assert bool(entry.deaths) == (entry.dies is not None)
        for death in entry.deaths:
            lost = known[death.outage].effect is BrokerEvent.POWER
            assert lost == death.takes_host, "only a dead host loses its page cache"
        assert entry.every is None or (entry.share and entry.scope is Scope.CLUSTER)


def test_what_happens_to_brokers_is_what_partitions_notice() -> None:
    """Both rooms have names of their own for the same events."""
    for event in BrokerEvent:
        assert PARTITION_EVENT[event] == getattr(reduced_state, event.name)


def test_words_are_for_every_cause() -> None:
    """Each mechanism reads as words in a sentence, and so does the configuration."""
    said = [words(name) for name in (*table().names, "configuration")]
    assert len(set(said)) == len(said)
    assert all(text and text[0].islower() and not text.endswith(".") for text in said)


def test_a_card_of_every_mechanism_is_documented() -> None:
    """The documentation of cards has a row for each entry, with its numbers and their units."""
    text = DOCUMENTED.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for entry in table().entries:
        keys = ", ".join(
            f"`{number.key}`" + ("" if number.required else " (optional)")
            for number in entry.numbers
        )
        assert any(r.startswith(f"| `{entry.name}` |") and f"| {keys} |" in r for r in rows), (
            f"data/README.md lacks a row of {entry.name} with {keys}"
        )


def test_only_what_still_stands_can_be_destroyed() -> None:
    """Strikes widen step by step: in sync, running, powered, standing."""
    known = table()
    severities = sorted({known.severity(c) for c in range(known.conditions)})
    assert severities == [0, 1, 2, 3, 4]
    assert [int(s) for s in Strikes] == severities[:-1]
    assert math.isclose(known.severity(known.condition_of(known.replacement)), 4)
