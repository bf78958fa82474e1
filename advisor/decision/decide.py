"""`decide_topic` and `decide_cluster`: from questions about topics to actions and a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.decision import words
from advisor.decision.comparison import (
    Comparison,
    Requirements,
    Sensitivity,
    SettingChoice,
    Survives,
    choice_of,
    compare,
    goal_outcomes,
)
from advisor.decision.evaluator import (
    DRAWS,
    LOSS_EVENTS,
    LOSS_PROBABILITY,
    LOSSES,
    MINUTES,
    RECORDS_LOST,
    ExactEvaluator,
    Measured,
)
from advisor.decision.settings import (
    MOST_REPLICAS,
    Setting,
    TopicQuestion,
    as_kafka_places,
    beside,
    candidates,
)
from advisor.decision.verdict import (
    AVOIDABLE_TIMES,
    CRITICAL,
    OK,
    WARNING,
    Action,
    Alternative,
    Floor,
    LossSize,
    Verdict,
)
from advisor.progress import ignore, progress_bar
from advisor.protocol.rules.config import Config

if TYPE_CHECKING:
    from advisor.reliability.results.reliability import Reliability


MOST_CHAINS = 64
"""Draws are taken for the topics that come first, until that many chains are drawn."""


@dataclass(frozen=True)
class Depth:
    """How much is computed beside the rule at the card's middle values.

    draws: how sure each choice is.
    sensitivity: of the least confident choice: the numbers that it depends on, and what to measure
        next.
    others: one more replica, acks 1 and unclean elections, of each placement class.
    """

    draws: bool = True
    sensitivity: bool = True
    others: bool = True


def decide_topic(
    question: TopicQuestion,
    evaluator: ExactEvaluator,
    requirements: Requirements | None = None,
    *,
    survives: Survives | None = None,
    allow_lower_durability: bool = False,
    depth: Depth | None = None,
) -> Action:
    """Decide what to set for one topic.

    survives: whether a setting survives what the requirements name; needed if they name something.
    depth: what is computed; by default everything.
    """
    wanted, computed = requirements or Requirements(), depth or Depth()
    comparison = compare(question, evaluator, wanted, survives)
    choice = choice_of(comparison, evaluator, wanted, computed.draws)
    if computed.sensitivity:
        choice = _with_sensitivity(choice, comparison, evaluator, wanted, survives)
    action = _action(
        comparison, choice, evaluator, wanted, survives, allow_lower_durability, computed.draws
    )
    return _with_others(action, comparison, evaluator, wanted) if computed.others else action


def decide_cluster(
    questions: Sequence[TopicQuestion],
    evaluator: ExactEvaluator,
    requirements: Requirements | None = None,
    *,
    survives: Survives | None = None,
    allow_lower_durability: bool = False,
    now: Sequence[str] = (),
    depth: Depth | None = None,
    most_chains: int = MOST_CHAINS,
) -> Verdict:
    """Decide what to set for every topic, and put it into words.

    Topics with the same setting, on replicas that stand in racks in the same way, are one class:
    the rule chooses for the one with most partitions, the numbers of the others are their own.
    Draws are taken for the worst and largest classes, up to `most_chains` (settings x patterns).
    """
    wanted, computed = requirements or Requirements(), depth or Depth()
    asked = evaluator, wanted, survives
    classes = [(compare(members[0], *asked), members) for members in _classes(questions)]
    middle = [choice_of(comparison, evaluator, wanted, False) for comparison, _ in classes]
    order = sorted(
        range(len(classes)),
        key=lambda at: (
            *_action(classes[at][0], middle[at], *asked, False, False).urgency[:2],
            classes[at][0].question.topic,
        ),
    )
    drawn = _drawn_classes([classes[at][0] for at in order], most_chains) if computed.draws else 0
    choices = dict(enumerate(middle))
    # A notebook gets messages for each bar, shown or not.
    bar = progress_bar(drawn, " topics", "How sure") if drawn else nullcontext(ignore)
    with bar as done:
        for at in order[:drawn]:
            choices[at] = choice_of(classes[at][0], evaluator, wanted)
            done(1)
    least = _least_confident([(at, choices[at]) for at in order])
    for at in order:
        if computed.sensitivity and at == least:
            choices[at] = _with_sensitivity(choices[at], classes[at][0], *asked)
    actions = []
    for place, at in enumerate(order):
        comparison, members = classes[at]
        first = _action(comparison, choices[at], *asked, allow_lower_durability, place < drawn)
        if computed.others:
            first = _with_others(first, comparison, evaluator, wanted)
        actions.append(first)
        actions += [_like(first, question, evaluator) for question in members[1:]]
    undrawn = sum(len(classes[at][1]) for at in order[drawn:]) if computed.draws else 0
    return verdict_of(
        actions, questions, now, undrawn, choices[least] if least is not None else None
    )


def _classes(questions: Sequence[TopicQuestion]) -> list[list[TopicQuestion]]:
    """The topics by placement class; in each the one with most partitions first."""
    classes: dict[object, list[TopicQuestion]] = {}
    for question in questions:
        kind = question.internal, question.has_observers
        key = question.today.config, question.rack_patterns, *kind
        classes.setdefault(key, []).append(question)
    return [
        sorted(members, key=lambda question: (-question.load.partitions, question.topic))
        for members in classes.values()
    ]


def _drawn_classes(ordered: Sequence[Comparison], most_chains: int) -> int:
    """How many classes are drawn: the first always, then up to a number of chains."""
    chains = 0
    for number, comparison in enumerate(ordered):
        chains += len(comparison.columns) * max(len(comparison.question.rack_patterns), 1)
        if number and chains > most_chains:
            return number
    return len(ordered)


def _least_confident(choices: Sequence[tuple[int, SettingChoice]]) -> int | None:
    """The first of the least confident choices; one without draws only if there is no other.

    Of equally sure ones that nearest to a price at which it no longer pays, with draws or without.
    """

    def confidence(entry: tuple[int, SettingChoice]) -> tuple[float, float]:
        choice = entry[1]
        return choice.kept_in / choice.draws if choice.draws else 2.0, _room(choice)

    return min(choices, key=confidence, default=(None,))[0]


def _room(choice: SettingChoice) -> float:
    """By which factor the price of a loss may change until another min ISR is chosen."""
    price, lowest, highest = (
        choice.minutes_per_loss,
        choice.pays_from_minutes,
        choice.pays_to_minutes,
    )
    below = price / lowest if lowest else math.inf
    above = highest / price if highest is not None and price else math.inf
    return min(below, above)


def _with_sensitivity(
    choice: SettingChoice,
    comparison: Comparison,
    evaluator: ExactEvaluator,
    requirements: Requirements,
    survives: Survives | None,
) -> SettingChoice:
    asked = Sensitivity(comparison, evaluator, requirements, survives)
    return replace(choice, depends_on=asked.depends_on(), measure_next=asked.measure_next())


def _action(
    comparison: Comparison,
    choice: SettingChoice,
    evaluator: ExactEvaluator,
    requirements: Requirements,
    survives: Survives | None,
    allowed: bool,
    draw: bool,
) -> Action:
    question = comparison.question
    today, after = question.today, comparison.settings[comparison.chosen]
    before, then = comparison.measured[0], comparison.measured[comparison.chosen]
    changes = comparison.chosen != 0
    fewer = after.min_insync_replicas < today.min_insync_replicas
    lowered = changes and today.guarded and fewer
    floor = floor_of(comparison, evaluator, draw)
    action = Action(
        topic=question.topic,
        today=today,
        set_to=after if changes else None,
        loss_today=before[LOSSES],
        loss_after=then[LOSSES],
        refused_today=before[MINUTES],
        refused_after=then[MINUTES],
        severity=_severity(today, changes, before[LOSSES], floor.losses_per_year),
        why="",
        choice=choice,
        held_back=lowered and not allowed,
        moves=changes
        and after.replication_factor == today.replication_factor
        and after.placement != today.placement,
        floor=floor,
        goals=goal_outcomes(comparison, evaluator, requirements, survives, draw),
        loss_size=loss_size(then, question),
        cause=then.main_cause(LOSS_PROBABILITY),
    )
    return replace(action, why=words.why(action))


def _severity(today: Setting, changes: bool, losses: float, least: float) -> str:
    if not changes:
        return OK
    avoidable = losses > AVOIDABLE_TIMES * least
    return CRITICAL if avoidable or not today.survives_restart else WARNING


def floor_of(comparison: Comparison, evaluator: ExactEvaluator, draw: bool) -> Floor:
    """Return the least of each measure over candidates and today's setting, also in each draw."""
    columns, load = comparison.columns, comparison.question.load
    if comparison.question.has_observers:
        # What settings with observers promoted would do is not known.
        return Floor(0.0, 0.0, dict.fromkeys(comparison.measured[0].values, 0.0), "", {})
    least = min(columns, key=lambda place: comparison.measured[place][LOSSES])
    drawn: dict[str, tuple[float, ...]] = {}
    if draw and evaluator.draws:
        samples = [evaluator.drawn(comparison.settings[place], load) for place in columns]
        for name in samples[0]:
            smallest = np.min([sample[name] for sample in samples], axis=0)
            drawn[name] = tuple(map(float, smallest))
    return Floor(
        losses_per_year=comparison.floor(LOSSES),
        minutes_without_writes_per_year=comparison.floor(MINUTES),
        values={name: comparison.floor(name) for name in comparison.measured[least].values},
        cause=comparison.measured[least].main_cause(LOSS_PROBABILITY),
        drawn=drawn,
    )


