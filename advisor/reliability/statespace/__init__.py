"""State space of one replica set: failure processes times partition rules, lumped.

In: the constants of a configuration and a fault environment (racks and mechanisms). Out: states and
transitions with names of rates instead of rates, explored on demand, so that one state space serves
every card. Open `state_graph` first; `successors` builds the transitions, `lumping` merges
exchangeable replicas, `flush_window` treats power failures before a flush.
"""
