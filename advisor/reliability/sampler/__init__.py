"""Monte Carlo: years of a whole cluster, sampled by a compiled kernel.

In: a `Plan`, plain data made from cluster, configuration, card and workload, cut into blocks of
years. Out: a row of sufficient statistics per block, merged into a `Sampled`. The same plan and
seed give the same bytes in every process and order.

Open first: ``plan.py``, then ``block.py``, which runs one block, by the kernel in ``compiled/`` or,
where losses are rare, in ``cycles/`` or ``splitting/``. ``estimators.py`` merges blocks.
"""
