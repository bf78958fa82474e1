"""Charts in matplotlib: curves, Pareto chart, causes of a result, tornado.

In: points (`present.points`) or results. Out: figures and axes, in one style. Open `style.py` for
colours and SVG output, `curves.py` for the first chart of the report.
"""
