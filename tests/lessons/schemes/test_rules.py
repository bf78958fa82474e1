"""Replication schemes side by side, and reads at the leader and at followers."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.lessons.schemes.follower_fetching import visibility
from advisor.lessons.schemes.rules import (
    ASYNCHRONOUS,
    ISR,
    MAJORITY,
    NAMES,
    SYNCHRONOUS,
    CrashOutcome,
    Scheme,
    acknowledgement_ms,
    after_crash,
    compare,
    copies_waited_for,
    crash_sets,
    holders,
    replicas_needed,
    replicas_needed_at_any_time,
    withstands,
)

# --- crashes -------------------------------------------------------------------------------------


def tolerance(scheme: Scheme, missing: int = 0) -> tuple[int, int, int]:
    """Most crashes without loss, while readable, and while writable."""
    outcomes = {crashed: after_crash(scheme, crashed, missing) for crashed in crash_sets(scheme)}

    def tolerated(effect: str) -> int:
        sizes = (len(crashed) for crashed, outcome in outcomes.items() if getattr(outcome, effect))
        return min(sizes, default=scheme.replicas + 1) - 1

    return tolerated("lost"), tolerated("unreadable"), tolerated("unwritable")


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5])
def test_isr_loses_only_with_its_last_member(replicas: int) -> None:
    """f+1 in-sync replicas tolerate f failures. All subsets of crashes."""
    for crashed in crash_sets(Scheme(ISR, replicas)):
        all_crashed = len(crashed) == replicas
        assert after_crash(Scheme(ISR, replicas), crashed) == CrashOutcome(
            all_crashed, all_crashed, all_crashed
        )


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5])
def test_a_majority_elects_while_a_quorum_lives(replicas: int) -> None:
    """2f+1 replicas tolerate f failures; one more leaves no leader and may lose the record."""
    scheme = Scheme(MAJORITY, replicas)
    for crashed in crash_sets(scheme):
        outcome = after_crash(scheme, crashed)
        assert outcome.unreadable == (replicas - len(crashed) < scheme.quorum)
        # The record is lost if all its holders crash: the leader and the other copies.
        assert outcome.lost == (0 in crashed and len(crashed) >= scheme.quorum)


@pytest.mark.parametrize("replicas", [2, 3, 4, 5])
def test_asynchronous_replication_loses_with_the_leader(replicas: int) -> None:
    """Acknowledged by the leader alone, so its crash loses records that were not yet copied."""
    scheme = Scheme(ASYNCHRONOUS, replicas)
    for crashed in crash_sets(scheme):
        outcome = after_crash(scheme, crashed)
        assert outcome.lost == (0 in crashed)
        assert outcome.unreadable == (len(crashed) == replicas)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_synchronous_counts_only_the_working_replicas(missing: int) -> None:
    """Followers that were down at the acknowledgement do not have the record."""
    scheme = Scheme(SYNCHRONOUS, 3)
    assert tolerance(scheme, missing)[0] == 2 - missing


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5])
def test_three_numbers_of_kafka(replicas: int) -> None:
    """Loss-free crashes: RF - 1 (full ISR), min ISR - 1 (smallest ISR); writable: RF - min ISR."""
    for min_isr in range(1, replicas + 1):
        scheme = Scheme(ISR, replicas, min_isr)
        assert tolerance(scheme) == (replicas - 1, replicas - 1, replicas - min_isr)
        worst = tolerance(scheme, replicas - min_isr)
        assert worst == (min_isr - 1, min_isr - 1, 0)


def test_below_min_isr_nothing_is_acknowledged() -> None:
    """With fewer in sync than min ISR nothing is acknowledged, so nothing can be lost."""
    with pytest.raises(InputError, match="acknowledges nothing while 2 followers are missing"):
        after_crash(Scheme(ISR, 3, min_isr=2), {0}, missing=2)


def test_an_unclean_election_trades_the_record_for_a_leader() -> None:
    """Clean: unavailable until an ISR member returns. Unclean: available with loss."""
    clean, unclean = Scheme(ISR, 3), Scheme(ISR, 3, unclean=True)
    # Only the leader was in sync, and it has crashed permanently.
    assert after_crash(clean, {0}, missing=2) == CrashOutcome(True, True, True)
    assert after_crash(unclean, {0}, missing=2) == CrashOutcome(True, False, False)
    assert after_crash(clean, {1}, missing=2) == CrashOutcome(False, False, False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_more_crashes_never_help(name: str, replicas: int) -> None:
    """A superset of crashed replicas is at least as bad in all three respects."""
    scheme = Scheme(name, replicas)
    outcomes = {crashed: after_crash(scheme, crashed) for crashed in crash_sets(scheme)}
    for fewer, more in itertools.permutations(outcomes, 2):
        if fewer < more:
            assert outcomes[fewer].lost <= outcomes[more].lost
            assert outcomes[fewer].unreadable <= outcomes[more].unreadable
            assert outcomes[fewer].unwritable <= outcomes[more].unwritable


@pytest.mark.parametrize("name", NAMES)
def test_the_leader_always_has_the_record(name: str) -> None:
    """Every scheme writes to its leader first: replica 0 is in every set of holders."""
    replicas = frozenset(range(5))
    assert all(0 in held for held in holders(Scheme(name, 5), replicas))


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_replicas_for_f_failures(failures: int) -> None:
    """The ISR needs f+1 replicas, a majority 2f+1; asynchronous copies never suffice."""
    assert replicas_needed(ISR, failures) == failures + 1
    assert replicas_needed(SYNCHRONOUS, failures) == failures + 1
    assert replicas_needed(MAJORITY, failures) == 2 * failures + 1
    assert replicas_needed(ASYNCHRONOUS, failures) == (1 if failures == 0 else None)


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_at_the_worst_moment_the_isr_needs_as_many_as_a_majority(failures: int) -> None:
    """No loss iff min ISR > f and writable iff min ISR <= RF - f: both need RF >= 2f+1."""
    assert replicas_needed_at_any_time(ISR, failures) == 2 * failures + 1
    assert replicas_needed_at_any_time(MAJORITY, failures) == 2 * failures + 1


def test_isr_2_replicas_1_acknowledgement_against_quorum_3_replicas_1_acknowledgement() -> None:
    """For one failure: both wait for one follower, the ISR has one replica fewer."""
    isr = Scheme(ISR, replicas_needed(ISR, 1) or 0)
    quorum = Scheme(MAJORITY, replicas_needed(MAJORITY, 1) or 0)
    assert (isr.replicas, copies_waited_for(isr) - 1) == (2, 1)
    assert (quorum.replicas, copies_waited_for(quorum) - 1) == (3, 1)


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_isr_and_majority_wait_for_equally_many_copies(failures: int) -> None:
    """To tolerate f failures both acknowledge with f+1 copies."""
    rows = {row.name: row for row in compare(failures)}
    assert rows[ISR].copies == rows[MAJORITY].copies == failures + 1
    assert set(rows) == set(NAMES)


def test_one_replica_less_does_not_withstand() -> None:
    """The sizes are minimal: with one replica fewer a record is lost or writes are blocked."""
    assert withstands(Scheme(MAJORITY, 5), 2)
    assert not withstands(Scheme(MAJORITY, 4), 2)
    assert withstands(Scheme(ISR, 3), 2)
    assert not withstands(Scheme(ISR, 2), 2)


# --- latency -------------------------------------------------------------------------------------


def test_which_replicas_an_acknowledgement_waits_for() -> None:
    """Slowest of the ISR, fastest f+1, the leader alone, slowest of all."""
    followers = [5.0, 9.0, 40.0, 300.0]
    times = {name: acknowledgement_ms(Scheme(name, 5), 1.0, followers) for name in NAMES}
    assert times == {SYNCHRONOUS: 300.0, ASYNCHRONOUS: 1.0, MAJORITY: 9.0, ISR: 300.0}
    # A slow replica leaves the ISR and no longer counts; the synchronous scheme still waits for it.
    assert acknowledgement_ms(Scheme(ISR, 5), 1.0, followers, in_sync={0, 1, 2, 3}) == 40.0
    assert acknowledgement_ms(Scheme(ISR, 5, 2), 1.0, followers, in_sync={0}) == math.inf


def test_rf_3_majority_waits_for_the_faster_follower() -> None:
    """With three replicas a majority waits for the faster follower, the ISR for the slower."""
    assert acknowledgement_ms(Scheme(MAJORITY, 3), 1.0, [4.0, 90.0]) == 4.0
    assert acknowledgement_ms(Scheme(ISR, 3), 1.0, [4.0, 90.0]) == 90.0


def test_a_dead_follower_blocks_only_an_isr_that_contains_it() -> None:
    """Infinity is a follower that is down: synchronous skips it, an ISR that contains it waits."""
    followers = [4.0, math.inf]
    assert acknowledgement_ms(Scheme(SYNCHRONOUS, 3), 1.0, followers) == 4.0
    assert acknowledgement_ms(Scheme(MAJORITY, 3), 1.0, followers) == 4.0
    assert acknowledgement_ms(Scheme(ISR, 3), 1.0, followers) == math.inf
    assert acknowledgement_ms(Scheme(ISR, 3), 1.0, followers, in_sync=[0, 1]) == 4.0


@given(
    leader=st.floats(0, 1e6),
    followers=st.lists(st.floats(0, 1e6), min_size=0, max_size=6),
)
def test_order_of_the_schemes_by_latency(leader: float, followers: list[float]) -> None:
    """Leader alone <= fastest quorum <= whole ISR; a quorum is an order statistic."""
    count = len(followers) + 1
    times = {name: acknowledgement_ms(Scheme(name, count), leader, followers) for name in NAMES}
    assert times[ASYNCHRONOUS] <= times[MAJORITY] <= times[ISR] == times[SYNCHRONOUS]
    assert sum(ms <= times[MAJORITY] for ms in [leader, *followers]) >= count // 2 + 1


# --- reads ---------------------------------------------------------------------------------------


@given(
    one_way=st.lists(st.floats(0.1, 100), min_size=1, max_size=4),
    at_ms=st.floats(0, 100),
)
def test_a_record_is_readable_at_the_leader_after_the_slowest_round_trip(
    one_way: list[float], at_ms: float
) -> None:
    """Idle partition: fetch response to the follower, then its next fetch: one round trip."""
    ways = dict(enumerate(one_way, start=1))
    seen = visibility([at_ms], ways)
    assert seen.readable_ms[0] == pytest.approx((at_ms + 2 * max(one_way),), rel=1e-12)
    assert all(seen.readable_ms[r][0] > seen.readable_ms[0][0] for r in ways)


def test_on_an_idle_partition_a_follower_is_half_a_second_behind() -> None:
    """KAFKA-9952, 2.6: the high watermark is sent after replica.fetch.wait.max.ms."""
    seen = visibility([10.0], {1: 1.0, 2: 3.0})
    # Leader: 10 + 2*3. Follower r: its second fetch arrives at 10 + 2w, waits 500, and comes back.
    assert seen.readable_ms == {0: (16.0,), 1: (12.0 + 500 + 1,), 2: (16.0 + 500 + 3,)}
    assert seen.delay_ms(2) == 503.0
    assert [seen.end_offset(replica, 100.0) for replica in (0, 2)] == [1, 0]


def test_a_fetch_that_finds_records_is_answered_at_once() -> None:
    """The second record is appended before the next fetch arrives: no wait."""
    seen = visibility([10.0, 11.0], {1: 3.0})
    # The follower's fetches reach the leader at 16 (has one, finds the second) and 22 (has both).
    # Neither response has the high watermark that its own fetch advances; the next is 500 ms later.
    assert seen.readable_ms == {0: (16.0, 22.0), 1: (525.0, 525.0)}


def test_on_a_busy_partition_the_high_watermark_is_prompt() -> None:
    """Fetch responses for later records carry it: a few round trips, not 500 ms."""
    busy = [float(ms) for ms in range(0, 2_000, 2)]
    seen = visibility(busy, {1: 1.0, 2: 3.0})
    lag = [
        there - here for there, here in zip(seen.readable_ms[2], seen.readable_ms[0], strict=True)
    ]
    assert max(lag[:900]) <= 2 * (2 * 3.0) + 3.0


def test_switching_replicas_moves_the_end_of_the_log_back() -> None:
    """A consumer that switches from the leader to a follower sees fewer records."""
    seen = visibility([10.0, 20.0], {1: 1.0, 2: 3.0})
    assert seen.goes_back([(0, 30.0), (1, 31.0)])
    assert not seen.goes_back([(0, 30.0), (0, 31.0)])
    assert not seen.goes_back([(1, 10.0), (0, 31.0)])


@given(
    gaps=st.lists(st.floats(0, 400), min_size=1, max_size=20),
    one_way=st.lists(st.floats(0.5, 60), min_size=1, max_size=3),
)
def test_no_replica_shows_a_record_before_all_have_it(
    gaps: list[float], one_way: list[float]
) -> None:
    """For any traffic: in offset order, never before the leader, at most one fetch wait later."""
    ways = dict(enumerate(one_way, start=1))
    appended = list(itertools.accumulate(gaps))
    seen = visibility(appended, ways)
    for replica, times in seen.readable_ms.items():
        assert list(times) == sorted(times)
        assert all(
            shown >= put + 2 * max(one_way) - 1e-6
            for shown, put in zip(times, appended, strict=True)
        )
        assert seen.delay_ms(replica) >= 0.0
        # A fetch completed just before the advance does not carry it; the next one does.
        longest = 2 * max(one_way) + 500.0 + ways.get(replica, 0.0)
        assert seen.delay_ms(replica) <= longest + 2 * max(one_way) + 1e-6


@pytest.mark.parametrize(
    ("appended", "ways", "changes"),
    [
        ([3.0, 1.0], {1: 1.0}, {}),
        ([math.nan], {1: 1.0}, {}),
        ([1.0], {0: 1.0}, {}),
        ([1.0], {1: 0.0}, {}),
        ([1.0], {1: 1.0}, {"fetch_wait_max_ms": 0.0}),
        ([1.0], {1: 1.0}, {"fetch_wait_max_ms": math.inf}),
    ],
)
def test_invalid_reads_are_rejected(
    appended: list[float], ways: dict[int, float], changes: dict[str, Any]
) -> None:
    """Times out of range are errors."""
    with pytest.raises(InputError):
        visibility(appended, ways, **changes)


def test_invalid_schemes_are_rejected() -> None:
    """Unknown names, impossible counts and wrong numbers of latencies are errors."""
    for call in (
        lambda: Scheme("raid", 3),
        lambda: Scheme(ISR, 0),
        lambda: Scheme(ISR, 8),
        lambda: Scheme(ISR, 3, 4),
        lambda: replicas_needed(ISR, 3),
        lambda: acknowledgement_ms(Scheme(ISR, 3), 1.0, [1.0]),
        lambda: acknowledgement_ms(Scheme(ISR, 2), 1.0, [math.nan]),
        lambda: acknowledgement_ms(Scheme(ISR, 2), 1.0, [1.0], in_sync=[5]),
    ):
        with pytest.raises(InputError):
            call()
