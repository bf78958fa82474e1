"""The table of sources: every entry recognises its example, and every door goes through it."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advisor.__main__ import main
from advisor.cluster import Cluster, load_cluster
from advisor.cluster.completeness import DESCRIBE
from advisor.cluster.formats import sources
from advisor.cluster.formats.sources import SOURCES, Source, has, source_of
from advisor.errors import AdvisorError, InputError
from advisor.reliability.failures.failure_model import load_model

DECLINED = [source for source in SOURCES if source.read is None and source.place is None]
READ = [source for source in SOURCES if source not in DECLINED]
CARD = '[broker.destroyed]\nper_year = { value = 1e-3, low = 5e-4, high = 2e-3, evidence = "%s" }\n'
CARD += 'hours = { value = 12, low = 6, high = 24, evidence = "%s-hours" }\n'
CARD %= ("broker-destroyed-cloud", "broker-destroyed-cloud")
DESCRIBED = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2"


def name_of(source: Source) -> str:
    return source.name


def at_every_door(
    path: Path, card: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Return what every door says of a file: the error's sentence, or what it was taken for."""
    model, text = load_model(card), path.read_text() + "\n"
    calls: dict[str, Callable[[], Cluster]] = {
        "load_cluster": lambda: load_cluster(path),
        "text": lambda: load_cluster(text),
        "audit": lambda: advisor.audit(text, model).cluster,
        "recommend": lambda: advisor.recommend(str(path), model).cluster,
    }
    said = {}
    for door, call in calls.items():
        try:
            said[door] = call().taken_for
        except AdvisorError as error:
            said[door] = str(error)
    page = path.parent / "page.html"
    lines = {
        "advisor audit": ["audit", str(path)],
        "advisor recommend": ["recommend", str(path)],
        "advisor evaluate": ["evaluate", str(path)],
        "advisor report": ["report", str(path), "--output", str(page)],
        "standard input": ["audit", "-"],
    }
    for door, line in lines.items():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        main([*line, "--model", str(card)])
        said[door] = " ".join("".join(capsys.readouterr()).split())
    if page.exists():
        said["page"] = page.read_text()
        page.unlink()
    return said


@pytest.fixture
def card_file(tmp_path: Path) -> Path:
    path = tmp_path / "card.toml"
    path.write_text(CARD)
    return path


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_an_entry_recognises_its_own_example_and_is_complete(source: Source) -> None:
    """The first that recognises the example is the entry; it is read, or says what to run."""
    assert source_of(source.example) is source
    if source in DECLINED:
        assert source.instead
        with pytest.raises(InputError) as caught:
            load_cluster(source.example + "\n")
        assert f"this is {source.name}: {source.instead}" in str(caught.value)
    else:
        racks = "1=a,2=b,3=c" if source.needs_racks else None
        cluster = load_cluster(source.example + "\n", racks=racks)
        assert cluster.taken_for.startswith(f"Taken for {source.name} ")
        assert source.carries in cluster.taken_for
        assert cluster.taken_for.count(". ") == 0


def test_an_entry_is_seen_at_every_door(
    tmp_path: Path,
    card_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry added to the table names and reads a new kind of text wherever one is read."""
    monkeypatch.setattr("advisor.catalog.model_names", list)  # no card to switch to in the page
    mark = has(r"^moon-tool 1\.0$")

    def read(text: str, name: str) -> Cluster:
        assert "moon-tool" in text
        return replace(load_cluster(DESCRIBED), source=name, layout=None)

    known = Source("the output of moon-tool", mark, carries="craters", read=read)
    declined = Source("the output of moon-tool", mark, instead="run sun-tool")
    path = tmp_path / "moon"
    path.write_text("moon-tool 1.0\n")
    for source, sentence in (
        (known, "Taken for the output of moon-tool (1 topic, 1 partition, 2 brokers)"),
        (declined, "this is the output of moon-tool: run sun-tool"),
    ):
        monkeypatch.setattr(sources, "SOURCES", (source, *SOURCES))
        said = at_every_door(path, card_file, capsys, monkeypatch)
        assert len(said) == (10 if source is known else 9)
        assert {door for door, words in said.items() if words.count(sentence) != 1} == set()


def test_an_unknown_text_is_said_to_be_unknown_with_the_commands_that_help() -> None:
    """Neither a layout nor a cut line is guessed: how it begins, and what to run."""
    with pytest.raises(InputError) as caught:
        load_cluster("Dear all,\nthe cluster is down!\n")
    said = str(caught.value)
    assert "begins with 'Dear all,'" in said
    assert DESCRIBE in said


def test_a_description_after_a_long_log_is_read() -> None:
    """What begins a text decides, but a description behind it is not lost."""
    log = "[2025-01-02 10:00:00] starting up the tool\n" * (sources.BEGINNING // 40)
    assert len(load_cluster(log + DESCRIBED).topics) == 1


def test_min_isr_that_is_not_shown_is_said_to_be_assumed() -> None:
    """Without settings the min ISR is Kafka's default, said once; a broker may have its own."""
    (kcat,) = [source for source in SOURCES if source.name == "the output of kcat -L"]
    cluster = load_cluster(kcat.example)
    (assumed,) = [remark for remark in cluster.remarks if "is assumed" in remark]
    assert "1, Kafka's default" in assumed
    told = replace(cluster, broker_settings={"min.insync.replicas": "2"})
    assert not any("is assumed" in remark for remark in told.remarks)
