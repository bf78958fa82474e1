"""Draws who sends records to whom among the replicas of a partition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.present.stories.picture import WIDTH, Picture, svg, text
from advisor.rendering import Html, html, markup

_HEIGHT = 150
_RADIUS = 44
_NODE = 12
_ARROW = markup(
    '<defs><marker id="advisor-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="5" '
    'markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" class="flag"/></marker></defs>'
)

Path = tuple[int, int]


def draw_paths(schemes: Mapping[str, Sequence[Path]], caption: str = "") -> Picture:
    """Draw up to two schemes side by side: nodes in a circle, an arrow for each path.

    schemes: by title: the paths (from, to) between replicas 0, 1, ...
    caption: text below the drawing.

    >>> draw_paths({"one leader": [(0, 1), (0, 2)]}).description
    'one leader: 2 paths, 0 to 1, 0 to 2.'
    """
    parts = [_ARROW]
    for place, (title, paths) in enumerate(schemes.items()):
        centre = WIDTH * (2 * place + 1) / (2 * len(schemes))
        parts.append(text(centre, 14, f"{title}: {len(paths)} paths", "middle strong"))
        count = 1 + max((end for path in paths for end in path), default=0)
        where = [_point(centre, node, count) for node in range(count)]
        parts += [_arrow(where[source], where[target]) for source, target in paths]
        for node, (x, y) in enumerate(where):
            circle = '<circle cx="{}" cy="{}" r="{}" class="cell c{}"/>'
            parts.append(markup(circle, _tenths(x), _tenths(y), _NODE, node % 6))
            parts.append(text(x, y + 3.5, node, "middle strong"))
    words = " ".join(_said(title, paths) for title, paths in schemes.items())
    return Picture(svg(WIDTH, _HEIGHT, words, parts), words, caption)


def _point(centre: float, node: int, count: int) -> tuple[float, float]:
    angle = 2 * math.pi * node / count - math.pi / 2
    return centre + _RADIUS * 1.3 * math.cos(angle), 84 + _RADIUS * math.sin(angle)


def _arrow(source: tuple[float, float], target: tuple[float, float]) -> Html:
    """Draw an arrow between the rims of two nodes, beside the arrow of the opposite direction."""
    across, down = target[0] - source[0], target[1] - source[1]
    length = math.hypot(across, down)
    ux, uy = across / length, down / length
    beside = 3.0
    x0, y0 = source[0] + ux * _NODE - uy * beside, source[1] + uy * _NODE + ux * beside
    x1, y1 = target[0] - ux * _NODE - uy * beside, target[1] - uy * _NODE + ux * beside
    return markup(
        '<path d="M{} {}L{} {}" class="thin" marker-end="url(#advisor-arrow)"/>',
        *map(_tenths, (x0, y0, x1, y1)),
    )


def _tenths(value: float) -> Html:
    return html(f"{value:.1f}")


def _said(title: str, paths: Sequence[Path]) -> str:
    pairs = ", ".join(f"{source} to {target}" for source, target in paths)
    return f"{title}: {len(paths)} paths, {pairs}."
