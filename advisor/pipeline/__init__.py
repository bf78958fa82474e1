"""Sampled reliability, on Spark or in this process; the only package that imports pyspark.

In: cluster, configuration, failure model, workload, years and seed. Out: a `Sampled`. Blocks of
simulated years are independent: workers get plain data and return sufficient statistics. Start
with `simulate.py` (one run, `grid` for a fleet); `rounds` says when to stop, `parcels` and `fleet`
run the blocks, `checkpoints` keeps finished ones, `watch` shows how far it is, `session` and `java`
start Spark. `sampled_grid` is a fleet's result, `sample_tables` writes for SQL.
"""
