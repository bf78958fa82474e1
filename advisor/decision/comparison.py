"""The settings of one topic compared: which one the rule chooses at the card's middle values.

`compare` evaluates today's setting and the candidates, and settings with more replicas only where a
goal asks for them. `SettingChoice` says how sure the choice is, from draws of the card.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advisor.decision import rule
from advisor.decision.evaluator import (
    LOSSES,
    MEASURES,
    MINUTES,
    ExactEvaluator,
    Measured,
    halved_and_doubled,
)
from advisor.decision.rule import Array, Regret, Spread, narrowing, value_of_information
from advisor.decision.settings import MOST_REPLICAS, Setting, TopicQuestion, candidates
from advisor.errors import InputError
from advisor.reliability import measure_table
from advisor.reliability.workload import Workload

TODAY = 0
"""Place of today's setting in a comparison."""
MET, MISSED, OUT_OF_REACH = "met", "missed", "out of reach"
SURVIVE, REFUSED = "survive", "records_refused_per_year"
MOST_TO_MEASURE = 3
_BISECTIONS = 8
# Numbers that explain less of the range are not worth measuring for it.
_LEAST_NARROWING = 0.02

Survives = Callable[[Setting], bool]
"""Whether a setting neither loses records nor stops writes in the failure to be survived."""


@dataclass(frozen=True)
class Requirements:
    """What a user asks of a topic beside the rule, and the price of a loss.

    limits: measure to the most that it may be, as a whole. Default: none.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    survive: str | None = None
    minutes_per_loss: float = rule.MINUTES_PER_LOSS

    def __post_init__(self) -> None:
        price = self.minutes_per_loss
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < 1e15:
            raise InputError(
                f"minutes_per_loss={price!r} must be the minutes without writes that are as bad as "
                "one loss, a number from 0"
            )
        for name in self.limits:
            if name not in MEASURES:
                raise InputError(f"there is no goal for {name!r}; there are {', '.join(MEASURES)}")


@dataclass(frozen=True)
class GoalOutcome:
    """What becomes of a goal under the chosen setting.

    limit, value: the goal and the measure as a whole; 1 and 0 or 1 for "survive".
    state (one of "met", "missed", "out of reach"): missed: another setting would meet it. Out of
        reach: none does, at any RF to 5.
    best: the least that can be had at any RF evaluated.
    met_in, draws: in how many draws of the card it is met.
    """

    goal: str
    limit: float
    value: float
    state: str
    by: Setting | None
    best: float
    met_in: int = 0
    draws: int = 0


@dataclass(frozen=True)
class Comparison:
    """Today's setting, the candidates and what they cost, at the card's middle values.

    settings: today's first, then the candidates by RF. Today's stands for the candidate that equals
        it.
    groups: places of the candidates of one RF each, the fewest replicas first.
    group: the one that was chosen from: all candidates of its RF.
    pool: those of the group that may be chosen and miss fewest goals, which the rule compared.
    """

    question: TopicQuestion
    settings: tuple[Setting, ...]
    measured: tuple[Measured, ...]
    groups: tuple[tuple[int, ...], ...]
    group: tuple[int, ...]
    pool: tuple[int, ...]
    chosen: int

    @property
    def columns(self) -> tuple[int, ...]:
        """Places of the settings whose least is the floor: today's and the candidates."""
        return (TODAY, *(place for place in self.group if place != TODAY))

    def floor(self, measure: str) -> float:
        """Return the best of a measure over the candidates and today's setting."""
        values = [self.measured[place][measure] for place in self.columns]
        return (
            measure_table.table()[measure].best(values)
            if measure in measure_table.table()
            else min(values)
        )

    def neighbour(self, step: int) -> Setting | None:
        """Return the candidate whose min ISR is higher by `step` than the chosen one's."""
        chosen = self.settings[self.chosen]
        factor_and_min_isr = chosen.replication_factor, chosen.min_insync_replicas + step
        for place in self.group:
            setting = self.settings[place]
            if (setting.replication_factor, setting.min_insync_replicas) == factor_and_min_isr:
                return setting
        return None


def compare(
    question: TopicQuestion,
    evaluator: ExactEvaluator,
    requirements: Requirements,
    survives: Survives | None = None,
) -> Comparison:
    """Evaluate today's setting and candidates, with more replicas while a goal is missed."""
    if requirements.survive is not None and survives is None:
        raise InputError(f"nothing says what survives the loss of a {requirements.survive}")
    settings, groups = [question.today], list[tuple[int, ...]]()
    measured = [evaluator.middle(question.today, question.load)]
    factor = candidates(question)[0].replication_factor
    most_replicas = max(factor, min(MOST_REPLICAS, len(question.brokers)))
    if question.has_observers:
        most_replicas = factor
    for replicas in range(factor, most_replicas + 1):
        group = []
        for candidate in candidates(question, replicas):
            setting = _patient_enough(candidate, question.load, evaluator, requirements)
            of_today = question.today.key, question.today.placement
            if setting is candidate and (setting.key, setting.placement) == of_today:
                group.append(TODAY)
                continue
            group.append(len(settings))
            settings.append(setting)
            measured.append(evaluator.middle(setting, question.load))
        groups.append(tuple(group))
        if any(
            question.allows(settings[place])
            and not _missed(settings[place], measured[place], requirements, survives)
            for place in group
        ):
            break
    selected = select(question, settings, measured, groups, requirements, survives)
    return Comparison(question, tuple(settings), tuple(measured), tuple(groups), *selected)


