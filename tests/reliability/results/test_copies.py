"""Results leave the process that computed them."""

import copy
import pickle

import pytest

import advisor
from advisor.reliability import measure_table


def test_a_result_can_be_copied_and_sent_to_another_process() -> None:
    """A copy says the same, and still answers what has not been asked yet."""
    config = advisor.Config(replication_factor=3, min_insync_replicas=2)
    inputs = advisor.Cluster.uniform(6, 3), config, "three_az_cloud", advisor.Workload(partitions=4)
    found = advisor.evaluate(*inputs)
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert other == found
        for name in measure_table.names():
            again = other.beyond_settings(name)
            assert again == pytest.approx(found.beyond_settings(name), rel=1e-9)
    sampled = advisor.simulate(*inputs, years=32, engine="local", method="crude")
    assert pickle.loads(pickle.dumps(sampled)).to_dict() == sampled.to_dict()
