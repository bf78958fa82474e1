"""Checks that decide which findings apply to a cluster, its topics and a producer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.advice.findings.catalogue import RISK, Finding, finding
from advisor.advice.findings.known_bugs import check_version
from advisor.advice.findings.owners import MIRRORED, Owner, owner_of
from advisor.advice.goals import Goals
from advisor.advice.phrases import first_of, listed
from advisor.advice.situation import Situation, session_timeout
from advisor.advice.tolerance import least_share, share_of
from advisor.cluster import Cluster, Partition, Topic
from advisor.cluster.broker_presence import Presence
from advisor.formatting import as_given, is_rare, percent, significant
from advisor.parsing import whole_number
from advisor.protocol.rules.config import Config, effective_min_isr
from advisor.protocol.rules.kraft_quorum import fatal_zones, tolerated
from advisor.protocol.rules.versions import parse_version
from advisor.reliability.failures.detection import detection_seconds
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.results.reliability import Reliability

_ONE_REPLICA = {"__consumer_offsets": "KRA201", "__transaction_state": "KRA202"}

_MORE_REPLICAS = (
    "Add replicas, three for min.insync.replicas=2: recommend writes the commands. No broker has "
    "to come back for it. Where there is one broker, set min.insync.replicas to 1."
)

_KEPT_WITH_OBSERVERS = (
    "Keep it if the placement constraints promote observers where the ISR is too small "
    "(observerPromotionPolicy): writes then go on. If they do not, a broker that is down stops "
    "acks=all writes."
)

# A cause of losses is reported if it uses up this share of a goal for losses, or if it makes up
# that share of the losses where the goal is missed.
_LEAST_SHARE_OF_LIMIT = 0.5
_LEAST_SHARE_OF_MISSED = 0.1
_LOSSES = ("loss_probability_per_year", "acked_records_lost_per_year")
# Of what is written while writes stop; if less is given up, the timeout outlasts most outages.
_LEAST_GIVEN_UP = 0.1
# Share of records that may be refused where no goal says so: `Goals.write_unavailability`.
_USUAL_UNAVAILABILITY = 1e-4
_AUTO = "auto.create.topics.enable"
_DEFAULT_FACTOR = "default.replication.factor"
# Topics that Kafka creates when they are first used, with three replicas unless set otherwise.
_TRANSACTIONS = "__transaction_state"
_SHARE_GROUPS, _SHARE_GROUPS_SINCE = "__share_group_state", (4, 2)
_FACTOR_OF = {
    name: owner.option
    for name in ("__consumer_offsets", _TRANSACTIONS, _SHARE_GROUPS)
    if (owner := owner_of(name))
}
_TRANSACTION_MIN_ISR = "transaction.state.log.min.isr"
_USUAL, _USUAL_MIN_ISR = 3, 2


def check_topic(topic: Topic, situation: Situation) -> Iterator[Finding]:
    """Yield the findings about a topic."""
    cluster, config = situation.cluster, situation.config_of(topic)
    if config.rules.min_isr_supported and not _states_min_isr(topic, situation):
        yield finding("KRA107", "min.insync.replicas is not stated; 1 was assumed.", topic.name)
    if topic.broken:
        indexes = ", ".join(map(str, topic.broken))
        detail = f"partition {indexes}: the leader or the ISR is outside the replicas."
        yield finding("KRA111", detail, topic.name, topic.broken)
    owner = owner_of(topic.name, cluster.topic_names)
    risks = _copies_of(topic, config, owner not in (None, MIRRORED))
    if topic.has_observers:
        risks = _with_observers(risks)
    if owner is not None:
        risks = _with_owner(risks, owner)
    yield from risks
    yield from _health(topic, config)
    yield from _placement(topic, cluster)
    if config.unclean_leader_election_enable:
        is_set = "unclean.leader.election.enable" in topic.configs
        reason = "it is set" if is_set else f"it is the default of Kafka {config.kafka_version}"
        yield finding("KRA302", f"unclean leader election is on ({reason}).", topic.name)


def _states_min_isr(topic: Topic, situation: Situation) -> bool:
    """Whether the topic's min ISR is stated, or missing only where it is Kafka's default."""
    observed = situation.cluster.observed
    reported = {} if observed is None else observed.topic_settings.get(topic.name, {})
    if topic.min_insync_replicas is not None or "min.insync.replicas" in reported:
        return True
    # From 3.0 on kafka-topics.sh asks the brokers; before, --zookeeper shows only the topic's own
    # settings. An id in the description shows that it was written by the tool.
    return topic.topic_id is not None and parse_version(situation.version) >= (3, 0)


def _with_observers(risks: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings about a topic's copies; its observers may be promoted, so min ISR stays."""
    for risk in risks:
        yield replace(risk, own_remedy=_KEPT_WITH_OBSERVERS) if risk.code == "KRA102" else risk


