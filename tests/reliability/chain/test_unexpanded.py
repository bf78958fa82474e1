"""What the rules are not asked about is bounded by the worst that it could do."""

import numpy as np
import pytest

from advisor import Config, FailureModel
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain import ctmc, state_selection
from advisor.reliability.chain.loss_bound import Limits, power_per_hour
from advisor.reliability.chain.state_selection import Moves, NominalRates
from advisor.reliability.chain.truncation_error import third_failures
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.election_risk import UNEXPANDED, risks, unexpanded
from advisor.reliability.solver.generator import Generator
from advisor.reliability.solver.regenerative import RegenerativeCycles
from advisor.reliability.statespace import state_graph
from advisor.reliability.workload import Workload
from cards import only
from merging import forget
from replica_sets import measured, parameters, solution

LOAD = Workload(partitions=1, records_per_second=100.0, record_bytes=512)
BROKERS = "broker.crash broker.power broker.destroyed broker.lag"
LIMPING = f"{BROKERS} broker.gray rack.power cluster.crash"
CONTROLLER = "broker.crash broker.power broker.destroyed cluster.controller"
NO_RACKS_TOGETHER = ["rack.power.spreads", "rack.power.not_returning"]
OFTEN = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 20.0, "minutes": 30.0},
            "power": {"per_year": 4.0, "minutes": 40.0},
            "destroyed": {"per_year": 1.0, "hours": 10.0},
        },
        "rack": {"power": {"per_year": 2.0, "minutes": 60.0}},
        "flush": {"seconds": 60.0},
    }
)


def question(card, least=2, acks="all", unclean=False, elr=True):
    """Configuration, numbers and fault environment."""
    config = Config(
        kafka_version="4.2",
        replication_factor=3,
        min_insync_replicas=least,
        acks=acks,
        unclean_leader_election_enable=unclean,
        eligible_leader_replicas=elr,
    )
    numbers = parameters(config, card, LOAD, 3)
    return config, numbers, FaultEnvironment((0, 1, 2), possible_mechanisms(card))


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize(("least", "acks"), [(2, "all"), (1, "all"), (1, 1)])
@pytest.mark.parametrize("kept", [LIMPING, CONTROLLER])
def test_no_transition_costs_more_than_an_unexpanded_one(kept, least, acks, unclean):
    """Its own losses and all to come, solved to all digits, for every transition of a chain."""
    card = only("two_az", kept.split(), NO_RACKS_TOGETHER)
    _, numbers, environment = question(card, least, acks, unclean)
    chain = ctmc.whole_structure(numbers.constants, environment)
    found = dict(numbers.rates_per_hour)
    rate = np.array([found[name] for name in chain.rate_names])[chain.rate] * chain.weight
    moves = chain.source != chain.target
    generator = Generator.of(
        chain.source[moves], chain.target[moves], rate[moves], np.zeros(chain.states)
    )
    losses = chain.with_effect(Effect.LOSS) + 2.0 * chain.with_effect(Effect.TAIL)
    own = np.stack([losses, chain.with_effect(Effect.TOTAL), np.ones(len(rate))], axis=1)
    per_hour = [np.bincount(chain.source, rate * each, chain.states) for each in own.T]
    to_come = RegenerativeCycles(generator).backward(np.stack(per_hour, axis=1))
    waits = chain.waits.copy()
    waits[:, -1] = 0
    worst = np.tile(risks(unexpanded(3)), (chain.states, 1)).astype(float)
    most = Limits(found, environment.racks, chain.constants).until_well(waits, worst)
    limit = np.stack([most.losses, most.totals, most.events], axis=1)
    assert np.all((own + to_come[chain.target])[moves] <= limit[chain.target][moves] * (1 + 1e-12))
    assert own[moves].max(axis=0).tolist() == [2.0 if acks == 1 else 1.0, 1.0, 1.0]


def test_unexpanded_moves_keep_rates_and_outages():
    """As often as by the rules, into the same outages; what changes nothing comes on top."""
    _, numbers, environment = question(load_model("three_az_cloud"))
    graph = state_graph.Graph(numbers.constants, environment)
    states = np.zeros(1, dtype=np.int64)
    states = np.unique(graph.moves(states)[1][:, state_graph.TARGET])
    upcoming = graph.next_transitions(states)
    every = np.arange(len(upcoming.owner))

    def counted(owner, rows):
        waits = graph.waits(rows[:, state_graph.TARGET])[:, :-1]
        times = rows[:, state_graph.TIMES] / rows[:, state_graph.WAYS]
        rates = rows[:, state_graph.RATE].tolist()
        found = {}
        for *key, left, count in zip(owner.tolist(), rates, waits.tolist(), times, strict=True):
            found[*key, *left] = found.get((*key, *left), 0.0) + count
        return found

    by_rules = counted(*graph.moves(states))
    owner, rows = graph.moves(states, upcoming, every)
    assert graph.is_unexpanded(rows[:, state_graph.TARGET]).all()
    assert not rows[:, state_graph.EFFECTS].any()
    blind = counted(owner, rows)
    assert len(by_rules) > 1000
    assert all(blind[key] >= count - 1e-9 for key, count in by_rules.items())
    same = graph.waits(states)[:, :-1].tolist()
    assert all(blind[key] == by_rules[key] for key in blind if list(key[2:]) != same[key[0]])
    assert graph.election_risks(rows[:, state_graph.TARGET])[:, UNEXPANDED].all()
    assert not graph.election_risks(states)[:, UNEXPANDED].any()


