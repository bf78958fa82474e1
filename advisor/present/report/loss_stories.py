"""The stories of a loss in the report: the most likely drawn step by step, the other as text."""

from __future__ import annotations

from typing import Any

from advisor.advice import Recommendation
from advisor.protocol.scenario.player import play
from advisor.rendering import Html


def loss_stories(recommendation: Recommendation) -> list[dict[str, Any]]:
    """The most likely loss and the one of fewest faults of each setting, side by side."""
    likeliest = dict(recommendation.likeliest_losses)
    shown: list[dict[str, Any]] = []
    for config, fewest in recommendation.stories:
        c = config
        name = f"RF {c.replication_factor}, min.insync.replicas {c.min_insync_replicas}"
        for kind, story in (("most likely", likeliest.get(config)), ("fewest faults", fewest)):
            if story is not None:
                title = f"{name}, acks={c.acks}: {kind}"
                drawn = _drawn(story.scenario, title) if kind == "most likely" else None
                shown.append(
                    {"title": title, "said": story.said, "scenario": story.scenario, "drawn": drawn}
                )
    return shown


def _drawn(scenario: str, title: str) -> Html | None:
    """The logs after each step; None where the loss could not be replayed."""
    if not scenario:
        return None
    drawn: Html = play(scenario).story(title=f"{title}, step by step").at_loss.rendered
    return drawn
