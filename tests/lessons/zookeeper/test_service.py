"""ZooKeeper's sessions, znodes, versions and watches, as in its programmer's guide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.lessons.zookeeper.service import (
    Connect,
    Create,
    Delete,
    Elapse,
    Exists,
    Expire,
    GetChildren,
    GetData,
    Heartbeat,
    Notification,
    Reply,
    SessionExpired,
    SetData,
    ZooKeeper,
    expiry_ms,
    negotiated_timeout_ms,
    step,
    watch_count,
    with_paths,
)
from advisor.protocol.rules.versions import default


def run(state, *events):
    """Apply events; returns the state and all effects."""
    sent = []
    for event in events:
        state, effects = step(state, event)
        sent += effects
    return state, sent


def service(*paths, sessions=2):
    state = with_paths(paths)
    state, _ = run(state, *(Connect(18_000, session) for session in range(1, sessions + 1)))
    return state


def answer(state, request):
    """Error or value of one request."""
    _, effects = step(state, request)
    reply = effects[-1]
    assert isinstance(reply, Reply)
    return reply.error or reply.value


# Sessions


@pytest.mark.parametrize(
    ("requested", "granted"),
    [(1, 6_000), (6_000, 6_000), (18_000, 18_000), (60_000, 60_000), (90_000, 60_000)],
)
def test_session_timeout_is_between_two_and_twenty_ticks(requested, granted):
    """A tick of 3 s allows 6 s to 60 s."""
    assert negotiated_timeout_ms(requested) == granted


def test_kafka_s_session_timeouts_by_version_are_granted_as_asked():
    """6 s until 2.4, 18 s since 2.5 (KIP-537): both within the range of a 3 s tick."""
    for version, timeout in (("2.4.0", 6_000), ("2.5.0", 18_000)):
        assert default("zookeeper_session_timeout_ms", version) == timeout
        assert negotiated_timeout_ms(timeout) == timeout


@given(st.integers(0, 10**6), st.integers(1, 10**5))
def test_a_session_ends_within_one_tick_after_its_timeout(last_request, timeout):
    """The expiry queue runs once a tick; sessions never expire early."""
    assert 0 < expiry_ms(last_request, timeout) - (last_request + timeout) <= 3_000


def test_an_idle_session_expires_with_its_ephemeral_nodes():
    """A killed broker disappears from /brokers/ids; the persistent node stays."""
    state = service("/brokers/ids")
    state, _ = run(
        state,
        Create(1, "/brokers/ids/0", ephemeral=True),
        Create(2, "/brokers/ids/1", ephemeral=True),
        Create(1, "/kept"),
    )
    state, sent = run(state, Elapse(10_000), Heartbeat(2), Elapse(11_000))
    assert SessionExpired(1) in sent
    assert state.nodes["/brokers/ids"].children == ("1",)
    assert "/kept" in state.nodes
    assert list(state.sessions) == [2]
    assert state.now_ms == 21_000


def test_every_request_keeps_a_session_alive():
    """A client that sends requests needs no heartbeat."""
    state = service(sessions=1)
    for _ in range(10):
        state, sent = run(state, Elapse(17_000), Exists(1, "/nothing"))
        assert not any(isinstance(effect, SessionExpired) for effect in sent)
    state, sent = run(state, Elapse(22_000))
    assert sent == [SessionExpired(1)]


def test_an_expired_session_can_do_nothing():
    """Every request of its client is answered with SessionExpired."""
    state, _ = run(service(), Expire(1))
    for request in (Create(1, "/a"), Heartbeat(1), GetData(1, "/")):
        after, sent = step(state, request)
        assert after == state
        assert sent == (SessionExpired(1),)


# Nodes and versions


def test_stat_of_a_node_through_its_life():
    """czxid, mzxid, pzxid, versions and times follow the corresponding writes."""
    state = service(sessions=1)
    state, _ = run(state, Elapse(5), Create(1, "/a", "x"))
    created = state.zxid
    state, _ = run(state, Elapse(5), SetData(1, "/a", "y"))
    written = state.zxid
    state, _ = run(state, Elapse(5), Create(1, "/a/b"), Create(1, "/a/c"), Delete(1, "/a/b"))
    node = state.nodes["/a"]
    assert (node.czxid, node.mzxid, node.pzxid) == (created, written, state.zxid)
    assert (node.ctime_ms, node.mtime_ms) == (5, 10)
    assert (node.data_version, node.cversion, node.children) == (1, 3, ("c",))


def test_sequential_nodes_are_numbered_by_children_ever_created():
    """A deleted child's number is never reused; cversion counts deletions too."""
    state = service("/locks", sessions=1)
    named = []
    for _ in range(3):
        path = answer(state, Create(1, "/locks/n-", sequential=True))
        state, _ = run(state, Create(1, "/locks/n-", sequential=True), Delete(1, path))
        named.append(path)
    assert named == [f"/locks/n-{number:010}" for number in range(3)]
    assert state.nodes["/locks"].cversion == 6


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Create(1, "/a"), "NODEEXISTS"),
        (Create(1, "/no/child"), "NONODE"),
        (Create(1, "/e/child"), "NOCHILDRENFOREPHEMERALS"),
        (Delete(1, "/no"), "NONODE"),
        (Delete(1, "/a"), "NOTEMPTY"),
        (Delete(1, "/a/b", 3), "BADVERSION"),
        (SetData(1, "/a", "x", 7), "BADVERSION"),
        (SetData(1, "/no", "x"), "NONODE"),
        (GetData(1, "/no"), "NONODE"),
        (GetChildren(1, "/no"), "NONODE"),
    ],
)
def test_a_failed_request_changes_nothing(request_, error):
    """Errors have ZooKeeper's names and leave nodes, watches and zxid unchanged."""
    state = service("/a/b")
    state, _ = run(state, Create(1, "/e", ephemeral=True))
    after, sent = step(state, request_)
    assert sent[-1].error == error
    assert (after.nodes, after.zxid, watch_count(after)) == (state.nodes, state.zxid, 0)


