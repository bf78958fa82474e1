"""Presentation: charts, the explorer, the HTML report.

In: a `Recommendation`, an `Audit`, a result of `evaluate` or `simulate`. Out: matplotlib axes, a
widget, one HTML file. The only room that imports matplotlib and jinja2 (extra "report"), and
anywidget (extra "notebook"). Open `report/page.py` first; `labels.py` and `outcome.py` word the
numbers for all.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from advisor.errors import MissingExtraError

_HOME = {
    "explorer": "interactive.explorer",
    "plot_audit": "figures.topics",
    "plot_cost": "figures.cost",
    "plot_curves": "figures.comparison",
    "plot_learned": "figures.learned",
    "plot_patching": "figures.patching",
    "plot_pareto": "figures.comparison",
    "plot_recommendation": "figures.comparison",
    "plot_reliability": "figures.reliability",
    "plot_sampled": "figures.reliability",
    "plot_sweep": "figures.sweep",
    "plot_timeline": "figures.learned",
    "plot_tornado": "figures.tornado",
    "story": "stories.story",
    "verdict_html": "verdict_page",
    "write_report": "report.page",
}


if any(find_spec(package) is None for package in ("jinja2", "matplotlib")):
    raise MissingExtraError("drawing plots and reports", "report")


def __getattr__(name: str) -> Any:
    """Import a public name on first use; matplotlib and anywidget are slow to import."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "explorer" and find_spec("anywidget") is None:
        raise MissingExtraError("the explorer", "notebook")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
