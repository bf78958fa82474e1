"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from advisor.catalog import model_names
from advisor.errors import InputError
from advisor.formatting import counted
from advisor.reliability import measure_table

if TYPE_CHECKING:
    from advisor.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])


class _CardName(click.types.StringParamType):
    """A shipped failure-model card or a path; who names none is told which there are."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        """See `click.ParamType`."""
        del param, ctx
        *others, last = model_names()
        return (
            "Name the failure-model card that is nearest to your cluster: "
            f"{', '.join(others)} or {last} (advisor cards tells them apart)"
        )


CARD = _CardName()
CLUSTER = (
    # Several files describe one cluster together.
    click.argument("cluster", nargs=-1, required=True),
    click.option("--racks", help='Racks: a TOML file with [racks], or "1=a,2=a,3=b".'),
    click.option("--controllers", help="Racks of the controllers, in the same forms."),
    click.option(
        "--model",
        type=CARD,
        required=True,
        help="Card of what breaks and how often: a name or a path.",
    ),
    click.option("--kafka-version", help='Such as "4.1"; overrides what the cluster says.'),
    click.option("--mode", help="kraft or zookeeper, where the cluster does not say it."),
    click.option("--elr", help="on or off: eligible leader replicas (KIP-966), where it does not."),
    click.option("--command-config", help="For host:port: a Java client's properties file."),
    click.option("--timeout", type=float, help="For host:port: total seconds; 30 unless given."),
)
OF_TOPICS = (
    click.option("--min-isr", type=int, help="min.insync.replicas."),
    click.option("--unclean/--clean", default=None, help="unclean.leader.election.enable."),
)
CONFIG = (click.option("--rf", type=int, help="replication.factor."), *OF_TOPICS)
PRODUCER = (
    click.option("--acks", help="all, 1 or 0."),
    click.option("--retries", type=int, help="The producer's retries."),
    click.option("--delivery-timeout-ms", type=int, help="The producer's delivery.timeout.ms."),
)
LOAD = (
    click.option("--partitions", type=int, help="Partitions written to."),
    click.option("--records-per-second", type=float, help="Over all partitions."),
    click.option("--record-bytes", type=int, help="Mean size of a record."),
    click.option("--retention-hours", type=float, help="How long records are kept."),
)


def limit_options() -> tuple[Callable[[F], F], ...]:
    """Return an option for each measure that a goal may limit."""
    return tuple(
        click.option(
            f"--{name.replace('_', '-')}",
            type=float,
            help=f"Goal: {measure_table.measure(name).limit}; none unless given.",
        )
        for name in measure_table.goals()
    )


GOALS = (
    *limit_options(),
    click.option("--survive", help="Goal: rack or broker."),
    click.option(
        "--minutes-per-loss",
        type=float,
        help="How many minutes without writes are as bad as losing records once; 10080, a week.",
    ),
)
LOWER = (
    click.option(
        "--allow-lower-durability",
        is_flag=True,
        help="Write commands and files even where they lower min.insync.replicas.",
    ),
)
CHECKPOINT = (
    click.option(
        "--checkpoint",
        metavar="DIR",
        help="Keep finished blocks in this folder; the same command resumes from there.",
    ),
)
EXPLAIN = (
    click.option(
        "--explain",
        is_flag=True,
        help="Also print what stands behind the verdict: reasons, findings, assumptions.",
    ),
)
HOW_SURE = (
    click.option(
        "--how-sure/--no-how-sure",
        default=True,
        help="Say how sure that is: whether the choice stays the best in 128 random cases, with "
        "numbers from the ranges of the card. On by default; it takes seconds.",
    ),
)
COUNTS = (
    click.option("--brokers", type=int, help="How many brokers were watched."),
    click.option("--years", type=float, help="For how many years."),
    click.option("--since", help="Instead of --years, for files with dates: from when on, in UTC."),
    click.option("--until", help="And until when."),
    click.option(
        "--count",
        "counts",
        multiple=True,
        metavar="MECHANISM=N",
        help="How many events of a mechanism there were, a zero too; repeatable.",
    ),
    click.option(
        "--minutes",
        "lengths",
        multiple=True,
        metavar="MECHANISM=M,...",
        help="How long the outages that were counted lasted; repeatable.",
    ),
    click.option(
        "--refused-minutes",
        type=float,
        help="Minutes without writes that a partition had, to compare with what the cards expect.",
    ),
)
JSON = (click.option("--json", "as_json", is_flag=True, help="Print JSON."),)


def with_options(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[F], F]:
    """Give a command the options of some groups, in their order."""

    def decorate(function: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


def with_controller(cluster: Cluster, options: dict[str, Any]) -> Cluster:
    """Return the cluster with what --mode and --elr say of it."""
    stated: dict[str, Any] = {}
    if options["mode"] is not None:
        stated["mode"] = options["mode"]
    elr = options["elr"]
    if elr is not None:
        if elr not in ("on", "off"):
            raise InputError(f"--elr {elr}: write on or off.")
        stated["eligible_leader_replicas"] = elr == "on"
    return replace(cluster, **stated)


# Options that say what topics have where a description does not.
_OF_TOPICS = {"min_isr": "min.insync.replicas", "unclean": "unclean.leader.election.enable"}


def with_settings_given(
    cluster: Cluster, options: dict[str, Any]
) -> tuple[Cluster, dict[str, str]]:
    """Give topics that state none the settings of the options.

    Returns the cluster, and of each option that is not used a sentence that says why.
    """
    unused: dict[str, str] = {}
    if not cluster.topics:
        return cluster, unused
    if options.get("rf") is not None:
        unused["rf"] = f"--rf {options['rf']} is not used: every topic has the replicas described."
    for option, key in _OF_TOPICS.items():
        value = options.get(option)
        if value is None:
            continue
        written = str(value).lower()
        without = [topic for topic in cluster.topics if key not in topic.configs]
        if not without:
            unused[option] = f"{key}={written} is not used: every topic states its own."
            continue
        names = {topic.name for topic in without}
        topics = tuple(
            replace(topic, configs={**topic.configs, key: written})
            if topic.name in names
            else topic
            for topic in cluster.topics
        )
        note = (
            f"{key}={written}, as the option says, was taken for {counted(len(without), 'topic')} "
            "without a value in the description."
        )
        cluster = replace(cluster, topics=topics, notes=(*cluster.notes, note))
    return cluster, unused
