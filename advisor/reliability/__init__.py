"""From protocol rules and failure rates to probabilities, exact (a CTMC) and sampled.

`evaluate.py` is the main path; ARCHITECTURE says how the rooms follow each other.
"""
