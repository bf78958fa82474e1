"""What a person sees of a sample: years, losses, the interval, and the time left."""

import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tqdm.auto import tqdm

from advisor import Cluster, Config, FailureModel, progress, simulate
from advisor.pipeline.rounds import Stop
from advisor.pipeline.watch import Watch
from advisor.reliability.sampler.block import Row

CONFIG = Config(replication_factor=1, min_insync_replicas=1)
MODEL = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.01, "hours": 1.0}}})


def row(index: int, years: int, lost: int = 0) -> Row:
    """A finished block."""
    return Row(index, years, "", lost, 0.0, 0.0, 0, 0, 0, (), ())


class Screen:
    """A watch with a clock that the test sets, and what it showed."""

    def __init__(self, years: int = 1000, **limits: Any) -> None:
        self.now = 0.0
        self.shown: list[tuple[int, str]] = []
        self.watch = Watch(self._show, years, Stop(**limits), lambda: self.now)

    def _show(self, done: int, words: str) -> None:
        self.shown.append((done, words))

    def add(self, at: float, *rows: Row) -> tuple[int, str]:
        """Finish blocks at a time; return what is shown."""
        self.now = at
        self.watch.add(rows)
        return self.shown[-1]


def test_years_losses_width_and_time_left_are_shown() -> None:
    """After 20 of 100 years in the second since the first block, 80 years take 8 seconds."""
    screen = Screen(years=100)
    assert screen.add(5.0, row(0, 10)) == (10, "no loss seen yet")
    done, words = screen.add(6.0, row(1, 10, lost=4))
    assert done == 20
    assert words == (
        "4 years with a loss, 95 % interval 190 % of the value wide, about 8 seconds left"
    )


def test_the_blocks_of_a_checkpoint_say_nothing_of_the_speed() -> None:
    """They arrive at once; the time left is that of the blocks that are sampled."""
    screen = Screen(years=100)
    screen.add(0.0, *(row(index, 10) for index in range(8)))
    assert screen.add(30.0, row(8, 10))[1].endswith("about 30 seconds left")


def test_the_time_left_ends_at_the_first_limit() -> None:
    """A width is reached before all years, by the square root; a number of seconds at once."""
    wide = Screen(years=10**9, relative_width=0.1)
    wide.add(0.0, row(0, 1000, lost=100))
    # 28 % wide after 200 losses; the width falls with the square root of the years.
    words = wide.add(1.0, row(1, 1000, lost=100))[1]
    seconds = float(re.search(r"about ([\d.]+) seconds left", words)[1])
    assert seconds == pytest.approx(2.0 * ((0.28 / 0.1) ** 2 - 1.0), rel=0.15)
    short = Screen(years=10**9, seconds=90.0)
    short.add(0.0, row(0, 10))
    assert short.add(1.0, row(1, 10))[1].endswith("about 90 seconds left")


def test_a_new_round_does_not_move_the_bar_back() -> None:
    """Rounds that begin again are shown once they have more years than the last."""
    screen = Screen()
    screen.add(0.0, row(0, 10), row(1, 10))
    assert screen.add(1.0, row(0, 15, lost=1))[0] == 20
    done, words = screen.add(2.0, row(1, 15))
    assert done == 30
    assert words.startswith("1 year with a loss, ")


def simulated(engine: str, years: int = 64_000) -> None:
    """Sample hundreds of losses."""
    simulate(Cluster.uniform(1, 1), CONFIG, MODEL, years=years, engine=engine)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_both_engines_show_it_on_a_terminal_and_nothing_on_a_pipe(
    engine: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The bar has the years done of all, and the words of the watch."""
    if engine == "spark":
        request.getfixturevalue("spark")
    monkeypatch.setattr(progress, "_SHOWN_AFTER_S", 0.0)
    # Else the bar of a run that ends within a tenth of a second shows its beginning only.
    monkeypatch.setattr(progress, "_bar_class", lambda: partial(tqdm, mininterval=0.0))
    capfd.readouterr()
    simulated(engine, 6_400_000)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    simulated(engine, 6_400_000)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert re.search(r"M/6.40M years in [\d:]+, [\d,]+ years with a loss, 95 % interval", shown.err)


def test_a_notebook_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the shell runs in a kernel, Jupyter's bar gets the same years and words."""
    told: list[tuple[float, str]] = []

    class Bar:
        """Jupyter's bar, as far as it is used."""

        def __init__(self, **options: Any) -> None:
            assert options["total"] == 64_000
            self.n, self.words = 0, ""

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def set_postfix_str(self, words: str, refresh: bool) -> None:
            assert not refresh
            self.words = words

        def update(self, more: float) -> None:
            self.n += more
            told.append((self.n, self.words))

    ipython = ModuleType("IPython")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=1)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(progress, "_bar_class", lambda: Bar)
    simulated("local")
    assert [years for years, _ in told] == [2_000 * (1 + block) for block in range(32)]
    assert re.search(r"^\d+ years with a loss, 95 % interval", told[-1][1])


def test_a_resumed_sample_counts_the_kept_blocks_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The bar ends at all years, whether blocks were sampled or found."""
    told: list[float] = []
    monkeypatch.setattr(progress, "_is_interactive", lambda: True)

    class Bar:
        """A bar that notes its years."""

        def __init__(self, **_: Any) -> None:
            self.n = 0

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None:
            told.append(self.n)

        def set_postfix_str(self, *_: object, **__: object) -> None:
            return None

        def update(self, more: float) -> None:
            self.n += more

    monkeypatch.setattr(progress, "_bar_class", lambda: Bar)
    cluster = Cluster.uniform(1, 1)
    for _ in range(2):
        simulate(cluster, CONFIG, MODEL, years=640, engine="local", checkpoint=tmp_path)
    assert told == [640, 640]
