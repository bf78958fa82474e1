"""How a loss would happen: the fewest crashes that lose a record, as a scenario that runs."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.formatting import capital
from advisor.protocol.exploration.shortest_loss import CRASHES, Loss, shortest_loss
from advisor.protocol.rules.config import Config

_FAULTS = (2, 3)
_MOST_STATES = 60_000


@dataclass(frozen=True)
class Story:
    """What searching the reference for a loss came to.

    Attributes
    ----------
    said : str
        The answer in a sentence.
    scenario : str
        What happens, for `advisor play`; empty if no loss was found.
    """

    said: str
    scenario: str


def tell(config: Config) -> Story:
    """Look for the fewest crashes, power failures and destroyed disks that lose a record.

    Parameters
    ----------
    config : Config
        Each broker of the story holds one replica.

    Returns
    -------
    Story
        Of up to three faults, one record before the first and none between; the search gives up
        after 60,000 states and says so.
    """
    for faults in _FAULTS:
        found = shortest_loss(
            config, faults=faults, kinds=CRASHES, writes=1, max_states=_MOST_STATES
        )
        if isinstance(found, Loss):
            said = str(found).split("\n", 1)[0]
            return Story(f"{capital(said)}.", found.scenario)
    said = str(found)
    return Story(f"{capital(said)}.", "")
