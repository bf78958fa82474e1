"""Bars, paths and placements: the drawings beside the logs."""

import math
from typing import Any

import pytest

import advisor
from advisor.errors import InputError
from advisor.present.stories.drawings import draw_bars, draw_paths
from advisor.present.stories.placement_drawing import draw_assignment


def widths(svg: str) -> list[float]:
    """Widths of the bars, the legend's boxes left out."""
    boxes = [part.split('"') for part in svg.split("<rect ")[1:]]
    return [float(one[5]) for one in boxes if one[7] == "11"]


def test_bars_are_as_long_as_their_numbers() -> None:
    """The longest bar has all the room, the others their share of it; the numbers are written."""
    picture = draw_bars({"leader": 1.0, "follower": 4.0, "nothing": 0}, "ms")
    quarter, whole, nothing = widths(picture.svg)
    assert (round(4 * quarter), nothing) == (round(whole), 0)
    assert 200 < whole < 344
    assert ">4 ms<" in picture.svg
    assert picture.description == "leader: 1 ms; follower: 4 ms; nothing: 0 ms."


def test_long_units_stay_inside() -> None:
    """The longest value is written behind the longest bar, inside the drawing."""
    picture = draw_bars({"a": 123456, "b": 1}, "milliseconds of waiting")
    (longest, _) = widths(picture.svg)
    assert 8 + longest + 4 + 6.6 * len("123,456 milliseconds of waiting") <= 352.1


def test_bars_in_series_name_each_number() -> None:
    """Each row has a bar for each series; what is missing or never happens is said."""
    picture = draw_bars({"a": [1, None], "b": [2, math.inf]}, series=["x", "y"])
    assert picture.description == "a: x 1, y –; b: x 2, y never."
    assert len(widths(picture.svg)) == 3


@pytest.mark.parametrize(
    ("rows", "series"), [({"a": -1}, ()), ({"a": [1, 2]}, ()), ({"a": 1}, "xy")]
)
def test_bars_refuse_what_they_cannot_draw(rows: Any, series: Any) -> None:
    """Negative numbers, and rows that do not fit the series."""
    with pytest.raises(InputError):
        draw_bars(rows, series=series)


def test_every_path_is_an_arrow() -> None:
    """As many arrows as paths, and as many circles as replicas."""
    star, mesh = [(0, 1), (0, 2)], [(a, b) for a in range(3) for b in range(3) if a != b]
    picture = draw_paths({"one leader": star, "all write": mesh})
    assert picture.svg.count("marker-end") == 8
    assert picture.svg.count("<circle") == 6
    assert "one leader: 2 paths" in picture.svg


def test_an_assignment_is_drawn_with_its_leaders() -> None:
    """The first replica leads; the description lists all."""
    assignment = advisor.assign(dict.fromkeys(range(4)), 4, 2, algorithm="modulo")
    picture = draw_assignment(assignment, caption="Partition i, replica j: broker (i + j) mod 4")
    assert picture.svg.count(">leads<") == 4
    assert picture.svg.count("<rect") == 8
    assert "Partition 3: 3 leads, 0 follows." in picture.description
    assert "<figcaption>Partition i" in picture.html
