"""Pages from `jupyter nbconvert --to html notebooks/*.ipynb` that ask no address.

`make` links this file into `.venv/etc/jupyter`, where `.venv/bin/jupyter` finds it: Jupyter reads
no configuration from the current folder. Elsewhere, add `--config jupyter_nbconvert_config.py`.

A widget's HTML is shown in place of the widget, which needs a kernel; the scripts that nbconvert
would load from elsewhere are empty; cells that only check are folded, and progress bars left out.
A picture that answers a title comes before its code, which is folded too.
`docs/exported` has the colours that more people can read.
"""

import re
from pathlib import Path

from nbformat.v4 import new_markdown_cell

# Jupyter defines `get_config` when it runs this file.
c = get_config()  # noqa: F821

_NOTHING = "data:text/javascript,"
_FIRST_TO_LAST = [
    "text/html",
    "image/svg+xml",
    "text/markdown",
    "image/png",
    "image/jpeg",
    "text/plain",
]

c.NbConvertBase.display_data_priority = _FIRST_TO_LAST
c.HTMLExporter.extra_template_basedirs = [str(Path(__file__).resolve().parent / "docs/exported")]
c.HTMLExporter.template_name = "advisor"
c.HTMLExporter.require_js_url = _NOTHING
c.HTMLExporter.mathjax_url = _NOTHING
c.HTMLExporter.jquery_url = _NOTHING
c.HTMLExporter.widget_renderer_url = _NOTHING


_WIDGET = "application/vnd.jupyter.widget-view+json"


def _without_kernel(notebook, resources):
    """Fold code that need not be read: a check, and what draws a picture that answers a title."""
    cells = []
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [each for each in cell.outputs if not _is_bar(each.get("data", {}))]
            for output in cell.outputs:
                _without_empty_heads(output.get("data", {}))
        tags = cell.metadata.get("tags", [])
        if "assert" in tags:
            cells.append(_folded("Checks of this section", cell.source))
        elif "hide-input" in tags:
            cell.metadata.transient = {"remove_source": True}
            cells += [cell, _folded("Code", cell.source)]
        else:
            cells.append(cell)
    notebook.cells = cells
    return notebook, resources


def _folded(title, source):
    code = f"```python\n{source}\n```"
    return new_markdown_cell(f"<details>\n<summary>{title}</summary>\n\n{code}\n\n</details>")


def _is_bar(shown):
    """A widget without HTML of its own needs the kernel that moved it."""
    return _WIDGET in shown and "text/html" not in shown


def _without_empty_heads(shown):
    """Heads without words, as pandas puts them above and beside an index, are cells."""
    if "text/html" in shown:
        page = "".join(shown["text/html"])
        shown["text/html"] = re.sub(r"<th[^>]*>\s*</th>", "<td></td>", page)


c.HTMLExporter.preprocessors = [_without_kernel]
