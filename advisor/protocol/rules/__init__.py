"""What Kafka's brokers and controllers decide, for every version from 0.8.0 to 4.4.

In: a `Config` or `Rules`, a partition's registration, broker ids. Out: the next registration, ISR,
high watermark, error or replica assignment. Simulation, chain and sampler all call these rules.
Start with ``versions.py`` (what changed when), then ``election.py``, ``isr.py`` and
``controller.py``; ``config.py`` holds the settings, ``assignment.py`` replica placement.
"""
