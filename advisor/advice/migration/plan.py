"""The migration plan: which commands to run, in which order.

A change of `min.insync.replicas` alone is made at once; where replicas are added, they are copied
first. Changing `min.insync.replicas` clears the eligible leader replicas (KIP-966), so every
change is made while all replicas are in sync.

Only the selected topics are changed; a plan for some topics says nothing about the brokers'
defaults. The brokers' default would change every topic without a value of its own, so the command
for it is a comment. Internal topics and topics to come get RF 3 and min ISR 2 or more where there
are three brokers. Where a managed service does not take Kafka's tools, the plan has its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.advice.migration.maintenance import maintenance_files, rack_loss_files
from advisor.advice.migration.moves import Move, copy_comments
from advisor.advice.migration.other_clients import other_client_files
from advisor.advice.migration.planned_changes import (
    MIN_ISR,
    MOST_MOVES,
    UNCLEAN,
    UNCLEAN_OPTION,
    OptionChange,
    PlannedChanges,
    batches,
    crowded_broker_words,
    held_back_words,
    in_words,
    replicas_needed,
    topics_after,
    with_usual_floor,
)
from advisor.advice.migration.properties import (
    FLUSH_EVERY_SECOND,
    SERVER_PROPERTIES,
    broker_properties,
    producer_files,
    strimzi_topics,
)
from advisor.advice.migration.tools import Tools, tools_of
from advisor.advice.phrases import listed
from advisor.advice.situation import Situation
from advisor.cluster import Cluster, Topic
from advisor.cluster.broker_presence import presence_of
from advisor.cluster.managed_services import AIVEN, CONFLUENT_CLOUD, MSK_SERVERLESS, SERVICES
from advisor.decision import Action
from advisor.formatting import counted
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import default, parse_version
from advisor.reliability.workload import Workload
from advisor.rendering import (
    FileText,
    Properties,
    ShellLine,
    ShellScript,
    ShellWord,
    joined,
    property_comments,
    shell,
    shell_comment,
    shell_commented,
    shell_script,
    shell_word,
)

DEFAULT_THROTTLE = 50_000_000
# Linux takes 128 KiB in one argument, which 500 of the longest names fill.
_MOST_NAMES = 200


@dataclass(frozen=True)
class PlanLines:
    """The shell lines of a plan, by purpose.

    Every purpose is copied for itself: `variables` are what each of them sets first. `warnings`
    are comments that come before everything.
    """

    preflight: tuple[ShellLine, ...] = ()
    steps: tuple[ShellLine, ...] = ()
    verify: tuple[ShellLine, ...] = ()
    rollback: tuple[ShellLine, ...] = ()
    variables: tuple[ShellLine, ...] = ()
    warnings: tuple[ShellLine, ...] = ()

    @property
    def in_order(self) -> tuple[ShellLine, ...]:
        """All lines but the rollback, as one script."""
        lines = (*self.preflight, *self.steps, *self.verify)
        return (*self.warnings, *self.alone(lines))

    def alone(self, lines: Sequence[ShellLine]) -> tuple[ShellLine, ...]:
        """Return lines with the variables that their commands need; comments need none."""
        runs = any(not line.text.startswith("#") for line in lines)
        return (*self.variables, *lines) if runs else tuple(lines)


@dataclass(frozen=True)
class MigrationPlan:
    """Shell lines by purpose, and the files that the lines and the clients need.

    shell: commands, and comments. If a line fails, the following ones must not run (the scripts use
        ``set -e``).
    lowered: what the plan makes less durable, such as "topic orders: min.insync.replicas from 2 to
        1".
    after: the selected topics as they are after the plan was carried out.
    crowded: which broker then holds a replica of every partition, in a sentence; "" for none.
    """

    shell: PlanLines
    written: Mapping[str, FileText]
    moves: tuple[Move, ...]
    lowered: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    after: tuple[Topic, ...] = ()
    crowded: str = ""

    @property
    def preflight(self) -> tuple[str, ...]:
        """The lines that check whether the change can be made."""
        return _texts((*self.shell.warnings, *self.shell.alone(self.shell.preflight)))

    @property
    def steps(self) -> tuple[str, ...]:
        """The lines that make the change."""
        return _texts(self.shell.alone(self.shell.steps))

    @property
    def verify(self) -> tuple[str, ...]:
        """The lines that check the result."""
        return _texts(self.shell.alone(self.shell.verify))

    @property
    def rollback(self) -> tuple[str, ...]:
        """The lines that undo the change."""
        return _texts(self.shell.alone(self.shell.rollback))

    @property
    def files(self) -> dict[str, str]:
        """File name to content, without the scripts."""
        return {name: content.text for name, content in self.written.items()}

    @property
    def lines(self) -> list[str]:
        """All lines to run, in order, without the rollback."""
        return list(_texts(self.shell.in_order))

    @property
    def scripts(self) -> dict[str, str]:
        """The lines as shell scripts: commands.sh, and rollback.sh to undo it."""
        return {name: script.text for name, script in self.rendered_scripts.items()}

    @property
    def rendered_scripts(self) -> dict[str, ShellScript]:
        """The same, as they are written."""
        lines = self.shell
        return {
            "commands.sh": _script(lines.in_order),
            "rollback.sh": _script(lines.alone(lines.rollback)),
        }


def _texts(lines: Sequence[ShellLine]) -> tuple[str, ...]:
    return tuple(line.text for line in lines)


def _script(lines: Sequence[ShellLine]) -> ShellScript:
    return shell_script((shell("#!/bin/sh"), shell("set -e"), *lines))


def make_plan(
    cluster: Cluster,
    config: Config,
    load: Workload,
    bytes_per_second: int = DEFAULT_THROTTLE,
    topics: Sequence[str] | None = None,
    planned: PlannedChanges | None = None,
    held_back: Sequence[str] = (),
) -> MigrationPlan:
    """Return the plan that brings a described cluster's topics to a configuration, or each to its.

    topics: names of those to change; None for all and the brokers' defaults.
    planned: what changes, topic by topic; held_back: what it leaves out.
    """
    tools = tools_of(cluster, config.kafka_version)
    service = COMMANDS.get(cluster.managed or "")
    files = _client_and_maintenance_files(tools, cluster, config, load)
    for_new = None
    if topics is None and service is None:
        for_new = with_usual_floor(config, len(cluster.brokers))
        files[SERVER_PROPERTIES] = broker_properties(for_new, len(cluster.racks) > 1)
    names = None if topics is None else set(topics)
    selected = [t for t in cluster.topics if names is None or t.name in names]
    if not selected:
        return _plan_for_new_topic(tools, cluster, config, load, files)
    planned = planned or PlannedChanges.of(cluster, selected, config)
    moves, changes = planned.moves, planned.changes
    duration = copy_comments(moves, selected, load, cluster.replica_bytes, bytes_per_second)
    lowered = tuple(planned.lowered())
    planned_topics = topics_after(selected, moves, planned.settings)
    crowded = crowded_broker_words(planned_topics, cluster, config)
    first = _comments(_marked(cluster), in_words(lowered), held_back_words(held_back), crowded)
    if service is not None:
        return _plan_of_service(tools, service, planned, config, first, held_back, files)
    lines = PlanLines(
        preflight=(
            *_preflight(tools, config, bool(changes)),
            *_to_missing(moves, presence_of(cluster).missing),
        ),
        steps=(
            *_steps(tools, planned, bytes_per_second, duration, held_back),
            *_default_for_new(tools, for_new, cluster.managed),
            *_by_rules(planned.by_rules, planned.targets),
        ),
        verify=tuple(_verification(tools, planned.topics)),
        rollback=(
            *_rollback(tools, changes, moves, bytes_per_second),
            *_inherited(tools, changes, cluster),
            *_default_rollback(tools, None if cluster.managed else for_new),
        ),
        variables=tools.variables,
        warnings=first,
    )
    files |= rack_loss_files(config, cluster.brokers, tools, planned_topics)
    files |= planned.files()
    return MigrationPlan(lines, files, moves, lowered, tuple(held_back), planned_topics, crowded)


def _marked(cluster: Cluster) -> str:
    """What to know of the managed service that runs the cluster; "" if none does."""
    return "" if cluster.managed is None else SERVICES[cluster.managed].marked


def _plan_of_service(
    tools: Tools,
    commands: ServiceCommands,
    planned: PlannedChanges,
    config: Config,
    first: tuple[ShellLine, ...],
    held_back: Sequence[str],
    files: Mapping[str, FileText],
) -> MigrationPlan:
    """The plan where a managed service moves replicas and sets options with its own commands."""
    steps = tuple(steps_there(commands, planned))
    lines = PlanLines(
        preflight=tuple(_preflight(tools, config, bool(planned.changes))),
        steps=steps or _comments("Nothing to run here."),
        verify=tuple(_verification(tools, planned.topics)),
        rollback=tuple(rollback_there(commands, planned)),
        variables=(*tools.variables, *commands.variables),
        warnings=first,
    )
    moves = planned.moves if commands.changes_replicas else ()
    planned_topics = topics_after(planned.topics, moves, planned.settings)
    lowered = tuple(planned.lowered())
    return MigrationPlan(lines, files, (), lowered, tuple(held_back), planned_topics)


def _client_and_maintenance_files(
    tools: Tools, cluster: Cluster, config: Config, load: Workload
) -> dict[str, FileText]:
    of_brokers = maintenance_files(config, cluster.brokers, tools)
    if cluster.managed is not None:
        of_brokers.pop("kubernetes.yaml")
    return {
        **producer_files(config, load),
        **other_client_files(config),
        **({} if cluster.managed in COMMANDS else of_brokers),
    }


def _plan_for_new_topic(
    tools: Tools,
    cluster: Cluster,
    config: Config,
    load: Workload,
    files: dict[str, FileText],
) -> MigrationPlan:
    service = COMMANDS.get(cluster.managed or "")
    crowded = crowded_broker_words((), cluster, config) if service is None else ""
    lines = PlanLines(
        steps=tuple(_creation(tools, config, load, service)),
        verify=(tools.describe("my-topic"),),
        rollback=_comments("The topic is new: there is nothing to go back to."),
        variables=(*tools.variables, *(() if service is None else service.variables)),
        warnings=_comments(_marked(cluster), crowded),
    )
    if service is not None:
        return MigrationPlan(lines, files, ())
    topics = strimzi_topics([("my-topic", load.partitions)], config)
    files = {**files, "kafka-topics.yaml": topics}
    files |= rack_loss_files(config, cluster.brokers, tools, ())
    return MigrationPlan(lines, files, (), crowded=crowded)


def with_flush(plan: MigrationPlan, cluster: Cluster, config: Config) -> MigrationPlan:
    """Return the plan with comments on flushing every second, which needs a restart of brokers."""
    files = dict(plan.written)
    defaults = files.get(SERVER_PROPERTIES)
    if isinstance(defaults, Properties):
        files[SERVER_PROPERTIES] = joined(defaults, property_comments(FLUSH_EVERY_SECOND))
    tools = tools_of(cluster, config.kafka_version)
    flush_ms = tools.alter_topic("my-topic", {"flush.ms": "1000"})
    steps = (*plan.shell.steps, *_comments(*FLUSH_EVERY_SECOND), shell_commented(flush_ms))
    return replace(plan, shell=replace(plan.shell, steps=steps), written=files)


def _comments(*sentences: str) -> tuple[ShellLine, ...]:
    """Return sentences as shell comments; empty ones are left out."""
    return tuple(map(shell_comment, filter(None, sentences)))


def _creation(
    tools: Tools, config: Config, load: Workload, service: ServiceCommands | None
) -> Iterator[ShellLine]:
    yield shell_comment("A new topic; put its own name in place of my-topic:")
    if service is not None:
        setting = config.replication_factor or 1, config.min_insync_replicas or 1
        if service.create is None:
            yield shell_comment("Create it as you do.")
        else:
            yield service.create("my-topic", load.partitions, setting)
        return
    configs = {}
    if default(UNCLEAN_OPTION, config.kafka_version) and not config.unclean_leader_election_enable:
        configs[UNCLEAN] = "false"
    if config.rules.min_isr_supported:
        configs[MIN_ISR] = str(config.min_insync_replicas)
    assert config.replication_factor is not None
    yield tools.create("my-topic", load.partitions, config.replication_factor, configs)


def _preflight(tools: Tools, config: Config, changes: bool) -> Iterator[ShellLine]:
    yield shell_comment(
        "Before anything else: both lists must be empty, that is, every partition has a leader"
    )
    yield shell_comment("and every replica is in sync. What has no leader cannot be moved.")
    if changes and config.eligible_leader_replicas:
        yield shell_comment(
            f"Changing {MIN_ISR} clears the eligible leader replicas (KIP-966): a partition "
            "that depends on them is then left without a leader."
        )
    yield tools.unavailable()
    yield tools.under_replicated()


def _to_missing(moves: Sequence[Move], missing: Collection[int]) -> Iterator[ShellLine]:
    """Yield a comment on brokers that get replicas and do not serve any now."""
    getting = {broker for move in moves for broker in {*move.after} - {*move.before}}
    names = [str(broker) for broker in sorted(getting & {*missing})]
    if names:
        brokers = f"brokers {listed(names)}" if len(names) > 1 else f"broker {names[0]}"
        yield shell_comment(
            f"Replicas are to be copied to {brokers} too: there are no others. Bring it back first."
        )
        yield shell_comment(
            "If it is gone for good, put a new broker in its place, say --racks with its id, and "
            "ask again."
        )


def _steps(
    tools: Tools,
    planned: PlannedChanges,
    bytes_per_second: int,
    duration: Iterable[str],
    held_back: Sequence[str],
) -> Iterator[ShellLine]:
    changes, moves = planned.changes, planned.moves
    growing = {move.topic for move in moves if len(move.after) > len(move.before)}
    at_once = [c for c in changes if c.topic.name not in growing]
    afterwards = [c for c in changes if c.topic.name in growing]
    if not changes and not moves and not planned.by_rules:
        yield shell_comment(
            "Nothing else to change."
            if held_back
            else "Nothing to change: every topic has these settings already."
        )
    yield from _alterations(tools, at_once)
    if moves:
        yield _copying(tools, sum(move.copies for move in moves), bytes_per_second)
        yield from map(shell_comment, duration if tools.throttles else ())
        yield from _moved_in_batches(tools, moves, bytes_per_second)
    if afterwards:
        yield shell_comment("Once the copies are in sync:")
    yield from _alterations(tools, afterwards)


def _copying(tools: Tools, copies: int, bytes_per_second: int) -> ShellLine:
    """Return how many replicas are copied and how fast, as a comment."""
    copied = counted(copies, "replica")
    if not tools.throttles:
        return shell_comment(
            f"Copy {copied}. Kafka {tools.kafka_version} cannot throttle that (KIP-73 "
            "came with 0.10.1): it takes all of the network and disks that it gets."
        )
    return shell_comment(
        f"Copy {copied}. The throttle is {bytes_per_second:,} bytes/s a broker: set it "
        "to what your network can spare, and above what producers write to a broker, or the copy "
        "never ends."
    )


def _moved_in_batches(
    tools: Tools, moves: Sequence[Move], bytes_per_second: int
) -> Iterator[ShellLine]:
    groups = batches(moves)
    if len(groups) > 1:
        yield shell_comment(
            f"In {len(groups)} batches of at most {MOST_MOVES:,} partitions, one after another."
        )
    for batch in groups:
        yield tools.reassign(batch.there, bytes_per_second)
        if batch is groups[0] and not tools.throttles:
            yield shell_comment(
                "Wait until every partition is complete. If it gets no further, see whether all"
            )
            yield shell_comment("brokers are up.")
        elif batch is groups[0]:
            again = " with --additional and" if parse_version(tools.kafka_version) >= (2, 6) else ""
            yield shell_comment(
                "Wait until every partition is complete; that also removes the throttle. If it"
            )
            yield shell_comment(
                "gets no further, see whether all brokers are up, and raise the throttle: in"
            )
            yield shell_comment(
                f"another shell, the line above{again or ' with'} a higher --throttle."
            )
        yield tools.await_reassignment(batch.there, len(batch.moves))
        yield tools.elect_preferred(batch.election)


def _alterations(tools: Tools, changes: Sequence[OptionChange]) -> Iterator[ShellLine]:
    settings: dict[str, dict[str, str]] = {}
    for change in changes:
        settings.setdefault(change.topic.name, {})[change.key] = change.after
    for topic, options in settings.items():
        yield tools.alter_topic(topic, options)


def _default_for_new(
    tools: Tools, config: Config | None, managed: str | None
) -> Iterator[ShellLine]:
    """Yield comments on how to set the brokers' default for future topics; None: it stays."""
    if config is None:
        return
    if managed is not None:
        yield shell_comment("For future topics, give the service what server.properties has.")
        return
    for_new = tools.alter_default(MIN_ISR, str(config.min_insync_replicas))
    yield from _elr(tools, config)
    if for_new is None:
        return
    yield shell_comment(
        "For future topics, use server.properties and this command. It is commented out,"
    )
    yield shell_comment("because it also changes every topic without a value of its own at once:")
    yield shell_commented(for_new)
    if config.eligible_leader_replicas:
        yield shell_comment("(it also clears the eligible leader replicas of those topics)")


