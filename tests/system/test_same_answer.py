"""Every door gives the same answer: headline, losses, minutes without writes, severity of topics.

Six clusters under four cards are asked at the command line, in the report, in a notebook and in
Python. What a user sees is read back as numbers (`doors.py`) and compared with what the decision
says when it is asked directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import pytest

from advisor.__main__ import main
from advisor.advice import audit, recommend
from advisor.cluster import Cluster, load_cluster
from advisor.decision import Action, Depth, Verdict
from advisor.present.interactive.explorer import explorer
from advisor.present.report.page import render_report
from advisor.reliability.failures.failure_model import FailureModel, load_model
from command_line import CLUSTERS
from decided import decide
from doors import Row, Said, of_explorer, of_json, of_page, of_terminal, of_text

QUICK = Depth(draws=False, sensitivity=False, others=False)


def described(*topics: tuple[str, int, str, str]) -> str:
    """Describe topics by name, min ISR, replicas of each partition, and who is out of sync."""
    lines = []
    for name, min_isr, replicas, out in topics:
        lists = replicas.split()
        factor = len(lists[0].split(","))
        lines.append(
            f"Topic: {name}\tPartitionCount: {len(lists)}\tReplicationFactor: {factor}\t"
            f"Configs: min.insync.replicas={min_isr}\n"
        )
        for number, brokers in enumerate(lists):
            isr = [broker for broker in brokers.split(",") if broker not in out.split(",")]
            lines.append(
                f"\tTopic: {name}\tPartition: {number}\tLeader: {isr[0] if isr else 'none'}\t"
                f"Replicas: {brokers}\tIsr: {','.join(isr)}\n"
            )
    return "".join(lines)


RING = "1,2,3 2,3,1 3,1,2"
SIX: dict[str, tuple[str, str]] = {
    "six topics in three zones": (
        (CLUSTERS / "three-az-six-brokers.txt").read_text(),
        "1=a,2=a,3=b,4=b,5=c,6=c",
    ),
    "two zones": (
        described(("orders", 2, "1,2,3 3,4,1", ""), ("logs", 1, "1,2 3,4", "")),
        "1=a,2=a,3=b,4=b",
    ),
    "one rack": (described(("orders", 1, RING, ""), ("logs", 2, RING, "")), "1=a,2=a,3=a"),
    "two brokers": (described(("orders", 1, "1,2 2,1", ""), ("logs", 2, "1,2", "")), ""),
    "a broker is down": (
        described(("orders", 2, "1,2,3 2,3,4 3,4,1", "3"), ("logs", 2, "1,3 3,4", "3,4")),
        "1=a,2=b,3=c,4=a",
    ),
    "two, two and one": (
        described(("orders", 2, "1,2,5 3,4,5", ""), ("a.b", 3, "1,3,5", ""), ("c", 1, "2", "")),
        "1=a,2=a,3=b,4=b,5=c",
    ),
}


def mechanism(name: str, **numbers: float) -> str:
    """Return a mechanism of a card, without ranges."""
    lines = [
        f'{key} = {{ value = {number}, low = {number}, high = {number}, evidence = "own: a test" }}'
        for key, number in numbers.items()
    ]
    return "\n".join([f"[{name}]", *lines, ""])


DISKS = mechanism("broker.destroyed", per_year=0.2, hours=12)
CRASHES = mechanism("broker.crash", per_year=6, minutes=20)
CARDS = {
    "disks": DISKS,
    "crashes": CRASHES,
    "racks": DISKS + mechanism("rack.power", per_year=0.2, minutes=90),
    "people": DISKS
    + CRASHES
    + mechanism("cluster.wiped", per_year=0.01, hours=8, brokers=0.5, all=0.5),
}
ASKED = [(cluster, card) for cluster in SIX for card in CARDS]
PAGES = list(zip(SIX, [*CARDS, *CARDS], strict=False))
"""Whole reports and explorers take a second each: one of each cluster and of each card."""


@dataclass(frozen=True)
class Question:
    """A cluster and a card, as the command line and as Python take them."""

    line: tuple[str, ...]
    cluster: Cluster
    model: FailureModel

    @cached_property
    def verdict(self) -> Verdict:
        """What the decision says when it is asked directly."""
        return decide(self.cluster, self.model, draws=0, depth=QUICK)

    def of(self, topic: str) -> Verdict:
        """What it says of one topic."""
        return decide(self.cluster, self.model, topics=[topic], draws=0, depth=QUICK)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Question]:
    """Return the questions by the names of cluster and card; each is decided once."""
    folder = tmp_path_factory.mktemp("same")
    for card, text in CARDS.items():
        (folder / f"{card}.toml").write_text(text)

    @cache
    def question(cluster: str, card: str) -> Question:
        text, racks = SIX[cluster]
        file, model = folder / f"{cluster}.txt", str(folder / f"{card}.toml")
        file.write_text(text)
        by_broker = dict(pair.split("=") for pair in racks.split(",") if pair)
        line = [str(file), "--model", model, *(["--racks", racks] if racks else [])]
        given = {int(broker): rack for broker, rack in by_broker.items()}
        return Question(tuple(line), load_cluster(file, racks=given or None), load_model(model))

    return question


def check(door: str, said: Said, verdict: Verdict, healthy: bool = True) -> None:
    """Check that a door says the verdict's headline and, of each topic, its numbers.

    Parameters
    ----------
    door : str
        Its name, for the message.
    said : Said
    verdict : Verdict
    healthy : bool
        Whether topics that are as they should be are shown, too.
    """
    assert said.says(verdict.headline), (door, verdict.headline, said.text)
    shown = {a.topic: a for a in verdict.actions if healthy or a.set_to is not None}
    assert set(shown) <= set(said.rows), door
    assert set(said.rows) <= {action.topic for action in verdict.actions}, door
    for action in verdict.actions:
        if action.topic in said.rows:
            assert said.rows[action.topic].severity == action.severity, (door, action.topic)
            check_numbers((door, action.topic), said.rows[action.topic], [action])
    if said.worst is not None:
        check_numbers((door, "the worst topic"), said.worst, verdict.actions)


def check_numbers(where: object, row: Row, actions: Sequence[Action]) -> None:
    """Check that a row shows the worst numbers of some topics, today and after the change."""
    losses = max(a.loss_today for a in actions), max(a.loss_after for a in actions)
    minutes = max(a.refused_today for a in actions), max(a.refused_after for a in actions)
    for value, (least, most) in zip(losses, row.years, strict=True):
        assert least <= (1.0 / value if value else math.inf) <= most, (where, losses, row)
    for value, (least, most) in zip(minutes, row.minutes, strict=True):
        assert least <= value <= most, (where, minutes, row)


@pytest.mark.parametrize(("cluster", "card"), ASKED)
def test_the_command_line_and_python_say_the_same(
    cluster: str,
    card: str,
    asked: Callable[[str, str], Question],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`audit` and `recommend`, their JSON, and what both are as text and as a notebook's output."""
    question = asked(cluster, card)
    verdict = question.verdict
    for command in ("audit", "recommend"):
        assert main([command, *question.line]) in (0, 1)
        check(command, of_terminal(capsys.readouterr().out), verdict)
        main([command, *question.line, "--json"])
        check(f"{command} --json", of_json(capsys.readouterr().out), verdict)
    results = {f.__name__: f(question.cluster, question.model) for f in (audit, recommend)}
    for name, result in results.items():
        check(f"_repr_html_ of {name}", of_page(result._repr_html_()), verdict)
        for said in (str(result), str(result.quick_verdict), result.explain()):
            assert Said({}, said).says(verdict.headline), (name, said)
        assert result.quick_verdict.to_dict() == verdict.to_dict(), name
    check("str of audit", of_text(str(results["audit"])), verdict)
    check("explain of audit", of_text(results["audit"].explain()), verdict)
    check("_repr_html_ of verdict", of_page(verdict._repr_html_()), verdict)


