"""Reads a running cluster over Kafka's protocol, without changing it.

In: bootstrap addresses and a Java client's properties file. Out: a `Cluster` with `observed`.
`reader.read_live` is the entry point; `reachability` finds a broker that answers, `client` sends
the requests through kafka-python, and `client_properties`, `sasl` and `tls` set up the connection.
"""
