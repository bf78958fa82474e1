"""Plans that move as few replicas as they can."""

import json
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.migration.moves import Move, election_json, plan_moves, reassignment_json
from advisor.advice.migration.planned_changes import PlannedChanges
from advisor.advice.tolerance import least_share, share_of
from advisor.cluster import Cluster, Partition, Topic, load_cluster
from advisor.cluster.observed import Observed
from advisor.protocol.rules.config import Config

SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[int, str | None], tuple[int, ...], int]:
    """Draw brokers in racks, a partition on some of them, and a replication factor."""
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
    brokers: dict[int, str | None] = dict(enumerate(names))
    order = draw(st.permutations(sorted(brokers)))
    held = draw(st.integers(1, len(order)))
    return brokers, tuple(order[:held]), draw(st.integers(1, len(order)))


def respread(
    replicas: tuple[int, ...],
    brokers: dict[int, str | None],
    factor: int,
    load: dict[int, int],
) -> tuple[int, ...]:
    """Return what `plan_moves` makes of one partition, where brokers hold some other replicas."""
    topic = Topic("t", (Partition(0, replicas[0], replicas, replicas),))
    held = [broker for broker, number in load.items() for _ in range(number)]
    others = [Topic(f"u{i}", (Partition(0, b, (b,), (b,)),)) for i, b in enumerate(held)]
    moves = plan_moves([topic], brokers, {"t": factor}, counted=others)
    return moves[0].after if moves else replicas


def fewest_copies(brokers: dict[int, str | None], held: tuple[int, ...], factor: int) -> int:
    """Try every set of brokers with the best possible spread."""
    most = least_share(brokers, factor)
    good = [c for c in combinations(brokers, factor) if share_of(c, brokers) <= most]
    return min(len(set(c) - set(held)) for c in good)


@given(cases())
def test_respread_is_spread_and_minimal(
    case: tuple[dict[int, str | None], tuple[int, ...], int],
) -> None:
    """As many replicas as asked or held, the best spread, and the fewest possible copies."""
    brokers, held, asked = case
    factor = max(asked, len(held))
    after = respread(held, brokers, asked, {})
    assert len(set(after)) == len(after) == factor
    assert share_of(after, brokers) == least_share(brokers, factor)
    assert len(set(after) - set(held)) == fewest_copies(brokers, held, factor)
    kept = [broker for broker in after if broker in held]
    assert kept == [broker for broker in held if broker in after]


@given(cases())
def test_respread_is_idempotent(
    case: tuple[dict[int, str | None], tuple[int, ...], int],
) -> None:
    """Applied twice it changes nothing, and the preferred leader stays."""
    brokers, held, factor = case
    after = respread(held, brokers, factor, {})
    assert respread(after, brokers, factor, {}) == after
    assert after[0] == held[0]


def test_unknown_racks_change_only_the_count() -> None:
    """If racks are unknown, replicas stay and the least loaded brokers get the new ones."""
    brokers = {1: "a", 2: "a", 3: None, 4: "b"}
    assert respread((1, 2), brokers, 3, {3: 5, 4: 1}) == (1, 2, 4)
    assert respread((1, 2, 3), brokers, 2, {}) == (1, 2, 3)


def test_new_replicas_even_out_the_load() -> None:
    """Partitions with one replica grow to three; brokers hold similar numbers of replicas."""
    one = tuple(Partition(i, 1 + i % 6, (1 + i % 6,), (1 + i % 6,)) for i in range(48))
    moves = plan_moves([Topic("t", one)], SIX, {"t": 3})
    held = [broker for move in moves for broker in move.after]
    counts = [held.count(broker) for broker in SIX]
    assert len(moves) == 48
    assert max(counts) - min(counts) <= 1
    assert all(share_of(move.after, SIX) == 1 for move in moves)
    assert sum(move.copies for move in moves) == 96


def test_a_missing_broker_gets_no_replicas_while_others_can_take_them() -> None:
    """It is in no ISR of a led partition, or reported as down; a rack may leave no choice."""
    one = tuple(Partition(i, 1 + i % 3, (1 + i % 3,), (1 + i % 3,)) for i in range(6))
    grown, config = Topic("t", one), Config(replication_factor=3, min_insync_replicas=2)

    def planned(
        brokers: dict[int, str | None], other: Topic, observed: Observed | None = None
    ) -> tuple[Move, ...]:
        cluster = Cluster(brokers, (grown, other), observed=observed)
        return PlannedChanges.of(cluster, [grown], config).moves

    four: dict[int, str | None] = dict.fromkeys((1, 2, 3, 4), None)
    lost = Topic("lost", (Partition(0, None, (4,), (4,)),))
    led = Topic("led", (Partition(0, 4, (4,), (4,)),))
    assert all(4 not in move.after for move in planned(four, lost))
    assert any(4 in move.after for move in planned(four, led))
    down = Observed(mode="kraft", down=(4,))
    assert all(4 not in move.after for move in planned(four, led, down))
    three: dict[int, str | None] = {1: "a", 2: "b", 3: "b", 4: "c"}
    assert all(4 in move.after for move in planned(three, lost))


def test_unnamed_topics_are_unchanged() -> None:
    """Topics without a target factor, and those already right, do not appear."""
    right = Topic("right", (Partition(0, 1, (1, 2, 3), (1, 2, 3)),))
    other = Topic("other", (Partition(0, 1, (1,), (1,)),))
    assert plan_moves([right, other], SIX, {"right": 3}) == ()


def test_replicas_being_added_do_not_count_as_held() -> None:
    """Replicas that a running reassignment adds do not count as held."""
    topic = Topic("t", (Partition(0, 1, (1, 4), (1,), adding=(4,), removing=()),))
    (move,) = plan_moves([topic], SIX, {"t": 2})
    assert move.before == (1,)


def test_replicas_being_added_do_not_count_as_load() -> None:
    """A broker that two replicas are on the way to is as light as before: the plan starts there."""
    brokers: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}
    topic = Topic("t", (Partition(0, 1, (1,), (1,)),))
    others = [
        *(Topic(name, (Partition(0, 1, (1, 2), (1,), adding=(2,)),)) for name in "uv"),
        Topic("w", (Partition(0, 3, (3,), (3,)),)),
    ]
    (move,) = plan_moves([topic], brokers, {"t": 2}, counted=[topic, *others])
    assert move.after == (1, 2)


def test_files_are_what_the_tools_read() -> None:
    """The JSON names every move and its reversal, and loads as a reassignment plan."""
    topic = Topic("t", (Partition(0, 1, (1,), (1,)), Partition(1, 2, (2,), (2,))))
    moves = plan_moves([topic], SIX, {"t": 2})
    there, back = (
        json.loads(reassignment_json(moves).text),
        json.loads(reassignment_json(moves, True).text),
    )
    assert there["version"] == back["version"] == 1
    assert [row["replicas"] for row in back["partitions"]] == [[1], [2]]
    assert [len(row["replicas"]) for row in there["partitions"]] == [2, 2]
    assert load_cluster(reassignment_json(moves).text).topic("t").replication_factor == 2
    assert json.loads(election_json(moves).text) == {
        "partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    }
