"""Rules about topics that Kafka and its frameworks create by themselves, KRA201 to KRA208."""

from __future__ import annotations

from advisor.advice.findings.rule import NOTE, RISK, Rule

CREATED_TOPIC_RULES = (
    Rule(
        "KRA201",
        RISK,
        "The consumer offsets have one replica",
        "One broker down stops every consumer group whose offsets it holds, and losing its disk "
        "loses their positions. offsets.topic.replication.factor changes nothing for a topic "
        "that exists.",
        "Reassign __consumer_offsets to three replicas.",
    ),
    Rule(
        "KRA202",
        RISK,
        "The transaction log has one replica",
        "One broker down stops every transactional producer whose state it holds.",
        "Reassign __transaction_state to three replicas with min.insync.replicas=2.",
    ),
    Rule(
        "KRA203",
        RISK,
        "An internal topic has one replica",
        "One broker down makes it unavailable, one disk lost loses it.",
        "Reassign it to three replicas.",
    ),
    Rule(
        "KRA204",
        RISK,
        "A topic has one replica",
        "Topics that Kafka creates by itself get default.replication.factor, which is 1 unless "
        "set. One broker down stops it, one disk lost loses it.",
        "Reassign it to three replicas; set default.replication.factor to 3, or to the number of "
        "brokers if there are fewer, and auto.create.topics.enable=false.",
    ),
    Rule(
        "KRA205",
        RISK,
        "A framework's own topic has one replica",
        "The framework keeps its state in it: losing it loses that.",
        "Reassign it to three replicas, and set the framework's own option for topics to come.",
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
)
