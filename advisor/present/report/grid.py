"""The explorer of the report, which has no kernel: what it offers, and when that is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor.advice.recommendations.recommendation import Recommendation
from advisor.present.interactive.controls import MOST_TOPICS, NEW_TOPIC
from advisor.present.interactive.explorer_model import ExplorerModel, worst_first
from advisor.present.interactive.switches import Elsewhere, switchable
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS

# Controls that the report does not offer for the first topic: its plan has what matters of them.
_AS_TODAY = ("unclean_leader_election_enable", "eligible_leader_replicas")


def elsewhere(recommendation: Recommendation, cards: Sequence[str]) -> Elsewhere:
    """Begin to compute the curves of other topics and cards.

    cards: names of cards to switch to.
    """
    situation = recommendation.situation
    topics = worst_first(recommendation.decision)
    users = [name for name in topics if not situation.cluster.topic(name).internal]
    first = (*users, *topics, NEW_TOPIC)[0]
    explorer_model = ExplorerModel(
        recommendation.cluster,
        recommendation.model,
        recommendation.load,
        recommendation.goals,
        recommendation.best.config,
        first,
        situation,
        topics[:MOST_TOPICS],
    )
    if explorer_model.load_of_topic(explorer_model.chosen).partitions > MANY_PARTITIONS:
        return Elsewhere(explorer_model, (), ())
    names = [name for name in switchable(recommendation.cluster, topics) if name in topics]
    return Elsewhere(explorer_model, names, cards)


def grid(others: Elsewhere) -> dict[str, Any]:
    """Return the settings as `explorer.js` draws them, with the lists to choose from.

    It begins with the worst topic as it is today. Lists with one choice are left out. Up to three
    replicas, every min ISR is combined with every acks, unless there are more than
    `MANY_PARTITIONS` partitions: then there is only the first curve.

    others: what `elsewhere` started to compute.
    """
    explorer_model = others.explorer_model
    start = explorer_model.chosen
    for values in explorer_model.looked_at_first():
        explorer_model.setting(values, intervals=True)
    for offered in explorer_model.offered() if others.any else ():
        first = offered[0]
        if all(first[name] == start[name] for name in _AS_TODAY):
            for values in offered:
                explorer_model.setting(values)
    return explorer_model.page(others.computed(), only_choices=True)
