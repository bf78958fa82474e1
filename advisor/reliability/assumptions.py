"""What a result takes for granted: where the model is simpler than the cluster, and which way.

Each sentence says what is assumed, to which side the numbers are off, and what to do about it.
"""

from __future__ import annotations

from advisor.protocol.config import Config
from advisor.reliability.model import FailureModel
from advisor.reliability.placement import Brokers


def assumptions(cluster: Brokers, config: Config, model: FailureModel) -> tuple[str, ...]:
    """Every assumption that bears on these inputs, a text each; none where all is well.

    Parameters
    ----------
    cluster : Cluster
        Brokers and their racks.
    config : Config
    model : FailureModel

    Returns
    -------
    tuple of str
        Without a capital and a full stop, so that they stand in lists and after "Assumed:" alike.
    """
    return _racks_of_their_own(cluster, model)


def _racks_of_their_own(cluster: Brokers, model: FailureModel) -> tuple[str, ...]:
    """Brokers whose rack is not known."""
    unknown = sorted(broker for broker, rack in cluster.brokers.items() if rack is None)
    uses_racks = any(name.startswith("rack.") for name in model.mechanisms)
    if not unknown or not uses_racks:
        return ()
    if len(unknown) == len(cluster.brokers):
        who = "the rack of no broker is known; each is"
    else:
        who = f"the racks of brokers {', '.join(map(str, unknown))} are not known; each is"
    return (f"{who} counted as a rack of its own, the best case: name the racks to be sure",)
