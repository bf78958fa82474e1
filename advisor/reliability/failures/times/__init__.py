"""Times of a card beyond means: their distributions, and how many repairs progress at once.

In: the keys `lifetime` and `duration` of a mechanism, and the section `repair`. Out: a
`TimeDistribution` for each, and which repairs wait for a crew. Knows nothing of partitions.

Open first: ``time_distribution.py``. ``card_times.py`` reads them from a card, ``exactness.py``
says which of them the exact answer takes.
"""
