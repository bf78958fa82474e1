"""Stories: the steps of a scenario as drawings, and the fragment that shows them."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import advisor
from advisor.errors import InputError
from advisor.protocol.log.replica_log import size

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
LOSS = SCENARIOS / "l01-kip-101-loss-by-high-watermark.txt"
UNCLEAN = SCENARIOS / "l08-unclean-election-exact-loss.txt"
FIVE = SCENARIOS / "five-partitions-on-three-brokers.txt"


class Tags(HTMLParser):
    """The elements of a fragment, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_every_scenario_with_a_topic_is_drawn(path: Path) -> None:
    """Each scenario file becomes a story; every drawing has a text alternative and stays inside."""
    play = advisor.play(path)
    if not any(moment.state.partitions for moment in play.moments):
        with pytest.raises(InputError, match="creates no topic"):
            play.story()
        return
    story = play.story()
    tags = Tags(story.html)
    drawings = tags.all("svg")
    assert len(drawings) == len(story) >= 1
    for step, drawing in zip(story.steps, drawings, strict=True):
        assert drawing["role"] == "img"
        assert drawing["aria-label"] == step.description
    assert len(tags.all("li")) == len(story)
    assert "undefined" not in story.html
    for box in tags.all("rect"):
        left, width = float(box["x"] or -1), float(box["width"] or 0)
        assert 0 <= left <= left + width <= 292.1


def test_the_same_scenario_gives_the_same_bytes() -> None:
    """Drawings are deterministic, and ask no address."""
    html = advisor.play(LOSS).story().html
    assert html == advisor.play(LOSS).story().html
    assert not re.search(r"https?://|src=|@import|url\((?!#)", html)


def test_what_a_follower_truncates_is_red_in_that_step_only() -> None:
    """Broker 3 throws A and B away at one step: two crossed cells there, none at the others."""
    steps = advisor.play(LOSS).story().steps
    crossed = [step.picture.svg.count('class="gone"') for step in steps]
    assert [count > 0 for count in crossed].count(True) == 1
    (step,) = [step for step in steps if 'class="gone"' in step.picture.svg]
    assert (
        "Broker 3 (in ISR, not fetching): no records, HW 0, LEO 0, gone in this step: A to B."
        in (step.description)
    )
    assert step.loss == ""
    assert steps[-1].loss == "Lost: 2 of 2 acknowledged records (A to B)."


def test_a_lost_record_is_named_with_the_number_that_check_prints() -> None:
    """The loss of each story's last step is what the scenario's `check` says."""
    for path in SCENARIOS.glob("l*.txt"):
        play = advisor.play(path)
        said = re.search(r"lost (\d+) of (\d+) acknowledged", play.transcript.splitlines()[-1])
        if said and len({(p.topic, p.number) for p in play.moments[-1].state.partitions}) == 1:
            expected = f"Lost: {said[1]} of {said[2]} acknowledged records ("
            assert play.story().steps[-1].loss.startswith(expected), path.name


def test_hw_and_leo_stand_where_the_state_has_them() -> None:
    """The drawing's marks are the replica's own numbers; a dead one has no high watermark."""
    play = advisor.play(UNCLEAN)
    for step in play.story().steps:
        state = step.commands[-1].state
        for replica in state.partitions[0].replicas:
            broker = next(b for b in state.brokers if b.id == replica.broker)
            words = step.description.split(f"Broker {replica.broker} (")[1].split(" Broker ")[0]
            assert f"LEO {replica.log.leo}" in words
            assert (f"HW {replica.hw}," in words) == broker.running
        marks = re.findall(r">HW (\d+)<", step.picture.svg)
        assert len(marks) == sum(broker.running for broker in state.brokers)


def test_dashed_cells_are_the_records_without_acknowledgement() -> None:
    """A record that the producer got no success for is dashed on each replica that has it."""
    text = "cluster brokers=2 kafka=3.9\ntopic t replicas=1,2 min_insync_replicas=2\n"
    text += "produce t-0 2 acks=all\n!isolate 1\nproduce t-0 3 acks=all via=1"
    last = advisor.play(text).story().steps[-1]
    acked = last.commands[-1].state.partitions[0].acked
    assert size(acked) == 2
    assert last.picture.svg.count('class="cell open') == 3


