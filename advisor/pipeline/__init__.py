"""Sampling on Spark, or here: plain data to the workers, sufficient statistics back."""
