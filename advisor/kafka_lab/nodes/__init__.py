"""Processes of a real cluster: brokers, the KRaft controller or ZooKeeper, and their network.

In: a `ClusterSpec`. Out: a running `RealCluster` that can kill, isolate and slow down brokers.
Start with `cluster.py`; `distribution` finds Java and the jars, `node_properties` has configuration
files, `network` makes namespaces, `kafka_tools` runs Kafka's command-line tools.
"""
