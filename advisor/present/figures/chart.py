"""A matplotlib figure with a text for screen readers, in the colours of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from advisor.present.figures import style

# The colours of a report, else of JupyterLab's theme, else the figure's own.
_THEME = "; ".join(
    f"--advisor-{name}: var(--jp-{theirs}, {ours})"
    for name, theirs, ours in (
        ("ink", "content-font-color1", style.INK),
        ("muted", "content-font-color2", style.MUTED),
        ("faint", "border-color2", style.FAINT),
        ("paper", "layout-color0", style.PAPER),
    )
)


@dataclass(frozen=True, repr=False)
class Chart:
    """A figure and its alternative text; shows itself in a notebook as SVG.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    name : str
        Id of the ``<svg>`` element, unique in the page: letters, digits and hyphens.
    description : str
        What the figure says, with its numbers.
    """

    figure: Figure
    name: str
    description: str

    def __repr__(self) -> str:
        return f"Chart({self.description})"

    def _repr_html_(self) -> str:
        return f'<div style="{_THEME}">{style.svg(self.figure, self.name, self.description)}</div>'

    def save(self, path: str, **options: Any) -> None:
        """Write the figure to a file, in the format that its ending names."""
        with style.look():
            self.figure.savefig(path, **options)
