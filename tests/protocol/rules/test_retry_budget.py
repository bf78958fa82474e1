"""How long a producer retries: closed forms by version, and the simulated producer."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.lessons.clients.delivery import deliver
from advisor.lessons.clients.scripted_broker import OK, SILENT_AFTER_APPEND, Answer, outage
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.retry_budget import backoff_ms, retry_budget_ms, waiting_budget_ms
from advisor.protocol.rules.versions import MAX_INT

BUDGETS: list[tuple[str, dict[str, Any], float]] = [
    # 0.8.2 to 2.0: no retries by default, and no delivery timeout to end them.
    ("0.8.2", {}, 0),
    ("2.0", {}, 0),
    ("2.0", {"retries": 3}, 300),
    ("2.0", {"retries": 50, "retry_backoff_ms": 250}, 12_500),
    ("2.0", {"retries": MAX_INT}, 100 * MAX_INT),
    # 2.1 to 3.6: unlimited retries, ended by delivery.timeout.ms (KIP-91).
    ("2.1", {}, 120_000),
    ("3.6", {"retries": 3}, 300),
    ("3.6", {"retries": 1_200}, 120_000),
    ("3.6", {"delivery_timeout_ms": 30_000}, 30_000),
    # 3.7 on: 100, 200, 400, 800, then 1000 each (KIP-580).
    ("3.7", {}, 120_000),
    ("3.7", {"retries": 1}, 100),
    ("3.7", {"retries": 2}, 300),
    ("3.7", {"retries": 4}, 1_500),
    ("3.7", {"retries": 5}, 2_500),
    ("4.2", {"retries": 10}, 7_500),
    ("4.2", {"retries": 122}, 119_500),
    ("4.2", {"retries": 123}, 120_000),
    ("4.2", {"retries": 3, "retry_backoff_ms": 1_000}, 3_000),
    ("4.2", {"retries": 9, "retry_backoff_ms": 250, "retry_backoff_max_ms": 1_000}, 7_750),
    # A defaulted delivery timeout grows with the request timeout.
    ("4.2", {"request_timeout_ms": 300_000}, 300_005),
    # No retries.
    ("4.2", {"acks": 0}, 0),
    ("4.2", {"retries": 0}, 0),
]


@pytest.mark.parametrize(("version", "settings", "budget_ms"), BUDGETS)
def test_budget_by_version(version: str, settings: dict[str, Any], budget_ms: float) -> None:
    """The sum of the backoffs or the delivery timeout, whichever is shorter."""
    assert retry_budget_ms(Config(kafka_version=version, **settings)) == budget_ms


@pytest.mark.parametrize(
    ("version", "first_ms", "most_ms", "waits"),
    [
        ("3.6", 100, None, [100, 100, 100, 100, 100, 100]),
        ("3.7", 100, 1000, [100, 200, 400, 800, 1000, 1000]),
        ("4.2", 50, 200, [50, 100, 200, 200, 200, 200]),
        ("4.2", 300, 300, [300] * 6),
        ("4.2", 1000, 300, [300] * 6),
        ("4.2", 0, 1000, [0] * 6),
    ],
)
def test_backoff_by_version(
    version: str, first_ms: int, most_ms: int | None, waits: list[float]
) -> None:
    """KIP-580: constant before 3.7, since then doubling up to retry.backoff.max.ms."""
    config = Config(kafka_version=version, retry_backoff_ms=first_ms, retry_backoff_max_ms=most_ms)
    assert [backoff_ms(config, failures) for failures in range(1, 7)] == waits


def test_backoff_by_hand_sums_to_the_budget() -> None:
    """The closed form is the sum of the backoffs, for every number of retries."""
    for version in ("3.6", "4.2"):
        for retries in range(1, 60):
            config = Config(kafka_version=version, retries=retries)
            waits = sum(backoff_ms(config, n) for n in range(1, retries + 1))
            assert retry_budget_ms(config) == waits


@given(
    first=st.integers(1, 5_000),
    most=st.integers(1, 20_000),
    retries=st.integers(0, 200),
)
def test_the_closed_form_holds_for_any_backoff(first: int, most: int, retries: int) -> None:
    """For any backoff the budget is the sum or the delivery timeout."""
    config = Config(retries=retries, retry_backoff_ms=first, retry_backoff_max_ms=max(first, most))
    waits = sum(backoff_ms(config, n) for n in range(1, retries + 1))
    # Powers of two times a whole number: every sum is exact.
    assert retry_budget_ms(config) == min(120_000.0, waits)


@given(
    version=st.sampled_from(["2.0", "2.1", "3.6", "3.7", "4.2"]),
    retries=st.integers(0, 40),
    outage_ms=st.floats(0, 130_000),
)
def test_the_producer_rides_out_what_its_budget_says(
    version: str, retries: int, outage_ms: float
) -> None:
    """The producer in an outage: acknowledged below the budget, failed above it."""
    config = Config(kafka_version=version, acks="all", retries=retries, linger_ms=0)
    budget = retry_budget_ms(config)
    got = deliver(config, 1, outage(0, outage_ms), round_trip_ms=0.001)
    # Attempts happen one backoff apart, so the last of them may fall short of a delivery timeout
    # by one backoff; every attempt also takes its round trip.
    slack = 1_000 if budget == config.delivery_timeout_ms else 0.0
    trips = (retries + 1) * 0.001
    if outage_ms <= budget - slack:
        assert got.acknowledged == (0,)
    if outage_ms > budget + trips:
        assert got.refused == (0,)


def test_a_permanent_outage_fails_at_the_budget() -> None:
    """Retries end after the sum of the backoffs; the delivery timeout is exact."""
    few = deliver(Config(retries=5, linger_ms=0), 1, outage(0, math.inf), round_trip_ms=1)
    assert few.outcomes[0].at_ms == 2_500 + 6 * 1
    many = deliver(Config(linger_ms=0), 1, outage(0, math.inf), round_trip_ms=1)
    assert many.outcomes[0].at_ms == 120_000


def test_the_maximum_caps_the_first_backoff():
    """Kafka's client always waits the smaller of the two."""
    config = Config(retries=5, retry_backoff_ms=5000)
    assert retry_budget_ms(config) == 5 * 1000


