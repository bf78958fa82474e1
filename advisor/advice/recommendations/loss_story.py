"""An example of a loss: the fewest crashes that lose a record, as a scenario to replay."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.formatting import capital
from advisor.protocol.exploration.shortest_loss import CRASHES, Loss, shortest_loss
from advisor.protocol.rules.config import Config

_FAULTS = (2, 3)
_MOST_STATES = 60_000


@dataclass(frozen=True)
class Story:
    """Result of the search for a loss in the protocol simulation.

    Attributes
    ----------
    said : str
        The result in one sentence.
    scenario : str
        Scenario text for `advisor play`; "" if no loss was found.
    """

    said: str
    scenario: str


def tell(config: Config) -> Story:
    """Search for the fewest crashes, power failures and destroyed disks that lose a record.

    At most three faults, with one record written before the first. The search stops after 60,000
    states, and its sentence says so.

    Parameters
    ----------
    config : Config
        Settings of a partition with one replica on each simulated broker.
    """
    for faults in _FAULTS:
        result = shortest_loss(
            config, faults=faults, kinds=CRASHES, writes=1, max_states=_MOST_STATES
        )
        if isinstance(result, Loss):
            sentence = str(result).split("\n", 1)[0]
            return Story(f"{capital(sentence)}.", result.scenario)
    return Story(f"{capital(str(result))}.", "")