@pytest.mark.parametrize(("cluster", "card"), PAGES)
def test_the_report_says_the_same(
    cluster: str, card: str, asked: Callable[[str, str], Question]
) -> None:
    """Its first screen, and the explorer that it has."""
    question = asked(cluster, card)
    advice = recommend(question.cluster, question.model)
    page = render_report(advice, audit(question.cluster, question.model))
    check("report", of_page(page), question.verdict)
    check_page("explorer of the report", of_explorer(page), question)
    assert "all met" not in page  # no goal was given


@pytest.mark.parametrize(("cluster", "card"), PAGES)
def test_the_explorer_says_the_same(
    cluster: str, card: str, asked: Callable[[str, str], Question]
) -> None:
    """Of each topic as it is today, in the notebook; on its exported page of the topic it opens."""
    question = asked(cluster, card)
    shown = explorer(question.cluster, question.model, cards=[])
    check_page("exported page", of_explorer(shown.html), question)
    for action in question.verdict.actions:
        shown.topic = action.topic
        (own,) = shown.verdict.actions
        assert str(shown.verdict).startswith(question.of(action.topic).headline)
        assert (own.severity, own.today.key) == (action.severity, action.today.key)
        assert own.after.key == action.after.key
        for name in ("loss_today", "loss_after", "refused_today", "refused_after"):
            # The first loss of many replica sets may be fitted to that of others.
            assert getattr(own, name) == pytest.approx(getattr(action, name), rel=1e-3), name


def check_page(door: str, said: Said, question: Question) -> None:
    """Check what a page says of its one topic."""
    ((topic, row),) = said.rows.items()
    (action,) = (action for action in question.verdict.actions if action.topic == topic)
    assert said.says(question.of(topic).headline), (door, said.text)
    assert row.severity == action.severity, door
    check_numbers((door, topic), row, [action])
