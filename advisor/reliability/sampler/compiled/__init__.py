"""The event loop, compiled: failures and repairs of brokers, transitions of partitions.

In: the arrays of a block's start and the transition table. Out: the same arrays, with totals.
It knows no mechanism by name, and calls no rule: the table holds what the rules decided.

Open first: ``kernel.py``, the loop; ``memory_layout.py`` has its arrays.
"""
