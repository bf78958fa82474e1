"""The compared settings as data for the explorer in the report, which has no kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from advisor.advice import Audit
from advisor.advice.candidate import Candidate, choose
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.tolerance import largest_share
from advisor.present.figures.comparison import has_interval, today_words
from advisor.present.interactive.controls import (
    NEW_TOPIC,
    SMALL_REPLICAS,
    capped,
    controls,
    left_out,
    min_isr_refusal,
    precomputed,
    values_of,
)
from advisor.present.interactive.explorer_model import ExplorerModel
from advisor.present.interactive.settings_grid import mark_json, page_json, setting_json
from advisor.present.interactive.switches import Elsewhere, switchable
from advisor.present.outcome import point_of
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS

_CONTEXT = ("topic", "card")
_OPTIONS = (
    *("topic", "replication_factor", "min_insync_replicas", "acks", "retries"),
    *("delivery_timeout_ms", "card"),
)
_MISSING = "This combination was not compared."
_ALL_TOPICS = "all topics"


def elsewhere(
    recommendation: Recommendation, audit: Audit | None, cards: Sequence[str]
) -> Elsewhere:
    """Begin to compute the curves of other topics and cards.

    Parameters
    ----------
    recommendation : Recommendation
    audit : Audit or None
        Gives topics the load that its table has; the worst topics come first.
    cards : sequence of str
        Names of cards to switch to.
    """
    audited = {} if audit is None else {topic.topic.name: topic for topic in audit.topics}
    explorer_model = ExplorerModel(
        *(recommendation.cluster, recommendation.model, recommendation.load),
        *(recommendation.goals, recommendation.best.config, NEW_TOPIC),
        {name: topic.choice.reliability.load for name, topic in audited.items()},
    )
    if recommendation.load.partitions > MANY_PARTITIONS:
        return Elsewhere(explorer_model, (), ())
    names = [name for name in switchable(recommendation.cluster, audited) if name in audited]
    acks = dict.fromkeys(str(choice.config.acks) for choice in recommendation.choices)
    return Elsewhere(explorer_model, names, cards, acks=list(acks))


def grid(recommendation: Recommendation, others: Elsewhere) -> dict[str, Any]:
    """Return the settings compared as `explorer.js` draws them, with the lists to choose from.

    Lists with one choice are left out. Up to three replicas, every min ISR is combined with every
    acks that was compared, unless there are more than `MANY_PARTITIONS` partitions. Other topics
    have the curve of the recommended setting; other cards have it for every acks.

    Parameters
    ----------
    recommendation : Recommendation
    others : Elsewhere
        What `elsewhere` started to compute.
    """
    explorer_model, best, card = (
        others.explorer_model,
        recommendation.best.config,
        recommendation.model.name,
    )
    there = others.computed()
    settings = [
        (
            values_of(choice.config, NEW_TOPIC, card),
            setting_json(
                choice, recommendation.goals, intervals=has_interval(recommendation, choice)
            ),
        )
        for choice in _choices(recommendation)
    ]
    settings += [
        (values_of(config, NEW_TOPIC, card), {"refusal": words, "by": "min_insync_replicas"})
        for config, words in _refused(recommendation)
    ]
    settings += [
        (each, _without_commands(explorer_model.setting(each)))
        for values in there
        for each in explorer_model.curve_settings(values)
    ]
    start = values_of(best, NEW_TOPIC, card)
    most = max(int(values["replication_factor"]) for values, _ in settings)
    cards = {values["card"] for values, _ in settings}
    every = controls(recommendation.cluster, most, cards, start, _ALL_TOPICS)
    every = [control for control in every if control["key"] in _OPTIONS]
    offered = [{name: values[name] for name in _OPTIONS} for values, _ in settings]
    shown = [control for control in precomputed(every, offered) if len(control["options"]) > 1]
    keys = [control["key"] for control in shown]
    context = [name for name in _CONTEXT if name in keys]
    marks = {"|".join(start[name] for name in context): _marks(recommendation)}
    for values in there:
        marks["|".join(values[name] for name in context)] = explorer_model.marks(values)[1]
    return page_json(
        *(shown, {key: start[key] for key in keys}, settings, marks, recommendation.goals),
        *(context, _MISSING, left_out(there, keys), capped(best)),
    )


def _without_commands(setting: dict[str, Any]) -> dict[str, Any]:
    """Return a setting without its commands: the report has those of its plan."""
    return {name: value for name, value in setting.items() if name != "commands"}


def _choices(recommendation: Recommendation) -> Iterator[Candidate]:
    """Yield the settings compared, and those that they leave out between them."""
    compared = {choice.config: choice for choice in recommendation.choices}
    yield from compared.values()
    if recommendation.load.partitions > MANY_PARTITIONS:
        return
    best = recommendation.best.config
    for acks in dict.fromkeys(config.acks for config in compared):
        for factor in dict.fromkeys(config.replication_factor or 1 for config in compared):
            for least in range(1, factor + 1) if factor <= SMALL_REPLICAS else ():
                place = {"replication_factor": factor, "min_insync_replicas": least, "acks": acks}
                config = best.changed(**place, delivery_timeout_ms=None)
                if config not in compared and config.rules.min_isr_supported:
                    yield _evaluated(recommendation, config)


def _refused(recommendation: Recommendation) -> Iterator[tuple[Config, str]]:
    """Yield the settings with which Kafka refuses every write, and its words."""
    compared = [choice.config for choice in recommendation.choices]
    most = max(config.replication_factor or 1 for config in compared)
    for factor in range(1, most):
        for least in range(factor + 1, most + 1):
            place = {"replication_factor": factor, "min_insync_replicas": least, "acks": "all"}
            config = recommendation.best.config.changed(**place, delivery_timeout_ms=None)
            if words := min_isr_refusal(config):
                yield config, words


def _evaluated(recommendation: Recommendation, config: Config) -> Candidate:
    cluster, factor = recommendation.cluster, config.replication_factor or 1
    result = evaluate(cluster, config, recommendation.model, recommendation.load)
    share = largest_share(cluster.brokers, factor, str(config.mode))
    return choose(config, result, recommendation.goals, share)


def _marks(recommendation: Recommendation) -> list[dict[str, Any]]:
    usual = today_words(recommendation)
    marked = (("today", usual, recommendation.current), ("best", "", recommendation.best))
    return [
        {"mark": kind, "word": word, **mark_json(point_of(choice.reliability, intervals=False))}
        for kind, word, choice in marked
        if choice is not None
    ]
