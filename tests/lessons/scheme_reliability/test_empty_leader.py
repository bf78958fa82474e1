"""What Kafka loses by an empty last known leader, beside schemes that wait for a whole log."""

import numpy as np
import pytest
from scipy import sparse

import advisor
from advisor.lessons.scheme_reliability.quorum_rules import Quorums
from advisor.lessons.scheme_reliability.state_space import explored
from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain.ctmc import whole_structure
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.failures.mechanisms import COPY
from advisor.reliability.failures.transition_rates import Sizes, copy_hours, rate_per_hour
from advisor.reliability.measures import replica_set
from advisor.reliability.measures.empty_leader import losses_by_start
from advisor.reliability.solver.generator import Generator
from advisor.reliability.solver.regenerative import stationary
from advisor.reliability.workload import Workload
from cards import BROKERS_AND_RACKS, RARE, only
from replica_sets import parameters, solution

CRASHES = FailureModel.from_dict({"broker": {"crash": {"per_year": 50, "minutes": 600}}})
CLOUD = load_model("three_az_cloud")
PATTERN, BROKERS = (0, 1, 2), 6
SIZES = Sizes(BROKERS, racks=3)


def without_operator(model: FailureModel) -> FailureModel:
    """Return a card in which Kafka waits for ever where it would."""
    return FailureModel.from_dict(
        {name: content for name, content in model.to_dict().items() if name != "operator"}
    )


# What strikes one broker or one rack at a time: wiped logs are lost under every scheme.
ONE_AT_A_TIME = without_operator(only("three_az_cloud", BROKERS_AND_RACKS, RARE))


def with_operator(model: FailureModel, hours: float) -> FailureModel:
    """Return a card with an operator who elects after ``hours`` on average."""
    return FailureModel.from_dict({**model.to_dict(), "operator": {"hours": hours}})


def losing_moves(scheme: Quorums, model: FailureModel) -> dict[bool, list[float]]:
    """Return loss events a year of each transition, largest first, by whether it is a repair."""
    config, load = Config(replication_factor=3), Workload()
    found = explored(
        scheme, FaultEnvironment(PATTERN, possible_mechanisms(model)).without_controller
    )
    per_hour = [
        1.0 / copy_hours(config, model, load, BROKERS)
        if name == COPY
        else rate_per_hour(name, 3, model, SIZES)
        for name in found.rate_names
    ]
    rate = np.array(per_hour)[found.rate] * found.weight
    moves = found.source != found.target
    size = (len(found.keys), len(found.keys))
    where = (found.source[moves], found.target[moves])
    generator = Generator(
        sparse.csr_array((rate[moves], where), shape=size), np.zeros(len(found.keys))
    )
    events = stationary(generator)[found.source] * rate * found.losses * 8760
    return by_end(events, np.array(found.rate_names)[found.rate])


def losing_moves_of_kafka(min_isr: int, model: FailureModel) -> dict[bool, list[float]]:
    """Return the same for Kafka's untruncated chain."""
    config, load = Config(replication_factor=3, min_insync_replicas=min_isr, acks="all"), Workload()
    constants, environment = (
        parameters(config, model, load, BROKERS).constants,
        FaultEnvironment(PATTERN, possible_mechanisms(model)),
    )
    whole = whole_structure(constants, environment)
    found = solution(whole, config, model, load, BROKERS)
    return by_end(found.flux * found.chances.events * 8760, np.array(whole.rate_names)[whole.rate])


def by_end(events: np.ndarray, names: np.ndarray) -> dict[bool, list[float]]:
    """Split events by whether a transition is a repair."""
    ends = np.char.startswith(names, "repair ")
    return {end: sorted(events[ends == end].tolist(), reverse=True) for end in (False, True)}


