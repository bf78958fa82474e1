"""Random faults: real brokers must print the same as the model after each."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from conformance import difference, spec_of_kind
from random_scripts import KINDS, scripts

SCRIPTS_OF_EACH_KIND = 2


@pytest.mark.parametrize("name", sorted(KINDS))
def test_random_scripts_print_the_same_on_real_brokers(
    name: str, real_cluster: Callable[[ClusterSpec], RealCluster]
) -> None:
    """Leader, epochs, ISR, ELR, high watermark, logs and errors agree after every fault."""
    kind = KINDS[name]
    cluster = real_cluster(spec_of_kind(kind))

    @seed(20261121)
    @settings(
        max_examples=SCRIPTS_OF_EACH_KIND,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(scripts(kind, cluster.network.can_partition))
    def compare(text: str) -> None:
        assert difference(text, cluster) == ""

    compare()
