"""Cards that ship, with fewer mechanisms."""

from collections.abc import Collection

from advisor.reliability.failures.failure_model import FailureModel, load_model

# Mechanisms of which the chain of all states is small; of all of them, it takes 20 GB.
BROKERS_AND_RACKS = (
    "broker.crash",
    "broker.power",
    "broker.destroyed",
    "broker.lag",
    "broker.restart",
    "rack.network",
    "rack.power",
    "rack.destroyed",
)
LIMPING_AND_SEVERAL = (
    "broker.crash",
    "broker.gray",
    "broker.power",
    "rack.network",
    "rack.power",
    "cluster.crash",
)
# Probabilities of what multiplies its states.
RARE = (
    "broker.restart.overlap",
    "broker.restart.unclean",
    "rack.network.spreads",
    "rack.power.spreads",
    "rack.power.not_returning",
    "rack.destroyed.spreads",
)


def only(card: str, kept: Collection[str], certain: Collection[str] = ()) -> FailureModel:
    """Return a shipped card in which nothing else fails.

    Parameters
    ----------
    card : str
    kept : collection of str
        Mechanisms.
    certain : collection of str
        Probabilities that count as zero, by dotted path: they multiply the states of a chain.
    """
    known = load_model(card)
    others = [f"{name}.per_year" for name in known.mechanisms if name not in kept]
    zero = [path for path in (*others, *certain) if path in known.quantities]
    return known.with_values(dict.fromkeys(zero, 0.0))
