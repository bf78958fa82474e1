"""Sampled reliability, on Spark or in this process; the only package that imports pyspark.

In: cluster, configuration, failure model, workload, years and seed. Out: a `Sampled`. Blocks of
simulated years are independent: workers get plain data and return sufficient statistics. Start
with `simulate.py`; `rounds` says when to stop, `sampling` runs the blocks, `checkpoints` keeps
finished ones, `watch` shows how far it is, `session` and `java` start Spark. `grid` samples a
fleet: `parcels` and `fleet` run it, `sampled_grid` is its result, `sample_tables` writes for SQL.
"""
