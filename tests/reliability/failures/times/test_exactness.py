"""What the exact answer refuses, before anything is computed, and what it takes."""

from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor import Cluster, Config, FailureModel, evaluate
from advisor.__main__ import main
from advisor.errors import NotComputedError
from advisor.reliability.case import Case
from command_line import good, one_sentence

CRASH = {"per_year": 2.0, "minutes": 30.0}
CLUSTER, CONFIG = Cluster.uniform(3), Config(replication_factor=2)


def read(**crash: Any) -> FailureModel:
    """Read a card with a broker that crashes."""
    return FailureModel.from_dict({"broker": {"crash": CRASH | crash}}, name="mine")


REFUSED = {
    "mine: broker.crash.lifetime is weibull, shape 0.7, and": read(
        lifetime={"distribution": "weibull", "shape": 0.7}
    ),
    "mine: broker.crash.lifetime is gamma, shape 2, and": read(
        lifetime={"distribution": "gamma", "shape": 2}
    ),
    "mine: broker.crash.duration is fixed, and": read(duration={"distribution": "fixed"}),
    "mine: repair.crews limits": FailureModel.from_dict(
        {"broker": {"crash": CRASH}, "repair": {"crews": 1}}, name="mine"
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_the_exact_answer_refuses_in_one_sentence(said: str) -> None:
    """Each front door names the mechanism and what to ask instead."""
    model = REFUSED[said]
    exact = evaluate(CLUSTER, CONFIG, read())
    for ask in (
        lambda: evaluate(CLUSTER, CONFIG, model),
        lambda: advisor.recommend(CLUSTER, model),
        lambda: advisor.audit(CLUSTER, model),
        lambda: advisor.explorer(CLUSTER, model),
        lambda: exact.evaluate_card(model),
    ):
        with pytest.raises(NotComputedError) as error:
            ask()
        assert str(error.value).startswith(said)
        assert "ask advisor.simulate, which samples" in str(error.value)
        assert "\n" not in str(error.value)


def test_nothing_is_computed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search refuses the card before its first setting, not setting by setting."""
    monkeypatch.setattr(Case, "read", lambda *_: pytest.fail("computed"))
    for ask in (advisor.recommend, advisor.audit):
        with pytest.raises(NotComputedError):
            ask(CLUSTER, REFUSED["mine: repair.crews limits"])


@pytest.mark.parametrize("verb", ["evaluate", "audit", "recommend", "report"])
def test_the_command_line_refuses_without_a_traceback(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence on standard error, exit code 2."""
    card = tmp_path / "mine.toml"
    own = 'evidence = "own: x"'
    card.write_text(
        f"[broker.crash]\nper_year = {{ value = 2, {own} }}\nminutes = {{ value = 5, {own} }}\n"
        f'lifetime = {{ distribution = "fixed", {own} }}\n',
        encoding="utf-8",
    )
    more = ["--output", str(tmp_path / "report.html")] if verb == "report" else []
    assert main([verb, good(tmp_path), "--model", str(card), *more]) == 2
    assert [*tmp_path.glob("*.html")] == []
    said = one_sentence(capsys)
    assert "broker.crash.lifetime is fixed" in said
    assert "ask advisor.simulate" in said


def test_the_exact_answer_takes_a_gamma_duration_by_any_name() -> None:
    """As today's shape it gives the same numbers, and exponential ones those without."""
    gamma = read(duration={"distribution": "gamma", "shape": 2.0})
    assert evaluate(CLUSTER, CONFIG, gamma) == evaluate(CLUSTER, CONFIG, read(shape=2.0))
    plain = {"distribution": "exponential"}
    both = read(duration=plain, lifetime=plain)
    assert evaluate(CLUSTER, CONFIG, both) == evaluate(CLUSTER, CONFIG, read())
