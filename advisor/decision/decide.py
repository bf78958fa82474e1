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
    requirements, depth = requirements or Requirements(), depth or Depth()
    comparison = compare(question, evaluator, requirements, survives)
    choice = choice_of(comparison, evaluator, requirements, depth.draws)
    if depth.sensitivity:
        choice = _with_sensitivity(choice, comparison, evaluator, requirements, survives)
    action = _action(
        comparison, choice, evaluator, requirements, survives, allow_lower_durability, depth.draws
    )
    return _with_others(action, comparison, evaluator, requirements) if depth.others else action


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
    requirements, depth = requirements or Requirements(), depth or Depth()
    evaluation = evaluator, requirements, survives
    classes = [(compare(members[0], *evaluation), members) for members in _classes(questions)]
    middle = [choice_of(comparison, evaluator, requirements, False) for comparison, _ in classes]
    order = sorted(
        range(len(classes)),
        key=lambda index: (
            *_action(classes[index][0], middle[index], *evaluation, False, False).urgency[:2],
            classes[index][0].question.topic,
        ),
    )
    comparisons = [classes[index][0] for index in order]
    drawn = _drawn_classes(comparisons, most_chains) if depth.draws else 0
    choices = dict(enumerate(middle))
    # A notebook gets messages for each bar, shown or not.
    bar = progress_bar(drawn, " topics", "How sure") if drawn else nullcontext(ignore)
    with bar as advance:
        for index in order[:drawn]:
            choices[index] = choice_of(classes[index][0], evaluator, requirements)
            advance(1)
    least_confident = _least_confident([(index, choices[index]) for index in order])
    for index in order:
        if depth.sensitivity and index == least_confident:
            choices[index] = _with_sensitivity(choices[index], classes[index][0], *evaluation)
    actions = []
    for place, index in enumerate(order):
        comparison, members = classes[index]
        action = _action(
            comparison, choices[index], *evaluation, allow_lower_durability, place < drawn
        )
        if depth.others:
            action = _with_others(action, comparison, evaluator, requirements)
        actions.append(action)
        actions += [_like(action, question, evaluator) for question in members[1:]]
    undrawn = sum(len(classes[index][1]) for index in order[drawn:]) if depth.draws else 0
    choice = None if least_confident is None else choices[least_confident]
    return verdict_of(actions, questions, now, undrawn, choice)


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
    sensitivity = Sensitivity(comparison, evaluator, requirements, survives)
    return replace(
        choice, depends_on=sensitivity.depends_on(), measure_next=sensitivity.measure_next()
    )


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
    measured_today, measured_after = comparison.measured[0], comparison.measured[comparison.chosen]
    changes = comparison.chosen != 0
    lowers_min_isr = after.min_insync_replicas < today.min_insync_replicas
    lowered = changes and today.guarded and lowers_min_isr
    floor = floor_of(comparison, evaluator, draw)
    action = Action(
        topic=question.topic,
        today=today,
        set_to=after if changes else None,
        loss_today=measured_today[LOSSES],
        loss_after=measured_after[LOSSES],
        refused_today=measured_today[MINUTES],
        refused_after=measured_after[MINUTES],
        severity=_severity(today, changes, measured_today[LOSSES], floor.losses_per_year),
        why="",
        choice=choice,
        held_back=lowered and not allowed,
        moves=changes
        and after.replication_factor == today.replication_factor
        and after.placement != today.placement,
        floor=floor,
        goals=goal_outcomes(comparison, evaluator, requirements, survives, draw),
        loss_size=loss_size(measured_after, question),
        cause=measured_after.main_cause(LOSS_PROBABILITY),
    )
    return replace(action, why=words.why(action))


def _severity(today: Setting, changes: bool, losses: float, floor_losses: float) -> str:
    if not changes:
        return OK
    avoidable = losses > AVOIDABLE_TIMES * floor_losses
    return CRITICAL if avoidable or not today.survives_restart else WARNING


def floor_of(comparison: Comparison, evaluator: ExactEvaluator, draw: bool) -> Floor:
    """Return the least of each measure over candidates and today's setting, also in each draw."""
    columns, load = comparison.columns, comparison.question.load
    if comparison.question.has_observers:
        # What settings with observers promoted would do is not known.
        return Floor(0.0, 0.0, dict.fromkeys(comparison.measured[0].values, 0.0), "", {})
    fewest_losses = min(columns, key=lambda place: comparison.measured[place][LOSSES])
    drawn: dict[str, tuple[float, ...]] = {}
    if draw and evaluator.draws:
        samples = [evaluator.drawn(comparison.settings[place], load) for place in columns]
        for name in samples[0]:
            smallest = np.min([sample[name] for sample in samples], axis=0)
            drawn[name] = tuple(map(float, smallest))
    return Floor(
        losses_per_year=comparison.floor(LOSSES),
        minutes_without_writes_per_year=comparison.floor(MINUTES),
        values={name: comparison.floor(name) for name in comparison.measured[fewest_losses].values},
        cause=comparison.measured[fewest_losses].main_cause(LOSS_PROBABILITY),
        drawn=drawn,
    )


