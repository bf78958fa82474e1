"""Real brokers on this machine: started, broken and read as scenarios ask for it.

The only room that starts processes of Kafka's. Its class path comes through Maven
(``tests/kafka/pom.xml``), never with the package.
"""
