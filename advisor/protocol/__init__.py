"""How Kafka replicates: pure rules over frozen values, standard library only."""