def loss_size(measured: Measured, question: TopicQuestion) -> LossSize:
    """Return how much a loss takes: the records of a topic's loss, and whether whole logs go.

    A partition's loss takes its whole log or a few seconds of it, so that the mean of what it takes
    over the whole log is the share of losses that take all.
    """
    losses, events, records = (measured[name] for name in (LOSSES, LOSS_EVENTS, RECORDS_LOST))
    of_whole_logs = question.load.retained_records_per_partition * events
    share = min(records / of_whole_logs, 1.0) if of_whole_logs else 0.0
    if not question.load_is_given:
        return LossSize(None, share)
    return LossSize(records / losses if losses > 0.0 else 0.0, share)


def _with_others(
    action: Action, comparison: Comparison, evaluator: ExactEvaluator, requirements: Requirements
) -> Action:
    """The action with what is never chosen beside it, and what one more replica would buy."""
    question, chosen = comparison.question, comparison.settings[comparison.chosen]
    chosen_measures = comparison.measured[comparison.chosen]
    others = [
        _alternative(setting, evaluator.middle(setting, question.load), chosen_measures)
        for setting in beside(chosen)
        if setting.key != chosen.key
    ]
    one_more = None
    factor = chosen.replication_factor + 1
    if factor <= min(len(question.brokers), MOST_REPLICAS):
        min_isrs = (chosen.min_insync_replicas, chosen.min_insync_replicas + 1)
        options = [
            _alternative(setting, evaluator.middle(setting, question.load), chosen_measures)
            for setting in candidates(question, factor)
            if setting.min_insync_replicas in min_isrs
        ]
        price = requirements.minutes_per_loss
        one_more = min(
            options,
            key=lambda option: (
                option.minutes_factor * chosen_measures[MINUTES]
                + price * option.losses_factor * chosen_measures[LOSSES]
            ),
        )
    return replace(action, beside=tuple(others), one_more_replica=one_more)


def _alternative(setting: Setting, measured: Measured, chosen: Measured) -> Alternative:
    return Alternative(
        setting,
        _factor(measured[LOSSES], chosen[LOSSES]),
        _factor(measured[MINUTES], chosen[MINUTES]),
    )


def _factor(amount: float, base: float) -> float:
    if amount == base:
        return 1.0
    return amount / base if base > 0.0 else float("inf")


def _like(decided: Action, question: TopicQuestion, evaluator: ExactEvaluator) -> Action:
    """The action of another topic of a class: the same choice, with the topic's own numbers."""
    measured_today = evaluator.middle(question.today, question.load)
    after, measured_after = question.today, measured_today
    if decided.set_to is not None:
        placement = question.planned(decided.set_to.replication_factor)
        after = Setting(decided.set_to.config, placement)
        measured_after = evaluator.middle(after, question.load)
    # The floor differs as the losses after the change do: both count the topic's replica sets.
    scale = _factor(measured_after[LOSSES], decided.loss_after)
    floor = replace(
        decided.floor,
        losses_per_year=min(decided.floor.losses_per_year * scale, measured_after[LOSSES]),
    )
    action = replace(
        decided,
        topic=question.topic,
        today=question.today,
        set_to=None if decided.set_to is None else after,
        loss_today=measured_today[LOSSES],
        loss_after=measured_after[LOSSES],
        refused_today=measured_today[MINUTES],
        refused_after=measured_after[MINUTES],
        severity=_severity(
            question.today,
            decided.set_to is not None,
            measured_today[LOSSES],
            floor.losses_per_year,
        ),
        floor=floor,
        loss_size=loss_size(measured_after, question),
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
        least_confident = _least_confident(
            [(index, action.choice) for index, action in enumerate(ordered)]
        )
        choice = None if least_confident is None else ordered[least_confident].choice
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
    question, evaluator = _question_about(result, current or result.config, draws)
    return verdict_of([decide_topic(question, evaluator, depth=depth)], [question])


def floor_of_reliability(result: Reliability) -> Floor:
    """Return what no setting with as many replicas prevents of the measures of a result."""
    question, evaluator = _question_about(result, result.config, 0)
    return floor_of(compare(question, evaluator, Requirements()), evaluator, False)


def _question_about(
    result: Reliability, today_config: Config, draws: int
) -> tuple[TopicQuestion, ExactEvaluator]:
    """The question about a result's topic, and who answers it."""
    today, brokers = Setting(today_config), result.cluster.brokers
    question = TopicQuestion("", today, result.load, brokers, as_kafka_places)
    card = result.model.under(str(result.config.mode))
    return question, ExactEvaluator(result.cluster, card, draws)