def _with_owner(risks: Iterator[Finding], owner: Owner) -> Iterator[Finding]:
    """Yield findings about a topic's copies; the first says where new topics get theirs."""
    for place, risk in enumerate(risks):
        remedy = "Reassign it to three replicas." if risk.code == "KRA204" else risk.remedy
        if place or owner.option in remedy:
            yield risk
        else:
            yield replace(risk, own_remedy=f"{remedy} {owner.advice}")


def _copies_of(topic: Topic, config: Config, owned: bool) -> Iterator[Finding]:
    """Yield findings about replication factor and min ISR, for each factor of the partitions."""
    for factor, partitions in topic.by_replication_factor.items():
        config_of_factor = config
        if factor != config.replication_factor:
            config_of_factor = config.changed(replication_factor=factor)
        risks = _copies(topic.name, config_of_factor, topic.internal, owned)
        if len(topic.by_replication_factor) == 1:
            yield from risks
            continue
        share_of_topic = f"in {len(partitions)} of {len(topic.partitions)} partitions"
        indexes = tuple(p.index for p in partitions)
        for risk in risks:
            yield replace(risk, detail=f"{share_of_topic} {risk.detail}", partitions=indexes)


def _copies(
    name: str, config: Config, internal: bool = False, owned: bool = False
) -> Iterator[Finding]:
    """Yield findings about replication factor and min ISR; no name for any topic."""
    factor, min_isr = config.replication_factor, config.min_insync_replicas
    assert factor is not None
    assert min_isr is not None
    if factor == 1:
        code = "KRA203" if internal else "KRA205" if owned else "KRA204"
        yield finding(_ONE_REPLICA.get(name, code), "there is one replica only.", name)
    if not config.rules.min_isr_supported:
        return
    if min_isr > factor:
        effect = (
            f"it counts as {factor}"
            if config.rules.min_isr_capped
            else f"Kafka {config.kafka_version} refuses every acks=all write, and from 3.7 on it "
            f"counts as {factor}"
        )
        yield finding("KRA103", f"min ISR {min_isr} is above RF {factor}: {effect}.", name)
    if factor > 1 and name == "__transaction_state" and min_isr in (1, factor):
        yield finding("KRA206", f"min ISR is {min_isr} with RF {factor}.", name)
    elif factor > 1 and min_isr == 1:
        yield finding("KRA101", f"min ISR is 1 with RF {factor}.", name)
    elif factor > 1 and config.effective_min_insync_replicas == factor:
        counts = f" (min ISR {min_isr} counts as {factor})" if min_isr > factor else ""
        yield finding("KRA102", f"min ISR and RF are both {factor}{counts}.", name)


