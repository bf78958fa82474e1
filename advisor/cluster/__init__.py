"""Reads what people have of a cluster: describe output, TOML, JSON, Strimzi YAML."""

from advisor.cluster.formats.describe_format import format_describe
from advisor.cluster.load import load_cluster
from advisor.cluster.model import Cluster, Partition, Topic

__all__ = ["Cluster", "Partition", "Topic", "format_describe", "load_cluster"]
