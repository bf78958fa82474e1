"""Clusters of real brokers for tests: started, or the reason why not."""

import os
from typing import NoReturn

import pytest

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import ClusterSpec


def left_out(reason: str) -> NoReturn:
    """Leave a test out for want of what runs brokers, and say so; under CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"real brokers are required here: {reason}")
    pytest.skip(reason)


def started(spec: ClusterSpec) -> RealCluster:
    """Start the cluster of a spec; who calls closes it.

    Without Java or Maven the test is left out, and the reason said; under CI that is a failure.
    """
    try:
        return RealCluster(spec).__enter__()
    except BrokersUnavailableError as error:
        left_out(str(error))
