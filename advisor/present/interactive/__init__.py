"""The explorer: controls for the settings of a topic beside curves of their effect.

In: a cluster, a failure model, a load, goals. Out: a widget, and an HTML fragment without a kernel.
Both run `explorer.js`, which draws what `settings_grid.py` computed. Open `explorer.py` first.
"""