def _health(topic: Topic, config: Config) -> Iterator[Finding]:
    """Yield findings about leaders, ISR and reassignments when the cluster was described."""
    min_isr, partitions_of = config.min_insync_replicas or 1, topic.by_replication_factor
    min_isr_of_factor = {
        factor: effective_min_isr(min_isr, factor, config.rules) for factor in partitions_of
    }
    unusual = []
    for factor, partitions in partitions_of.items():
        in_sync = max(factor, min_isr_of_factor[factor])
        unusual += [
            p
            for p in partitions
            if p.leader is None or len(p.isr) < in_sync or p.adding or p.removing
        ]
    unusual.sort(key=lambda p: p.index)
    leaderless = [p for p in unusual if p.leader is None]
    behind = [p for p in unusual if len(p.isr) < p.replication_factor]
    led = [p for p in unusual if p.leader is not None]
    refusing = [p for p in led if len(p.isr) < min_isr_of_factor[p.replication_factor]]
    if leaderless:
        yield _out_of_sync("KRA104", topic, leaderless, "without a leader")
    if refusing:
        sizes = sorted({min_isr_of_factor[p.replication_factor] for p in refusing})
        below = f"below the min ISR of {listed([str(size) for size in sizes])}"
        too_few = all(
            min_isr_of_factor[p.replication_factor] > p.replication_factor for p in refusing
        )
        if too_few:
            below += ", which is more than there are replicas (KRA103)"
        refused = _out_of_sync("KRA106", topic, refusing, below)
        yield replace(refused, own_remedy=_MORE_REPLICAS) if too_few else refused
    one_in_sync = [p for p in led if len(p.isr) == 1 < p.replication_factor]
    if one_in_sync:
        yield _out_of_sync("KRA110", topic, one_in_sync, "with one in-sync replica left")
    if behind:
        yield _out_of_sync("KRA105", topic, behind, "with replicas out of sync")
    moving = [p.index for p in unusual if p.reassigning]
    if moving:
        yield _of_partitions("KRA109", topic, moving, "being reassigned")
    if len(partitions_of) > 1:
        words = listed([str(factor) for factor in sorted(partitions_of)])
        yield finding("KRA108", f"some partitions have {words} replicas.", topic.name)


def _out_of_sync(code: str, topic: Topic, partitions: list[Partition], trouble: str) -> Finding:
    """A finding about partitions, with the brokers that each of them lacks."""
    lacking = {broker for p in partitions for broker in p.held if broker not in p.isr}
    # Members of an ISR without a leader stay in it when they die.
    lacking |= {broker for p in partitions if p.leader is None for broker in p.isr}
    of_partitions = _of_partitions(code, topic, [p.index for p in partitions], trouble)
    return replace(of_partitions, brokers=tuple(sorted(lacking)))


def _of_partitions(code: str, topic: Topic, indexes: list[int], trouble: str) -> Finding:
    total = len(topic.partitions)
    plural = "s" if total > 1 else ""
    detail = f"{len(indexes)} of {total} partition{plural} {trouble}."
    return finding(code, detail, topic.name, tuple(indexes))


