"""Racks and controllers given beside a cluster."""

import json

import pytest

from advisor.catalog import data_dir
from advisor.cluster import Cluster, load_cluster
from advisor.errors import InputError

SAMPLES = data_dir() / "clusters"
LINE = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"


@pytest.mark.parametrize(
    "racks",
    [
        {1: "a", 2: "a", 3: "b"},
        {"1": "a", "2": "a", "3": "b"},
        {"a": [1, 2], "b": [3]},
        "1=a,2=a,3=b",
        " 1 = a, 2 = a, 3 = b ",
        "[racks]\na = [1, 2]\nb = [3]\n",
        '[racks]\n1 = "a"\n2 = "a"\n3 = "b"\n',
        "a = [1, 2]\nb = [3]\n",
    ],
)
def test_racks_are_read_in_every_form(racks, tmp_path):
    """Both kinds of mapping, pairs, TOML text and files are accepted; new ids are added."""
    expected = {1: "a", 2: "a", 3: "b"}
    assert load_cluster(LINE, racks=racks).brokers == expected
    if isinstance(racks, str) and "\n" in racks:
        path = tmp_path / "racks.toml"
        path.write_text(racks)
        assert load_cluster(LINE, racks=path).brokers == expected
        assert load_cluster(LINE, racks=str(path)).brokers == expected


@pytest.mark.parametrize(
    "controllers",
    [
        {1: "a", 2: "b", 9: "c"},
        {"a": [1], "b": [2], "c": [9]},
        "1=a,2=b,9=c",
        "[racks]\nx = [1, 2]\n[controllers]\na = [1]\nb = [2]\nc = [9]\n",
    ],
)
def test_controllers_are_read_in_every_form(controllers, tmp_path):
    """In the forms of racks, instead of the source's; no broker is added."""
    expected = {1: "a", 2: "b", 9: "c"}
    cluster = load_cluster(LINE, controllers=controllers)
    assert (cluster.controllers, cluster.brokers) == (expected, {1: None, 2: None})
    toml = "brokers = 2\n[controllers]\n7 = 'z'\n"
    assert load_cluster(toml, controllers=controllers).controllers == expected
    assert load_cluster(toml).controllers == {7: "z"}
    if isinstance(controllers, str) and "\n" in controllers:
        path = tmp_path / "racks.toml"
        path.write_text(controllers)
        both = load_cluster(LINE, racks=path, controllers=path)
        assert (both.brokers, both.controllers) == ({1: "x", 2: "x"}, expected)


@pytest.mark.parametrize(
    ("controllers", "said"),
    [
        ("nowhere.toml", r"cannot read 'nowhere.toml' .*; give a TOML file with \[controllers\]"),
        ("1=a,x=b", r"'x' is not a controller id"),
        ("1=a,2", r"'2' is not of the form 1=a"),
        ("1=a,1=b", r"controller 1 is put into two racks"),
        (",=", r"'' is not a controller id"),
        ({"a": [1], "b": [1]}, r"controller 1 is put into the racks a and b"),
        ({1: 2.5}, r"controller 1 has the rack 2.5"),
        ("[controllers]\n\n", r"no controllers here; write a table \[controllers\]"),
        ({}, r"={}: give the rack of each voter"),
        (7, r"neither a mapping"),
    ],
)
def test_invalid_controllers_are_rejected(controllers, said):
    """The error says that it is about controllers."""
    with pytest.raises(InputError, match=rf"^controllers.*{said}"):
        load_cluster(LINE, controllers=controllers)


@pytest.mark.parametrize(
    ("racks", "said"),
    [
        ("nowhere.toml", r"cannot read 'nowhere.toml' \(No such file"),
        ("1=a,x=b", r"'x' is not a broker id"),
        ("[rack]\n1 = 'a'\n", r"there is a table \[rack\]; write \[racks\]"),
        ("1=a,2", r"'2' is not of the form 1=a"),
        ("1=a,1=b", r"broker 1 is put into two racks"),
        ({"a": [1], "b": [1]}, r"broker 1 is put into the racks a and b"),
        ({1: 2.5}, r"the rack 2.5"),
        ("[racks]\n1 = \n", r"not TOML: .*line 2"),
        ("[racks]\n\n", r"no racks here"),
        (7, r"neither a mapping"),
    ],
)
def test_invalid_racks_are_rejected(racks, said):
    """The error says that it is about racks."""
    with pytest.raises(InputError, match=rf"racks.*{said}"):
        load_cluster(LINE, racks=racks)


