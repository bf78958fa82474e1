"""One setting in sentences: warnings, tolerated failures, loss of a rack."""

from __future__ import annotations

from advisor.advice.tolerance import fatal_racks, largest_share, quorum_words, survival
from advisor.cluster.model import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.results.reliability import Reliability


def notes(config: Config) -> tuple[tuple[str, str], ...]:
    """Return warnings about what Kafka silently changes or refuses: the setting, and a sentence."""
    warnings = []
    least, factor = config.min_insync_replicas or 1, config.replication_factor or 1
    if least > factor:
        said = (
            f"min.insync.replicas {least} is above the replication factor {factor}: Kafka "
            f"{config.kafka_version} "
        )
        if config.effective_min_insync_replicas > factor:
            said += (
                "refuses every write with acks=all: "
                "“Messages are rejected since there are fewer in-sync replicas than required.”"
            )
        else:
            said += f"takes it for {factor} (since 3.7)."
        warnings.append(("min_insync_replicas", said))
    if config.acks != 0 and not config.enable_idempotence:
        warnings.append(("acks", "enable.idempotence is off: retries may write duplicates."))
    return tuple(warnings)


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
    goes_on = "writes stop"
    if after.writable:
        fatal = fatal_racks(cluster.controllers, set(cluster.brokers.values()))
        goes_on = f"writes go on{quorum_words(cluster.controllers, fatal, str(config.mode))}"
    replicas = "one replica" if share == 1 else f"{share} replicas"
    return f"Losing a whole rack takes {replicas} of a partition at worst: {lost}, and {goes_on}."
