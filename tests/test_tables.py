"""Table methods that results share: rows, data frames, HTML."""

from dataclasses import dataclass

from advisor.tables import MeasureTable, RowTable, html_list, html_table, html_verdict


@dataclass(frozen=True)
class Entry:
    name: str

    def row(self, intervals: bool) -> dict[str, object]:
        return {"name": self.name, "low": 1} if intervals else {"name": self.name}


@dataclass(frozen=True)
class Brief(RowTable):
    names: tuple[str, ...]

    _INTERVALS = False

    def _entries(self) -> tuple[Entry, ...]:
        return tuple(map(Entry, self.names))


class Full(Brief):
    _INTERVALS = True


class Measures(MeasureTable):
    _FRAME_COLUMNS = ("measure", "value")
    _HTML_COLUMNS = ("measure", "in words")

    @property
    def summary(self) -> str:
        return "a < b"

    def _paragraphs(self) -> tuple[str, ...]:
        return ("one & two",)

    def _frame_rows(self) -> list[tuple[object, ...]]:
        return [("loss", 0.5), ("refused", 0.25)]

    def _html_rows(self) -> list[tuple[str, ...]]:
        return [("loss", "<b>half</b>")]


def test_intervals_by_default_depend_on_the_result() -> None:
    """A class decides whether its table has intervals unless the caller says otherwise."""
    assert Brief(("a", "b")).rows() == [{"name": "a"}, {"name": "b"}]
    assert Brief(("a",)).rows(intervals=True) == Full(("a",)).rows() == [{"name": "a", "low": 1}]
    assert list(Full(("a",)).to_frame().columns) == ["name", "low"]
    assert list(Full(("a",)).table(intervals=False).columns) == ["name"]


def test_a_measure_table_has_one_line_per_measure() -> None:
    """The frame has the columns of its class; in HTML each measure heads its row."""
    frame = Measures().to_frame()
    assert list(frame.index) == ["loss", "refused"]
    assert list(frame.columns) == ["value"]
    assert frame["value"].tolist() == [0.5, 0.25]
    assert Measures()._repr_html_() == (
        "<p><strong>a &lt; b</strong></p><p>one &amp; two</p>"
        "<div style='overflow-x:auto' tabindex='0' role='group' "
        "aria-label='Measures with their 95 % intervals'>"
        "<table><caption>Measures with their 95 % intervals</caption>"
        "<thead><tr><th scope='col' style='text-align:left'>measure</th>"
        "<th scope='col' style='text-align:left'>in words</th></tr></thead><tbody>"
        "<tr><th scope='row' style='text-align:left'>loss</th>"
        "<td style='text-align:left'>&lt;b&gt;half&lt;/b&gt;</td></tr></tbody></table></div>"
    )


def test_html_is_escaped() -> None:
    """Names from outside are text in tables, lists and verdicts."""
    assert "&lt;i&gt;" in html_table([{"name": "<i>"}]).text
    assert html_table([]).text == ""
    assert html_list(["<i>"]).text == "<ul><li>&lt;i&gt;</li></ul>"
    assert html_verdict("<i>").text == "<p><strong>&lt;i&gt;</strong></p>"


def test_words_are_aligned_left_and_numbers_are_not_broken() -> None:
    """Heads stand above their columns, and a small number keeps its exponent."""
    page = html_table([{"name": "a", "value": "4.0e-5", "why": "seen"}]).text
    assert "<th scope='col' style='text-align:left'>name</th><th scope='col'>value</th>" in page
    assert "<th scope='col' style='text-align:left'>why</th>" in page
    assert "<td style='white-space:nowrap'>4.0e-5</td><td style='text-align:left'>seen" in page
