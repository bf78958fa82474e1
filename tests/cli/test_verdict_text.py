"""A verdict on the terminal: the order of what is said, how long it is, and where it comes from."""

import re
from dataclasses import replace

import pytest

from advisor.cli import verdict_text
from advisor.cli.verdict_text import columns_of_terminal, verdict_blocks
from advisor.decision import Verdict
from advisor.decision.rows import healthy, in_trouble, row
from advisor.rendering import terminal_blocks
from fake_evaluator import question
from hostile_text import HOSTILE
from six_topics import SIX, drawn_verdict, verdict

REST = ("Commands: --commands.", "Reasons: --explain.")
BROKEN = ("orders: 2 of 12 partitions have no leader", "audit: 1 of 3 partitions has no leader")
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def lines_of(answer: Verdict, columns: int = 100) -> list[str]:
    """Return what the terminal shows."""
    return terminal_blocks(verdict_blocks(answer, REST, columns)).text.split("\n")


def named(answer: Verdict, names: list[str]) -> Verdict:
    """Return a verdict whose topics have other names."""
    actions = zip(answer.actions, names, strict=True)
    return replace(answer, actions=tuple(replace(action, topic=name) for action, name in actions))


@pytest.mark.parametrize("now", [(), BROKEN[:1], BROKEN])
@pytest.mark.parametrize("draws", [True, False])
def test_six_topics_in_25_lines(now: tuple[str, ...], draws: bool) -> None:
    """Broken first, then what to do, why, the topics, the floor, how sure, and the rest last."""
    answer = (drawn_verdict if draws else verdict)(*SIX, now=now)
    lines = lines_of(answer)
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    order = [
        *(["Broken now"] if now else []),
        "Change 4 of 6 topics",
        answer.text[:30],
        *(action.topic for action in in_trouble(answer)),
        "ok        2 more: ",
        "No setting prevents",
        *(["How sure: "] if draws else ["pays if"]),
        "* Held back",
        REST[-1],
    ]
    places, start = [], 0
    for words in order:
        start = text.index(words, start)
        places.append(start)
    assert text.startswith(order[0])
    assert lines[-1] == " ".join(REST)
    assert all(sentence in text for sentence in now)


def test_nothing_is_broken_without_a_line() -> None:
    """The headline is the first line, and the word is nowhere."""
    lines = lines_of(verdict(*SIX))
    assert lines[0] == verdict(*SIX).headline
    assert "roken" not in "\n".join(lines)


def test_much_that_is_broken_is_counted() -> None:
    """Three topics by name, the others by number."""
    now = tuple(f"t{number}: no leader" for number in range(9))
    text = "\n".join(lines_of(verdict(*SIX, now=now)))
    assert text.startswith("Broken now, repair first: 9 topics.\n  t0: no leader.\n")
    assert "t2: no leader." in text
    assert "t3" not in text
    assert "  And 6 more.\n" in text


def test_what_is_held_back_is_marked() -> None:
    """The star stands in the rows of held back commands only, and its note below the table."""
    answer = verdict(*SIX)
    starred = [line for line in lines_of(answer) if " *" in line]
    assert [line.split()[1] for line in starred] == ["audit"]
    assert "min ISR 2 *" in starred[0]
    notes = [line for line in lines_of(answer) if line.startswith("* ")]
    assert len(notes) == 1
    assert "lowers min ISR" in notes[0]
    consented = verdict(*SIX, allow_lower_durability=True)
    assert "*" not in "\n".join(lines_of(consented))


def test_rows_have_the_cells_of_every_screen() -> None:
    """Each topic in trouble has the values of its row; only years and months are abbreviated."""
    answer = verdict(*SIX)
    lines = lines_of(answer)
    for action in in_trouble(answer):
        cells = row(action)
        (line,) = (line for line in lines if line.split()[1:2] == [action.topic])
        assert line.startswith(action.severity)
        assert cells.today in line
        assert cells.set_to in line
        assert cells.minutes.joined("->") in line
        lost = cells.losses.joined("->").replace(" years", " y").replace(" months", " mo")
        assert lost in line
    assert len(healthy(answer)) == 2


