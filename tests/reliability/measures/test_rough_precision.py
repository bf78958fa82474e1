"""Rough solutions, for parameter draws and sensitivities: their errors, and how results say so."""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from advisor import Cluster, Config, evaluate
from advisor.formatting import significant
from advisor.reliability import measure_table
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.measures import records_lost, solved_chain
from advisor.reliability.patching import without_cluster_wide
from advisor.reliability.solver.generator import EXACT, ROUGH
from advisor.reliability.workload import Workload
from replica_sets import measure_set

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
CASES = [
    ("three_az_cloud", (0, 1, 2), 2, "all"),
    ("bare_metal_racks", (0, 0, 1), 1, "all"),
    ("two_az", (0, 0, 1), 2, 1),
    ("two_az", (0, 0, 1, 1), 3, "all"),
]


def cards(name, pattern, min_isr, acks):
    """Configuration, card, and cards drawn from its ranges or moved to their ends."""
    config = Config(
        kafka_version="4.2",
        replication_factor=len(pattern),
        min_insync_replicas=min_isr,
        acks=acks,
    )
    card = load_model(name)
    others = list(card.draws(4, seed=0))
    for path in card.uncertain[::6]:
        number = card.quantities[path]
        others += [card.with_values({path: end}) for end in (number.low, number.high)]
    return config, card, others


def totals(found):
    return {name: sum(causes.values()) for name, causes in found.causes.items()}


@pytest.mark.parametrize(("name", "pattern", "min_isr", "acks"), CASES)
def test_a_rough_solution_keeps_three_digits_of_its_chain(name, pattern, min_isr, acks):
    """On the same states, no measure differs from the exact solution by more than stated."""
    config, card, others = cards(name, pattern, min_isr, acks)
    share = solved_chain._ROUGH_SUMS * ROUGH
    for other in others:
        rough, exact = (
            measure_set(pattern, config, other, LOAD, len(pattern), precision, card)
            for precision in (ROUGH, EXACT)
        )
        assert rough.states == exact.states
        for measure, value in totals(exact).items():
            inverted = records_lost.ROUGH_ACCURACY if "lost" in measure else 0.0
            assert totals(rough)[measure] == pytest.approx(value, rel=share + inverted, abs=0.0), (
                measure
            )
        chance = exact.losses[0].first.probability
        assert rough.losses[0].first.probability == pytest.approx(chance, rel=share, abs=0.0)


def test_the_accuracy_of_the_inversion_is_that_of_its_authors():
    """Abate and Whitt's Euler method gives 0.6 digits for each term of its average."""
    assert pytest.approx(10.0 ** (-0.6 * records_lost._ROUGH_TERMS)) == records_lost.ROUGH_ACCURACY


@pytest.mark.parametrize(("name", "pattern", "min_isr", "acks"), CASES)
def test_the_error_of_another_cards_states_is_stated(name, pattern, min_isr, acks):
    """A draw solved on the card's states agrees with its own states within both bounds."""
    config, card, others = cards(name, pattern, min_isr, acks)
    for other in others:
        rough = measure_set(pattern, config, other, LOAD, len(pattern), ROUGH, card)
        own = measure_set(pattern, config, other, LOAD, len(pattern))
        for measure, value in totals(own).items():
            allowed = rough.errors[measure] + own.errors[measure]
            assert abs(totals(rough)[measure] - value) <= allowed, measure


@pytest.fixture(scope="module")
def found():
    at = Cluster.uniform(brokers=3, racks=3)
    return evaluate(at, Config(replication_factor=3), load_model("three_az_cloud"), LOAD)


def test_an_interval_includes_the_errors_of_its_draws(found):
    """The ends are those of draws with their errors, no narrower than those without."""
    drawn = found.under([*uncertainty.parameter_draws(found.model, found.states)])
    for name in ("loss_events_per_year", "write_unavailability"):
        values = [getattr(one, name) for one in drawn]
        worst = [getattr(one, name) + one.error_bounds[name] for one in drawn]
        low, high = found.interval(name)
        assert low == min(
            uncertainty.lognormal_interval(values)[0], uncertainty.lognormal_interval(worst)[0]
        )
        assert high == uncertainty.lognormal_interval(worst)[1]
        assert high > uncertainty.lognormal_interval(values)[1]
    soonest = [
        1.0 / (1.0 / one.mean_years_to_loss + one.error_bounds["loss_probability_per_year"])
        for one in drawn
    ]
    assert found.interval("mean_years_to_loss")[0] == uncertainty.lognormal_interval(soonest)[0]


