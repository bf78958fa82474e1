"""In which rack the preferred leader stands, and what the order of the others leaves open."""

import pytest

from advisor import Cluster, evaluate
from advisor.reliability.failures import fault_processes
from advisor.reliability.statespace import lumping
from cards import BROKERS_AND_RACKS, LIMPING_AND_SEVERAL, RARE, only
from merging import all_apart, whole
from replica_sets import parameters
from sampled_runs import FAR, QUIET, TRIO, YEAR, card, off_by, sample

# The controller quorum is out of reach of both racks.
TWO_AND_ONE = Cluster(brokers={1: "a", 2: "a", 3: "b"}, controllers={101: "x", 102: "y", 103: "z"})
PER_YEAR, HOURS, DETECTION = 20.0, 0.05, 60.0 / 3600.0
CUT_OFF = card(
    rack_network={"per_year": PER_YEAR, "minutes": HOURS * 60.0},
    detection={"seconds": DETECTION * 3600.0},
)
# A rack is struck while its brokers are up.
CUTS = PER_YEAR / YEAR / (1.0 + PER_YEAR / YEAR * HOURS)
SAMPLED = ("write_unavailability", "read_unavailability", "write_stalled")


@pytest.mark.parametrize("placement", [(1, 2, 3), (1, 3, 2), (3, 1, 2)])
def test_a_leader_in_the_smaller_rack_costs_other_moments(placement):
    """Two cut off stop the writing; broker 3 alone stalls it as a follower, else is replaced.

    The closed form has one rack cut off at a time; both at once are a share of rate times duration.
    """
    exact = evaluate(TWO_AND_ONE, TRIO, CUT_OFF, QUIET, placement=(placement,))
    found, _ = sample(TWO_AND_ONE, TRIO, CUT_OFF, QUIET, years=3000, placement=(placement,))
    # Time without a serving leader, and the failovers until another one serves.
    both = 2.0 * PER_YEAR / YEAR * HOURS * max(HOURS / DETECTION, 1.0)
    moved, stalled = (DETECTION, 0.0) if placement[0] == 3 else (0.0, DETECTION)
    assert exact.write_unavailability == pytest.approx(CUTS * (HOURS + moved), rel=both)
    assert exact.read_unavailability == pytest.approx(CUTS * DETECTION, rel=both)
    assert exact.write_stalled == pytest.approx(CUTS * stalled, rel=both)
    for name in SAMPLED:
        one, truth = found.estimate(name), getattr(exact, name)
        if truth:
            assert abs(off_by(one, truth)) < FAR
        else:
            assert not one.seen


def solved(pattern, model):
    """Shares of time of the chain of all states."""
    found, _, _ = whole(pattern, TRIO, model, QUIET)
    return [found[name] for name in SAMPLED]


def test_the_order_of_followers_is_worth_no_more_than_a_second_failure():
    """Who leads next may stand beside the broker that failed or not; that is left out."""
    per_year, hours = 20.0, 1.0
    numbers = {"per_year": per_year, "minutes": hours * 60.0}
    model = card(
        broker_crash=numbers, broker_lag=numbers, rack_network=numbers, detection={"seconds": 60.0}
    )
    merged = solved((0, 0, 1), model)
    with all_apart():
        beside, across = solved((0, 0, 1), model), solved((0, 1, 0), model)
    # Three brokers fail in two ways, and two racks, while the preferred leader is away.
    second = 8.0 * per_year / YEAR * hours
    for apart in (beside, across):
        assert merged == pytest.approx(apart, rel=second, abs=0.0)
    assert beside != pytest.approx(across, rel=1e-9)


@pytest.mark.parametrize("kept", [BROKERS_AND_RACKS, LIMPING_AND_SEVERAL])
@pytest.mark.parametrize("name", ["two_az", "bare_metal_racks"])
def test_what_the_order_moves_is_stated(name, kept):
    """On cards that ship, where leaders answer alone: no measure moves by a quarter of it.

    Mechanism by mechanism, as the chain of all states with all of them takes 20 GB.
    """
    model = only(name, kept, RARE[:2])
    alone = TRIO.changed(min_insync_replicas=1, acks=1)
    merged, stated, _ = whole((0, 0, 1), alone, model, QUIET)
    with all_apart():
        found = [whole(pattern, alone, model, QUIET)[0] for pattern in ((0, 0, 1), (0, 1, 0))]
    off = max(abs(merged[name] / apart[name] - 1.0) for apart in found for name in apart)
    # More than rounding.
    assert 1e-11 < off < lumping._NEXT_LEADER / 4.0
    assert all(stated[name] >= lumping._NEXT_LEADER * merged[name] for name in stated)


def test_only_racks_that_are_not_alike_leave_the_next_leader_open():
    """Every follower in a rack of its own, or all of them in one, are a choice without effect."""
    for racks, stated in (((0, 1, 2), 0.0), ((0, 1, 1), 0.0), ((0, 0, 0), 0.0), ((0, 0, 1), 1e-4)):
        environment = fault_processes.FaultEnvironment(racks, frozenset(["broker.crash"]))
        constants = parameters(TRIO, CUT_OFF, QUIET, 3).constants
        assert lumping.lumping_error(constants, environment) == stated
