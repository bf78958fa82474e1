"""The most probable path to a loss, against closed forms and against every path there is."""

from collections import Counter

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.case import Case
from advisor.reliability.measures import replica_set
from advisor.reliability.patching import without_cluster_wide

YEAR = 8760.0
LOAD = Workload(partitions=1)


def card(**mechanisms: dict[str, float]) -> FailureModel:
    return FailureModel.from_dict({"broker": mechanisms})


def test_two_destroyed_disks_in_closed_form() -> None:
    """Two replicas: either disk is lost, and the other before the first is replaced."""
    model = card(destroyed={"per_year": 2.0, "hours": 24.0})
    config = Config(replication_factor=2, min_insync_replicas=1, acks="all")
    path = evaluate(Cluster.uniform(2, 2), config, model, LOAD).likeliest_loss()
    assert path is not None
    assert [step.brokers for step in path.steps] == [1, 1]
    assert len({step.rate for step in path.steps}) == 1
    rate, repair = 2.0 / YEAR, 1.0 / 24.0
    # Nearly always healthy, so that the first disk goes at twice the rate.
    expected = 2.0 * rate * rate / (rate + repair) * YEAR
    assert path.per_year == pytest.approx(expected, rel=0.02)
    assert 0.9 < path.share <= 1.0


@pytest.mark.parametrize(
    ("min_isr", "acks", "version"), [(2, "all", "4.1"), (1, "all", "3.9"), (1, 1, "4.1")]
)
def test_no_path_is_more_probable(min_isr: int, acks: str | int, version: str) -> None:
    """No path of up to three steps is more probable, tried one by one."""
    model = card(
        crash={"per_year": 20.0, "minutes": 60.0},
        power={"per_year": 2.0, "minutes": 60.0},
        destroyed={"per_year": 1.0, "hours": 24.0},
    )
    config = Config(
        replication_factor=3, min_insync_replicas=min_isr, acks=acks, kafka_version=version
    )
    case = Case.read(Cluster.uniform(3), config, model, LOAD)
    path = evaluate(Cluster.uniform(3), config, model, LOAD).likeliest_loss()
    ((pattern, _),) = case.patterns.items()
    solved = replica_set.solve(pattern, case.chain)
    chain, events = solved.chain, solved.chances.events
    moves: dict[int, list[int]] = {}
    for index, source in enumerate(chain.source.tolist()):
        if chain.target[index] != source:
            moves.setdefault(source, []).append(index)

    ways: Counter[tuple[int, ...]] = Counter()
    single: dict[tuple[int, ...], float] = {}

    def walk(state: int, names: tuple[int, ...], probability: float) -> None:
        for index in moves.get(state, []):
            after = (*names, int(chain.rate[index]))
            chance = probability * solved.rate[index] / solved.generator.out[state]
            ways[after] += chance * events[index]
            single[after] = max(single.get(after, 0.0), chance * min(events[index], 1.0))
            if len(after) < 3 and chain.target[index] != 0:
                walk(int(chain.target[index]), after, chance)

    walk(0, (), 1.0)
    assert path is not None
    best = max(single, key=lambda names: single[names])
    assert [chain.rate_names[name] for name in best] == [step.rate for step in path.steps]
    per_year = float(solved.pi[0] * solved.generator.out[0] * ways[best] * YEAR)
    assert path.per_year == pytest.approx(per_year, rel=1e-9)
    whole = float((solved.flux * events).sum()) * YEAR
    assert path.share == pytest.approx(min(per_year / whole, 1.0), rel=1e-9)


def test_no_loss_has_no_path() -> None:
    """A card that loses nothing has none; a shipped card has one."""
    config = Config(replication_factor=3, min_insync_replicas=2, acks="all")
    safe = card(crash={"per_year": 1e-9, "minutes": 1e-3})
    found = evaluate(Cluster.uniform(3), config, safe, LOAD)
    if not found.loss_events_per_year:
        assert found.likeliest_loss() is None
    shipped = evaluate(
        Cluster.uniform(6, 3), config, without_cluster_wide(load_model("three_az_cloud"))
    )
    path = shipped.likeliest_loss()
    assert path is not None
    # All three zones at once.
    assert [step.brokers for step in path.steps] == [3]