@pytest.mark.parametrize("draws", [True, False])
def test_no_number_is_the_screens_own(draws: bool) -> None:
    """Each number stands in the verdict's sentences or in a row; the others count topics."""
    answer = (drawn_verdict if draws else verdict)(*SIX, now=BROKEN)
    rows = [row(action) for action in answer.actions]
    said = " ".join((str(answer), *answer.below, *answer.now, *map(str, rows), str(len(SIX))))
    assert set(NUMBER.findall("\n".join(lines_of(answer)))) <= set(NUMBER.findall(said))


def test_a_topic_that_is_kept_is_shown() -> None:
    """A single one has its row although nothing changes; six healthy ones have a line."""
    lines = lines_of(verdict(SIX[4]))
    assert [line.split() for line in lines if line.startswith("ok")] == [
        ["ok", "orders", "RF", "3,", "min", "ISR", "2", "keep", "270", "y", "34", "min"]
    ]
    many = [question(3, 2, topic=f"t{number}") for number in range(9)]
    (line,) = (line for line in lines_of(verdict(*many)) if line.startswith("ok"))
    assert line == "ok  9: t0, t1, t2, t3, t4, t5 and 3 others"


def test_the_worst_thirty_of_many_topics() -> None:
    """The others are counted, with the way to see them."""
    many = [question(1, 1, topic=f"t{number:02}") for number in range(70)]
    lines = lines_of(verdict(*many))
    assert len([line for line in lines if line.startswith("critical")]) == 30
    assert "40 more topics to change are not shown; --json lists every topic." in lines


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_a_narrow_terminal(columns: int) -> None:
    """Every line fits, and every topic is there by its name."""
    lines = lines_of(verdict(*SIX), columns)
    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    assert all(question.topic in words for question in (*SIX[:1], *SIX[2:4], SIX[5]))


def test_long_names_are_shortened_but_not_to_the_same() -> None:
    """Both ends of a name stay; where two would read the same, all names are whole."""
    answer = verdict(*SIX)
    long = [f"orders.payments.completed.by.region.v{number}" for number in range(6)]
    lines = lines_of(named(answer, long))
    assert max(map(len, lines)) <= 100
    shown = [line.split()[1] for line in lines if line.startswith("critical")]
    assert [(name[:6], name[-3:]) for name in shown] == [("orders", f".v{at}") for at in range(4)]
    inside = [f"{'a' * 40}{number}{'b' * 40}" for number in range(6)]
    text = "\n".join(lines_of(named(answer, inside)))
    assert all(name in text for name in inside[:4])


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_names_cannot_forge_a_line(text: str) -> None:
    """Every line is printable, and each topic has one row, whatever it is called."""
    answer = verdict(*SIX)
    shown = lines_of(named(answer, [f"{text[:12]}{number}" for number in range(6)]))
    assert all(line.isprintable() for line in shown)
    assert [line.split(" ")[0] for line in shown[5:11]] == ["", *["critical"] * 4, "ok"]
    broken = replace(answer, now=(text,), headline=f"Broken now: {text}. {answer.headline}")
    assert all(line.isprintable() for line in lines_of(broken))


def test_the_width_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred columns into a file; a terminal's own, but not more, nor fewer than sixty."""
    assert columns_of_terminal() == 100
    monkeypatch.setattr(verdict_text.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(verdict_text.sys.stdout, "fileno", lambda: 1, raising=False)
    for columns, used in ((72, 72), (300, 100), (20, 60)):
        size = verdict_text.os.terminal_size((columns, 50))
        monkeypatch.setattr(verdict_text.os, "get_terminal_size", lambda _, size=size: size)
        assert columns_of_terminal() == used