def _elr(tools: Tools, config: Config) -> Iterator[ShellLine]:
    """Yield comments on how to enable eligible leader replicas, where they are off or may be."""
    line = tools.enable_elr()
    if line is None or config.mode != "kraft":
        return
    if config.eligible_leader_replicas and "eligible_leader_replicas" not in config.explicit:
        yield shell_comment(
            "Eligible leader replicas (KIP-966) are assumed. Check, and enable them if they are"
        )
        yield shell_comment(
            "off; they keep a partition that lost its ISR from an unclean election. Not run:"
        )
        yield shell_commented(tools.features())
        yield shell_commented(line)
    elif not config.eligible_leader_replicas:
        yield shell_comment(
            "Eligible leader replicas (KIP-966) are off. They keep a partition that lost its"
        )
        yield shell_comment(
            "ISR from an unclean election; new clusters have them from 4.1 on. Not run here:"
        )
        yield shell_commented(line)


def _default_rollback(tools: Tools, config: Config | None) -> Iterator[ShellLine]:
    if config is None:
        return
    # With ELR enabled, Kafka refuses to remove the default.
    if config.eligible_leader_replicas:
        line = tools.alter_default(MIN_ISR, str(default("min_insync_replicas", "4.1")))
    else:
        line = tools.unset_default(MIN_ISR)
    if line is not None:
        yield shell_commented(line, "If you set the brokers' default, and it was Kafka's before: ")