def loss_size(measured: Measured, question: TopicQuestion) -> LossSize:
    """Return how much a loss takes: the records of a topic's loss, and whether whole logs go.

    A partition's loss takes its whole log or a few seconds of it, so that the mean of what it takes
    over the whole log is the share of losses that take all.
    """
    losses, events, records = (measured[name] for name in (LOSSES, LOSS_EVENTS, RECORDS_LOST))
    whole = question.load.retained_records_per_partition * events
    share = min(records / whole, 1.0) if whole else 0.0
    if not question.load_is_given:
        return LossSize(None, share)
    return LossSize(records / losses if losses > 0.0 else 0.0, share)


def _with_others(
    action: Action, comparison: Comparison, evaluator: ExactEvaluator, requirements: Requirements
) -> Action:
    """The action with what is never chosen beside it, and what one more replica would buy."""
    question, chosen = comparison.question, comparison.settings[comparison.chosen]
    amounts = comparison.measured[comparison.chosen]
    others = [
        _alternative(setting, evaluator.middle(setting, question.load), amounts)
        for setting in beside(chosen)
        if setting.key != chosen.key
    ]
    more = None
    factor = chosen.replication_factor + 1
    if factor <= min(len(question.brokers), MOST_REPLICAS):
        near = (chosen.min_insync_replicas, chosen.min_insync_replicas + 1)
        options = [
            _alternative(setting, evaluator.middle(setting, question.load), amounts)
            for setting in candidates(question, factor)
            if setting.min_insync_replicas in near
        ]
        price = requirements.minutes_per_loss
        more = min(
            options,
            key=lambda option: (
                option.minutes_factor * amounts[MINUTES]
                + price * option.losses_factor * amounts[LOSSES]
            ),
        )
    return replace(action, beside=tuple(others), one_more_replica=more)


