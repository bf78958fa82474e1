"""ZooKeeper as Kafka used it up to 3.9: a simulated service, locks, elections and znodes.

In: client requests and elapsed time, or a partition's registration. Out: replies, watch
notifications, and the text of znodes. Open ``service`` first; ``locks`` has two lock recipes,
``watch_election`` leader elections with and without a controller and their load, ``znodes`` what
the shell prints.
"""
