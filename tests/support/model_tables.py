"""Tables of failure models, as a card or `FailureModel.from_dict` takes them."""

DESTROYED = {"broker": {"destroyed": {"per_year": 1, "hours": 12}}}
FULL = {
    "broker": {
        "crash": {"per_year": 876, "minutes": 30, "shape": 2},
        "power": {"per_year": 1, "minutes": 1},
        "destroyed": {"per_year": 2, "hours": 12, "shape": 3},
        "lag": {"per_year": 1, "minutes": 1},
        "restart": {"per_year": 1, "minutes": 1},
    },
    "rack": {
        "network": {"per_year": 1, "minutes": 90},
        "power": {"per_year": 1, "minutes": 1},
        "destroyed": {"per_year": 1},
    },
    "cluster": {"power": {"per_year": 1, "minutes": 6, "not_returning": 0.5}},
    "flush": {"seconds": 30},
    "detection": {"seconds": 9, "kraft_sessions": 0.9, "zookeeper_sessions": 0.8},
    "election": {"ms_per_leader": 5},
    "copy": {"bytes_per_second": 5e7},
}


def crash(**number):
    """Return the tables of a model whose crash rate is written as given."""
    return {"broker": {"crash": {"per_year": number, "minutes": 1}}}
