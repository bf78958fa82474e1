"""Sampled reliability, on Spark or in this process; the only package that imports pyspark.

In: cluster, configuration, failure model, workload, years and seed. Out: a `Sampled`. Blocks of
simulated years are independent: workers get plain data and return sufficient statistics. Start
with `simulate.py`; `sampling` runs the blocks, `checkpoints` keeps finished ones, `session` and
`java` start Spark.
"""