def test_an_empty_last_known_leader_is_what_kafka_loses_beyond_a_synchronous_scheme() -> None:
    """Min ISR = RF = 3: over 20 times the losses, and all of the difference on repairs.

    Unclean restarts empty the ELR; the last known leader then leads (KIP-966), replaced and empty,
    while the others hold every record. A synchronous scheme waits for a complete replica. Losses
    triggered by failures agree term by term, except for sequences with one more failure: their
    share is the probability of another failure during the longest outage.
    """
    kafka = losing_moves_of_kafka(3, ONE_AT_A_TIME)
    synchronous = losing_moves(Quorums.of("synchronous", 3), ONE_AT_A_TIME)
    assert sum(kafka[True]) + sum(kafka[False]) > 20 * sum(synchronous[False])
    assert sum(synchronous[True]) == 0
    unclean = ("broker.crash", "broker.power", "broker.destroyed", "rack.network", "rack.power")
    per_hour = 3 * sum(map(ONE_AT_A_TIME.rate_per_hour, unclean))
    one_more = per_hour * max(map(ONE_AT_A_TIME.repair_hours, unclean))
    assert one_more < 0.01
    assert sum(kafka[False]) == pytest.approx(sum(synchronous[False]), rel=one_more)
    assert kafka[False][:4] == pytest.approx(synchronous[False][:4], rel=one_more)


def by_replacement_time(model: FailureModel) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Losses at starts and at failures, RF 3, min ISR 2: replaced within 1, 4 and 32 hours."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    found = [
        losses_by_start(
            PATTERN,
            parameters(
                config,
                model.with_values({"broker.destroyed.hours": hours}),
                Workload(),
                BROKERS,
            ),
        )
        for hours in (1.0, 4.0, 32.0)
    ]
    starts, failures = zip(*found, strict=True)
    return starts, failures


def test_a_quicker_replacement_loses_more_where_an_operator_elects_a_log_that_is_left() -> None:
    """The sooner an empty last known leader starts, the likelier it leads before one with a log.

    An operator elects within an hour. Losses triggered by failures grow with the replacement time,
    since fewer copies are left meanwhile.
    """
    starts, failures = by_replacement_time(with_operator(ONE_AT_A_TIME, hours=1.0))
    assert starts[0] > starts[1] > starts[2] > 0
    assert failures[0] < failures[1] < failures[2]


def test_a_slower_replacement_loses_more_without_an_operator() -> None:
    """Kafka itself waits for the empty last known leader, however long: it always leads.

    So nothing is gained by waiting, and more fails meanwhile. An operator, however slow, saves
    some of these logs.
    """
    starts, failures = by_replacement_time(ONE_AT_A_TIME)
    assert starts[0] < starts[1] < starts[2]
    assert failures[0] < failures[1] < failures[2]
    slowly, _ = by_replacement_time(with_operator(ONE_AT_A_TIME, hours=100.0))
    assert all(saved < lost for saved, lost in zip(slowly, starts, strict=True))


def test_a_broker_that_starts_while_none_is_empty_counts_as_a_failure() -> None:
    """Unclean, crashes only: the first to return leads and drops the rest, but no disk is empty."""
    config = Config(
        replication_factor=2, min_insync_replicas=1, unclean_leader_election_enable=True
    )
    numbers = parameters(config, CRASHES, Workload(), BROKERS)
    found = replica_set.solve((0, 1), numbers)
    names = np.array(found.chain.rate_names)[found.chain.rate]
    by_return = found.flux[np.char.startswith(names, "repair ")]
    events = found.chances.events[np.char.startswith(names, "repair ")]
    losses = losses_by_start((0, 1), numbers)
    assert losses.starts == 0.0
    assert losses.failures == pytest.approx(float(by_return @ events) * 8760.0, rel=1e-12)
    assert losses.failures > 0.0


def test_the_two_parts_are_all_losses_and_need_elr() -> None:
    """They add up to the result; without ELR or with unclean elections there is no share."""
    cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    result = evaluate(cluster, config, CLOUD)
    parts = losses_by_start(PATTERN, parameters(config, CLOUD, result.load, BROKERS, racks=3))
    assert sum(parts) == pytest.approx(result.loss_events_per_year, rel=1e-12)
    assert result.empty_leader_share() == pytest.approx(parts.starts / sum(parts), rel=1e-12)
    for changed in (
        config.changed(eligible_leader_replicas=False),
        config.changed(unclean_leader_election_enable=True),
        config.changed(replication_factor=1, min_insync_replicas=1),
    ):
        assert evaluate(cluster, changed, CLOUD).empty_leader_share() is None
    assert evaluate(cluster, config, CRASHES).empty_leader_share() is None
