"""The public TLA+ specification of Kafka replication, model-checked exhaustively.

In: a variant of the specification (Kafka before 0.11, KIP-101, KIP-279, KIP-320) and its constants.
Out: the number of distinct states and the length of a shortest violation, as TLC has them.
``transcription`` has the specification in Python, ``model_checker`` encodes its states as integers
with symmetry reduction and visits them.
"""
