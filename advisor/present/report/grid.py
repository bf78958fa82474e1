"""The compared settings as data for the explorer in the report, which has no kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from advisor.advice.choice import Choice, choose
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.tolerance import largest_share
from advisor.present.figures.comparison import has_interval
from advisor.present.interactive.controls import SMALL_REPLICAS, controls, precomputed, values_of
from advisor.present.interactive.settings_grid import mark_json, page_json, setting_json
from advisor.present.outcome import point_of
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS

_OPTIONS = ("replication_factor", "min_insync_replicas", "acks", "retries", "delivery_timeout_ms")
_MISSING = "This combination was not compared."


def grid(recommendation: Recommendation) -> dict[str, Any]:
    """Return the settings compared as `explorer.js` draws them, with the lists to choose from.

    Lists with one choice are left out. Up to three replicas, every min ISR is there with every acks
    that was compared, unless so many partitions would take long.
    """
    best = recommendation.best.config
    settings = [(values_of(choice.config, "", ""), choice) for choice in _choices(recommendation)]
    offered = [{name: values[name] for name in _OPTIONS} for values, _ in settings]
    most = max(int(values["replication_factor"]) for values in offered)
    every = controls(recommendation.cluster, most, (), values_of(best, "", ""))
    shown = precomputed([control for control in every if control["key"] in _OPTIONS], offered)
    shown = [control for control in shown if len(control["options"]) > 1]
    keys = [control["key"] for control in shown]
    return page_json(
        shown,
        {key: values_of(best, "", "")[key] for key in keys},
        [
            (values, setting_json(choice, intervals=has_interval(recommendation, choice)))
            for values, (_, choice) in zip(offered, settings, strict=True)
        ],
        {"": _marks(recommendation)},
        recommendation.goals,
        (),
        _MISSING,
    )


def _choices(recommendation: Recommendation) -> Iterator[Choice]:
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


def _evaluated(recommendation: Recommendation, config: Config) -> Choice:
    cluster, factor = recommendation.cluster, config.replication_factor or 1
    result = evaluate(cluster, config, recommendation.model, recommendation.load)
    share = largest_share(cluster.brokers, factor, str(config.mode))
    return choose(config, result, recommendation.goals, share)


def _marks(recommendation: Recommendation) -> list[dict[str, Any]]:
    marked = (("today", recommendation.current), ("best", recommendation.best))
    return [
        {"mark": kind, **mark_json(point_of(choice.reliability, intervals=False))}
        for kind, choice in marked
        if choice is not None
    ]
