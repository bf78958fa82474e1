"""From protocol rules and failure rates to probabilities, exact (a CTMC) and sampled.

`evaluate.py` is the main path: a `Case` (`case.py`) is read from the settings, the card and the
workload; each replica set becomes a state space (`statespace/`: `partition/` rules times
`failures/`), a truncated CTMC (`chain/`), solved by `solver/` and measured in `measures/`;
`common_cause/` combines the sets into `results/`.
`sampler/` draws the same processes.
"""
