"""A drawing with its description, and the style that all drawings share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.rendering import Html, html, html_joined, joined, markup

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
STYLE = markup("<style>{}{}{}</style>", markup(_COLOURS), markup(_FILLS), markup(_OPEN))


@dataclass(frozen=True)
class Picture:
    """An SVG drawing, its description for a screen reader, and a caption."""

    drawn: Html
    description: str
    caption: str = ""

    @property
    def svg(self) -> str:
        """The drawing alone."""
        return self.drawn.text

    @property
    def html(self) -> str:
        """A ``<figure>`` for any page."""
        caption = "<figcaption>{}</figcaption>"
        below = markup(caption, html(self.caption)) if self.caption else markup("")
        figure = markup('<figure class="advisor-drawing">{}{}</figure>', self.drawn, below)
        return joined(STYLE, figure).text

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"Picture({self.description})"


_NO_MORE = markup("")


def svg(width: float, height: float, description: str, parts: Sequence[Html]) -> Html:
    """One ``<svg>`` element that scales with the page and has a text alternative."""
    return markup(
        '<svg role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>',
        html(description),
        number(width),
        number(height),
        html_joined(parts),
    )


def text(x: float, y: float, words: object, kind: str = "") -> Html:
    """A line of text; ``kind`` names classes of the style."""
    marked = markup(' class="{}"', html(kind)) if kind else markup("")
    line_of_text = '<text x="{}" y="{}"{}>{}</text>'
    return markup(line_of_text, number(x), number(y), marked, html(words))


def box(x: float, y: float, width: float, height: float, kind: str, more: Html = _NO_MORE) -> Html:
    """A rectangle."""
    size = markup('width="{}" height="{}"', number(width), number(height))
    rectangle = '<rect x="{}" y="{}" {} class="{}"{}/>'
    return markup(rectangle, number(x), number(y), size, html(kind), more)


def line(points: Sequence[tuple[float, float]], kind: str) -> Html:
    """A line through points."""
    path = html_joined((markup("{} {}", number(x), number(y)) for x, y in points), "L")
    return markup('<path d="M{}" class="{}"/>', path, html(kind))


def number(value: float) -> Html:
    """A coordinate with at most one decimal."""
    return html(f"{value:.1f}".removesuffix(".0"))
