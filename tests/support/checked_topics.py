"""Topics and cards that findings are tried on."""

from typing import Any

from advisor.cluster import Partition, Topic
from advisor.reliability.failures.failure_model import FailureModel

SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
CARD = FailureModel.from_dict(
    {
        "broker": {"crash": {"per_year": 1, "minutes": 5}},
        "detection": {"seconds": 9},
    }
)


def partition(index: int = 0, replicas: tuple[int, ...] = (1, 2, 3), **other: Any) -> Partition:
    values = {"leader": replicas[0], "isr": replicas, **other}
    return Partition(index=index, replicas=replicas, **values)


def with_min_isr(value: int, *partitions: Partition, name: str = "t") -> Topic:
    return Topic(name, partitions or (partition(),), {"min.insync.replicas": str(value)})


ONE = partition(replicas=(1,))
