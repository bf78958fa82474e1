"""Findings: known weaknesses of topics, placements and producers, each with a stable KRA code.

In: a described cluster, a topic, the settings of a producer. Out: `Finding` objects.
`catalogue.py` holds the code and the text of each rule, `checks.py` decides where a rule applies.
"""
