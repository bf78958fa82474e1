"""The truncated CTMC of one replica set, and a proven bound on what the truncation leaves out.

In: a state space and nominal rates. Out: the transitions as arrays (`ctmc.Structure`), and the
truncation error of every measure. Open `state_selection` first: it has the truncation rule and its
stated bound. `drift_bound` and `loss_bound` prove what a visit to a truncated state can cost.
"""
