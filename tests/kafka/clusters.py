"""Start clusters of real brokers for tests, or skip with the reason."""

import os
from typing import NoReturn

import pytest

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, jars_for, only_process
from advisor.kafka_lab.nodes.node_properties import ClusterSpec


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test that cannot run brokers; under CI, fail."""
    if os.environ.get("CI"):
        pytest.fail(f"real brokers are required here: {reason}")
    pytest.skip(reason)


def started(spec: ClusterSpec, brokers: tuple[int, ...] | None = None) -> RealCluster:
    """Start a cluster, or only some of its brokers; the caller closes it.

    Without Java or Maven the test is skipped; under CI it fails.
    """
    try:
        _record_archive(spec.version)
        return RealCluster(spec, brokers=brokers).__enter__()
    except BrokersUnavailableError as error:
        skip_or_fail(str(error))


def _record_archive(version: str) -> None:
    """Run a broker until its classes are archived: each later start takes a third of the time."""
    jars = jars_for(version)
    if jars.archive.is_file():
        return
    with only_process(jars.archive.with_suffix(".lock")):
        if not jars.archive.is_file():
            with RealCluster(ClusterSpec(version, racks={1: None})):
                pass
