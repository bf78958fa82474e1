"""Copies that are no Kafka replicas: what is true of them in place of a judgement."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.cluster.topic import DISKLESS, TIERED, Topic

_MOST_NAMES = 5
_TRUE_OF = {
    # KIP-1150: the broker acknowledges once a batch is in object storage and its place is known.
    DISKLESS: "are diskless: a record is in object storage before it is acknowledged, and the "
    "brokers listed as replicas keep no copy of their own, so that neither replication factor nor "
    "min ISR says what is lost",
    # KIP-405: closed segments are uploaded; what is not is in the replicas' logs alone.
    TIERED: "are tiered: what is uploaded survives the loss of all brokers, so that at most what is"
    " not uploaded yet is lost, the active segment at least",
}


def set_aside_words(topics: Sequence[Topic]) -> tuple[str, ...]:
    """Say what is true of topics that are not judged, a sentence for each kind.

    topics: diskless and tiered ones.
    """
    sentences = []
    for storage, true_of in _TRUE_OF.items():
        names = [topic.name for topic in topics if topic.storage == storage]
        if names:
            more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
            listed = ", ".join(names[:_MOST_NAMES])
            sentences.append(
                f"Not judged, and not touched by any plan: {listed}{more}. They {true_of}."
            )
    return tuple(sentences)


def observers_words(topics: Sequence[Topic]) -> str:
    """Say that observers are not judged as replicas; "" if no topic has any."""
    observed = [topic for topic in topics if topic.has_observers]
    if not observed:
        return ""
    brokers = sorted({b for topic in observed for p in topic.partitions for b in p.observers})
    more = f" and {len(brokers) - _MOST_NAMES:,} more" if len(brokers) > _MOST_NAMES else ""
    more_topics = f" and {len(observed) - 1:,} more topics" if len(observed) > 1 else ""
    return (
        f"Observers of {observed[0].name}{more_topics} (broker{'s' * (len(brokers) > 1)} "
        f"{', '.join(map(str, brokers[:_MOST_NAMES]))}{more}) are asynchronous copies: outside the "
        "ISR by design, they neither acknowledge nor are elected, and do not count as replicas. If "
        "they are promoted, writes stop for less time than said here: no other setting is weighed."
    )
