"""Settings whose losses and minutes follow from a formula, for tests of the decision."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from advisor.decision import Measured, Setting, TopicQuestion
from advisor.decision.evaluator import LOSSES, MEASURES, MINUTES, ExactEvaluator
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

Amounts = Callable[[Setting, FailureModel], tuple[float, float]]
"""Setting and card to losses a year and minutes without writes."""

MODEL = FailureModel.from_dict(
    {
        "broker": {
            "crash": {
                "per_year": {"value": 2.0, "low": 0.5, "high": 8.0},
                "minutes": {"value": 5.0, "low": 4.0, "high": 6.0},
            },
            "destroyed": {"per_year": {"value": 0.05, "low": 0.01, "high": 0.2}, "hours": 12.0},
        },
        "rack": {"network": {"per_year": 0.1, "minutes": 60.0}},
    }
)


def usual(setting: Setting, card: FailureModel) -> tuple[float, float]:
    """Losses fall with each in-sync replica, minutes rise with each that must be there.

    At the card's values RF 3 costs 0.1, 0.003 and 0.002 losses, and 21, 30 and 420 minutes.
    """
    factor, least, acks, unclean = setting.key
    copies = least if acks == "all" and not unclean else 1
    spare = factor - (least if acks == "all" else 1)
    losses = 0.001 + card["broker.destroyed.per_year"] * {1: 2.0, 2: 0.04, 3: 0.02}.get(
        copies, 0.01
    )
    outages = card["broker.crash.per_year"] * card["broker.crash.minutes"]
    minutes = 20.0 + outages * {0: 40.0, 1: 1.0, 2: 0.1}.get(spare, 0.05)
    return losses, minutes if factor > 1 else minutes * 4.0


class FakeEvaluator(ExactEvaluator):
    """Answers by a formula; counts what it is asked."""

    def __init__(
        self, amounts: Amounts = usual, model: FailureModel = MODEL, draws: int = 128
    ) -> None:
        self._amounts, self._model = amounts, model
        self._cards = [*model.draws(draws, 0)] if draws else []
        self.asked: list[str] = []

    def middle(self, setting: Setting, load: Workload) -> Measured:
        """Return the measures at the card's values."""
        self.asked.append(f"middle {setting} of {load.partitions}")
        return self._measured(setting, load, self._model)

    def at(
        self, setting: Setting, load: Workload, changes: Sequence[Mapping[str, float]]
    ) -> list[Measured]:
        """Return the measures with some numbers changed."""
        return [self._measured(setting, load, self._model.with_values(each)) for each in changes]

    def drawn(self, setting: Setting, load: Workload) -> Mapping[str, np.ndarray]:
        """Return every measure in each draw."""
        self.asked.append(f"drawn {setting}")
        rows = [self._measured(setting, load, card).values for card in self._cards]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _measured(self, setting: Setting, load: Workload, card: FailureModel) -> Measured:
        losses, minutes = self._amounts(setting, card)
        values = dict.fromkeys(MEASURES, 0.0) | {
            "loss_probability_per_year": float(-np.expm1(-losses)),
            "loss_events_per_year": losses,
            "acked_records_lost_per_year": losses * load.retained_records_per_partition,
            "write_unavailability": minutes / 525_600.0,
            LOSSES: losses,
            MINUTES: minutes,
        }
        causes = {"broker.destroyed": values["loss_probability_per_year"]}
        return Measured(values, {"loss_probability_per_year": causes})


def question(
    replication_factor: int = 3,
    min_isr: int = 2,
    brokers: int = 6,
    topic: str = "orders",
    internal: bool = False,
    partitions: int = 12,
    racks: str = "abc",
    **options: object,
) -> TopicQuestion:
    """Return a question about a topic on brokers that take turns in the racks."""
    config = Config(
        replication_factor=replication_factor,
        min_insync_replicas=min_isr,
        **options,  # type: ignore[arg-type]
    )
    ids = {broker: racks[(broker - 1) % len(racks)] for broker in range(1, brokers + 1)}

    def planned(factor: int) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(1, factor + 1)),)

    return TopicQuestion(
        topic=topic,
        today=Setting(config, planned(replication_factor)),
        load=Workload(partitions=partitions),
        brokers=ids,
        planned=planned,
        internal=internal,
    )
