"""The report of a cluster with many topics: the worst in full, the others summed up."""

import re
from dataclasses import replace

import pytest

from advised import MODEL
from advisor.advice import Audit, Goals, Recommendation, audit, recommend
from advisor.advice.findings.summary import MOST_OF_A_RULE, shortened
from advisor.advice.migration.plan import MigrationPlan, PlanLines
from advisor.cluster import Cluster, Partition, Topic
from advisor.present.labels import between, once_in_years
from advisor.present.report import page
from advisor.present.report.page import MOST_KINDS, MOST_ROWS, audited, render_report, setting_today
from advisor.rendering import json_text, shell_comment

SETTINGS = ((3, 2), (3, 1), (2, 1), (1, 1))
TOPICS = 240


def cluster(topics: int, partitions: int = 1) -> Cluster:
    """Topics of four settings on six brokers in three racks."""
    made = []
    for t in range(topics):
        factor, least = SETTINGS[t % len(SETTINGS)]
        replicas = tuple((t + n) % 6 for n in range(factor))
        parts = tuple(Partition(p, replicas[0], replicas, replicas) for p in range(partitions))
        made.append(Topic(f"topic-{t:04d}", parts, {"min.insync.replicas": str(least)}))
    return Cluster({b: f"rack {b % 3}" for b in range(6)}, tuple(made))


@pytest.fixture(scope="module")
def advice() -> Recommendation:
    return recommend(cluster(TOPICS), MODEL, goals=Goals(survive="rack"))


@pytest.fixture(scope="module")
def judged() -> Audit:
    return audit(cluster(TOPICS), MODEL)


def test_the_worst_come_first_and_the_others_by_kind(advice: Recommendation, judged: Audit) -> None:
    """Fifty rows of one topic, then a row for each kind; the counts add up to all topics."""
    table = audited(judged, advice)
    rows = table["rows"]
    names = [topic.topic.name for topic in judged.topics]
    assert [row["topic"] for row in rows[:MOST_ROWS]] == names[:MOST_ROWS]
    numbers = [re.match(r"([\d,]+) topics$", row["topic"]) for row in rows[MOST_ROWS:]]
    assert sum(int(found[1]) for found in numbers if found) == TOPICS - MOST_ROWS
    kinds = {(t.choice.name, t.broken, t.choice.unmet) for t in judged.topics[MOST_ROWS:]}
    assert len(rows) - MOST_ROWS == len(kinds) > 1
    assert f"The other {TOPICS - MOST_ROWS} of {TOPICS} are not shown one by one" in table["hidden"]
    for row in rows[MOST_ROWS:]:
        one = next(t for t in judged.topics if t.topic.name == row["worst"])
        assert row["name"] == setting_today(one)
        assert row["severity"] == one.severity
        assert row["trouble"] == (not one.ok or one.severity != "ok")


def test_a_sum_tells_the_smallest_and_the_largest(advice: Recommendation, judged: Audit) -> None:
    """The ends of a row are those of its topics."""
    own = setting_today(judged.topics[-1])
    several = [t for t in judged.topics[MOST_ROWS:] if setting_today(t) == own]
    soonest = min(t.choice.reliability.mean_years_to_loss for t in several)
    changed = replace(several[0].choice.reliability, mean_years_to_loss=soonest / 7.0)
    other = replace(several[0], choice=replace(several[0].choice, reliability=changed))
    topics = (*judged.topics[:-1], replace(other, topic=judged.topics[-1].topic))
    rows = audited(replace(judged, topics=topics), advice)["rows"]
    row = next(row for row in rows[MOST_ROWS:] if row["name"] == own)
    latest = max(t.choice.reliability.mean_years_to_loss for t in several)
    ends = between(once_in_years(soonest / 7.0), once_in_years(latest))
    assert row["measures"][0][0] == ends


def test_kinds_beyond_the_limit_are_one_row(advice: Recommendation, judged: Audit) -> None:
    """However many kinds of topics there are, the table has a hundred rows at most."""
    topics = [
        replace(t, choice=replace(t.choice, config=t.choice.config.changed(min_insync_replicas=n)))
        for n, t in enumerate(judged.topics[::-1], 1)
    ]
    rows = audited(replace(judged, topics=tuple(topics)), advice)["rows"]
    assert len(rows) == MOST_ROWS + MOST_KINDS
    assert rows[-1]["topic"] == f"{TOPICS - len(rows) + 1} topics"
    assert rows[-1]["trouble"]


def test_few_topics_have_a_row_each() -> None:
    """Fifty topics are shown as ever, without a word about others."""
    few = cluster(8)
    table = audited(audit(few, MODEL), recommend(few, MODEL))
    assert len(table["rows"]) == 8
    assert not table["hidden"]


def test_long_files_are_shown_in_part() -> None:
    """The page does not grow with partitions, and says how much of a file it leaves out."""
    sizes = []
    for partitions in (20, 60):
        many = recommend(cluster(60, partitions), MODEL, allow_lower_durability=True)
        blocks = [*page._blocks(many), *page._files(many)]
        sizes.append(sum(len(block["text"]) for block in blocks))
        moves = next(block for block in blocks if block["title"] == "reassign.json")
        lines = many.files()["reassign.json"].splitlines()
        assert moves["text"] == "\n".join(lines[:20])
        assert f"first 20 lines of {len(lines):,} are shown" in moves["note"]
        assert "--files DIR" in moves["note"]
    assert sizes[1] < 1.1 * sizes[0]


def test_many_files_are_named(advice: Recommendation) -> None:
    """Of a hundred files the first are shown and the others counted."""
    files = {f"reassign-{n}.json": json_text({}) for n in range(100)}
    plan = MigrationPlan(PlanLines(steps=(shell_comment("one"),)), files, ())
    many = replace(advice, allow_lower_durability=True)
    many.__dict__["plan"] = plan
    assert len(page._blocks(many)) == 1
    shown = page._files(many)
    # Sixteen files with the two scripts among them, and what is not shown.
    assert len(shown) == 17
    assert shown[-1]["title"] == "86 more files"
    assert [file["name"] for file in shown[:3]] == [
        "commands.sh", "rollback.sh", "reassign-0.json",
    ]  # fmt: skip


def test_findings_with_many_details_are_counted(judged: Audit) -> None:
    """Ten of a rule are shown and the others counted."""
    one = judged.findings[0]
    many = [replace(one, detail=f"{one.detail} {n}", topic=f"t{n}") for n in range(64)]
    shown = shortened(many)
    assert len(shown) == MOST_OF_A_RULE
    assert [more for _, _, more in shown[:-1]] == [""] * (MOST_OF_A_RULE - 1)
    assert shown[-1][2].startswith("And 54 more with other details")


def test_a_large_page_is_small_and_says_what_it_leaves_out(
    advice: Recommendation, judged: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of partitions only the recommended and the present setting have intervals."""
    usual = render_report(advice, judged)
    monkeypatch.setattr("advisor.present.figures.comparison.MANY_PARTITIONS", 1)
    monkeypatch.setattr(page, "MANY_PARTITIONS", 1)
    many = recommend(cluster(TOPICS), MODEL, goals=Goals(survive="rack"))
    large = render_report(many, judged)
    assert "Only the recommended and the present setting have one" in large
    assert large.count("95 %: ") < usual.count("95 %: ")
    assert "are not shown one by one" in large