def _by_rules(topics: Sequence[Topic], targets: Mapping[str, Config]) -> Iterator[ShellLine]:
    for topic in topics:
        target = targets[topic.name]
        yield shell_comment(
            f"{topic.name} is not changed here: its replicas follow "
            f"confluent.placement.constraints. State {target.replication_factor} replicas there, "
            f"without the observers, and then min.insync.replicas={target.min_insync_replicas}."
        )


def _verification(tools: Tools, targets: Sequence[Topic]) -> Iterator[ShellLine]:
    yield shell_comment("Afterwards: the settings as Kafka has them, and nothing out of sync.")
    names = [topic.name for topic in targets]
    for start in range(0, len(names), _MOST_NAMES):
        yield tools.describe(*names[start : start + _MOST_NAMES])
    yield tools.under_replicated()


def _inherited(
    tools: Tools, changes: Sequence[OptionChange], cluster: Cluster
) -> Iterator[ShellLine]:
    """Yield comments on values that a description shows though they may be the brokers'."""
    if cluster.observed is not None or parse_version(tools.kafka_version) < (2, 2):
        return
    for key in dict.fromkeys(c.key for c in changes if c.before is not None):
        yield shell_comment(
            f"The description shows {key}, but not whether the topic or its brokers set it."
        )
        yield shell_comment("Where it was the brokers' value, let the topic follow them again:")
        yield shell_commented(tools.unset_topic("my-topic", key))


