"""What is compared: today's setting of a topic, its candidates, and others shown beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from advisor.protocol.rules.config import Config
from advisor.reliability.results.fault_tolerance import tolerance
from advisor.reliability.workload import Workload

USUAL_REPLICAS, USUAL_MIN_ISR, MOST_REPLICAS = 3, 2, 5
"""RF and min ISR that Kafka's own topics have at least, and the largest RF that is evaluated."""

LONGER_TIMEOUTS_MS = (600_000, 1_800_000)
"""Delivery timeouts beside the usual one: ten minutes and half an hour."""

Placement = tuple[tuple[int, ...], ...]
"""Replicas of each partition."""


@dataclass(frozen=True)
class Setting:
    """Settings of a topic and its producers, on replicas.

    placement: replicas of each partition; None: as Kafka places a new topic.
    """

    config: Config
    placement: Placement | None = None

    @property
    def replication_factor(self) -> int:
        """Replicas of each partition."""
        return self.config.replication_factor or 1

    @property
    def min_insync_replicas(self) -> int:
        """In-sync replicas that acks=all needs, as far as there are replicas."""
        return min(self.config.effective_min_insync_replicas, self.replication_factor)

    @property
    def guarded(self) -> bool:
        """Whether producers wait for min ISR at all: without acks=all it guards nothing."""
        return self.config.acks == "all"

    @property
    def survives_restart(self) -> bool:
        """Whether writes and reads go on while one broker restarts."""
        tolerated = tolerance(self.config)
        return min(tolerated.while_writable, tolerated.while_readable) >= 1

    @property
    def never_writes(self) -> bool:
        """Whether Kafka refuses every write, because min ISR is above the number of replicas."""
        return tolerance(self.config).while_writable < 0

    @property
    def key(self) -> tuple[int, int, object, bool]:
        """What decides losses and writes: RF, min ISR, acks, unclean election."""
        config = self.config
        # Above RF, versions before 3.7 refuse every write: a setting of its own.
        min_isr = min(config.effective_min_insync_replicas, self.replication_factor + 1)
        unclean = bool(config.unclean_leader_election_enable)
        return self.replication_factor, min_isr, config.acks, unclean

    @property
    def more_patient(self) -> Iterator[Setting]:
        """The same with producers that try longer (KIP-91, since 2.1); losses stay the same."""
        usual = self.config.delivery_timeout_ms
        for timeout_ms in LONGER_TIMEOUTS_MS:
            if usual is not None and timeout_ms > usual:
                yield replace(self, config=self.config.changed(delivery_timeout_ms=timeout_ms))

    @property
    def patience(self) -> str:
        """A delivery timeout that was chosen for a goal, in words; "" for any other."""
        timeout_ms = self.config.delivery_timeout_ms
        return f"delivery.timeout.ms={timeout_ms}" if timeout_ms in LONGER_TIMEOUTS_MS else ""

    def __str__(self) -> str:
        config = self.config
        unclean = ", unclean election" if config.unclean_leader_election_enable else ""
        words = f"RF {self.replication_factor}, min ISR {config.min_insync_replicas}"
        return f"{words}, acks={config.acks}{unclean}{', ' if self.patience else ''}{self.patience}"


def as_kafka_places(replication_factor: int) -> None:
    """No placement of its own, whatever the RF: Kafka places a new topic."""
    del replication_factor


@dataclass(frozen=True)
class TopicQuestion:
    """A topic whose setting is to be decided.

    today: as it runs, with the smallest RF of its partitions.
    planned: replication factor to the replicas that the emitted plan would create; None: as Kafka
        places a new topic.
    load_is_given: else no number of records is said.
    has_observers: whether asynchronous copies stand beside its replicas. They may be promoted,
        which is not modelled: the only candidate has today's replicas and min ISR.
    """

    topic: str
    today: Setting
    load: Workload
    brokers: Mapping[int, str | None]
    planned: Callable[[int], Placement | None] = field(compare=False)
    internal: bool = False
    load_is_given: bool = True
    has_observers: bool = False

    def allows(self, setting: Setting) -> bool:
        """Whether it may be chosen: Kafka's own topics need RF 3 and min ISR 2."""
        if not self.internal or len(self.brokers) < USUAL_REPLICAS:
            return True
        enough_in_sync = setting.min_insync_replicas >= USUAL_MIN_ISR
        return enough_in_sync and setting.replication_factor >= USUAL_REPLICAS

    @property
    def rack_patterns(self) -> frozenset[tuple[object, ...]]:
        """How today's replicas stand in racks: for each the place of the first in its rack."""
        return frozenset(map(self._pattern, self.today.placement or ()))

    def _pattern(self, replicas: tuple[int, ...]) -> tuple[object, ...]:
        racks = [self.brokers.get(broker) for broker in replicas]
        names: list[object] = [
            broker if rack is None else rack for broker, rack in zip(replicas, racks, strict=True)
        ]
        return tuple(names.index(name) for name in names)


def candidate_factor(today: int, brokers: int) -> int:
    """Return the RF of a topic's candidates: as today, at least three where there are brokers.

    >>> candidate_factor(1, 6), candidate_factor(4, 6), candidate_factor(1, 2)
    (3, 4, 2)
    """
    return max(today, min(USUAL_REPLICAS, brokers))


def candidates(question: TopicQuestion, replication_factor: int = 0) -> tuple[Setting, ...]:
    """Return the settings that the rule chooses from.

    Every min ISR with acks=all and clean elections, on the replicas that the plan would create.
    The usual min ISR, RF - 1, comes first: of equal settings the rule takes the first.
    """
    today = question.today
    if question.has_observers and replication_factor in (0, today.replication_factor):
        return (Setting(_clean(today.config), today.placement),)
    factor = replication_factor or candidate_factor(today.replication_factor, len(question.brokers))
    placement = question.planned(factor)
    return tuple(Setting(config, placement) for config in _configs(today.config, factor))


def _clean(today: Config) -> Config:
    unclean = None if today.rules.unclean_only else False
    return today.changed(acks="all", unclean_leader_election_enable=unclean)


def _configs(today: Config, factor: int) -> Iterator[Config]:
    rules = today.rules
    clean = _clean(today.changed(replication_factor=factor, min_insync_replicas=1))
    largest = factor if rules.min_isr_supported else 1
    usual = max(factor - 1, 1)
    for min_isr in sorted(range(1, largest + 1), key=lambda number: (number > usual, -number)):
        yield clean.changed(min_insync_replicas=min_isr)


def beside(chosen: Setting) -> tuple[Setting, ...]:
    """Return what is shown beside a setting and never chosen: acks 1, and unclean elections."""
    config = chosen.config
    changes: tuple[dict[str, object], ...] = ({"acks": 1, "enable_idempotence": None},)
    if not config.unclean_leader_election_enable:
        changes += ({"unclean_leader_election_enable": True},)
    return tuple(replace(chosen, config=config.changed(**change)) for change in changes)


def copies_in_one_rack(setting: Setting, brokers: Mapping[int, str | None]) -> int:
    """Return the largest number of replicas of a partition in one rack; 0 if not known.

    >>> copies_in_one_rack(Setting(Config(), ((1, 2, 3),)), {1: "a", 2: "a", 3: "b"})
    2
    """
    shares = [
        max(Counter(brokers.get(broker) for broker in replicas).values())
        for replicas in setting.placement or ()
        if all(brokers.get(broker) is not None for broker in replicas)
    ]
    return max(shares, default=0)
