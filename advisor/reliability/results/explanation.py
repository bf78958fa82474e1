"""A result in one sentence and its causes in lines: what was evaluated or sampled, as a whole.

What to set is the decision's to say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from advisor.formatting import (
    brief_time_per_year,
    is_rare,
    once_at_most,
    once_in,
    significant,
    unacknowledged,
)
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import mechanisms
from advisor.reliability.results.fault_tolerance import (
    tolerance,
)
from advisor.reliability.results.units import Estimate

LOSSES, STOPS = "loss_probability_per_year", "write_unavailability"
MOST_WORDS = 25
"""Largest number of words in a summary."""
EVENTS, BETWEEN = "loss_events_per_year", "mean_years_to_loss"


class Amount(NamedTuple):
    """A number of a result; `seen` is False where only a bound is known."""

    value: float
    seen: bool = True


class Outlook(NamedTuple):
    """What a summary says of a result, as numbers.

    years: mean years until the first loss; infinite for never. A bound is a lower one.
    stopped: fraction of time in which writes are refused. A bound is an upper one.
    dropped: records a year lost with acks=0.
    main: main cause of losses and of refused writes, in words; "" for none.
    simulated: years simulated; 0 for an exact result.
    """

    config: Config
    years: Amount
    stopped: Amount
    dropped: Amount
    main: Mapping[str, str]
    simulated: int = 0


def amount_of(estimate: Estimate) -> Amount:
    """Return a sampled measure for a summary; a bound where nothing was seen."""
    seen = estimate.seen or estimate.high == 0.0
    return Amount(estimate.value if estimate.seen else estimate.high, seen)


def main_cause(causes: Mapping[str, float]) -> str:
    """Return the largest cause of a measure in words; "" for none."""
    if not any(share > 0.0 for share in causes.values()):
        return ""
    return mechanisms.words(max(causes, key=lambda name: causes[name]))


def shares_of_causes(causes: Mapping[str, float]) -> list[str]:
    """Return a line for each cause of a measure with its share of the whole, largest first."""
    ordered = sorted(causes.items(), key=lambda item: -item[1])
    whole = sum(amount for _, amount in ordered)
    return [
        f"  {100 * amount / whole:5.1f} %  {mechanisms.words(cause)} ({cause})"
        for cause, amount in ordered
        if amount > 0.0005 * whole
    ]


def summary(outlook: Outlook) -> str:
    """Return setting, data loss, time without writes and the main cause, in at most 25 words."""
    config = outlook.config
    head = f"{name_of(config)}:"
    if tolerance(config).while_writable < 0:
        return f"{head} Kafka {config.kafka_version} refuses every write; main cause: min ISR > RF."
    loss, stops = _loss(outlook), _stops(outlook.stopped)
    rare = is_rare(outlook.years.value) or not outlook.main[LOSSES]
    explained = STOPS if rare or config.acks == 0 else LOSSES
    cause = outlook.main[explained]
    if not cause:
        return f"{head} {loss}, {stops}."
    text = ""
    for main in (f" (main cause: {cause})", f" ({cause})", ""):
        said = (f"{loss}{main}", stops) if explained == LOSSES else (loss, f"{stops}{main}")
        text = f"{head} {', '.join(said)}."
        if len(text.split()) <= MOST_WORDS:
            break
    return text


def name_of(config: Config) -> str:
    """Return "RF 3 with min ISR 2", or "RF 3 with acks=1", where min ISR has no effect."""
    if config.acks == "all":
        return f"RF {config.replication_factor} with min ISR {config.min_insync_replicas}"
    return f"RF {config.replication_factor} with acks={config.acks}"


def _loss(outlook: Outlook) -> str:
    years = outlook.years
    if outlook.config.acks == 0:
        dropped = significant(outlook.dropped.value) if outlook.dropped.value else ""
        bound = "" if outlook.dropped.seen or not dropped else "under "
        return unacknowledged(f"{bound}{dropped}")
    if math.isinf(years.value):
        return "no modelled data loss"
    if not years.seen and outlook.simulated and is_rare(years.value):
        return f"no data loss in {outlook.simulated:,} simulated years"
    return f"data loss {once_in(years.value) if years.seen else once_at_most(years.value)}"


def _stops(stopped: Amount) -> str:
    if not stopped.value:
        return "writes never refused"
    bound = "" if stopped.seen else "under "
    return f"writes refused {bound}{brief_time_per_year(stopped.value)}"
