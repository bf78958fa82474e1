"""Clusters of real brokers for tests: started, or the reason why not."""

import os

import pytest

from advisor.brokers.cluster import RealCluster
from advisor.brokers.jars import BrokersUnavailableError
from advisor.brokers.properties import Wish


def started(wish: Wish) -> RealCluster:
    """Start the cluster of a wish; who calls closes it.

    Without Java or Maven the test is left out, and the reason said; under CI that is a failure.
    """
    try:
        return RealCluster(wish).__enter__()
    except BrokersUnavailableError as error:
        if os.environ.get("CI"):
            pytest.fail(f"real brokers are required here: {error}")
        pytest.skip(str(error))