def _alternative(setting: Setting, measured: Measured, chosen: Measured) -> Alternative:
    return Alternative(
        setting,
        _factor(measured[LOSSES], chosen[LOSSES]),
        _factor(measured[MINUTES], chosen[MINUTES]),
    )


def _factor(amount: float, of: float) -> float:
    if amount == of:
        return 1.0
    return amount / of if of > 0.0 else float("inf")


def _like(first: Action, question: TopicQuestion, evaluator: ExactEvaluator) -> Action:
    """The action of another topic of a class: the same choice, with the topic's own numbers."""
    before = evaluator.middle(question.today, question.load)
    after, then = question.today, before
    if first.set_to is not None:
        placement = question.planned(first.set_to.replication_factor)
        after = Setting(first.set_to.config, placement)
        then = evaluator.middle(after, question.load)
    # The floor differs as the losses after the change do: both count the topic's replica sets.
    scale = _factor(then[LOSSES], first.loss_after)
    floor = replace(
        first.floor, losses_per_year=min(first.floor.losses_per_year * scale, then[LOSSES])
    )
    action = replace(
        first,
        topic=question.topic,
        today=question.today,
        set_to=None if first.set_to is None else after,
        loss_today=before[LOSSES],
        loss_after=then[LOSSES],
        refused_today=before[MINUTES],
        refused_after=then[MINUTES],
        severity=_severity(
            question.today, first.set_to is not None, before[LOSSES], floor.losses_per_year
        ),
        floor=floor,
        loss_size=loss_size(then, question),
    )
    return replace(action, why=words.why(action))


