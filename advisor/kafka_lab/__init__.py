"""Runs scenarios on real Kafka brokers on this machine; the only package that starts Kafka.

In: a scenario. Out: the lines it prints. `engines.play` is the public function; `player.py` runs
a scenario, `real_simulation.py` carries out its requests and `fault_injection.py` its faults.
`nodes/` starts processes and cuts connections, `observation/` reads the state of the cluster,
`formats/` decodes Kafka's files and requests. Maven downloads Kafka (``tests/kafka/pom.xml``); it
does not ship with the package.
"""
