"""A matplotlib figure with a text for screen readers, in the colours of the page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from advisor.present.figures import style
from advisor.rendering import markup

# The colours of JupyterLab's theme, of nbconvert's pages or of the documentation, else the figure's
# own. JupyterLab says whether its theme is light; elsewhere the reader's computer does.
_OWN = "; ".join(
    f"--advisor-{name}: var(--jp-{theirs}, {ours})"
    for name, theirs, ours in (
        ("ink", "content-font-color1", style.INK),
        ("muted", "content-font-color2", style.MUTED),
        ("faint", "border-color2", style.FAINT),
        ("paper", "layout-color0", style.PAPER),
    )
)
_ON_DARK = "; ".join(f"{name}: {colour}" for name, colour in style.ON_DARK.items())
_THEME = (
    f"<style>.advisor-figure {{ {_OWN} }} @media (prefers-color-scheme: dark) {{ "
    f'body:not([data-jp-theme-light="true"]) .advisor-figure {{ {_ON_DARK} }} }} '
    f'body[data-jp-theme-light="false"] .advisor-figure {{ {_ON_DARK} }}</style>'
)


@dataclass(frozen=True, repr=False)
class Chart:
    """A figure and its alternative text; shows itself in a notebook as SVG.

    The name is unique in the page: letters, digits and hyphens.
    """

    figure: Figure
    name: str
    description: str

    def __repr__(self) -> str:
        return f"Chart({self.description})"

    def _repr_html_(self) -> str:
        drawn = style.svg(self.figure, self.name, self.description)
        return markup('{}<div class="advisor-figure">{}</div>', markup(_THEME), drawn).text

    def save(self, path: str, **options: Any) -> None:
        """Write the figure to a file, in the format that its ending names."""
        with style.look():
            self.figure.savefig(path, **options)


class ShownFigure(Figure):
    """A pyplot figure that a notebook shows as a `Chart`, with an alternative text."""

    description = ""

    def describe(self, *sentences: str) -> None:
        """Set the alternative text of the figure: its message, with the numbers."""
        self.description = " ".join(filter(None, sentences))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        # The id of an SVG has to be unique in its page, and the same in each run.
        digest = hashlib.sha256(self.description.encode()).hexdigest()[:8]
        chart = Chart(self, f"figure-{digest}", self.description)
        # IPython does not type `display`.
        display(  # type: ignore[no-untyped-call]
            {"text/html": chart._repr_html_(), "text/plain": repr(chart)}, raw=True
        )


def shown_figure(width_inches: float, height_inches: float) -> ShownFigure:
    """Return a pyplot figure, so that it is shown as the user's own figures are.

    Call it outside `style.look`: pyplot becomes interactive with its first figure, and leaving
    `look` would undo that.
    """
    from matplotlib import pyplot

    size = (width_inches, height_inches)
    figure = pyplot.figure(FigureClass=ShownFigure, figsize=size, facecolor="white")
    assert isinstance(figure, ShownFigure)
    return figure


def axes_of_new_figure(
    inches: tuple[float, float], area: tuple[float, float, float, float], sentences: Iterable[str]
) -> Axes:
    """Return axes that take an area of a new figure, which has an alternative text."""
    figure = shown_figure(*inches)
    figure.describe(*sentences)
    with style.look():
        return figure.add_axes(area)
