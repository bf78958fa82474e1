"""Measures of one replica set, from its CTMC and a case's numbers: open `replica_set` first."""
