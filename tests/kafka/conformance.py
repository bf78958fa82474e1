"""Random fault scripts on real brokers and on the model, compared line by line.

The test runs a few; for many, and to see every difference instead of the first:

    python tests/kafka/conformance.py 4.3-elr --scripts 50 --seed 7
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import sys
import time

from hypothesis import HealthCheck, Phase, given, seed, settings

from advisor.errors import AdvisorError
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.kafka_lab.player import outputs_on_brokers, spec_for
from advisor.protocol.scenario.language import parse
from advisor.protocol.scenario.player import play, played
from random_scripts import KINDS, Kind, scripts


def spec_of_kind(kind: Kind) -> ClusterSpec:
    """Return the cluster specification for scripts of a kind."""
    return spec_for(parse(f"{kind.opening}\ntopic a partitions=1 replication_factor=1\n"))


def only_drawn(count: int) -> settings:
    """So many examples, without shrinking or a memory of earlier runs."""
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def drawn_scripts(kind: Kind, count: int, number: int, cuttable: bool) -> list[str]:
    """Return random scripts of a kind; `number` is the seed."""
    texts: list[str] = []

    @seed(number)
    @only_drawn(count)
    @given(scripts(kind, cuttable))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


def difference(text: str, cluster: RealCluster) -> str:
    """Return a unified diff of the output of model and brokers; empty if equal."""
    scenario = parse(text)
    model = play(text).transcript
    real = played(scenario, outputs_on_brokers(scenario, cluster)).transcript
    lines = difflib.unified_diff(
        model.splitlines(), real.splitlines(), "model", "brokers", lineterm="", n=200
    )
    return "\n".join(lines)


def campaign(kind: Kind, count: int, number: int) -> int:
    """Run scripts, print the differences, and return how many differ."""
    differed, done, began = 0, 0, time.monotonic()
    with contextlib.ExitStack() as stack:
        clusters = [stack.enter_context(RealCluster(spec_of_kind(kind)))]

        @seed(number)
        @only_drawn(count)
        @given(scripts(kind, clusters[0].network.can_partition))
        def compare(text: str) -> None:
            nonlocal differed, done
            try:
                found = difference(text, clusters[-1])
            except AdvisorError as error:
                found = f"{error}\n{text}"
                clusters.append(stack.enter_context(RealCluster(spec_of_kind(kind))))
                clusters[-2].close()
            done += 1
            differed += bool(found)
            if found:
                print(f"--- script {done} differs ---\n{found}", flush=True)
            spent = time.monotonic() - began
            print(f"{done} scripts, {differed} differ, {spent:.0f} s", file=sys.stderr, flush=True)

        compare()
    print(f"{kind.name}: {done} scripts, seed {number}: {differed} differ", flush=True)
    return differed


def main() -> int:
    """The command line."""
    given_words = argparse.ArgumentParser(description=__doc__)
    given_words.add_argument("kind", choices=sorted(KINDS))
    given_words.add_argument("--scripts", type=int, default=50)
    given_words.add_argument("--seed", type=int, default=1)
    asked = given_words.parse_args()
    return 1 if campaign(KINDS[asked.kind], asked.scripts, asked.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
