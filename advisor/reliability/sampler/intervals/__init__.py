"""Estimates and their 95 % intervals, from what blocks of years counted.

In: amounts and exposures of each block. Out: an `Estimate`. Knows nothing of Kafka.
"""
