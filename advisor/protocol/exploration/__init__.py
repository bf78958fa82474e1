"""Exhaustive search over the simulation: the fewest faults that lose an acknowledged record.

In: a `Config` and bounds on faults and writes. Out: a `Loss` with a scenario file that reproduces
it, or a `NoLoss` with the bounds that were searched. ``search`` is a generic breadth-first search;
``transitions`` applies faults, repairs and writes to a state and remembers the runs to quiescence;
``state_equivalence`` merges equivalent states. Open ``shortest_loss`` first.
"""
