"""What `evaluate` and `simulate` return, and what can be said about it.

In: the measures of a topic with their causes and error bounds. Out: frozen results with intervals,
words, tables, cost, tolerated failures, sensitivity and assumptions.
Start with `reliability.py` (exact) and `sampled.py`; names and units of the measures are in
`units.py`.
"""
