"""`evaluate`: the exact reliability of a configuration on a cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any

from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.errors import InputError, expect, shown
from advisor.formatting import significant
from advisor.protocol.rules.config import Config
from advisor.reliability.case import Case
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.common_cause.placement import Brokers
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import Replicas
from advisor.reliability.measures.draws import (
    FEW_REPLICAS,
    OF_PRODUCERS,
    TOO_ROUGH,
    TRUNCATED,
    DrawnMeasures,
    averaged,
    forget_draws,
    measure_draws,
    of_sets,
    summed,
    summed_errors,
)
from advisor.reliability.measures.empty_leader import empty_leader_share
from advisor.reliability.measures.first_losses import (
    FirstLosses,
    compute_first_losses,
    first_losses_of_many,
    measure_sets,
    scaled_from_fewer,
)
from advisor.reliability.measures.likeliest_loss import likeliest_loss
from advisor.reliability.measures.replica_set import forget_chains
from advisor.reliability.measures.solved_chain import SetMeasures
from advisor.reliability.results.assumptions import assumptions
from advisor.reliability.results.cost import cost_of
from advisor.reliability.results.fault_tolerance import tolerance
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload
from advisor.tables import measures_as_fields

__all__ = [
    "check_inputs",
    "evaluate",
    "forget_chains",
    "forget_draws",
    "topic_evaluator",
]

Pattern = tuple[int, ...]

# A smaller share of the losses is left out silently; the stated error has it in any case.
_WORTH_SAYING = 1e-4


@names_checked
def evaluate(
    cluster: Brokers | Sources,
    config: Config,
    model: FailureModel | str | PathLike[str],
    load: Workload | None = None,
    *,
    placement: tuple[Replicas, ...] | None = None,
) -> Reliability:
    """Compute exactly what a configuration loses and refuses on a cluster.

    Every rack pattern of the placement becomes one continuous-time Markov chain (CTMC), generated
    by calling the protocol's rules and solved without subtraction. The replica sets are then
    combined by what they have in common.

    Parameters
    ----------
    cluster : Cluster, str, path or list
        Brokers and their racks; texts or paths are read by `load_cluster`. A broker whose rack is
        unknown counts as a rack of its own.
    config : Config
        Settings of the topic and its producers.
    model : FailureModel, str or path
        What fails, how often and for how long; a card's name or path is read by `load_model`.
    load : Workload, optional
        Traffic of the topic, by default one partition and 1,000 records a second.
    placement : tuple of tuple of int, optional
        Replicas of each partition; by default as Kafka places a new topic.

    Returns
    -------
    Reliability
        Every measure with its interval, causes and error bound.

    Raises
    ------
    InputError
        If Kafka could not place the topic, such as more replicas than brokers.
    NotComputedError
        If the card has times that a Markov chain does not express: other than exponential times
        between failures and gamma durations of a shape up to 2, or repairs that wait for a crew.

    See Also
    --------
    simulate : The same measures, sampled; takes every card.
    recommend : The best settings for given goals.

    Examples
    --------
    >>> import advisor
    >>> card = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
    ... )
    >>> cluster = advisor.Cluster.uniform(brokers=3)
    >>> result = advisor.evaluate(cluster, advisor.Config(replication_factor=1), card)
    >>> round(result.loss_probability_per_year, 6)  # 1 - exp(-1)
    0.632121
    >>> result = advisor.evaluate(cluster, advisor.Config(replication_factor=2), "three_az_cloud")
    >>> result.model.name
    'three_az_cloud'
    """
    cluster, model = cluster_of(cluster), model_of(model)
    check_inputs(cluster, config, model, load, placement)
    return _answer(Case.read(cluster, config, model, load, placement), compute_first_losses)


def topic_evaluator() -> Callable[..., Reliability]:
    """Return `evaluate` for one topic after another of a cluster.

    What sets share is examined to a hundredth of the first losses; the stated error holds the rest.
    """

    def evaluated(
        cluster: Brokers,
        config: Config,
        model: FailureModel,
        load: Workload | None = None,
        *,
        placement: tuple[Replicas, ...] | None = None,
    ) -> Reliability:
        check_inputs(cluster, config, model, load, placement)
        return _answer(Case.read(cluster, config, model, load, placement), first_losses_of_many)

    return evaluated


def check_inputs(
    cluster: object,
    config: object,
    model: object,
    load: object = None,
    placement: object = None,
) -> None:
    """Check the types of the arguments that every front door takes."""
    if not isinstance(getattr(cluster, "brokers", None), Mapping):
        raise InputError(f"cluster={shown(cluster)}: give a Cluster, as load_cluster returns it")
    expect("config", config, Config, "a Config")
    expect("model", model, FailureModel, "a FailureModel, as load_model returns it")
    expect("load", load, Workload | None, "a Workload, or None")
    if placement is None:
        return
    kinds = (tuple, list)
    lists = isinstance(placement, kinds) and all(
        isinstance(ids, kinds) and set(map(type, ids)) == {int} for ids in placement
    )
    if not placement or not lists:
        raise InputError(f"placement={shown(placement)}: give the broker ids of each partition")


def _answer(case: Case, first_losses: FirstLosses) -> Reliability:
    return _combine(measure_sets(case), case, first_losses)


@dataclass(frozen=True)
class Reevaluation:
    """Evaluates other cards on the states of a case, to a few digits; can be pickled."""

    case: Case
    first_losses: FirstLosses

    def __call__(self, model: FailureModel) -> Reliability:
        """Evaluate another card; on states of its own if too much were missing."""
        result = _answer(self.case.roughly(model), self.first_losses)
        if (self.case.config.replication_factor or 0) > FEW_REPLICAS:
            return result
        missing = max(
            result.error_bounds[name] / (getattr(result, name) or math.inf) for name in TRUNCATED
        )
        # Without a bound on outages no states are enough.
        if missing <= TOO_ROUGH or math.isinf(missing):
            return result
        return _answer(self.case.roughly(model, own_states=True), self.first_losses)

    def draws(self, cards: Sequence[FailureModel], producers: bool = False) -> DrawnMeasures:
        """Measure several cards at once, without causes.

        producers: whether to compute what depends on the producers' timeouts, too: stalled writes,
            failed sends, dropped records. Left out, they are computed when one reads them.
        """
        drawn = measure_draws(self.case, cards, self.first_losses, producers)
        if producers:
            return drawn
        return replace(drawn, values=_WithOthers(drawn.values, self, tuple(cards)))


class _WithOthers(dict[str, Any]):
    """Measures of several cards, each an array; those that are missing are computed when asked."""

    def __init__(
        self, values: Mapping[str, Any], reevaluate: Reevaluation, cards: Sequence[FailureModel]
    ) -> None:
        super().__init__(values)
        self._reevaluate, self._cards = reevaluate, cards

    def __missing__(self, measure: str) -> Any:
        if measure not in OF_PRODUCERS:
            raise KeyError(measure)
        drawn = self._reevaluate.draws(self._cards, producers=True)
        self.update({name: drawn.values[name] for name in OF_PRODUCERS})
        return self[measure]


def _with_card(case: Case, model: FailureModel, first_losses: FirstLosses) -> Reliability:
    return _answer(case.with_card(model), first_losses)


def _topic(
    cluster: Any, model: FailureModel, config: Config, load: Workload, replicas: Any
) -> Reliability:
    return evaluate(cluster, config, model, load, placement=replicas)


def _combine(
    sets: Mapping[Pattern, SetMeasures], case: Case, first_losses: FirstLosses
) -> Reliability:
    """Put the replica sets of a topic together."""
    classes = case.patterns
    counts = {pattern: measured.partitions for pattern, measured in classes.items()}
    first, upper = first_losses(case, sets)
    first_losses_of_cards = scaled_from_fewer(case, (first, upper)) or first_losses
    causes = _causes(sets, counts)
    whole = summed(sets, counts)
    unacknowledged = case.config.acks == 0
    lost = whole["records_dropped_per_year" if unacknowledged else "acked_records_lost_per_year"]
    probability = min(first.probability, lost)
    causes["loss_probability_per_year"] = {
        mechanism: probability * share for mechanism, share in first.shares
    }
    replica_lists = sum(measured.lists for measured in classes.values())
    config, cluster = case.config, case.cluster
    first_loss = {
        "loss_probability_per_year": probability,
        "mean_years_to_loss": first.mean_years,
    }
    return Reliability(
        **measures_as_fields(Reliability, whole | first_loss),
        tolerates=tolerance(config),
        causes=MappingProxyType({name: MappingProxyType(parts) for name, parts in causes.items()}),
        bounds=(min(first.bounds[0], lost), min(first.bounds[1], lost)),
        first_loss_upper=upper,
        error_bounds=MappingProxyType(
            _error_bounds(sets, counts, replica_lists, first, upper, probability)
        ),
        flush_window_losses_per_year=sum(
            sets[pattern].flush_window_losses_per_year * n for pattern, n in counts.items()
        ),
        truncated_entries_per_year=sum(
            sets[pattern].truncated_entries_per_year * n for pattern, n in counts.items()
        ),
        states=sum(measured.states for measured in sets.values()),
        method=_method(sets, sum(measured.sets for measured in classes.values()), first.left_out),
        assumptions=assumptions(cluster, config, case.model),
        config=config,
        model=case.model,
        load=case.load,
        cluster=cluster,
        cost=cost_of(config, case.load, case.placement, cluster),
        # Not as lambdas, which could not be pickled.
        reevaluate=Reevaluation(case, first_losses_of_cards),
        evaluate_card=partial(_with_card, case, first_losses=first_losses),
        evaluate_topic=partial(_topic, cluster, case.model),
        empty_leader_share=partial(empty_leader_share, case),
        likeliest_loss=partial(likeliest_loss, case),
    )


def _causes(
    sets: Mapping[Pattern, SetMeasures], counts: Mapping[Pattern, int]
) -> dict[str, dict[str, float]]:
    partitions = sum(counts.values())
    causes: dict[str, dict[str, float]] = {}
    means = averaged()
    for name in of_sets():
        parts: dict[str, list[float]] = defaultdict(list)
        for pattern, count in counts.items():
            share = count / partitions if name in means else count
            for mechanism, amount in sets[pattern].causes[name].items():
                parts[mechanism].append(amount * share)
        causes[name] = {mechanism: math.fsum(amounts) for mechanism, amounts in parts.items()}
    return causes


def _error_bounds(
    sets: Mapping[Pattern, SetMeasures],
    counts: Mapping[Pattern, int],
    lists: int,
    first: AnyLoss,
    upper: AnyLoss,
    probability: float,
) -> dict[str, float]:
    """How far each measure may be off.

    A year that starts healthy may hold more losses than an average one, in which a partition that
    is already down loses nothing. The stated ``probability`` is never above the mean number of
    records lost in an average year, and the difference is part of its error.
    """
    bounds = summed_errors(sets, counts)
    # For several sets the rate of any loss is a product of three sums of the sets' losses.
    events = bounds["loss_events_per_year"] * (1 if lists == 1 else 3)
    later = first.probability - upper.probability
    sooner_healthy = first.probability - probability
    dependence = first.error * first.probability
    bounds["loss_probability_per_year"] = min(events + later + sooner_healthy + dependence, 1.0)
    # What is truncated adds to the rate, whose inverse the mean is.
    share = first.mean_years * events if events else 0.0
    sooner = first.mean_years / (1.0 + 1.0 / share) if share else 0.0
    # Two infinite means would subtract to NaN.
    apart = upper.mean_years > first.mean_years
    bounds["mean_years_to_loss"] = max(
        sooner, upper.mean_years - first.mean_years if apart else 0.0
    ) + (first.error and first.error * first.mean_years)
    return bounds


def _method(sets: Mapping[Pattern, SetMeasures], replica_sets: int, left_out: float) -> str:
    states = sum(measured.states for measured in sets.values())
    how = ", ".join(sorted({measured.losses[0].first.method for measured in sets.values()}))
    chains = f"Markov chain of {states} states"
    if len(sets) > 1:
        chains = f"{len(sets)} Markov chains of {states} states, one for each rack pattern"
    together = "one replica set"
    if replica_sets > 1:
        together = (
            f"{replica_sets} replica sets, independent but for what strikes them or is away at once"
        )
        if left_out >= _WORTH_SAYING:
            together += f" ({significant(100.0 * left_out)} % of the losses not examined for that)"
    return f"{chains}, {how}; {together}"
