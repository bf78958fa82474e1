"""Properties of every placement on any cluster, and the initial state of a partition."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.partition_registration import Registration, new_registration

RACKS = st.one_of(st.none(), st.sampled_from("abcd"), st.text(max_size=3))


@given(
    racks=st.lists(RACKS, min_size=1, max_size=9),
    fencing=st.lists(st.booleans(), min_size=9, max_size=9),
    seed=st.integers(-(2**63), 2**63 - 1),
    data=st.data(),
)
def test_striped_spreads_replicas_on_any_cluster(
    racks: list[str | None], fencing: list[bool], seed: int, data: st.DataObject
):
    """Replicas are distinct, leaders unfenced, racks distinct while there are enough racks."""
    brokers = dict(enumerate(racks))
    fenced = {broker for broker in list(brokers)[1:] if fencing[broker]}
    replication_factor = data.draw(st.integers(1, len(racks)))
    placed = assign(brokers, 25, replication_factor, seed=seed, fenced=fenced)
    assert list(placed) == list(range(25))
    for replicas in placed.values():
        assert len(set(replicas)) == replication_factor
        assert set(replicas) <= brokers.keys()
        assert replicas[0] not in fenced
        expected_racks = min(replication_factor, len(set(racks)))
        assert len({brokers[replica] for replica in replicas}) == expected_racks


@given(
    racks=st.lists(st.sampled_from("abcd"), min_size=1, max_size=9),
    start_index=st.integers(0, 30),
    shift=st.integers(0, 30),
    data=st.data(),
)
def test_rack_alternated_spreads_replicas_on_any_cluster(
    racks: list[str], start_index: int, shift: int, data: st.DataObject
):
    """Replicas are distinct, use as many racks as possible, and leaders differ by at most one."""
    brokers: dict[int, str | None] = dict(enumerate(racks))
    replication_factor = data.draw(st.integers(1, len(racks)))
    placed = assign(
        brokers, 25, replication_factor, "rack_alternated", start_index=start_index, shift=shift
    )
    for replicas in placed.values():
        assert len(set(replicas)) == replication_factor
        expected_racks = min(replication_factor, len(set(racks)))
        assert len({brokers[replica] for replica in replicas}) == expected_racks
    led = Counter(replicas[0] for replicas in placed.values())
    counts = [led[broker] for broker in brokers]
    assert max(counts) - min(counts) <= 1


def test_the_seed_alone_decides_the_draws():
    """Without a seed the result is that of seed 0; other seeds give other results."""
    six: dict[int, str | None] = dict(enumerate("abcabc"))
    assert assign(six, 12, 3) == assign(six, 12, 3) == assign(six, 12, 3, seed=0)
    tables = [assign(six, 12, 3, seed=seed) for seed in range(8)]
    assert any(a != b for a, b in pairwise(tables))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "random"}, "unknown assignment algorithm 'random'; choose one of modulo"),
        ({"start_index": 1}, "start_index would have no effect on 'striped'"),
        ({"start_index": None}, "start_index would have no effect on 'striped'"),
        ({"algorithm": "modulo", "shift": 1}, "shift would have no effect on 'modulo'"),
        ({"algorithm": "modulo", "seed": 1}, "seed or random would have no effect on 'modulo'"),
        ({"algorithm": "rack_alternated", "seed": 1}, "seed or random would have no effect"),
        ({"algorithm": "rack_alternated", "fenced": {1}}, "fenced would have no effect"),
        ({"algorithm": "rack_alternated", "start_index": -1}, "start_index must be 0 or larger"),
        ({"algorithm": "rack_alternated", "shift": -1}, "shift must be 0 or larger, not -1"),
        ({"fenced": {7}}, "fenced names brokers that are not in brokers: \\[7\\]"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(options: dict[str, Any], message: str):
    """An option that cannot affect the algorithm is an error instead of silently ignored."""
    with pytest.raises(InputError, match=message):
        assign({0: "a", 1: "b"}, 1, 1, **options)


@pytest.mark.parametrize("brokers", [[0, 1], {"0": "a"}, {0: 1}])
def test_brokers_of_another_shape_are_refused(brokers: Any):
    """A list of ids, ids as text, or racks as numbers get one sentence that shows the format."""
    with pytest.raises(InputError, match="brokers must map each broker id to its rack"):
        assign(brokers, 1, 1)


# --- a new partition -------------------------------------------------------------------------


def test_the_first_record_of_a_partition_has_its_active_replicas_in_sync():
    """``testCreatePartitionsISRInvariants``: 2 fenced, 1 in controlled shutdown."""
    first = new_registration((1, 0, 2), frozenset({0}))
    assert first == Registration(replicas=(1, 0, 2), isr=(0,), leader=0)
