"""One setting in sentences: verdict, warnings, tolerated failures, loss of a rack."""

from __future__ import annotations

import math

from advisor.advice.tolerance import largest_share, survival
from advisor.cluster.model import Cluster
from advisor.formatting import significant, unacknowledged
from advisor.present.labels import once_in_years, time_per_year
from advisor.present.outcome import compared_outcomes, estimated, point_of
from advisor.protocol.rules.config import Config
from advisor.reliability.results.fault_tolerance import never_writes
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.settings_split import (
    BEYOND_SETTINGS,
    BY_SETTINGS,
    Said,
    beyond,
    beyond_in_words,
    in_words,
)

# Above this, failures that the card leaves out dominate.
_RARE_YEARS = 1e6


def verdict(result: Reliability) -> str:
    """Return losses and refused writes of a setting, and what of it settings decide."""
    _, refused, _ = compared_outcomes(result, intervals=False)
    never = never_writes(result.config)
    name = point_of(result, intervals=False).name
    loss = estimated(result, "loss_probability_per_year", intervals=False).value
    between = once_in_years(result.mean_years_to_loss)
    stopped = estimated(result, "write_unavailability", intervals=False).value
    if never:
        return f"{name}: {never}."
    loses = "nothing in this failure model loses an acknowledged record"
    if result.config.acks == 0:
        dropped = result.records_dropped_per_year
        loses = unacknowledged(significant(dropped) if dropped else "")
    elif loss:
        loses = f"you lose an acknowledged record {between}"
    if loss and result.config.acks != 0 and result.mean_years_to_loss >= _RARE_YEARS:
        loses = f"these failures lose a record {between}, so mistakes and bugs come first"
    if not stopped:
        return f"{name}: {loses}; writes are never refused."
    whole = (
        f"{name}: {loses}; writes stop {time_per_year(stopped)}, "
        f"mostly from {refused.shares[0][0]}."
    )
    parts = _parts(result)
    return f"{whole} {parts}" if parts else whole


def _parts(result: Reliability) -> str:
    """Return what settings decide and what they do not, without intervals; "" for all."""
    if not beyond(result.model):
        return ""
    stops, losses = "write_unavailability", "loss_events_per_year"
    times = (result.by_settings(stops), result.beyond_settings(stops))
    years = (result.years_between(BY_SETTINGS), result.years_between(BEYOND_SETTINGS))
    by, rest = (Said(time_per_year(each)) if each else Said() for each in times)
    said = [math.isfinite(each) and result.config.acks != 0 for each in years]
    loses = [Said(once_in_years(y)) if s else Said() for y, s in zip(years, said, strict=True)]
    why = (beyond_in_words(result.causes, (name,), result.model) for name in (stops, losses))
    return in_words((by, rest), (loses[0], loses[1]), *why)


def notes(config: Config) -> tuple[str, ...]:
    """Return warnings about settings that Kafka silently changes or refuses, one sentence each."""
    sentences = []
    least, factor = config.min_insync_replicas or 1, config.replication_factor or 1
    if least > factor:
        if config.effective_min_insync_replicas > factor:
            sentences.append(
                f"min.insync.replicas {least} is above the replication factor {factor}: Kafka "
                f"{config.kafka_version} refuses every write with acks=all: "
                "“Messages are rejected since there are fewer in-sync replicas than required.”"
            )
        else:
            sentences.append(
                f"min.insync.replicas {least} is above the replication factor {factor}: Kafka "
                f"{config.kafka_version} takes it for {factor} (since 3.7)."
            )
    if not config.enable_idempotence:
        sentences.append("enable.idempotence is off: retries may write duplicates.")
    return tuple(sentences)


def tolerance_words(result: Reliability) -> tuple[tuple[str, str], ...]:
    """Return how many brokers may fail, for data, writes and reads: words and number of each."""
    tolerates = result.tolerates
    never = tolerates.while_writable < 0
    return (
        (f"without losing {records_at_risk(result.config)}", f"{tolerates.without_loss}"),
        ("while writes go on", "not even 0" if never else f"{tolerates.while_writable}"),
        ("while reads go on", f"{tolerates.while_readable}"),
    )


def records_at_risk(config: Config) -> str:
    """Return "acknowledged records", or "records" where none is acknowledged."""
    return "records" if config.acks == 0 else "acknowledged records"


def rack_words(cluster: Cluster, config: Config) -> str:
    """Return the effect of losing one rack, the worst single event, in one sentence."""
    assert config.replication_factor is not None
    share = largest_share(cluster.brokers, config.replication_factor, str(config.mode))
    if share is None:
        return "The racks are not known, so nothing can be said about losing one."
    after = survival(share, config)
    lost = f"{records_at_risk(config)} are lost"
    if after.without_loss:
        lost = "no acknowledged record is lost"
    goes_on = "writes go on" if after.writable else "writes stop"
    replicas = "one replica" if share == 1 else f"{share} replicas"
    return f"Losing a whole rack takes {replicas} of a partition at worst: {lost}, and {goes_on}."
