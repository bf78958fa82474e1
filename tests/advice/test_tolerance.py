"""Replicas that one event takes: the rule RF >= 2f + 1 against enumeration."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.tolerance import (
    largest_share,
    least_replication_factor,
    least_share,
    rack_rule,
    share_of,
    survival,
    tolerance_table,
)
from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.config import Config

SIX_IN_THREE = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
racks_of_brokers = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
    lambda sizes: {
        10 * rack + n: f"r{rack}" for rack, size in enumerate(sizes) for n in range(size)
    }
)


def enumerated_outcomes(factor: int, min_isr: int, share: int) -> tuple[bool, bool, bool]:
    """Enumerate in-sync sets and lost sets: (nothing lost, still writable, one more down)."""
    replicas = range(factor)
    lost_sets = list(combinations(replicas, min(share, factor)))
    in_sync = [set(c) for k in range(min_isr, factor + 1) for c in combinations(replicas, k)]
    safe = all(isr - set(lost) for isr in in_sync for lost in lost_sets)
    left = factor - min(share, factor)
    return safe, left >= min_isr, left - 1 >= min_isr


def test_survival_agrees_with_enumeration() -> None:
    """For every RF, min ISR and f up to six, the rule agrees with all in-sync and lost sets."""
    for factor in range(1, 7):
        for min_isr in range(1, factor + 1):
            config = Config(replication_factor=factor, min_insync_replicas=min_isr, acks="all")
            for share in range(1, factor + 1):
                found = survival(share, config)
                expected = enumerated_outcomes(factor, min_isr, share)
                assert (
                    found.without_loss,
                    found.writable,
                    found.writable_while_patching,
                ) == expected


def test_both_need_2f_plus_1() -> None:
    """Some min ISR keeps records and writes exactly from RF = 2f + 1 on, 2f + 2 when patching."""
    for share in range(1, 4):
        for factor in range(share, 9):
            rows = [
                survival(share, Config(replication_factor=factor, min_insync_replicas=m))
                for m in range(1, factor + 1)
            ]
            both = any(row.without_loss and row.writable for row in rows)
            patching = any(row.without_loss and row.writable_while_patching for row in rows)
            assert both == (factor >= 2 * share + 1)
            assert patching == (factor >= 2 * share + 2)


@pytest.mark.parametrize("acks", [0, 1])
def test_without_acks_all_nothing_is_safe(acks: int) -> None:
    """With acks=1 or 0 the loss of one replica can lose records, and the others go on writing."""
    config = Config(replication_factor=3, min_insync_replicas=3, acks=acks)
    assert survival(1, config).without_loss is False
    assert survival(2, config).writable is True


def test_min_isr_above_rf_follows_the_version() -> None:
    """Before 3.7 a min ISR above RF is never writable; since then it counts as RF."""
    old = Config(kafka_version="3.6", replication_factor=2, min_insync_replicas=3, acks="all")
    assert not survival(0, old).writable
    assert survival(0, old.changed(kafka_version="3.7")).writable


@given(racks_of_brokers)
def test_kraft_placement_has_the_least_share(brokers: dict[int, str]) -> None:
    """KRaft placement puts the least possible number of replicas in the fullest rack."""
    for factor in range(1, len(brokers) + 1):
        assert largest_share(brokers, factor) == least_share(brokers, factor)


@given(racks_of_brokers)
def test_zookeeper_placement_is_no_better(brokers: dict[int, str]) -> None:
    """The share of the ZooKeeper-era placement is that of its worst partition."""
    for factor in range(1, len(brokers) + 1):
        share = largest_share(brokers, factor, "zookeeper")
        placed = assign(brokers, 3 * len(brokers), factor, algorithm="rack_alternated")
        assert share is not None
        assert share >= max(share_of(r, brokers) for r in placed.values())
        assert share >= least_share(brokers, factor)


def test_three_racks() -> None:
    """Over three racks RF 3 with min ISR 2 keeps data and writes; RF 4 does with no min ISR."""
    table = {
        (row.replication_factor, row.min_insync_replicas): row.survival
        for row in tolerance_table(SIX_IN_THREE)
    }
    both = {key for key, s in table.items() if s.without_loss and s.writable}
    assert both == {(3, 2), (5, 3)}
    assert table[4, 2].share == 2
    assert least_replication_factor(SIX_IN_THREE) == 3
    assert least_replication_factor(SIX_IN_THREE, patching=True) == 6


def test_two_racks_never_give_both() -> None:
    """With two racks of any size up to five, no RF keeps both data and writes."""
    for one in range(1, 6):
        for two in range(1, 6):
            brokers = {n: "a" if n < one else "b" for n in range(one + two)}
            assert least_replication_factor(brokers) is None
            assert "Two racks never give both" in rack_rule(brokers)


def test_unknown_racks_are_not_guessed() -> None:
    """If the rack of a broker is unknown, no statement is made about losing one."""
    brokers = {1: "a", 2: "b", 3: None}
    assert largest_share(brokers, 2) is None
    assert tolerance_table(brokers) == ()
    assert least_replication_factor(brokers) is None
    assert rack_rule(brokers) == (
        "The rack of broker 3 is not known, so nothing can be said about losing one."
    )
    assert rack_rule({1: None}).startswith("The rack of no broker is known")


def test_other_layouts_have_their_sentence() -> None:
    """One rack, three equal racks, and three racks of which one is too large."""
    assert "in one rack" in rack_rule({1: "a", 2: "a"})
    assert rack_rule(SIX_IN_THREE).startswith("RF 3 with min ISR 2 keeps every")


def test_more_replicas_than_brokers_are_refused() -> None:
    """More replicas than brokers are an error, not an endless search."""
    with pytest.raises(InputError, match="only 2"):
        least_share({1: "a", 2: "b"}, 3)
    with pytest.raises(InputError, match="registered"):
        largest_share({1: "a", 2: "b"}, 3)