@dataclass(frozen=True)
class Endless:
    """What evaluates draws, but without any bound on their errors."""

    reevaluate: Any

    def draws(self, cards, producers=False):
        """Measure several cards."""
        drawn = self.reevaluate.draws(cards, producers)
        endless = np.full(len(cards), np.inf)
        return replace(drawn, errors=dict.fromkeys(measure_table.names(), endless))


def test_draws_without_a_bound_count_as_they_are(found):
    """An infinite bound adds nothing, instead of an interval without an end."""
    unbounded = replace(
        found,
        reevaluate=Endless(found.reevaluate),
        intervals={},
    )
    drawn = found.under([*uncertainty.parameter_draws(found.model, found.states)])
    values = [one.loss_events_per_year for one in drawn]
    assert unbounded.interval("loss_events_per_year") == uncertainty.lognormal_interval(values)


def off_by(result, share):
    """The same result, every error bound this share of its value."""
    bounds = {name: share * getattr(result, name) for name in measure_table.names()}
    result.interval("loss_events_per_year")
    return replace(
        result,
        error_bounds=MappingProxyType(bounds),
        truncated_entries_per_year=1.0,
        intervals=dict.fromkeys(result.intervals, (1.0, 10.0)),
    )


def test_the_numerical_error_is_stated(found):
    """Which values are off, by how much in two digits, and that no other is."""
    bounds = dict.fromkeys(measure_table.names(), 0.0)
    exact = replace(found, error_bounds=MappingProxyType(bounds), truncated_entries_per_year=0.0)
    none = "Numerical error: no state is left out; no value is off by more than a millionth of"
    assert repr(exact).splitlines()[-1].startswith(f"{none} itself.")
    bounds |= {"write_unavailability": 1.234e-3, "read_unavailability": 5.67e-3}
    off = replace(exact, error_bounds=MappingProxyType(bounds))
    assert (
        "left out; write_unavailability may be off by 0.0012, read_unavailability by 0.0057, and "
        "any other value by a millionth of itself at most."
    ) in repr(off)


def test_losses_of_many_partitions_are_counted_per_partition(found):
    """They are more frequent than the verdict's, which counts a failure once: by how many."""
    many = replace(found, load=replace(LOAD, partitions=2))
    assert "Causes of data loss:" in found.explain()
    assert "counted in partitions" not in found.explain()
    events = significant(found.loss_events_per_year)
    heading = f"Causes of data loss, counted in partitions ({events} lose records a year"
    assert f"{heading}):" in many.explain()
    together = replace(many, mean_years_to_loss=40.0 / many.loss_events_per_year)
    assert f"{heading}, about 40 at once):" in together.explain()
    assert "\nBrokers you can lose: " in many.explain()


def test_a_number_without_a_digit_is_called_an_order_of_magnitude(found):
    """From half of the value on, below the verdict and where the numerical error is stated."""
    vague, clear = off_by(found, 0.5), off_by(found, 0.49)
    for said in (vague.explain(), repr(vague), vague._repr_html_()):
        assert "to an order of magnitude only: loss_probability_per_year, loss_events" in said
        assert ", an order of magnitude; main cause of loss: half-dead brokers" in said
    for said in (clear.explain(), repr(clear), clear._repr_html_(), found.explain()):
        assert "digit:" not in said
        assert "order of magnitude" not in said


@pytest.mark.parametrize(
    ("least", "said"),
    [
        (1e-2, "Data loss: less than once in 100 years"),
        (2e-8, "Data loss: rarer than once in 2,000 years"),
    ],
)
def test_no_loss_found_states_a_bound(least, said):
    """No loss in the kept states: truncated ones may still lose once in so many years."""
    at = Cluster.uniform(brokers=3, racks=3)
    card = without_cluster_wide(load_model("three_az_cloud"))
    found = evaluate(at, Config(replication_factor=3), card, LOAD)
    none = replace(found, loss_events_per_year=0.0, mean_years_to_loss=float("inf"))
    bounds = {**found.error_bounds, "loss_events_per_year": least}
    bounds |= {"loss_probability_per_year": least, "mean_years_to_loss": float("inf")}
    missed = replace(none, error_bounds=MappingProxyType(bounds))
    assert said in missed.explain()
    assert "mean_years_to_loss" not in missed.explain().partition("digit:")[2]
    nothing = dict.fromkeys(measure_table.names(), 0.0)
    sure = replace(none, error_bounds=MappingProxyType(nothing))
    assert ": no modelled data loss, " in sure.summary