def _rollback(
    tools: Tools, changes: Sequence[OptionChange], moves: Sequence[Move], bytes_per_second: int
) -> Iterator[ShellLine]:
    last_first = batches(moves)[::-1]
    calls_off = [tools.cancel_reassignment(batch.there) for batch in last_first]
    if any(calls_off):
        yield shell_comment("First call off what is still being copied, if anything is:")
        yield from filter(None, calls_off)
    if any(change.before is None for change in changes):
        yield from tools.unsetting
    if changes:
        yield shell_comment(_SETTINGS_BACK)
    elif not moves:
        yield shell_comment("Nothing to undo here.")
    for change in reversed(changes):
        topic, key = change.topic.name, change.key
        if change.before is None:
            yield shell("unset_option {}", tools.unset_topic(topic, key))
        else:
            yield tools.alter_topic(topic, {key: change.before})
    if moves:
        yield shell_comment("Move back:")
        for batch in last_first:
            yield tools.reassign(batch.back, bytes_per_second, instead=True)
            yield tools.await_reassignment(batch.back, len(batch.moves))
            yield tools.elect_preferred(batch.election)


_SETTINGS_BACK = "Rollback of the settings, with all replicas in sync:"

# What is longer belongs into the plan's own files.
_MOST_CHARACTERS = 10_000
_END = "END_OF_FILE"