# The leader's conditional write


def test_an_expired_session_s_nodes_go_in_one_transaction():
    """All ephemeral nodes of a session are deleted with one zxid."""
    state, _ = run(service(), Create(1, "/a", ephemeral=True), Create(1, "/b", ephemeral=True))
    before = state.zxid
    state, _ = run(state, Expire(1))
    assert state.zxid == before + 1
    assert state.nodes["/"].pzxid == state.zxid
    assert state.nodes["/"].children == ()


def test_a_zombie_leader_cannot_change_the_isr():
    """It has an older version of the state node than the controller's last write."""
    state = service("/s")
    state, _ = run(state, SetData(1, "/s", "isr 0,1", 0), SetData(2, "/s", "leader 1", 1))
    state, sent = run(state, SetData(1, "/s", "isr 0", 1))
    assert sent[-1].error == "BADVERSION"
    assert state.nodes["/s"].data == "leader 1"


# Watches


@pytest.mark.parametrize(
    ("watch", "write", "kind", "path"),
    [
        (GetData(2, "/a", True), SetData(1, "/a", "x"), "NodeDataChanged", "/a"),
        (Exists(2, "/a", True), Delete(1, "/a"), "NodeDeleted", "/a"),
        (Exists(2, "/new", True), Create(1, "/new"), "NodeCreated", "/new"),
        (GetChildren(2, "/a", True), Create(1, "/a/b"), "NodeChildrenChanged", "/a"),
        (GetChildren(2, "/a", True), Delete(1, "/a"), "NodeDeleted", "/a"),
        (GetChildren(2, "/", True), Delete(1, "/a"), "NodeChildrenChanged", "/"),
    ],
)
def test_a_watch_fires_once(watch, write, kind, path):
    """The first change is notified, a second one is not."""
    state, _ = run(service("/a"), watch)
    assert watch_count(state) == 1
    state, sent = run(state, write)
    assert sent[0] == Notification(2, kind, path)
    assert len(sent) == 2
    assert watch_count(state) == 0
    again = SetData(1, "/a", "y") if "/a" in state.nodes else Create(1, "/a")
    _, sent = run(state, again)
    assert not any(isinstance(effect, Notification) for effect in sent)