def verdict_of(
    actions: Sequence[Action],
    questions: Sequence[TopicQuestion],
    now: Sequence[str] = (),
    undrawn: int = 0,
    choice: SettingChoice | None = None,
) -> Verdict:
    """Put actions into one verdict, and into words.

    undrawn: topics whose choice was made at the card's middle values only.
    choice: of the least confident action. Default: found among the actions.
    """
    ordered = sorted(actions, key=lambda action: action.urgency)
    if choice is None:
        least = _least_confident([(at, action.choice) for at, action in enumerate(ordered)])
        choice = None if least is None else ordered[least].choice
    worst = max(ordered, key=lambda action: action.cost_after, default=None)
    site = ""
    if worst is not None:
        question = next(q for q in questions if q.topic == worst.topic)
        site = words.site(question, worst.after)
    head = words.headline(ordered, now)
    return Verdict(
        headline=head,
        text=words.text(ordered, head, site),
        actions=tuple(ordered),
        now=tuple(now),
        floor=None if worst is None else worst.floor,
        choice=choice,
        confidence="" if choice is None else choice.confidence,
        below=tuple(filter(None, _below(ordered, worst, choice, undrawn))),
        undrawn=undrawn,
    )


def _below(
    actions: Sequence[Action], worst: Action | None, choice: SettingChoice | None, undrawn: int
) -> list[str]:
    """The sentences below the text; empty ones are left out later."""
    if worst is None or choice is None:
        return []
    sentences = [words.floor_sentence(actions), words.sure_sentence(choice, actions)]
    sentences += [
        f"Held back, because it {words.held_back(action)}: {action.topic or 'the change'}."
        for action in actions
        if action.held_back
    ]
    sentences += words.goal_sentences(actions)
    sentences += [
        words.loss_size_sentence(worst.loss_size),
        words.more_replica_sentence(worst),
        words.measure_sentence(choice),
        words.undrawn_sentence(undrawn),
    ]
    return sentences


def verdict_of_reliability(
    result: Reliability,
    *,
    current: Config | None = None,
    draws: int = DRAWS,
    depth: Depth | None = None,
) -> Verdict:
    """Decide about the setting that `evaluate` was asked about, as if it or `current` ran today."""
    question, evaluator = _asked(result, current or result.config, draws)
    return verdict_of([decide_topic(question, evaluator, depth=depth)], [question])


def floor_of_reliability(result: Reliability) -> Floor:
    """Return what no setting with as many replicas prevents of the measures of a result."""
    question, evaluator = _asked(result, result.config, 0)
    return floor_of(compare(question, evaluator, Requirements()), evaluator, False)


def _asked(
    result: Reliability, today_config: Config, draws: int
) -> tuple[TopicQuestion, ExactEvaluator]:
    """The question about a result's topic, and who answers it."""
    today, brokers = Setting(today_config), result.cluster.brokers
    question = TopicQuestion("", today, result.load, brokers, as_kafka_places)
    card = result.model.under(str(result.config.mode))
    return question, ExactEvaluator(result.cluster, card, draws)
