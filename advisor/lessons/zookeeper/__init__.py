"""ZooKeeper as Kafka used it up to 3.9: a simulated service, locks, elections and znodes.

In: client requests and elapsed time, or a cluster's registrations. Out: replies, watch
notifications, and the exact znodes and shell output of a version. ``requests`` defines the
messages, ``locks`` two lock recipes, ``watch_election`` leader election with and without a
controller and their load, ``znodes`` the JSON that Kafka writes, ``scala_hash_order`` the order of
its lists, ``shell`` the output of ``ls`` and ``get``. Open ``service`` first.
"""
