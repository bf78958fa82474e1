"""Start clusters of real brokers for tests, or skip with the reason."""

import os
from typing import NoReturn

import pytest

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import ClusterSpec


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test that cannot run brokers; under CI, fail."""
    if os.environ.get("CI"):
        pytest.fail(f"real brokers are required here: {reason}")
    pytest.skip(reason)


def started(spec: ClusterSpec) -> RealCluster:
    """Start a cluster; the caller closes it.

    Without Java or Maven the test is skipped; under CI it fails.
    """
    try:
        return RealCluster(spec).__enter__()
    except BrokersUnavailableError as error:
        skip_or_fail(str(error))