@pytest.mark.parametrize("share", [0.01, 0.9])
@pytest.mark.parametrize(("least", "acks", "unclean"), [(2, "all", False), (1, 1, True)])
def test_stated_errors_hold_however_much_is_unexpanded(share, least, acks, unclean, monkeypatch):
    """Against the chain of all states; where much is left out, what matters is seen after all."""
    config, numbers, environment = question(OFTEN, least, acks, unclean)
    forget()
    whole = solution(ctmc.whole_structure(numbers.constants, environment), config, OFTEN, LOAD, 3)
    exact = measured(whole, config, OFTEN)
    monkeypatch.setattr(state_selection, "_SMALL", 10)
    monkeypatch.setattr(state_selection, "_UNEXPANDED_SHARE", share)
    guide = NominalRates(numbers.nominal_rates_per_hour, numbers.nominal_failover_hours)
    forget()
    chain = ctmc.structure(numbers.constants, environment, guide)
    kept = measured(solution(chain, config, OFTEN, LOAD, 3), config, OFTEN)
    forget()
    assert chain.states < whole.chain.states
    assert chain.election_risks[chain.states :, UNEXPANDED].any()
    assert chain.writes_rarely_stop.any() or share < 0.5
    for name, bound in kept.errors.items():
        off = abs(sum(kept.causes[name].values()) - sum(exact.causes[name].values()))
        assert off <= bound, name


def test_what_turns_out_to_matter_is_seen(monkeypatch):
    """Estimates that are far too low leave out too much at first, and nothing that matters."""
    _, numbers, environment = question(OFTEN)
    least = state_selection._least
    monkeypatch.setattr(state_selection, "_SMALL", 10)
    monkeypatch.setattr(state_selection, "_least", lambda harm: least(harm * 1e-4))
    guide = NominalRates(numbers.nominal_rates_per_hour, numbers.nominal_failover_hours)
    graph = state_graph.Graph(numbers.constants, environment)
    search = state_selection._Search(graph, guide, numbers.constants)
    kept_moves = search.kept().moves
    harm = search._harm(kept_moves, *state_selection.truncated_states(kept_moves)).shares
    assert harm.sum(axis=0).max() <= 1.0
    whole = Moves.of(graph, kept_moves.kept, numbers.constants).among(graph, kept_moves.kept)
    seen = (kept_moves.target >= 0).sum() / (whole.target >= 0).sum()
    assert 0.5 < seen <= 1.0


@pytest.mark.parametrize(("kept", "elr"), [(LIMPING, False), (CONTROLLER, True)])
def test_power_goes_no_more_often_than_it_may(kept, elr):
    """In every state in which writing has stopped, a broker that limps and dies included."""
    card = only("three_az_cloud", kept.split(), NO_RACKS_TOGETHER)
    _, numbers, environment = question(card, elr=elr)
    chain = ctmc.whole_structure(numbers.constants, environment)
    found = dict(numbers.rates_per_hour)
    rates = np.array([found[name] for name in chain.rate_names])
    losing = chain.flush_window.per_hour(rates, chain.states)
    most = power_per_hour(found, environment.racks, chain.waits)
    assert np.all(losing <= most * (1 + 1e-12))
    # Only the death of a broker that limps is so quick.
    assert (losing.max() > 0.05) == (kept == LIMPING)


def test_a_third_failure_is_charged_for_each_pair_that_follows_a_stop():
    """By hand: a stop, a change within the window that brings no writing, and power after it."""
    _, numbers, environment = question(OFTEN)
    chain = ctmc.whole_structure(numbers.constants, environment)
    found = dict(numbers.rates_per_hour)
    rate = np.array([found[name] for name in chain.rate_names])[chain.rate] * chain.weight
    flux = np.linspace(0.1, 1.0, len(rate))
    hours = chain.unflushed(0.02, 0.0)
    power = found["broker.power"] * 3 + found["rack.power"] * 3
    expected = 0.0
    for stop in np.flatnonzero(hours).tolist():
        after = (chain.source == chain.target[stop]) & ~chain.writable[chain.target]
        after &= chain.source != chain.target
        expected += flux[stop] * hours[stop] ** 2 / 2.0 * rate[after].sum() * power
    assert expected > 0.0
    assert third_failures(chain, found, rate, chain.target, flux * hours**2) == pytest.approx(
        expected
    )
