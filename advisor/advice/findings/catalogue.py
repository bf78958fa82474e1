"""The catalogue of findings: code, weight, text and remedy of each rule.

A code never changes its meaning. KRA1xx: topics. KRA2xx: topics created by Kafka and its
frameworks. KRA3xx: the cluster and replica placement. KRA4xx: producers.
KRA5xx: the Kafka version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

BROKEN, RISK, NOTE = "broken", "risk", "note"


MIN_ISR, FACTOR, UNCLEAN = "min.insync.replicas", "replication.factor", "unclean"


@dataclass(frozen=True)
class Rule:
    """One entry of the catalogue.

    weight (one of "broken", "risk", "note"): broken: does not work at present. Risk: records may be
        lost or writes refused. Note: information.
    setting: what it is about, by whose line in a file it is shown; "" for the topic's.
    """

    code: str
    weight: str
    title: str
    why: str
    remedy: str
    setting: str = ""


@dataclass(frozen=True)
class Finding:
    """A rule that applies to a topic, to the cluster or to the producers.

    brokers: brokers that are out of sync, of which the finding tells or follows; empty for others.
    own_remedy: what to do in this case; "" if what the rule says.
    """

    rule: Rule
    topic: str
    detail: str
    partitions: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()
    own_remedy: str = ""

    @property
    def remedy(self) -> str:
        """What to do."""
        return self.own_remedy or self.rule.remedy

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.rule.code

    def __str__(self) -> str:
        return f"{self.code} {self.topic + ': ' if self.topic else ''}{self.detail}"

    def to_dict(self) -> dict[str, object]:
        """Return the finding and the texts of its rule as plain JSON data."""
        return {
            "code": self.code,
            "weight": self.rule.weight,
            "title": self.rule.title,
            "topic": self.topic or None,
            "partitions": list(self.partitions),
            "detail": self.detail,
            "why": self.rule.why,
            "remedy": self.remedy,
        }


_CHANGE_VOTERS = (
    "Under KRaft, kafka-metadata-quorum.sh --bootstrap-server $BS describe --status shows the "
    "voters. With kraft.version 1 (see kafka-features.sh --bootstrap-server $BS describe) its "
    "add-controller and remove-controller change them, one at a time. With 0 do not just edit "
    "controller.quorum.voters: new, empty controllers could outvote the old ones and lose the "
    "metadata. Upgrade kraft.version to 1 first (possible since 4.1)."
)
_NO_ISR_CHANGE = (
    "no leader is elected and no ISR changes. Partitions led from that rack go offline, and "
    "acks=all writes time out on every other partition with an in-sync replica in it"
)
_RULES = (
    Rule(
        "KRA101",
        RISK,
        "min.insync.replicas is 1",
        "acks=all waits for the replicas that are in sync, however few: with min ISR 1 that may be "
        "only the leader; if it then fails, records that it acknowledged are lost.",
        "Set min.insync.replicas to 2 with three replicas.",
        setting=MIN_ISR,
    ),
    Rule(
        "KRA102",
        RISK,
        "min.insync.replicas equals the replication factor",
        "Every broker that is down, for patching too, stops all acks=all writes to its partitions.",
        "Set min.insync.replicas to one less than the replication factor. With two replicas add a "
        "third one first: with min ISR 1 a single broker may lose records.",
        setting=MIN_ISR,
    ),
    Rule(
        "KRA103",
        NOTE,
        "min.insync.replicas is above the replication factor",
        "Before Kafka 3.7 no acks=all write can succeed; from 3.7 on, at any feature level, the "
        "value counts as the replication factor (KAFKA-15583).",
        "Add replicas: three for min.insync.replicas=2. Where there is one broker, set it to 1.",
        setting=MIN_ISR,
    ),
    Rule(
        "KRA104",
        BROKEN,
        "A partition has no leader",
        "It can be neither read nor written until a broker that holds its records is back.",
        "Start the brokers of its ISR or ELR. If one of them is up, its log directory may have "
        "failed: see its log. An unclean election is the last resort: it loses records, and "
        "consumers that read committed transactions may hang afterwards (see KRA302).",
    ),
    Rule(
        "KRA105",
        RISK,
        "Replicas are out of sync",
        "The replicas that are missing protect nothing; one more failure may lose records or stop "
        "writes.",
        "Find out why the broker is down or behind before changing any setting.",
    ),
    Rule(
        "KRA106",
        BROKEN,
        "Fewer replicas are in sync than min.insync.replicas asks for",
        "acks=all writes are refused with NOT_ENOUGH_REPLICAS at this moment.",
        "Bring back what is out of the ISR: start brokers that are down; the log of one that is up "
        "says why it is behind. Do not lower min.insync.replicas unless you accept to lose "
        "records. Where it is above the number of replicas, see KRA103.",
    ),
    Rule(
        "KRA107",
        NOTE,
        "min.insync.replicas is not stated",
        "Kafka's default of 1 was assumed. Since 2.2 kafka-topics.sh --bootstrap-server lists "
        "every value that is not the default, the brokers' own included; with --zookeeper, or in "
        "a file written by hand, it may be missing.",
        "Since 2.5 kafka-configs.sh --bootstrap-server $BS --describe --all --entity-type topics "
        "--entity-name T shows it; before, look for min.insync.replicas in server.properties of "
        "the brokers. Set it on the topic.",
    ),
    Rule(
        "KRA108",
        NOTE,
        "Partitions of one topic differ in their number of replicas",
        "A change of the replication factor was left half done: the weakest partition counts.",
        "Finish or undo the reassignment.",
    ),
    Rule(
        "KRA109",
        NOTE,
        "A reassignment is running",
        "The description lists old and new replicas together; the assignment before the move is "
        "judged.",
        "Run kafka-reassign-partitions.sh --bootstrap-server $BS --list (2.6 and newer) until it "
        "lists none; then --verify with the JSON file that started the move, which also removes "
        "its throttle.",
    ),
    Rule(
        "KRA110",
        BROKEN,
        "One in-sync replica is left",
        "The next failure of that broker takes the partition offline, and if its disk is lost, "
        "acknowledged records may be lost with it.",
        "Bring the other replicas back before anything else; restart and move nothing until then.",
    ),
    Rule(
        "KRA111",
        BROKEN,
        "The leader or the ISR is outside the replicas",
        "Kafka elects and counts only replicas: either the description was changed after it was "
        "printed, or the controller's record of the partition is damaged.",
        "Describe the topic again; if it says the same, restart the controller that is active and "
        "look at its log before anything is moved. The partition is not judged.",
    ),
    Rule(
        "KRA201",
        RISK,
        "The consumer offsets have one replica",
        "One broker down stops every consumer group whose offsets it holds, and losing its disk "
        "loses their positions. offsets.topic.replication.factor changes nothing for a topic "
        "that exists.",
        "Reassign __consumer_offsets to three replicas.",
        setting=FACTOR,
    ),
    Rule(
        "KRA202",
        RISK,
        "The transaction log has one replica",
        "One broker down stops every transactional producer whose state it holds.",
        "Reassign __transaction_state to three replicas with min.insync.replicas=2.",
        setting=FACTOR,
    ),
    Rule(
        "KRA203",
        RISK,
        "An internal topic has one replica",
        "One broker down makes it unavailable, one disk lost loses it.",
        "Reassign it to three replicas.",
        setting=FACTOR,
    ),
    Rule(
        "KRA204",
        RISK,
        "A topic has one replica",
        "Topics that Kafka creates by itself get default.replication.factor, which is 1 unless "
        "set. One broker down stops it, one disk lost loses it.",
        "Reassign it to three replicas; set default.replication.factor to 3, or to the number of "
        "brokers if there are fewer, and auto.create.topics.enable=false.",
        setting=FACTOR,
    ),
    Rule(
        "KRA205",
        RISK,
        "A framework's own topic has one replica",
        "The framework keeps its state in it: losing it loses that.",
        "Reassign it to three replicas, and set the framework's own option for topics to come.",
        setting=FACTOR,
    ),
    Rule(
        "KRA206",
        RISK,
        "The transaction log's min.insync.replicas does not fit its replicas",
        "With 1 a committed transaction may be forgotten; with as many as there are replicas, "
        "every restart makes InitProducerId time out.",
        "Set min.insync.replicas=2 with three replicas; where the topic does not exist yet, "
        "transaction.state.log.min.isr=2 and transaction.state.log.replication.factor=3 on every "
        "broker.",
        setting=MIN_ISR,
    ),
    Rule(
        "KRA207",
        RISK,
        "Topics that Kafka creates get one replica",
        "One broker down stops such a topic, one disk lost loses it.",
        "In server.properties of every broker (with Strimzi spec.kafka.config of the Kafka "
        "resource) set the factor to 3, or to the number of brokers where there are fewer, and "
        "restart one after another. It changes no topic that exists. "
        "auto.create.topics.enable=false prevents that clients create topics by mistake.",
    ),
    Rule(
        "KRA208",
        NOTE,
        "Kafka's own topics need more brokers than there are",
        "Kafka creates __consumer_offsets, __transaction_state and (4.2 and newer) "
        "__share_group_state when they are first used, with three replicas by default (its sample "
        "server.properties sets 1). With fewer brokers it cannot (since 0.11): consumer groups "
        "find no coordinator, InitProducerId of transactional producers times out, and share "
        "groups get no records.",
        "Add brokers; or set offsets.topic.replication.factor, "
        "transaction.state.log.replication.factor and share.coordinator.state.topic."
        "replication.factor to the number of brokers, and transaction.state.log.min.isr and "
        "share.coordinator.state.topic.min.isr to one less, at least 1, in server.properties of "
        "every broker, and restart them.",
    ),
    Rule(
        "KRA301",
        RISK,
        "There are two racks only",
        "One of them always holds at least half of the replicas: when it goes, either acknowledged "
        "records may be lost or writes stop, whatever the replication factor.",
        "Add a third rack, or decide whether records or writes matter more, and write down how to "
        "lower min.insync.replicas by hand.",
    ),
    Rule(
        "KRA302",
        RISK,
        "Unclean leader election is on",
        "When no in-sync replica is alive, Kafka elects the first replica that is, whatever it "
        "has: the acknowledged records that it lacks are lost. If it lacks the end of a "
        "transaction, consumers with isolation.level=read_committed hang before that transaction "
        "(KAFKA-20716).",
        "Set unclean.leader.election.enable=false, and elect uncleanly by hand where you must. "
        "Where transactions were used, look for hanging ones afterwards: kafka-transactions.sh "
        "--bootstrap-server $BS find-hanging --topic T (3.0 and newer); its abort ends one, once "
        "you know that no producer is still writing it.",
        setting=UNCLEAN,
    ),
    Rule(
        "KRA304",
        NOTE,
        "There are as many replicas as brokers",
        "Kafka moves no replica by itself, and when a broker is gone for good no other is free to "
        "take its replicas: repair takes as long as replacing the broker.",
        "Have at least one broker more than the replication factor. Replace a broker that is gone "
        "by a new one with the same node.id (broker.id), under KRaft after kafka-storage.sh format "
        "with the cluster's id: it copies what the others have. Start it when every partition has "
        "a leader: an empty broker that is the last of an ISR would lead with an empty log.",
        setting=FACTOR,
    ),
    Rule(
        "KRA305",
        NOTE,
        "The session timeout is not shorter than replica.lag.time.max.ms",
        "Leaders drop a dead follower from the ISR, partition by partition, before the controller "
        "notices. Kafka's defaults let the controller be first, which removes it everywhere at "
        "once (KIP-537).",
        "Make replica.lag.time.max.ms longer than broker.session.timeout.ms (KRaft) or "
        "zookeeper.session.timeout.ms.",
    ),
    Rule(
        "KRA306",
        NOTE,
        "There are more replicas than racks",
        "Some rack holds several replicas of each partition, so that one event takes them "
        "together: four replicas over three racks are worse for it than three.",
        "With three racks use three replicas, or five with min.insync.replicas=3; with two, losing "
        "one costs records or writes whatever the number.",
        setting=FACTOR,
    ),
    Rule(
        "KRA307",
        RISK,
        "All replicas of a partition are in one rack",
        "One switch, one power feed or one zone takes all of them.",
        "Reassign the partition over the racks; set broker.rack on every broker.",
    ),
    Rule(
        "KRA308",
        RISK,
        "Replicas share a rack though another one has none",
        "Losing that rack takes more replicas than it has to: the topic was placed without racks, "
        "or moved by hand.",
        "Reassign the partitions over the racks.",
    ),
    Rule(
        "KRA309",
        NOTE,
        "Racks are known for some brokers only",
        "Nothing can be said about losing a rack. With ZooKeeper, Kafka refuses to create topics "
        "on such a cluster, and kafka-reassign-partitions.sh --generate refuses everywhere; a "
        "KRaft controller takes all brokers without a rack for one rack.",
        "Set broker.rack on every broker, and name the racks with --racks.",
    ),
    Rule(
        "KRA310",
        NOTE,
        "No rack is known",
        "Replicas are assumed to fail independently; a shared rack, switch or zone makes that "
        "wrong.",
        "Name the racks with --racks.",
    ),
    Rule(
        "KRA311",
        NOTE,
        "The racks differ in size",
        "The smaller rack holds as many replicas as the others on fewer brokers, and the loss of "
        "the largest takes more brokers.",
        "Give every rack the same number of brokers.",
    ),
    Rule(
        "KRA312",
        NOTE,
        "A replaced, empty broker may be made leader",
        "With eligible leader replicas (KIP-966) a broker that restarts uncleanly is no longer "
        "eligible. Once none is, Kafka elects the last known leader, whatever its disk holds: a "
        "replaced broker then leads with an empty log, and the others throw theirs away.",
        "Start a replaced, empty broker last. Where a partition then waits for it without a "
        "leader, elect another replica first: kafka-leader-election.sh --bootstrap-server $BS "
        "--election-type unclean --topic T --partition P. It takes the last known leader if that "
        "is up (4.0 even if it is down, KAFKA-19522), else the first replica of the list that is "
        "up, never the longest log. Compare the logs with kafka-dump-log.sh first, and stop a "
        "broker that would be taken before the one with the longest.",
    ),
    Rule(
        "KRA313",
        RISK,
        "The number of controllers is even",
        "A quorum needs more than half of its controllers. An even number survives no more "
        "failures than one controller fewer would, and has one more that can fail.",
        f"Run three or five controllers. {_CHANGE_VOTERS}",
    ),
    Rule(
        "KRA314",
        RISK,
        "All controllers are in one rack",
        f"When that rack fails, {_NO_ISR_CHANGE} (all, if each rack has one).",
        f"Place the controllers in three racks, one in each. {_CHANGE_VOTERS}",
    ),
    Rule(
        "KRA315",
        RISK,
        "The controllers are in two racks only",
        "One of two racks always holds at least half of the controllers. When it fails, "
        f"{_NO_ISR_CHANGE}, although the other rack is up.",
        "Place a controller in a third rack or site; it needs no broker there. " + _CHANGE_VOTERS,
    ),
    Rule(
        "KRA316",
        RISK,
        "One rack holds too many of the controllers",
        "When that rack fails, the controllers of the others are not a majority: until it is back, "
        f"{_NO_ISR_CHANGE} (all, if each rack has one).",
        "Spread the controllers evenly, so that no rack holds half of them or more. "
        + _CHANGE_VOTERS,
    ),
    Rule(
        "KRA317",
        RISK,
        "There is one controller only",
        "While it is down, no leader is elected and no ISR changes. If its disk is lost, the "
        "cluster cannot be managed: brokers keep copies of the metadata, but restoring them is "
        "manual work.",
        f"Run three controllers, in three racks. {_CHANGE_VOTERS}",
    ),
    Rule(
        "KRA318",
        RISK,
        "A broker is down, or in no ISR",
        "Kafka moves no replica by itself: what the broker held stays out of sync until it is back "
        "or replaced.",
        "If it is up, its own log says why it is behind, such as a failed log directory. Else "
        "start it again, with its disks. If they are gone for good, first look for partitions "
        "without a leader whose ISR (or Elr) names it: it must not come back empty before another "
        "replica of these leads, for it would lead with an empty log and the others would throw "
        "theirs away (see KRA312 for how to elect one). Then start an empty broker with the same "
        "node.id (broker.id), under KRaft after kafka-storage.sh format with the cluster's id: it "
        "copies what other brokers have. If it was a controller too, repair the quorum first. Or "
        "reassign its replicas with kafka-reassign-partitions.sh, which moves only partitions that "
        "have a leader. Partitions whose only replica it was are lost.",
    ),
    Rule(
        "KRA401",
        RISK,
        "delivery.timeout.ms ends before a failed leader is replaced",
        "Sends fail while the cluster is still electing a new leader.",
        "Leave delivery.timeout.ms at 120000 or above.",
    ),
    Rule(
        "KRA402",
        NOTE,
        "Sends fail when an outage outlasts delivery.timeout.ms",
        "Only times in which a partition refuses writes count, not the repair of a single broker.",
        "Decide how many sends may fail: recommend takes the limit as --records-refused-per-year, "
        "and its producer.properties has the shortest timeout tried that meets it, or the default "
        "where there is no limit.",
    ),
    Rule(
        "KRA403",
        RISK,
        "The producer does not retry",
        "Every change of leader becomes an error that the application has to handle.",
        "Leave retries at its default and limit the time with delivery.timeout.ms.",
    ),
    Rule(
        "KRA404",
        RISK,
        "acks is not all",
        "With acks=1 the leader answers alone, with acks=0 no broker does: if the leader fails "
        "before the followers have the record, it is lost, whatever min.insync.replicas says.",
        "Set acks=all.",
    ),
    Rule(
        "KRA405",
        NOTE,
        "The producer is not idempotent",
        "A retry can write a record twice or out of order. Where idempotence is only the default, "
        "Kafka's client turns it off without an error if acks is not all or retries is 0, and "
        "before 4.0 also if max.in.flight.requests.per.connection is above 5; since 4.0 it "
        "refuses to start with that.",
        "Set enable.idempotence=true: the producer then refuses to start with such settings, "
        "instead of writing duplicates. Before 0.11, which has no idempotence, set "
        "max.in.flight.requests.per.connection=1: retries then keep the order, and may still write "
        "a record twice.",
    ),
    Rule(
        "KRA501",
        RISK,
        "This Kafka version has known bugs that lose acknowledged records",
        "No setting prevents a loss by a bug, and no rate in a card counts it: the probabilities "
        "shown are those of software that works. About one bug a year that loses records under "
        "acks=all was found and fixed from 2014 to 2024.",
        "Upgrade to the version that has the fixes; data/known_bugs.csv has each bug's source.",
    ),
)

_WEIGHTS = (BROKEN, RISK, NOTE)

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _RULES})
"""Every rule by its code."""


def finding(code: str, detail: str, topic: str = "", partitions: tuple[int, ...] = ()) -> Finding:
    """Return a finding of the rule with this code."""
    return Finding(RULES[code], topic, detail, partitions)


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the distinct findings: broken, then risks, then notes."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: _WEIGHTS.index(f.rule.weight)))
