"""Tables of failure models, as a card or `FailureModel.from_dict` takes them."""

from typing import Any

DESTROYED = {"broker": {"destroyed": {"per_year": 1, "hours": 12}}}
FULL = {
    "broker": {
        "crash": {"per_year": 876, "minutes": 30, "shape": 2},
        "power": {"per_year": 1, "minutes": 1},
        "destroyed": {"per_year": 2, "hours": 12, "shape": 3},
        "lag": {"per_year": 1, "minutes": 1},
        "gray": {"per_year": 1, "minutes": 20, "dies": 0.1, "hard": 0.3},
        "restart": {
            "per_year": 1,
            "minutes": 1,
            "overlap": 0.1,
            "unclean": 0.2,
            "unclean_minutes": 60,
        },
    },
    "rack": {
        "network": {"per_year": 1, "minutes": 90, "spreads": 0.1},
        "power": {"per_year": 1, "minutes": 1, "not_returning": 0.1, "spreads": 0.1},
        "destroyed": {"per_year": 1, "spreads": 0.1},
    },
    "cluster": {
        "power": {"per_year": 1, "minutes": 6, "not_returning": 0.5},
        "destroyed": {"per_year": 1},
        "crash": {"per_year": 1, "brokers": 0.7, "all": 0.4, "minutes": 230},
        "rollout": {"per_year": 1, "brokers": 0.7, "all": 0.4, "minutes": 95},
        "disk_full": {"per_year": 1, "brokers": 0.7, "all": 0.4, "minutes": 60},
        "wiped": {"per_year": 1, "brokers": 0.7, "all": 0.4, "hours": 5},
        "controller": {"per_year": 1, "zookeeper_per_year": 2, "minutes": 240, "stops": 0.5},
    },
    "flush": {"seconds": 30},
    "detection": {"seconds": 9, "kraft_sessions": 0.9, "zookeeper_sessions": 0.8},
    "election": {"ms_per_leader": 5},
    "copy": {"bytes_per_second": 5e7},
    "operator": {"hours": 4},
    "repair": {"crews": 2},
}


def crash(**number: Any) -> dict[str, Any]:
    """Return the tables of a model whose crash rate is written as given."""
    return {"broker": {"crash": {"per_year": number, "minutes": 1}}}
