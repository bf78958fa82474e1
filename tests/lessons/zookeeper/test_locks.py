"""Two lock recipes on ZooKeeper: every interleaving of three clients."""

from __future__ import annotations

import pytest

from advisor.lessons.zookeeper import locks
from advisor.lessons.zookeeper.locks import (
    HOLDING,
    IDLE,
    NAME,
    SEQUENCE,
    Acquire,
    Deliver,
    Release,
    fenced_write,
    herd_size,
    holders,
    new_world,
    presumed_holders,
    settle,
    step,
)
from advisor.lessons.zookeeper.service import (
    Create,
    Exists,
    Expire,
    Notification,
    Reply,
    watch_count,
)

LOCK = "/lock"
RECIPES = (NAME, SEQUENCE)


def key(world, done):
    """Key of a state for later behaviour; zxids matter only by their order."""
    server = world.server
    nodes = sorted(
        (path, n.ephemeral_owner, n.creates, n.czxid) for path, n in server.nodes.items()
    )
    ranks = {zxid: rank for rank, zxid in enumerate(sorted({n[3] for n in nodes}))}
    return repr(
        (
            [(path, owner, creates, ranks[czxid]) for path, owner, creates, czxid in nodes],
            sorted(server.sessions),
            sorted(server.data_watches.items()),
            sorted((k, c.belief, c.node) for k, c in world.contenders.items()),
            sorted((s, [message(m) for m in inbox]) for s, inbox in world.inboxes.items() if inbox),
            done,
        )
    )


def message(sent):
    if not isinstance(sent, Reply):
        return repr(sent)
    value = sent.value if isinstance(sent.value, str | tuple) else sent.value is not None
    return f"{type(sent.request).__name__} {sent.request.path} {sent.error} {value}"


def reachable(recipe, clients, expiries):
    """Every world reachable by some order of deliveries, releases and expiries."""
    first = new_world(recipe, clients, [LOCK])
    seen = {}
    open_ = [(first, (frozenset(), frozenset(), 0))]
    while open_:
        world, (wanted, released, expired) = open_.pop()
        name = key(world, (sorted(wanted), sorted(released), expired))
        if name in seen:
            continue
        seen[name] = world
        for session in range(1, clients + 1):
            if session not in wanted:
                done = (wanted | {session}, released, expired)
                open_.append((step(world, Acquire(session, LOCK))[0], done))
            if world.inboxes.get(session):
                done = (wanted, released, expired)
                open_.append((step(world, Deliver(session))[0], done))
            if session in presumed_holders(world, LOCK) and session not in released:
                done = (wanted, released | {session}, expired)
                open_.append((step(world, Release(session, LOCK))[0], done))
            if expired < expiries and session in world.server.sessions:
                done = (wanted, released, expired + 1)
                open_.append((step(world, Expire(session))[0], done))
    return list(seen.values())


@pytest.fixture(scope="module", params=RECIPES)
def worlds(request):
    """All worlds of three clients with at most one session expiry."""
    return reachable(request.param, 3, 1)


def test_at_most_one_holder_has_a_live_session(worlds):
    """Mutual exclusion on the server, in every interleaving, for both recipes."""
    assert len(worlds) > 1_000
    assert max(len(holders(world, LOCK)) for world in worlds) == 1


def test_split_brain_two_clients_believe_that_they_hold_the_lock(worlds):
    """It can happen, but only while a holder has not read that its session expired."""
    split = [world for world in worlds if len(presumed_holders(world, LOCK)) > 1]
    assert split
    for world in split:
        dead = set(presumed_holders(world, LOCK)) - set(holders(world, LOCK))
        assert len(dead) == 1
        assert all(world.inboxes.get(session) for session in dead)


def test_without_an_expired_session_there_is_no_split_brain():
    """Delayed messages alone never lead to two presumed holders."""
    for recipe in RECIPES:
        found = reachable(recipe, 3, 0)
        assert max(len(presumed_holders(world, LOCK)) for world in found) == 1


def test_a_later_holder_has_the_higher_token(worlds):
    """Fencing works: the live holder's token is above that of any other presumed holder."""
    for world in worlds:
        tokens = {s: world.contenders[s, LOCK].token for s in presumed_holders(world, LOCK)}
        for live in holders(world, LOCK):
            assert all(tokens[live] > tokens[other] for other in tokens if other != live)


def test_no_client_waits_forever(worlds):
    """With all messages read, a contended lock is held and every waiting client has a watch."""
    for world in worlds:
        settled, _ = settle(world)
        beliefs = [
            settled.contenders[s, LOCK].belief
            for s in settled.server.sessions
            if (s, LOCK) in settled.contenders
        ]
        wanted = [belief for belief in beliefs if belief != IDLE]
        assert not wanted or wanted.count(HOLDING) == 1
        assert wanted.count(locks.WAITING) == max(0, len(wanted) - 1)
        assert watch_count(settled.server) >= wanted.count(locks.WAITING)


