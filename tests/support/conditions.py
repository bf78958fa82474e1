"""The conditions of brokers in outages of the shipped mechanisms, by short names."""

from advisor.reliability.failures.mechanisms import WELL, table

__all__ = [
    "CRASHED",
    "DARK",
    "DARK_ALL",
    "GONE",
    "ISOLATED",
    "LAGGING",
    "RACK_DARK",
    "RESTARTING",
    "WELL",
]

CRASHED, DARK, GONE, LAGGING, RESTARTING, ISOLATED, RACK_DARK, DARK_ALL = (
    table()[name].condition
    for name in (
        "broker.crash",
        "broker.power",
        "broker.destroyed",
        "broker.lag",
        "broker.restart",
        "rack.network",
        "rack.power",
        "cluster.power",
    )
)
