"""The controller's decisions, each asked for once.

They are pure functions of :mod:`advisor.protocol.controller`, and going through all that can
happen to a partition asks for the same ones thousands of times.
"""

from __future__ import annotations

from functools import lru_cache

from advisor.protocol import controller
from advisor.protocol.partition import Registration

_REMEMBERED = 2**16

broker_back = lru_cache(maxsize=_REMEMBERED)(controller.broker_back)
broker_stopping = lru_cache(maxsize=_REMEMBERED)(controller.broker_stopping)
broker_gone = lru_cache(maxsize=_REMEMBERED)(controller.broker_gone)
isr_proposed = lru_cache(maxsize=_REMEMBERED)(controller.isr_proposed)


@lru_cache(maxsize=_REMEMBERED)
def quiet(registration: Registration, ordered: bool) -> Registration:
    """The registration without what is over once the partition is quiet."""
    return Registration(
        replicas=registration.replicas,
        isr=registration.isr if ordered else tuple(sorted(registration.isr)),
        leader=registration.leader,
        elr=registration.elr,
        last_known_elr=registration.last_known_elr,
    )