def topic_command(
    situation: Situation, action: Action, moves: tuple[Move, ...], bytes_per_second: int
) -> str:
    """Return the lines that make a topic's change; "" where nothing may be run, or too much."""
    if action.set_to is None or action.held_back or not situation.topics:
        return ""
    config, cluster, name = action.set_to.config, situation.cluster, action.topic
    planned = PlannedChanges.to(cluster, {name: config}, moves)
    plan = make_plan(cluster, config, situation.load, bytes_per_second, [name], planned)
    if not (planned.changes or planned.moves):
        return ""
    shell = plan.shell
    lines = [
        *(line.text for line in shell.variables),
        *_files(plan.files, planned.moves),
        *(line.text for line in shell.steps),
    ]
    command = "\n".join(lines) + "\n"
    return command if len(command) <= _MOST_CHARACTERS else ""


def _files(texts: dict[str, str], moves: Sequence[Move]) -> Iterator[str]:
    """Yield what writes the files that the lines read."""
    for batch in batches(moves) if moves else ():
        for name in (batch.there, batch.election):
            yield f"cat > {name} <<'{_END}'\n{texts[name].rstrip()}\n{_END}"


Copies = tuple[int, int]
"""Replicas and min ISR."""


@dataclass(frozen=True)
class ServiceCommands:
    """How a service changes and creates topics.

    change: gives a topic its replicas and min ISR, as far as they can be set; None if neither can.
    create: creates a topic with so many partitions; None if no command does.
    """

    change: Callable[[str, Copies], ShellLine] | None = None
    create: Callable[[str, int, Copies], ShellLine] | None = None
    variables: tuple[ShellLine, ...] = ()
    changes_replicas: bool = False