def _patient_enough(
    setting: Setting, load: Workload, evaluator: ExactEvaluator, requirements: Requirements
) -> Setting:
    """The setting with the shortest delivery timeout that meets a goal for failed sends, if any."""
    limit = requirements.limits.get(REFUSED)
    if limit is None or evaluator.middle(setting, load)[REFUSED] <= limit:
        return setting
    patient = setting
    for patient in setting.more_patient:
        if evaluator.middle(patient, load)[REFUSED] <= limit:
            break
    return patient


def select(
    question: TopicQuestion,
    settings: Sequence[Setting],
    measured: Sequence[Measured],
    groups: Sequence[tuple[int, ...]],
    requirements: Requirements,
    survives: Survives | None,
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the group chosen from, those of it that miss fewest goals, and the rule's choice.

    More replicas are chosen only if they miss fewer goals. Today's setting, where it is no
    candidate, is kept only if it misses fewer goals than any, or as many and costs clearly less.
    """

    def missed(place: int) -> int:
        return len(_missed(settings[place], measured[place], requirements, survives))

    def allowed(places: Sequence[int]) -> list[int]:
        return [place for place in places if question.allows(settings[place])]

    group = min(groups, key=lambda places: min(map(missed, allowed(places))))
    fewest = min(map(missed, allowed(group)))
    pool = tuple(place for place in allowed(group) if missed(place) == fewest)
    losses, minutes = (
        np.array([measured[place][name] for place in (TODAY, *group)]) for name in (LOSSES, MINUTES)
    )
    cost = np.full(len(settings), math.inf)
    cost[[TODAY, *group]] = rule.costs(losses, minutes, requirements.minutes_per_loss)
    is_candidate = any(settings[place].key == settings[TODAY].key for place in group)
    allowed_today = question.allows(settings[TODAY])
    if allowed_today and missed(TODAY) < fewest:
        return group, pool, TODAY
    today = TODAY if allowed_today and missed(TODAY) == fewest else None
    return group, pool, rule.choose(cost, pool, today, is_candidate)


def _missed(
    setting: Setting, measured: Measured, requirements: Requirements, survives: Survives | None
) -> list[str]:
    """The goals that a setting misses."""
    missed = [name for name, limit in requirements.limits.items() if measured[name] > limit]
    if requirements.survive is not None and survives is not None and not survives(setting):
        missed.append(SURVIVE)
    return missed


def goal_outcomes(
    comparison: Comparison,
    evaluator: ExactEvaluator,
    requirements: Requirements,
    survives: Survives | None = None,
    draw: bool = True,
) -> tuple[GoalOutcome, ...]:
    """Return for each goal whether the chosen setting meets it, or what would."""
    chosen, load = comparison.settings[comparison.chosen], comparison.question.load
    drawn = evaluator.drawn(chosen, load) if draw and evaluator.draws else {}
    outcomes = []
    for name, limit in requirements.limits.items():
        values = [measured[name] for measured in comparison.measured]
        state, by = _state(comparison, [value <= limit for value in values])
        sample = drawn[name] if drawn else np.empty(0)
        outcomes.append(
            GoalOutcome(
                goal=name,
                limit=limit,
                value=values[comparison.chosen],
                state=state,
                by=by,
                best=min(values),
                met_in=int((sample <= limit).sum()),
                draws=len(sample),
            )
        )
    if requirements.survive is not None and survives is not None:
        met = [survives(setting) for setting in comparison.settings]
        state, by = _state(comparison, met)
        outcomes.append(
            GoalOutcome(SURVIVE, 1.0, float(met[comparison.chosen]), state, by, float(max(met)))
        )
    return tuple(outcomes)


def _state(comparison: Comparison, met: Sequence[bool]) -> tuple[str, Setting | None]:
    if met[comparison.chosen]:
        return MET, None
    places = [place for group in comparison.groups for place in group]
    by = next((comparison.settings[place] for place in places if met[place]), None)
    return (OUT_OF_REACH if by is None else MISSED), by


@dataclass(frozen=True)
class MeasureNext:
    """A number of the card that is worth measuring on one's own cluster.

    changes_at: where another setting is chosen; None if none is within the range.
    saves_minutes: what knowing it would save on average, in minutes without writes a year.
    narrows: which share of the variance of the cost's logarithm it explains, 0 to 1.
    """

    path: str
    how: str
    value: float
    low: float
    high: float
    changes_at: float | None
    then: Setting | None
    saves_minutes: float
    narrows: float


@dataclass(frozen=True)
class SettingChoice:
    """The setting that the rule chose, and how sure that is over the ranges of the card.

    minutes_per_loss: the price of a loss that was asked about.
    best_in, kept_in, draws: of the draws, those in which no candidate costs less, and those in
        which the rule would keep it: none costs less by ten minutes a year and by 10 %. All 0
        without draws.
    regret: what it costs above the best of each draw: mean, and what 95 % do not exceed.
    runner_up: the candidate that comes next at the middle values.
    break_even_minutes: the price from which on it is better than a min ISR one lower; None without
        such a candidate. Over the draws; without any, at the middle values.
    break_even_above: the price from which on a min ISR one higher is better.
    pays_from_minutes, pays_to_minutes: both at the middle values, at which the rule chooses: the
        prices in between choose it.
    depends_on: numbers of the card whose half or double changes the choice; None if not computed.
    measure_next: at most three numbers that a user can measure.
    """

    setting: Setting
    minutes_per_loss: float
    best_in: int
    kept_in: int
    draws: int
    regret: Regret
    runner_up: Setting | None
    break_even_minutes: Spread | None
    break_even_above: Spread | None
    pays_from_minutes: float | None
    pays_to_minutes: float | None
    depends_on: tuple[str, ...] | None = None
    measure_next: tuple[MeasureNext, ...] = ()

    @property
    def confidence(self) -> str:
        """How sure the choice is: "sure", "likely", "depends"; "" without draws."""
        return rule.confidence(self.kept_in, self.draws)

    @property
    def measuring_changes_choice(self) -> bool:
        """Whether measuring may change the choice; else it only narrows the ranges."""
        return any(number.changes_at is not None for number in self.measure_next)


def choice_of(
    comparison: Comparison, evaluator: ExactEvaluator, requirements: Requirements, draw: bool = True
) -> SettingChoice:
    """Return how sure the choice is, from the same draws for every setting compared."""
    columns, price = comparison.columns, requirements.minutes_per_loss
    pool = [columns.index(place) for place in comparison.pool]
    chosen = columns.index(comparison.chosen)
    middle = rule.costs(*_amounts(comparison, columns), price)
    others = [place for place in pool if place != chosen]
    runner_up = comparison.settings[columns[rule.least(middle, others)]] if others else None
    standing = rule.Standing(0, 0, 0, Regret(0.0, 0.0))
    at_middle = [_break_even(comparison, evaluator, step, False) for step in (-1, 1)]
    below, above = at_middle
    if draw and evaluator.draws:
        cost = rule.costs(*_drawn(comparison, evaluator, columns), price)
        standing = rule.standing(cost, chosen, pool)
        below, above = (_break_even(comparison, evaluator, step, True) for step in (-1, 1))
    return SettingChoice(
        setting=comparison.settings[comparison.chosen],
        minutes_per_loss=price,
        **standing._asdict(),
        runner_up=runner_up,
        break_even_minutes=below,
        break_even_above=above,
        pays_from_minutes=_median(at_middle[0]),
        pays_to_minutes=_median(at_middle[1]),
    )


def _median(prices: Spread | None) -> float | None:
    return None if prices is None else prices.median


def _amounts(comparison: Comparison, columns: Sequence[int]) -> tuple[Array, Array]:
    losses, minutes = (
        np.array([comparison.measured[place][name] for place in columns])
        for name in (LOSSES, MINUTES)
    )
    return losses, minutes


def _drawn(
    comparison: Comparison, evaluator: ExactEvaluator, columns: Sequence[int]
) -> tuple[Array, Array]:
    load = comparison.question.load
    drawn = [evaluator.drawn(comparison.settings[place], load) for place in columns]
    losses, minutes = (
        np.stack([measures[name] for measures in drawn], axis=1) for name in (LOSSES, MINUTES)
    )
    return losses, minutes


def _break_even(
    comparison: Comparison, evaluator: ExactEvaluator, step: int, drawn: bool
) -> Spread | None:
    neighbour = comparison.neighbour(step)
    if neighbour is None:
        return None
    chosen = comparison.chosen
    places = [chosen, comparison.settings.index(neighbour)]
    if drawn:
        losses, minutes = _drawn(comparison, evaluator, places)
    else:
        losses, minutes = (amounts[None] for amounts in _amounts(comparison, places))
    higher, lower = (0, 1) if step < 0 else (1, 0)
    prices = rule.break_even(
        losses[:, higher], minutes[:, higher], losses[:, lower], minutes[:, lower]
    )
    return rule.spread(prices)


@dataclass(frozen=True)
class Sensitivity:
    """Asks the rule again with other numbers of the card, on the settings of a comparison."""

    comparison: Comparison
    evaluator: ExactEvaluator
    requirements: Requirements
    survives: Survives | None = None

    def choices_at(self, changes: Sequence[Mapping[str, float]]) -> list[int]:
        """Return the place of the setting that the rule chooses with each change of numbers."""
        if not changes:
            return []
        question, settings = self.comparison.question, self.comparison.settings
        columns = [self.evaluator.at(setting, question.load, changes) for setting in settings]
        groups = self.comparison.groups
        return [
            select(question, settings, measured, groups, self.requirements, self.survives)[2]
            for measured in zip(*columns, strict=True)
        ]

    def depends_on(self) -> tuple[str, ...]:
        """Return the numbers of the card whose half or double changes the choice."""
        changes = list(halved_and_doubled(self.evaluator.model))
        choices = self.choices_at([{path: value} for path, value in changes])
        chosen = self.comparison.chosen
        paths = (path for path, _ in changes)
        changing = (path for path, at in zip(paths, choices, strict=True) if at != chosen)
        return tuple(dict.fromkeys(changing))

    def measure_next(self) -> tuple[MeasureNext, ...]:
        """Return at most three numbers that a user can measure, the most valuable first.

        Those that would change the choice within their range, by what knowing them saves; without
        any, those that explain most of the range of the cost.
        """
        measurable = self.evaluator.model.measurable
        paths = [path for path in self.evaluator.model.uncertain if path in measurable]
        flips = self._nearest_flips(paths)
        rows = [self._number(path, measurable[path], flips.get(path)) for path in flips or paths]
        if not flips:
            rows = [row for row in rows if row.narrows >= _LEAST_NARROWING]
            return tuple(sorted(rows, key=lambda row: -row.narrows)[:MOST_TO_MEASURE])
        return tuple(sorted(rows, key=lambda row: -row.saves_minutes)[:MOST_TO_MEASURE])

    def _nearest_flips(self, paths: Sequence[str]) -> dict[str, tuple[float, int]]:
        """Where in its range each number changes the choice, nearest its value, and to which."""
        model, chosen = self.evaluator.model, self.comparison.chosen
        ends = [
            (path, end)
            for path in paths
            for end in (model.quantities[path].low, model.quantities[path].high)
            if end != model.quantities[path].value
        ]
        choices = self.choices_at([{path: end} for path, end in ends])
        flips: dict[str, tuple[float, int]] = {}
        for (path, end), place in zip(ends, choices, strict=True):
            if place == chosen:
                continue
            value = model.quantities[path].value
            flip = self._bisected(path, value, end, place)
            if path not in flips or _distance(flip[0], value) < _distance(flips[path][0], value):
                flips[path] = flip
        return flips

    def _bisected(
        self, path: str, unchanged: float, flipped: float, beyond: int
    ) -> tuple[float, int]:
        """Where a number changes the choice, between a value and an end of its range."""
        for _ in range(_BISECTIONS):
            middle = _between(unchanged, flipped)
            (place,) = self.choices_at([{path: middle}])
            if place == self.comparison.chosen:
                unchanged = middle
            else:
                flipped, beyond = middle, place
        return flipped, beyond

    def _number(self, path: str, how: str, flip: tuple[float, int] | None) -> MeasureNext:
        quantity = self.evaluator.model.quantities[path]
        saves, narrows = self._information(path)
        return MeasureNext(
            path=path,
            how=how,
            value=quantity.value,
            low=quantity.low,
            high=quantity.high,
            changes_at=None if flip is None else flip[0],
            then=None if flip is None else self.comparison.settings[flip[1]],
            saves_minutes=saves,
            narrows=narrows,
        )

    def _information(self, path: str) -> tuple[float, float]:
        """What knowing a number saves, and how far it narrows the cost of the chosen setting."""
        if not self.evaluator.draws:
            return 0.0, 0.0
        numbers, price = self.evaluator.drawn_numbers()[path], self.requirements.minutes_per_loss
        losses, minutes = _drawn(self.comparison, self.evaluator, self.comparison.pool)
        saves = value_of_information(numbers, rule.costs(losses, minutes, price)).minutes
        chosen = [self.comparison.chosen]
        losses, minutes = _drawn(self.comparison, self.evaluator, chosen)
        return saves, narrowing(numbers, (minutes + price * losses)[:, 0])


def _between(start: float, end: float) -> float:
    """The middle of two numbers, by their ratio where neither is 0."""
    return math.sqrt(start * end) if start and end else (start + end) / 2.0


def _distance(number: float, value: float) -> float:
    return abs(math.log(number / value)) if number and value else math.inf
