"""Cluster descriptions: brokers, racks, topics and their replicas.

In: `kafka-topics.sh --describe` output, TOML, JSON, Strimzi YAML, or the address of a running
cluster. Out: a frozen `Cluster`. Start with `load.py` (which reader handles which source) and
`model.py` (`Cluster`) with `topic.py`. `formats/` has the file formats, `live/` reads a
running cluster.
"""

from advisor.cluster.formats.describe_format import format_describe
from advisor.cluster.load import load_cluster
from advisor.cluster.model import Cluster
from advisor.cluster.topic import Partition, Topic

__all__ = ["Cluster", "Partition", "Topic", "format_describe", "load_cluster"]
