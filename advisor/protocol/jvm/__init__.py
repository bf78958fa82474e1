"""Java's behaviour that shows in Kafka's decisions: hash orders and random numbers.

Kafka walks hash maps and draws from ``java.util.Random`` when it places replicas or orders an ISR.
In: keys, hash codes or a seed. Out: the order or the draws of the JVM. Start with
``java_random.py``; ``java_hash.py`` holds the hash orders.
"""