@pytest.mark.parametrize(
    ("watch", "write"),
    [
        (GetData(2, "/a", True), Create(1, "/a/b")),
        (GetChildren(2, "/a", True), SetData(1, "/a", "x")),
        (GetChildren(2, "/", True), Create(1, "/a/b")),
        (GetData(2, "/no", True), Create(1, "/no")),
    ],
)
def test_a_watch_fires_only_for_its_own_kind(watch, write):
    """Separate data and child watches, none for grandchildren, none after a failed read."""
    _, sent = run(service("/a"), watch, write)
    assert not any(isinstance(effect, Notification) for effect in sent)


def test_both_kinds_of_watch_notify_a_deletion_once():
    """A session watching data and children of a node gets one NodeDeleted."""
    state, _ = run(service("/a"), GetData(2, "/a", True), GetChildren(2, "/a", True))
    _, sent = run(state, Delete(1, "/a"))
    assert [e for e in sent if isinstance(e, Notification)] == [
        Notification(2, "NodeDeleted", "/a")
    ]


@pytest.mark.parametrize("read", [GetData(2, "/a"), Exists(2, "/a"), GetChildren(2, "/a")])
def test_a_plain_read_sets_no_watch(read):
    """Reads set no watch by default."""
    state, _ = run(service("/a"), read)
    assert watch_count(state) == 0


def test_watching_twice_sets_one_watch():
    """A session has one data watch on a path."""
    state, _ = run(service("/a"), GetData(2, "/a", True), Exists(2, "/a", True))
    assert watch_count(state) == 1


def test_an_expired_session_loses_its_watches():
    """Expiry removes data and child watches."""
    state, _ = run(service("/a"), GetData(2, "/a", True), GetChildren(2, "/a", True), Expire(2))
    assert watch_count(state) == 0


PATHS = ("/a", "/b", "/a/c")
SESSIONS = st.integers(1, 3)
REQUESTS = st.one_of(
    st.builds(Create, SESSIONS, st.sampled_from(PATHS), st.just("d"), st.booleans()),
    st.builds(Delete, SESSIONS, st.sampled_from(PATHS)),
    st.builds(SetData, SESSIONS, st.sampled_from(PATHS), st.sampled_from("xy")),
    st.builds(GetData, SESSIONS, st.sampled_from(PATHS), st.booleans()),
    st.builds(Exists, SESSIONS, st.sampled_from(PATHS), st.booleans()),
    st.builds(GetChildren, SESSIONS, st.sampled_from(PATHS), st.booleans()),
    st.builds(Expire, SESSIONS),
    st.builds(Elapse, st.sampled_from([0, 9_000])),
)


@given(st.lists(REQUESTS, max_size=40))
def test_a_client_is_notified_of_a_change_before_it_can_read_it(events):
    """After a watch is set, no reply shows newer data before the watch's notification."""
    state = service(sessions=3)
    watched: dict[tuple[int, str], int] = {}
    for event in events:
        state, effects = step(state, event)
        for effect in effects:
            if isinstance(effect, Notification):
                watched.pop((effect.session, effect.path), None)
            if not isinstance(effect, Reply) or not isinstance(event, GetData | Exists):
                continue
            seen = effect.value.mzxid if effect.value else 0
            key = (event.session, event.path)
            assert watched.get(key, seen) == seen
            if event.watch and effect.error is None:
                watched[key] = seen


@given(st.lists(REQUESTS, max_size=40))
def test_the_tree_stays_consistent(events):
    """Parents list exactly their children, ephemeral nodes have live owners, zxids increase."""
    state: ZooKeeper = service(sessions=3)
    for event in events:
        before = state.zxid
        state, _ = step(state, event)
        assert state.zxid >= before
        listed = {
            f"{path.rstrip('/')}/{child}" for path, n in state.nodes.items() for child in n.children
        }
        assert listed == set(state.nodes) - {"/"}
        for node in state.nodes.values():
            assert node.ephemeral_owner == 0 or node.ephemeral_owner in state.sessions
            assert node.creates - node.deletes == len(node.children)
            assert node.czxid <= node.mzxid <= state.zxid