def _min_isr_of_confluent(setting: Copies) -> ShellWord:
    return shell_word(f"{MIN_ISR}={min(setting[1], 2)}")


COMMANDS: Mapping[str, ServiceCommands] = {
    MSK_SERVERLESS: ServiceCommands(),
    CONFLUENT_CLOUD: ServiceCommands(
        change=lambda topic, setting: shell(
            "confluent kafka topic update {} --config {}",
            *(shell_word(topic), _min_isr_of_confluent(setting)),
        ),
        create=lambda topic, partitions, setting: shell(
            "confluent kafka topic create {} --partitions {} --config {}",
            *(shell_word(topic), partitions, _min_isr_of_confluent(setting)),
        ),
        variables=(
            shell_comment("First: confluent login, and confluent kafka cluster use lkc-..."),
        ),
    ),
    AIVEN: ServiceCommands(
        change=lambda topic, setting: shell(
            'avn service topic-update "$SERVICE" {} --replication {} --min-insync-replicas {}',
            *(shell_word(topic), *setting),
        ),
        create=lambda topic, partitions, setting: shell(
            'avn service topic-create "$SERVICE" {} --partitions {} --replication {} '
            "--min-insync-replicas {}",
            *(shell_word(topic), partitions, *setting),
        ),
        variables=(shell("SERVICE=${SERVICE:?say the name of your Aiven service}"),),
        changes_replicas=True,
    ),
}
"""By name of the service: those that do not take Kafka's tools."""


def steps_there(commands: ServiceCommands, planned: PlannedChanges) -> Iterator[ShellLine]:
    """Yield the commands that change the planned topics, as far as the service can."""
    for topic in _changing(planned):
        factor = planned.targets[topic.name].replication_factor or 1
        if not commands.changes_replicas and factor != replicas_needed(topic):
            yield shell_comment(
                f"{topic.name} keeps its {counted(replicas_needed(topic), 'replica')}: the service "
                "decides on them."
            )
        if commands.change is not None and _can_change(commands, planned, topic):
            min_isr = planned.targets[topic.name].min_insync_replicas or 1
            yield commands.change(topic.name, (factor, min_isr))


def rollback_there(commands: ServiceCommands, planned: PlannedChanges) -> Iterator[ShellLine]:
    """Yield the commands that give the planned topics back what they had."""
    lines = [
        commands.change(topic.name, (replicas_needed(topic), topic.min_insync_replicas or 1))
        for topic in _changing(planned)
        if commands.change is not None and _can_change(commands, planned, topic)
    ]
    yield shell_comment(_SETTINGS_BACK if lines else "Nothing to undo here.")
    yield from lines


def _can_change(commands: ServiceCommands, planned: PlannedChanges, topic: Topic) -> bool:
    min_isr = planned.targets[topic.name].min_insync_replicas or 1
    return commands.changes_replicas or min_isr != (topic.min_insync_replicas or 1)


def _changing(planned: PlannedChanges) -> list[Topic]:
    names = {change.topic.name for change in planned.changes}
    names |= {move.topic for move in planned.moves}
    return [topic for topic in planned.topics if topic.name in names]
