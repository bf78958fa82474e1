"""How long a partition waits for a leader, when brokers fail together."""

from collections.abc import Iterator

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.lessons.scheme_reliability.comparison import scheme_row
from advisor.reliability.case import Case
from advisor.reliability.common_cause.placement import place
from sampled_runs import card, sample

# Ten brokers a rack, ten leaders a broker.
CLUSTER = Cluster.uniform(brokers=30, racks=3)
LOAD = Workload(partitions=300, records_per_second=300, record_bytes=100)
CONFIG = Config(replication_factor=3, min_insync_replicas=1, acks=1, delivery_timeout_ms=40_000)
LEADERS = {"broker.crash": 10, "rack.network": 100}
AVAILABILITY = ("write_unavailability", "read_unavailability", "records_refused_per_year")


def cards(mechanism: str) -> Iterator[FailureModel]:
    """All of the wait is the election's; then detection's, which is as long as that should be.

    The mean of the first to the last leader, a second for each, there and back.
    """
    seconds = 2.0 * (1 + LEADERS[mechanism]) / 2.0
    strikes = {mechanism.replace(".", "_"): {"per_year": 2.0, "minutes": 30.0}}
    yield card(**strikes, election={"ms_per_leader": 1000.0}, detection={"seconds": 0.0})
    yield card(**strikes, election={"ms_per_leader": 0.0}, detection={"seconds": seconds})


@pytest.mark.parametrize("mechanism", LEADERS)
def test_the_exact_wait_is_for_the_leaders_of_all_that_fail(mechanism: str) -> None:
    """A hundred leaders move when a rack of ten brokers fails, ten when one broker does."""
    electing, detecting = (evaluate(CLUSTER, CONFIG, model, LOAD) for model in cards(mechanism))
    assert electing.write_unavailability > 0
    for measure in AVAILABILITY:
        exact = getattr(detecting, measure)
        assert getattr(electing, measure) == pytest.approx(exact, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("mechanism", LEADERS)
def test_the_sampled_wait_is_for_the_leaders_of_all_that_fail(mechanism: str) -> None:
    """Exact and sampled results use the same failover times."""
    electing, detecting = (
        sample(CLUSTER, CONFIG, model, LOAD, years=20)[0] for model in cards(mechanism)
    )
    assert electing.write_unavailability.value > 0
    for measure in AVAILABILITY:
        exact = getattr(detecting, measure).value
        assert getattr(electing, measure).value == pytest.approx(exact, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("mechanism", LEADERS)
def test_other_schemes_wait_as_long(mechanism: str) -> None:
    """With any quorum, the leaders move one after the other."""
    electing, detecting = (
        scheme_row("majority", Case.read(CLUSTER, CONFIG, model, LOAD))
        for model in cards(mechanism)
    )
    assert electing.write_unavailability > 0
    for measure in AVAILABILITY:
        exact = getattr(detecting, measure)
        assert getattr(electing, measure) == pytest.approx(exact, rel=1e-12, abs=0.0)


def test_brokers_of_uneven_racks_count_by_their_share_of_leaders() -> None:
    """Two partitions lead where three brokers stand, one where one does: 7/3 on average."""
    cluster = Cluster({0: "a", 1: "a", 2: "a", 3: "b"})
    config = Config(replication_factor=2)
    assert place(cluster, config, 3, ((0, 3), (1, 3), (3, 2))).brokers_per_rack == 7 / 3