def test_long_logs_are_cut_in_the_middle() -> None:
    """Four thousand records take sixteen cells at most; the scale says how many are left out."""
    story = advisor.play(SCENARIOS / "replica-lag-max-messages.txt").story()
    for step in story.steps:
        assert step.picture.svg.count("<rect") < 40
    drawn = story.steps[-1].picture.svg
    assert "+3,998" in drawn
    assert "LEO 4,011" in drawn
    scale = re.findall(r'<text x="([\d.]+)" y="10"[^>]*>([+\d,]+)<', drawn)
    assert len(scale) > 3
    for (one, first), (two, second) in pairwise(scale):
        between = float(two) - float(one) - 6.4 * (len(first) + len(second)) / 2
        assert between >= (6 if len(first) > 2 else 1) - 0.1


def test_what_is_left_out_of_a_lost_log_is_crossed_too() -> None:
    """Each frame of lost records has its diagonal, with dots where several share one."""
    text = "cluster brokers=1 kafka=3.9\ntopic t replicas=1 min_insync_replicas=1\n"
    text += "produce t-0 30 acks=all\ndestroy 1"
    drawn = advisor.play(text).story().steps[-1].picture.svg
    frames = re.findall(r'<rect [^>]*class="gone"', drawn)
    crosses = re.findall(r'<(?:path|line|polyline) [^>]*class="gone"', drawn)
    assert len(crosses) == len(frames) > 1
    assert drawn.count("⋯") == 1


def test_comments_of_a_scenario_are_its_words() -> None:
    """The first comment is the title; comments above a command stand with its step."""
    story = advisor.play("# A title\n# More\n" + UNCLEAN.read_text().split("\n", 2)[2]).story()
    assert story.title == "A title"
    assert "<p>More</p>" in story.steps[0].html
    assert "A title" not in story.steps[0].html


def test_looks_that_change_nothing_stand_with_the_step_before() -> None:
    """`state` and `check` are part of the step that they look at, as are the first records."""
    story = advisor.play(UNCLEAN).story()
    assert [step.commands[0].verb for step in story.steps] == [
        "cluster", "kill", "produce", "kill", "start", "elect", "start",
    ]  # fmt: skip
    assert [moment.verb for moment in story.steps[0].commands] == ["cluster", "topic", "produce"]
    assert [moment.verb for moment in story.steps[-1].commands] == ["start", "log", "check"]


def test_several_partitions_are_drawn_as_a_table_of_brokers() -> None:
    """The describe transcript of the five partitions is who leads, follows and is out."""
    play = advisor.play(FIVE)
    story = play.story()
    killed = next(s for s in story.steps if s.commands[0].command == "kill 2")
    assert killed.description.startswith("Brokers 0, 1, 2. Down: 2. Partition testp3-0: 0 leads")
    assert "Partition testp3-2: 2 not in ISR, 0 leads, 1 in ISR." in killed.description
    one = play.story("testp3-2")
    assert one.steps[0].description.startswith("Partition testp3-2 after")


def test_an_unknown_partition_is_refused_with_the_known_ones() -> None:
    """The message names what there is."""
    with pytest.raises(InputError, match=r"'t-7'.*has t-0$"):
        advisor.play(UNCLEAN).story("t-7")


def test_a_play_on_real_brokers_shows_its_transcript() -> None:
    """Without moments a result still shows itself; asked for a story it says why there is none."""
    play = advisor.play(UNCLEAN)
    bare = type(play)(play.transcript, play.differences)
    assert bare._repr_html_().startswith("<pre># L08")
    assert bare == play
    with pytest.raises(InputError, match="engine='model'"):
        bare.story()


def test_what_a_scenario_prints_is_escaped() -> None:
    """Comments cannot inject markup."""
    story = advisor.play(
        "# <script>alert(1)</script>\ncluster brokers=1\n# <b>\ntopic t replicas=1"
    ).story()
    assert "<script>alert" not in story.html
    assert "&lt;b&gt;" in story.html


def test_a_report_shows_the_step_of_the_loss_first():
    """The slider stands where the first acknowledged record is lost, in notebooks at the start."""
    told = advisor.play(LOSS).story()
    lost = [n for n, step in enumerate(told.steps) if step.loss]
    assert f'data-first="{lost[0]}"' in told.at_loss.html
    assert 'data-first="0"' in told.html