def test_fencing_rejects_the_write_of_an_expired_holder():
    """With fencing the old holder's write is rejected after a write by the new holder."""
    for recipe in RECIPES:
        world = new_world(recipe, 2, [LOCK])
        for session in (1, 2):
            world, _ = step(world, Acquire(session, LOCK))
            world, _ = settle(world)
        world, _ = step(world, Expire(1))
        while world.inboxes[2]:
            world, _ = step(world, Deliver(2))
        assert presumed_holders(world, LOCK) == (1, 2)
        old, new = (world.contenders[s, LOCK].token for s in (1, 2))
        highest, first = fenced_write(0, old)
        highest, second = fenced_write(highest, new)
        highest, zombie = fenced_write(highest, old)
        assert (first, second, zombie) == (True, True, False)
        assert highest == new


def queue(recipe, clients):
    """Client 1 holds the lock, the others wait."""
    world = new_world(recipe, clients, [LOCK])
    for session in range(1, clients + 1):
        world, _ = step(world, Acquire(session, LOCK))
        world, _ = settle(world)
    assert presumed_holders(world, LOCK) == (1,)
    return world


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("clients", range(1, 9))
def test_herd_effect_of_both_recipes(recipe, clients):
    """A release notifies all waiting clients by name, only the next one by sequence."""
    world = queue(recipe, clients)
    assert watch_count(world.server) == clients - 1
    world, at_once = step(world, Release(1, LOCK))
    world, later = settle(world)
    woken = [effect for effect in at_once + later if isinstance(effect, Notification)]
    assert len(woken) == herd_size(recipe, clients - 1)
    creates = [e for e in later if isinstance(e, Reply) and isinstance(e.request, Create)]
    assert len(creates) == (clients - 1 if recipe == NAME else 0)
    assert holders(world, LOCK) == ((2,) if clients > 1 else ())


@pytest.mark.parametrize("recipe", RECIPES)
def test_only_the_holder_can_release(recipe):
    """A client that waits keeps its place in the queue."""
    world = queue(recipe, 3)
    assert step(world, Release(2, LOCK)) == (world, ())


def test_locks_by_sequence_are_fair():
    """First come, first served, independent of the order of deliveries."""
    world = new_world(SEQUENCE, 4, [LOCK])
    for session in (3, 1, 4, 2):
        world, _ = step(world, Acquire(session, LOCK))
    served = []
    for _ in range(4):
        world, _ = settle(world)
        served += presumed_holders(world, LOCK)
        world, _ = step(world, Release(served[-1], LOCK))
    assert served == [3, 1, 4, 2]


def test_the_failure_of_a_waiting_client_notifies_only_the_next_one():
    """The next client lists the queue again and watches the node before; it does not hold."""
    world = queue(SEQUENCE, 4)
    world, at_once = step(world, Expire(3))
    world, later = settle(world)
    notified = [e.session for e in at_once + later if isinstance(e, Notification)]
    assert notified == [4]
    assert presumed_holders(world, LOCK) == (1,)
    watched = [e.request.path for e in later if isinstance(e.request, Exists)]
    assert watched == ["/lock/n-0000000001"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_lock_can_be_taken_again(recipe):
    """Release, acquire and hold again, with a higher token."""
    world = queue(recipe, 1)
    first = world.contenders[1, LOCK].token
    world, _ = step(world, Release(1, LOCK))
    world, _ = step(world, Acquire(1, LOCK))
    world, _ = settle(world)
    assert presumed_holders(world, LOCK) == (1,)
    assert world.contenders[1, LOCK].token > first


def test_a_node_deleted_before_exists_is_retried_once():
    """The node is deleted between the failed create and exists; the watch fires on its own node."""
    world = new_world(NAME, 2, [LOCK])
    for session in (1, 2):
        world, _ = step(world, Acquire(session, LOCK))
    world, _ = step(world, Deliver(1))
    world, _ = step(world, Release(1, LOCK))
    world, sent = settle(world)
    replies = [e for e in sent if isinstance(e, Reply) and isinstance(e.request, Create)]
    assert [reply.error for reply in replies] == [None]
    assert presumed_holders(world, LOCK) == (2,)


def test_events_that_make_no_sense_change_nothing():
    """Acquiring twice, releasing a lock that is not held, reading an empty inbox."""
    world = queue(NAME, 2)
    for event in (Acquire(1, LOCK), Release(2, LOCK), Deliver(1)):
        assert step(world, event) == (world, ())
