"""A drawing with its description, and the style that all drawings share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# Every drawing is so wide, in its own units: on a phone about a pixel each, so that its words, of
# 9.5 units and more, stay readable there.
WIDTH = 300
# Drawings take the colours of a report, else of JupyterLab, else their own; light or dark.
_COLOURS = """
.advisor-drawing {
  --ink: var(--advisor-ink, var(--jp-content-font-color1, #222222));
  --soft: var(--advisor-muted, var(--jp-content-font-color2, #5f5f5f));
  --line: var(--advisor-faint, var(--jp-border-color2, #c9ccd1));
  --paper: var(--advisor-paper, var(--jp-layout-color0, #fefefe));
  color: var(--ink); background: var(--paper); max-width: 46rem; margin: .6rem 0; padding: 0;
  font-family: system-ui, "DejaVu Sans", Verdana, Arial, sans-serif; line-height: 1.4;
}
.advisor-drawing svg {
  display: block; width: 100%; max-width: 28rem; height: auto;
  font-family: system-ui, "DejaVu Sans", Verdana, Arial, sans-serif;
}
.advisor-drawing text { fill: var(--ink); font-size: 10px; }
.advisor-drawing .soft { fill: var(--soft); }
.advisor-drawing .strong { font-weight: 700; font-size: 11px; }
.advisor-drawing .small { font-size: 9.5px; }
.advisor-drawing .middle { text-anchor: middle; }
.advisor-drawing .end { text-anchor: end; }
.advisor-drawing .off rect { opacity: .45; }
.advisor-drawing .dim { fill: var(--soft); }
.advisor-drawing .rule { stroke: var(--line); stroke-width: 1; fill: none; }
.advisor-drawing .ink { stroke: var(--ink); stroke-width: 2; fill: none; }
.advisor-drawing .flag { fill: var(--ink); }
.advisor-drawing .thin { stroke: var(--soft); stroke-width: 1; fill: none; }
.advisor-drawing figcaption { color: var(--soft); font-size: .9rem; }
.advisor-drawing .gone { fill: none; stroke: #d62f2f; stroke-width: 1.6; }
.advisor-drawing .bar { stroke: var(--ink); stroke-width: .6; }
"""
# Okabe and Ito's colours, thin enough that text on them stays readable, light or dark.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_OPEN = ".advisor-drawing .open { stroke-dasharray: 3 2; fill-opacity: .1; }\n"
_FILLS = "".join(
    f".advisor-drawing .c{number} {{ fill: {colour}; fill-opacity: .32; stroke: {colour}; }}\n"
    for number, colour in enumerate(PALETTE)
)
STYLE = f"<style>{_COLOURS}{_FILLS}{_OPEN}</style>"


@dataclass(frozen=True)
class Picture:
    """An SVG drawing, its description in words, and a caption.

    Attributes
    ----------
    svg : str
        One ``<svg>`` element, the same bytes in every run.
    description : str
        What a screen reader says; made from the data that are drawn.
    caption : str
        Text below the drawing; may be empty.
    """

    svg: str
    description: str
    caption: str = ""

    @property
    def html(self) -> str:
        """A ``<figure>`` for any page."""
        below = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'{STYLE}<figure class="advisor-drawing">{self.svg}{below}</figure>'

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"Picture({self.description})"


def svg(width: float, height: float, description: str, parts: Sequence[str]) -> str:
    """One ``<svg>`` element that scales with the page and has a text alternative."""
    return (
        f'<svg role="img" aria-label="{escape(description, quote=True)}" '
        f'viewBox="0 0 {number(width)} {number(height)}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: object, kind: str = "") -> str:
    """A line of text; ``kind`` names classes of the style."""
    marked = f' class="{kind}"' if kind else ""
    return f'<text x="{number(x)}" y="{number(y)}"{marked}>{escape(str(words))}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, more: str = "") -> str:
    """A rectangle."""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect x="{number(x)}" y="{number(y)}" {size} class="{kind}"{more}/>'


def line(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return f'<path d="M{path}" class="{kind}"/>'


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")
