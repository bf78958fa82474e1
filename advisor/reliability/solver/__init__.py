"""Numerical solution of absorbing CTMCs without subtraction; knows nothing of Kafka.

In: transition rates between states, state 0 healthy. Out: stationary distribution, mean time to
absorption and its probability within a horizon, sojourn times. Every number is a sum of products of
non-negative numbers, so that even probabilities of 1e-20 keep their digits (O'Cinneide, Numer.
Math. 65, 1993). Open `generator` first, then `regenerative` and `first_passage`.
"""