def test_without_backoff_only_unlimited_retries_wait():
    """retry.backoff.ms=0: three retries take no time, unlimited ones last until the timeout."""
    assert retry_budget_ms(Config(retries=3, retry_backoff_ms=0)) == 0.0
    assert retry_budget_ms(Config(retry_backoff_ms=0)) == 120_000.0


WAITS: list[tuple[str, dict[str, Any], float]] = [
    # One attempt, and no delivery timeout until 2.1.
    ("2.0", {}, 30_000),
    ("2.0", {"retries": 3}, 4 * 30_000 + 300),
    ("4.2", {}, 120_000),
    ("4.2", {"retries": 0}, 30_000),
    ("4.2", {"retries": 0, "request_timeout_ms": 5_000}, 5_000),
    ("4.2", {"retries": 2, "request_timeout_ms": 5_000}, 15_300),
    # The fourth attempt would end at 120 700 ms.
    ("4.2", {"retries": 3}, 120_000),
    ("4.2", {"delivery_timeout_ms": 10_000, "request_timeout_ms": 5_000}, 10_000),
]


@pytest.mark.parametrize(("version", "settings", "budget_ms"), WAITS)
def test_waiting_budget_by_version(
    version: str, settings: dict[str, Any], budget_ms: float
) -> None:
    """Each attempt lasts the request timeout; the delivery timeout caps the sum."""
    config = Config(kafka_version=version, acks="all", **settings)
    assert waiting_budget_ms(config) == budget_ms
    assert waiting_budget_ms(config) >= retry_budget_ms(config)


@given(
    version=st.sampled_from(["2.0", "2.1", "3.7", "4.2"]),
    retries=st.integers(0, 6),
    stall_ms=st.floats(0, 130_000),
)
def test_the_producer_waits_as_long_as_its_budget_says(
    version: str, retries: int, stall_ms: float
) -> None:
    """The producer with a leader that does not respond until a follower leaves the ISR."""
    config = Config(
        kafka_version=version,
        acks="all",
        retries=retries,
        linger_ms=0,
        request_timeout_ms=20_000,
        enable_idempotence=False,
    )

    def stalled(_number: int, now_ms: float) -> Answer:
        left = max(stall_ms - now_ms, 0.0)
        return OK.after(left) if left < 20_000 else SILENT_AFTER_APPEND

    budget = waiting_budget_ms(config)
    got = deliver(config, 1, stalled, round_trip_ms=0.001)
    # A response takes one round trip more than the stall.
    if stall_ms < budget - 0.01:
        assert got.acknowledged == (0,)
    if stall_ms > budget:
        assert got.refused == (0,)
        assert got.outcomes[0].at_ms == pytest.approx(budget)
