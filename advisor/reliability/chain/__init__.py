"""The truncated CTMC of one replica set, and a proven bound on what the truncation leaves out.

In: a state space and nominal rates. Out: the transitions as arrays (`ctmc.Structure`), to be filled
with the rates of any similar card, and the truncation error of every measure. The truncation rule
and its stated bound are written down in `state_selection`; open it first. `drift_bound` and
`loss_bound` prove what a visit to a truncated state can cost.
"""
