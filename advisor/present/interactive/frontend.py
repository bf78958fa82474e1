"""Whether a user sees a notebook's cell while it runs."""

from __future__ import annotations

from typing import Any


def watched_cell(shell: Any) -> str | None:
    """Return the identity of the running cell if a user may be there; None if a program runs it.

    Programs that execute whole notebooks, such as nbconvert and papermill, allow no input from a
    user (`allow_stdin` of Jupyter's execute_request). They keep what a cell shows at its end.

    shell: as `IPython.get_ipython()` returns it, in a Jupyter kernel.
    """
    parent = getattr(shell.kernel, "get_parent", None)
    request = {} if parent is None else parent("shell") or {}
    if not request.get("content", {}).get("allow_stdin", False):
        return None
    metadata, header = request.get("metadata", {}), request.get("header", {})
    return str(metadata.get("cellId") or header.get("msg_id", ""))
