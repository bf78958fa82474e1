"""The chart of an audit: every topic by durability and write availability, goals as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from advisor.advice import Audit, Goals, TopicAudit
from advisor.advice.candidate import goals_for
from advisor.decision.verdict import OK
from advisor.present.figures import style
from advisor.present.figures.chart import shown_figure
from advisor.present.labels import per_year, time_per_year_label
from advisor.present.nines_axis import NinesAxis, loss_label, nines_axis, refused_label
from advisor.present.points import Estimated
from advisor.reliability import measure_table
from advisor.tables import MOST_ROWS, more_rows

_MISSED = style.BEST
_MOST_NAMES = 8
# Beside the marker, else above or below, else askew.
_BESIDE = ((8, 0, "left"), (-8, 0, "right"), (0, 13, "center"), (0, -14, "center"))
_OFFSETS = (*_BESIDE, (7, 7, "left"), (7, -8, "left"), (-7, 7, "right"), (-7, -8, "right"))
_DRAWN = tuple(entry.name for entry in measure_table.weighed())
_WELL, _TROUBLE = ("o", style.DURABILITY), ("D", _MISSED)
_GREY = ("s", style.MUTED, "grey area: worse than a goal allows")


def plot_audit(audit: Audit, ax: Axes | None = None) -> Axes:
    """Draw every topic by its losses and refused writes, with the goals that were given."""
    figure = shown_figure(7.2, 4.8) if ax is None else None
    if figure is not None:
        figure.describe(*_in_words(audit))
    with style.look():
        if figure is not None:
            ax = figure.add_axes((0.22, 0.14, 0.74, 0.66))
            style.key(figure, 0.22, _entries(audit.goals))
        assert ax is not None
        _draw(ax, audit)
    return ax


def _entries(goals: Goals) -> list[tuple[str, str, str]]:
    """The markers and what they mean; of goals only where some were given."""
    has_goals = bool(goals.limits or goals.survive)
    well = "stays as it is" + ", and meets the goals" * has_goals
    trouble = "to change or repair" + ", or misses a goal" * has_goals
    entries = [(*_WELL, well), (*_TROUBLE, f"{trouble}; the worst are named")]
    return [*entries, _GREY] if set(_DRAWN) & set(goals.limits) else entries


def _is_well(topic: TopicAudit) -> bool:
    return topic.ok and topic.severity == OK


def _in_words(audit: Audit) -> Iterator[str]:
    """Describe the chart: the headline, and the worst topics with their numbers."""
    yield f"Topics: durability against write availability. {audit.quick_verdict.headline}"
    for topic in audit.topics[:MOST_ROWS]:
        result = topic.choice.reliability
        lost = per_year(result.loss_probability_per_year)
        refused = time_per_year_label(result.write_unavailability)
        missed = f", misses {goals_for(topic.choice)}" if topic.choice.unmet else ""
        state = f"{topic.severity}{', broken now' if topic.broken else ''}{missed}"
        yield f"{topic.topic.name} ({state}): data loss {lost}, writes refused {refused}."
    yield more_rows(audit.topics, "topics", "to_frame()")


def _draw(ax: Axes, audit: Audit) -> None:
    results = [topic.choice.reliability for topic in audit.topics]
    refused = [r.write_unavailability for r in results]
    lost = [r.loss_probability_per_year for r in results]
    goals = audit.goals
    across = _axis(refused, goals.write_unavailability, refused_label, 4)
    upwards = _axis(lost, goals.loss_probability_per_year, loss_label, 6)
    places = [(across.at(q), upwards.at(p)) for q, p in zip(refused, lost, strict=True)]
    ax.set_xlim(across.bottom, across.top)
    ax.set_ylim(upwards.bottom, upwards.top)
    ax.set_xticks([at for at, _ in across.ticks], [label for _, label in across.ticks])
    ax.set_yticks([at for at, _ in upwards.ticks], [label for _, label in upwards.ticks])
    ax.tick_params(axis="both", length=0)
    ax.set_title("Topics: durability against write availability", pad=5)
    ax.set_xlabel("write availability, better to the right", labelpad=3)
    for marker, colour in (_WELL, _TROUBLE):
        well = (marker, colour) == _WELL
        drawn = [at for at, t in zip(places, audit.topics, strict=True) if _is_well(t) == well]
        xs, ys = [x for x, _ in drawn], [y for _, y in drawn]
        look: dict[str, Any] = {"color": colour, "markeredgecolor": style.PAPER, "alpha": 0.8}
        ax.plot(xs, ys, marker, markersize=6.5, zorder=4, clip_on=False, **look)
    named_places = [
        (topic.topic.name, at)
        for at, topic in zip(places, audit.topics, strict=True)
        if not _is_well(topic)
    ]
    _name(ax, named_places[:_MOST_NAMES], places, _shade_missed(ax, across, upwards, goals))


def _axis(values: Sequence[float], limit: float | None, label: Any, ticks: int) -> NinesAxis:
    values_and_limit = [*values, *([limit] if limit is not None else [])]
    return nines_axis([Estimated(q, q, q) for q in values_and_limit], label, most_ticks=ticks)


def _shade_missed(ax: Axes, across: NinesAxis, upwards: NinesAxis, goals: Goals) -> list[Bbox]:
    """Shade the values that miss a goal; return the boxes of the goals' lines, in pixels."""
    lines = []
    area: dict[str, Any] = {"facecolor": style.GREY, "linewidth": 0, "zorder": 0.5, "alpha": 0.25}
    edge: dict[str, Any] = {"color": style.MUTED, "linewidth": 1.2, "zorder": 1}
    if goals.write_unavailability is not None:
        at = across.at(goals.write_unavailability)
        ax.axvspan(across.bottom, at, **area)
        ax.axvline(at, **edge)
        x = ax.transData.transform((at, upwards.bottom))[0]
        lines.append(Bbox.from_bounds(x - 1, ax.bbox.y0, 2, ax.bbox.height))
    if goals.loss_probability_per_year is not None:
        at = upwards.at(goals.loss_probability_per_year)
        ax.axhspan(upwards.bottom, at, **area)
        ax.axhline(at, **edge)
        y = ax.transData.transform((across.bottom, at))[1]
        lines.append(Bbox.from_bounds(ax.bbox.x0, y - 1, ax.bbox.width, 2))
    return lines


def _name(
    ax: Axes,
    named_places: Sequence[tuple[str, style.Place]],
    places: Sequence[style.Place],
    lines: Sequence[Bbox],
) -> None:
    """Write the names of topics beside their markers, and beside the lines if there is room."""
    occupied = style.boxes_around(ax, dict.fromkeys(places), 4)
    for place in dict.fromkeys(at for _, at in named_places):
        names = [name for name, at in named_places if at == place]
        words = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        avoided = [[*occupied, *lines], occupied]
        occupied += style.label(ax, words, place, _OFFSETS, avoided, (4.45, 9.0))