def _placement(topic: Topic, cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about brokers and racks of the replicas."""
    racks: Mapping[int, str | None] = dict(cluster.brokers.items())
    factor = topic.replication_factor
    if factor == len(racks) and factor > 1 and not cluster.part:
        yield finding("KRA304", f"RF {factor} on {len(racks)} brokers.", topic.name)
    if factor < 2 or None in racks.values() or len(cluster.racks) < 2:
        return
    if factor > len(cluster.racks):
        detail = f"RF {factor} over {len(cluster.racks)} racks."
        yield finding("KRA306", detail, topic.name)
    one_rack, uneven = [], []
    least_shares: dict[int, int] = {}
    for partition in topic.partitions:
        replicas = partition.held
        share = share_of(replicas, racks)
        if len(replicas) not in least_shares:
            least_shares[len(replicas)] = least_share(racks, len(replicas))
        if len(replicas) > 1 and share == len(replicas):
            one_rack.append(partition.index)
        elif share > least_shares[len(replicas)]:
            uneven.append(partition.index)
    if one_rack:
        yield _of_partitions("KRA307", topic, one_rack, "with all replicas in one rack")
    if uneven:
        yield _of_partitions("KRA308", topic, uneven, "with more replicas in a rack than need be")


def check_cluster(situation: Situation) -> Iterator[Finding]:
    """Yield the findings about brokers, controllers, racks, the version and topics to come."""
    yield from _missing(situation.presence)
    yield from _controllers(situation.cluster)
    yield from _created_topics(situation)
    yield from _timers(situation.cluster)
    yield from _racks(situation.cluster)
    if situation.stated_version:
        yield from check_version(situation.stated_version, situation.mode)


def _missing(presence: Presence) -> Iterator[Finding]:
    """Yield a finding if brokers with replicas are in no ISR, or reported as down."""
    if presence.missing:
        finding_of_missing = finding("KRA318", f"{listed(missing_words(presence))}.")
        yield replace(finding_of_missing, brokers=presence.missing)


def missing_words(presence: Presence) -> list[str]:
    """Return what is seen of the brokers that are down or in no ISR: "broker 3 is down"."""
    unseen = "in no ISR (down, or behind everywhere)"
    if presence.part:
        unseen = "in no ISR of what is shown (down, or behind there)"
    brokers_in_trouble = {
        "down": presence.down,
        unseen: presence.unknown,
        "running, but in no ISR": presence.behind,
        "not serving replicas (down, or with failed log directories)": presence.offline,
    }
    return [
        _brokers_are(brokers, trouble) for trouble, brokers in brokers_in_trouble.items() if brokers
    ]


def _brokers_are(brokers: Sequence[int], trouble: str) -> str:
    several = len(brokers) > 1
    names = first_of([str(broker) for broker in brokers])
    return f"{'brokers' if several else 'broker'} {names} {'are' if several else 'is'} {trouble}"


def _controllers(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about the voters of the controller quorum and their racks, where known."""
    if cluster.controllers is None:
        return
    voters = len(cluster.controllers)
    if voters == 1:
        yield finding("KRA317", "the quorum is a single controller.")
        return
    if voters % 2 == 0:
        yield finding(
            "KRA313", f"{voters} controllers survive the failure of {tolerated(voters) or 'none'}."
        )
    by_rack = cluster.voters_by_rack
    if by_rack is None:
        return
    zone_of = {voter: rack for voter, rack in cluster.controllers.items() if rack is not None}
    fatal = [rack for (rack,) in fatal_zones(zone_of)]
    words = [f"{rack} has {size}" for rack, size in by_rack.items()]
    if len(by_rack) > 1 and fatal:
        code = "KRA315" if len(by_rack) == 2 else "KRA316"
        racks = fatal[0] if len(fatal) == 1 else "either"
        yield finding(code, f"of the controllers, {listed(words)}; losing {racks} stops elections.")
    elif fatal and set(cluster.brokers.values()) != set(fatal):
        yield finding("KRA314", f"all {voters} controllers are in rack {fatal[0]}.")


def _created_topics(situation: Situation) -> Iterator[Finding]:
    """Yield findings about topics that do not exist yet, where the description has topics."""
    cluster, stated_version = situation.cluster, situation.stated_version
    if not (cluster.topics or cluster.broker_settings):
        return
    absent = {name: key for name, key in _FACTOR_OF.items() if name not in cluster.topic_names}
    if not stated_version or parse_version(stated_version) < _SHARE_GROUPS_SINCE:
        absent.pop(_SHARE_GROUPS, None)
    brokers = len(cluster.brokers)
    lowest = {key: factor for key in absent.values() if (factor := _lowest(cluster, key))}
    single = [key for key, factor in lowest.items() if factor == 1]
    if _lowest(cluster, _DEFAULT_FACTOR) == 1 and "true" in _values(cluster, _AUTO):
        single.insert(0, _DEFAULT_FACTOR)
    if single and brokers > 1:
        plural = "are" if len(single) > 1 else "is"
        auto = f", and {_AUTO} is true" if single[0] == _DEFAULT_FACTOR else ""
        yield finding("KRA207", f"{listed(single)} {plural} 1{auto}.")
    if _TRANSACTIONS in absent:
        yield from _transaction_log(cluster)
    lacking = [name for name, key in absent.items() if lowest.get(key, _USUAL) > brokers]
    if lacking:
        number = "1 broker" if brokers == 1 else f"{brokers} brokers"
        plural = "are" if len(lacking) > 1 else "is"
        yield finding(
            "KRA208",
            f"there {'is' if brokers == 1 else 'are'} {number}, and "
            f"{listed(lacking)} {plural} not in the description.",
        )


def _transaction_log(cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding if the transaction log's min ISR does not fit its replicas."""
    keys = (_FACTOR_OF[_TRANSACTIONS], _TRANSACTION_MIN_ISR)
    settings = [_lowest(cluster, key) for key in keys]
    factor, min_isr = settings[0] or _USUAL, settings[1] or _USUAL_MIN_ISR
    if settings == [None, None] or factor == 1 or len(cluster.brokers) < _USUAL:
        return
    if min_isr == 1 or min_isr >= factor:
        yield finding("KRA206", f"{keys[1]} is {min_isr}, {keys[0]} {factor}.", _TRANSACTIONS)


def _lowest(cluster: Cluster, key: str) -> int | None:
    """The lowest value that the brokers have; None if it is not known."""
    values = [whole_number(text) for text in _values(cluster, key)]
    return min((value for value in values if value is not None), default=None)


def _values(cluster: Cluster, key: str) -> list[str]:
    """What running brokers report, or the description states for all of them."""
    if cluster.observed is not None:
        return list(cluster.observed.broker_values(key).values())
    return [cluster.broker_settings[key]] if key in cluster.broker_settings else []


def _timers(cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding if leaders drop followers before the controller sees that one is dead."""
    observed = cluster.observed
    if observed is None:
        return
    values = observed.broker_values("replica.lag.time.max.ms").values()
    lags = [lag for value in values if (lag := whole_number(value))]
    for name, session in session_timeout(cluster, observed).items():
        if lags and session >= min(lags):
            key = name.replace("_", ".")
            yield finding("KRA305", f"{key} is {session}, replica.lag.time.max.ms {min(lags)}.")


def _racks(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about racks that are not known, too few, or of different sizes."""
    unknown = [broker for broker, rack in cluster.brokers.items() if rack is None]
    sizes = Counter(rack for rack in cluster.brokers.values() if rack is not None)
    if not sizes:
        yield finding("KRA310", "the racks of the brokers are not known.")
        return
    if unknown:
        names = listed([str(broker) for broker in unknown])
        plural = "brokers" if len(unknown) > 1 else "broker"
        yield finding("KRA309", f"the rack of {plural} {names} is not known.")
    if len(sizes) == 2 and not unknown:
        yield finding("KRA301", f"the only racks are {listed(cluster.racks)}.")
    if len(set(sizes.values())) > 1:
        words = [f"{rack} has {size}" for rack, size in sorted(sizes.items())]
        yield finding("KRA311", f"of the brokers, {listed(words)}.")


def check_setting(config: Config, model: FailureModel) -> Iterator[Finding]:
    """Yield the risks that an audit would find in any topic and producer with these settings."""
    problems = [*_copies("", config), *check_producer(config, model)]
    if config.unclean_leader_election_enable:
        problems.append(finding("KRA302", "unclean leader election is on."))
    yield from (problem for problem in problems if problem.rule.weight == RISK)


def check_producer(config: Config, model: FailureModel) -> Iterator[Finding]:
    """Yield the findings about a producer's settings under a failure model."""
    if config.acks != "all":
        yield finding("KRA404", f"the producer runs with acks={config.acks}.")
    if config.retries == 0:
        yield finding("KRA403", "the producer runs with retries=0.")
    if not config.enable_idempotence:
        yield finding("KRA405", "the producer runs without idempotence.")
    if config.delivery_timeout_ms is None:
        return
    budget = config.delivery_timeout_ms / 1000.0
    detection = detection_seconds(config, model)
    if budget <= detection:
        yield finding(
            "KRA401",
            f"delivery.timeout.ms is {as_given(budget)} s; noticing a dead broker takes "
            f"{as_given(detection)} s.",
        )


def check_delivery_timeout(
    result: Reliability,
    goals: Goals,
    refused: Mapping[int, float] | None = None,
    topic: str = "",
    load_is_given: bool = True,
) -> Iterator[Finding]:
    """Yield a finding if producers give up more records than the goals accept.

    Without a goal for refused records that for time without writes counts, as a share of records.

    refused: ``delivery.timeout.ms`` to the records given up a year with the recommended setting.
    load_is_given: else no number of records is said, unless a goal is one.
    """
    timeout_ms = result.config.delivery_timeout_ms
    records_per_year = result.load.records_per_second * 3600.0 * HOURS_PER_YEAR
    limit = goals.records_refused_per_year
    if limit is None:
        share = goals.write_unavailability
        limit = records_per_year * (_USUAL_UNAVAILABILITY if share is None else share)
    given_up = result.records_refused_per_year
    if timeout_ms is None or given_up <= limit:
        return
    stopped = result.write_unavailability + result.write_stalled
    given_up_share = min(given_up / (stopped * records_per_year), 1.0) if stopped else 1.0
    if given_up_share < _LEAST_GIVEN_UP and goals.records_refused_per_year is None:
        return
    of_topic = f" to {topic}" if topic else ""
    timeout = f"delivery.timeout.ms is {as_given(timeout_ms / 1000.0)} s: "
    if not load_is_given and goals.records_refused_per_year is None:
        share_failing = (
            f"{percent(given_up_share)} of the sends{of_topic} fail that are made while writes are"
        )
        yield finding("KRA402", f"{timeout}{share_failing} refused.")
        return
    yield finding(
        "KRA402",
        f"{timeout}{significant(given_up)} "
        f"failed sends a year{of_topic}, {percent(given_up_share)} of those made while writes are "
        "refused."
        f"{_refused_by_timeout(refused or {})}",
    )


def _refused_by_timeout(refused: Mapping[int, float]) -> str:
    """Return how many records each delivery timeout gives up; "" for fewer than two timeouts."""
    if len(refused) < 2:
        return ""
    amounts = [
        f"{significant(refused[ms])} after {as_given(ms / 1000.0)} s" for ms in sorted(refused)
    ]
    return f" Failed sends a year with the recommended setting: {listed(amounts)}."


def check_replacement(result: Reliability, goals: Goals, topic: str = "") -> Iterator[Finding]:
    """Yield a finding if losses by an empty, replaced broker that leads matter.

    They do if they use up half of a goal for losses, or make a tenth of losses that are not rare.
    """
    share = result.empty_leader_share() or 0.0
    if _matters(share, result, goals):
        of_topic = f" of {topic}" if topic else ""
        yield finding(
            "KRA312",
            f"{percent(share)} of the modelled losses{of_topic} are due to a broker that leads "
            "empty.",
        )


def _matters(share: float, result: Reliability, goals: Goals) -> bool:
    """Whether a share of the losses uses up a goal, or is large where none is met."""
    limits = {name: limit for name in _LOSSES if (limit := goals.limits.get(name)) is not None}
    if not limits:
        return share >= _LEAST_SHARE_OF_MISSED and not is_rare(result.mean_years_to_loss)
    for name, limit in limits.items():
        value = getattr(result, name)
        if value > limit and share >= _LEAST_SHARE_OF_MISSED:
            return True
        if value <= limit and share * value > _LEAST_SHARE_OF_LIMIT * limit:
            return True
    return False
