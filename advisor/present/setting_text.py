"""One setting in sentences: verdict, warnings, tolerated failures, loss of a rack."""

from __future__ import annotations

from advisor.advice.choice import choose, judged
from advisor.advice.goals import Goals
from advisor.advice.tolerance import largest_share, survival
from advisor.cluster.model import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.results import explanation
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled


def verdict(result: Reliability | Sampled, goals: Goals | None = None) -> str:
    """Return the verdict on a setting, in at most 25 words; with yes or no if goals are given.

    Parameters
    ----------
    result : Reliability or Sampled
    goals : Goals, optional
        Of a result of `evaluate`; what a sample decides is not held against goals.

    Raises
    ------
    InputError
        If the loss of a rack must be survived and a rack is unknown.
    """
    if goals is None or isinstance(result, Sampled):
        return result.verdict
    config, brokers = result.config, result.cluster.brokers
    share = largest_share(brokers, config.replication_factor or 1, str(config.mode))
    choice = choose(config, result, goals, share)
    return explanation.verdict(result.outlook, judged(choice, goals))


def no_setting_changes(result: Reliability | Sampled) -> str:
    """Return one sentence on losses and outages beyond settings, shown below the verdict."""
    return result.no_setting_changes


def notes(config: Config) -> tuple[tuple[str, str], ...]:
    """Return warnings about what Kafka silently changes or refuses: the setting, and a sentence."""
    found = []
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
        found.append(("min_insync_replicas", said))
    if config.acks != 0 and not config.enable_idempotence:
        found.append(("acks", "enable.idempotence is off: retries may write duplicates."))
    return tuple(found)


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