def test_racks_for_some_brokers_leave_the_rest_unknown():
    """Racks may be given for some brokers only."""
    assert load_cluster(LINE, racks={1: "a"}).brokers == {1: "a", 2: None}
    assert load_cluster(LINE, racks={1: "a"}).notes == ()


def test_a_controller_named_in_the_racks_is_no_broker(tmp_path):
    """Its rack is set, and no broker is added or noted."""
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(Cluster({1: None}, controllers={1: None, 9: None}).to_dict()))
    cluster = load_cluster(path, racks="1=a,9=c")
    assert (cluster.brokers, cluster.controllers) == ({1: "a"}, {1: "a", 9: "c"})
    assert cluster.notes == ()


def test_a_broker_named_only_in_the_racks_is_noted():
    """A broker named only in the racks is added, with a note."""
    cluster = load_cluster(LINE, racks="1=a,2=b,7=c,9=c")
    assert set(cluster.brokers) == {1, 2, 7, 9}
    (note,) = cluster.notes
    assert note.startswith("Brokers 7, 9 stood in the racks alone: ")


UNPRINTABLE = [
    "c\ntouch HIT #",
    "c\rx",
    "c\x1b[2J",
    "c\x1b]0;x\x07",
    "c\u202ed",
    "c\u2028d",
    "c\x85d",
]


@pytest.mark.parametrize("rack", UNPRINTABLE)
def test_a_rack_that_is_not_printable_is_refused(rack, tmp_path):
    """In a value, a racks file, TOML, a saved cluster; the message shows the rack escaped."""
    toml = tmp_path / "racks.toml"
    toml.write_text(f"{json.dumps(rack)} = [1]\n")
    saved = Cluster({1: "a", 2: "b"}, controllers={1: "a"}).to_dict()
    tables = (
        f"[brokers]\n1 = {json.dumps(rack)}\n",
        f"[[broker]]\nid = 1\nrack = {json.dumps(rack)}\n",
    )
    for read in (
        lambda: Cluster({1: rack}),
        lambda: Cluster({1: "a"}, controllers={1: rack}),
        lambda: load_cluster(LINE, racks={1: rack}),
        lambda: load_cluster(LINE, racks=toml),
        lambda: load_cluster(LINE, controllers=toml),
        *(lambda text=text: load_cluster(text) for text in tables),
        lambda: load_cluster(json.dumps({**saved, "brokers": {"1": rack}}) + "\n"),
        lambda: load_cluster(json.dumps({**saved, "controllers": {"1": rack}}) + "\n"),
    ):
        with pytest.raises(InputError) as caught:
            read()
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", UNPRINTABLE)
def test_a_note_cannot_forge_a_line(text):
    """A note of a saved cluster has one line and nothing that a terminal obeys."""
    saved = {**Cluster({1: "a"}).to_dict(), "notes": [f"{text}\nVerdict: all is well"]}
    (note,) = load_cluster(json.dumps(saved) + "\n").notes
    assert note.isprintable()
    assert note.endswith(" Verdict: all is well")


@pytest.mark.parametrize(
    ("racks", "said"),
    [
        ({1: "a", 2: "b"}, "racks as given"),
        ({1: "a", 7: "b"}, "racks as given, but none for broker 2"),
        ({7: "b"}, "racks as given, but none for 2 brokers"),
    ],
)
def test_who_was_left_out_of_the_racks_is_said(racks, said):
    """A number that is misspelt leaves another broker without a rack."""
    assert load_cluster(LINE, racks=racks).taken_for.endswith(f"; {said}.")
