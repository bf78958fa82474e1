"""The explorer as a self-contained HTML fragment, for pages without kernel and network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from advisor.present.interactive.settings_grid import as_text

_MOUNT = """
document.querySelectorAll(".advisor-explorer:not([data-mounted])").forEach(function (root) {
  mount(root, JSON.parse(root.querySelector("script").textContent), null);
});
"""


@cache
def source(name: str) -> str:
    """Return the text of a file beside this module: `explorer.js` or `explorer.css`."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def html_fragment(page: Mapping[str, Any]) -> str:
    """Return a page's data with style and script as HTML; without scripts it is a table.

    Parameters
    ----------
    page : mapping
        See `settings_grid.page_json`.
    """
    data = f'<script type="application/json">{as_text(page)}</script>'
    script = f"(function () {{\n{source('explorer.js')}{_MOUNT}}}());"
    return (
        f"<style>\n{source('explorer.css')}</style>\n"
        f'<div class="advisor-explorer">{_table(page)}{data}</div>\n'
        f"<script>\n{script}\n</script>\n"
    )


def _table(page: Mapping[str, Any]) -> str:
    """Return the settings of the first curve as a table."""
    texts, chosen = page["texts"], page["chosen"]
    keys = [control["key"] for control in page["controls"]]
    rows = []
    for factor, least in page["places"]:
        place = {"replication_factor": str(factor), "min_insync_replicas": str(least)}
        setting = page["settings"].get("|".join({**chosen, **place}[key] for key in keys))
        if setting is None or "at" not in setting:
            continue
        cells = (setting["badge"], *setting["said"])
        cells_html = "".join(f"<td>{escape(texts[cell])}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(texts[setting["name"]])}</th>{cells_html}</tr>')
    titles = ("Setting", "Goals", "Acknowledged records lost", "Writes refused")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    caption = "<caption>Settings, and whether they meet the goals.</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
