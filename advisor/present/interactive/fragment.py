"""The explorer as a self-contained HTML fragment, for pages without kernel and network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from advisor.present.interactive.settings_grid import setting_key, verdict_at
from advisor.rendering import Html, html, html_data, html_joined, markup

_MOUNT = """
document.querySelectorAll(".advisor-explorer:not([data-mounted])").forEach(function (root) {
  mount(root, JSON.parse(root.querySelector("script").textContent), null);
});
"""
# Beside a widget: the page stays hidden while the widget lives, and takes its place when a notebook
# is opened again without its kernel. JupyterLab then writes an error where the widget was.
_STORED = """
document.querySelectorAll(".advisor-stored:not([data-waits])").forEach(function (root) {
  var start = Date.now(), area = root.closest(".jp-OutputArea");
  root.setAttribute("data-waits", "true");
  function errors() {
    return area ? Array.prototype.filter.call(
      area.querySelectorAll(".jupyter-widgets"), function (part) {
        return !part.children.length && /^Error displaying widget/.test(part.textContent);
      }) : [];
  }
  (function look() {
    var lives = document.querySelector("[data-advisor-live='" + root.dataset.stored + "']");
    var gone = errors(), lab = document.querySelector(".jp-LabShell, .jp-NotebookShell");
    if (lives) { return; }
    if (lab && !gone.length && Date.now() - start < 20000) { setTimeout(look, 250); return; }
    gone.forEach(function (part) {
      (part.closest(".jp-OutputArea-child") || part).style.display = "none";
    });
    mount(root, JSON.parse(root.querySelector("script").textContent), null);
  }());
});
"""


@cache
def source(name: str) -> str:
    """Return the text of a file beside this module: `explorer.js` or `explorer.css`."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def html_fragment(page: Mapping[str, Any]) -> Html:
    """Return a page's data with style and script as HTML; without scripts it is a table."""
    script = markup(f"(function () {{\n{source('explorer.js')}{_MOUNT}}}());")
    return _fragment(page, markup('<div class="advisor-explorer">'), script, markup(""))


def stored_fragment(page: Mapping[str, Any], widget: str) -> Html:
    """Return the same for a notebook that has the widget, too: shown where that is gone."""
    root = markup('<div class="advisor-stored" data-stored="{}">', html(widget))
    hidden = markup(
        "body:has([data-advisor-live='{}']) .advisor-stored[data-stored='{}'] "
        "{{ display: none; }}\n",
        *(html(widget), html(widget)),
    )
    script = markup(f"(function () {{\n{source('explorer.js')}{_STORED}}}());")
    return _fragment(page, root, script, hidden)


def _fragment(page: Mapping[str, Any], root: Html, script: Html, style: Html) -> Html:
    data = markup('<script type="application/json">{}</script>', html_data(page))
    return markup(
        "<style>\n{}{}</style>\n{}{}{}</div>\n<script>\n{}\n</script>\n",
        *(markup(source("explorer.css")), style),
        root,
        _table(page),
        data,
        script,
    )


def _table(page: Mapping[str, Any]) -> Html:
    """Return the settings of the first curve as a table."""
    texts, start_values = page["texts"], page["chosen"]
    keys = [control["key"] for control in page["controls"]]
    price, rows = start_values[page["price"]], []
    for factor, min_isr in page["places"]:
        place = {"replication_factor": str(factor), "min_insync_replicas": str(min_isr)}
        setting = page["settings"].get(setting_key(keys, {**start_values, **place}))
        if setting is None or "at" not in setting:
            continue
        verdict = verdict_at(page, setting, price)
        cells = (verdict["severity"], *(texts[index] for index in setting["said"]))
        words = html_joined(markup("<td>{}</td>", html(cell)) for cell in cells)
        name = html(texts[setting["name"]])
        rows.append(markup('<tr><th scope="row">{}</th>{}</tr>', name, words))
    titles = ("Setting", "Verdict", "Acknowledged records lost", "Writes refused")
    head = html_joined(markup('<th scope="col">{}</th>', html(title)) for title in titles)
    caption = markup("<caption>Settings, and how good they are.</caption>")
    table = "<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
    return markup(table, caption, head, html_joined(rows))
