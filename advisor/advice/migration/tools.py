"""Command lines of Kafka's own tools, by Kafka version.

First version that takes `--bootstrap-server`, read in the sources at each tag: `kafka-topics.sh`
2.2 (KIP-377), `kafka-configs.sh` for topics 2.5, `kafka-leader-election.sh` 2.4 (KIP-460; before it
`kafka-preferred-replica-election.sh`), `kafka-reassign-partitions.sh` 2.6. `--throttle` came in
0.10.1 (KIP-73), `--cancel` and `--additional` in 2.6 (KIP-455). All take `--command-config`;
`kafka-leader-election.sh` since 4.2 (KIP-1147), and `--admin.config` before. `kafka-configs.sh`
came with 0.9; before, `kafka-topics.sh --alter --config` did the same, with `--deleteConfig` in
0.8.1 and `--delete-config` from 0.8.2 on. 0.8.0 has no `kafka-topics.sh`, and its
`kafka-reassign-partitions.sh` takes other options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.cluster import Cluster
from advisor.protocol.rules.versions import Version, parse_version
from advisor.rendering import (
    ShellLine,
    ShellWord,
    shell,
    shell_comment,
    shell_joined,
    shell_lines,
    shell_word,
)

ZOOKEEPER = shell("$ZK")
_OTHER_TOOLS = (
    shell_comment("Kafka 0.8.0 has other tools than these: upgrade the brokers first."),
    shell("command -v kafka-topics.sh"),
)
_UNSET_OPTION = shell_lines(
    """\
# Kafka may refuse to remove what is not set, as after a plan that was stopped early.
# Then the script goes on; any other error stops it.
unset_option() {
  if said=$("$@" 2>&1); then echo "$said"; return; fi
  case $said in
    *"Invalid config(s)"*) echo "It is not set; going on: $*" ;;
    *) echo "$said" >&2; return 1 ;;
  esac
}
"""
)
_OUT_OF_SYNC = shell_lines(
    """\
# Observers are outside of the ISR by design, and listed as under-replicated: a partition that lacks
# nothing else is in sync.
out_of_sync() {
  listed=$("$@") || return 1
  printf '%s\\n' "$listed" | awk '
    function ids(label,  text) {
      text = $0
      if (!sub(".*[\\t ]" label ": *", "", text)) return ""
      sub(/[^0-9,].*/, "", text)
      return text
    }
    NF {
      n = split(ids("Leader: *[^\\t ]+[\\t ]+Replicas"), replica, ",")
      synced = "," ids("Isr") "," ids("(Live)?Observers") ","
      lacking = n == 0
      for (i = 1; i <= n; i++) if (!index(synced, "," replica[i] ",")) lacking = 1
      if (lacking) print
    }'
}
"""
)


@dataclass(frozen=True)
class Tools:
    """Writes command lines for one version of Kafka.

    by_hand: whether a line is meant to be typed by itself: it names the addresses and the
        properties rather than the shell variables, which are set only in the scripts of a plan.
    has_observers: whether topics have Confluent's observers, which the tool lists as
        under-replicated.
    """

    kafka_version: str
    bootstrap_servers: str = "localhost:9092"
    command_config: str | None = None
    by_hand: bool = False
    has_observers: bool = False

    @property
    def _version(self) -> Version:
        return parse_version(self.kafka_version)

    @property
    def _servers(self) -> ShellWord:
        # No address has a space, but a list of them may.
        return shell_word("".join(self.bootstrap_servers.split()))

    def _connect(self, since: Version) -> ShellLine:
        if self._version >= since:
            return self._bootstrap(shell("--command-config"))
        return shell("--zookeeper {}", ZOOKEEPER)

    def _bootstrap(self, option: ShellLine | None = None) -> ShellLine:
        server = shell("--bootstrap-server {}", self._servers if self.by_hand else shell("$BS"))
        if self.command_config is None:
            return server
        client = shell_word(self.command_config) if self.by_hand else shell('"$CLIENT"')
        return shell("{} {} {}", server, option or shell("--command-config"), client)

    def _topics(self) -> ShellLine:
        return shell("kafka-topics.sh {}", self._connect((2, 2)))

    @property
    def variables(self) -> tuple[ShellLine, ...]:
        """Lines that set the shell variables; for 0.8.0, without tools, they stop the script."""
        lines = [] if self._version >= (0, 8, 1) else list(_OTHER_TOOLS)
        if self._version >= (1, 1):
            lines.append(shell("BS=${{BS:-{}}}   # your brokers", self._servers))
            if self.command_config is not None:
                path = shell_word(self.command_config)
                lines.append(shell("CLIENT=${{CLIENT:-{}}}   # your client properties", path))
        if self._version < (2, 6):
            lines.append(shell("ZK=${ZK:-localhost:2181}   # your ZooKeeper"))
        return (*lines, *(_OUT_OF_SYNC if self.has_observers else ()))

    @property
    def throttles(self) -> bool:
        """Whether moves of replicas can be throttled (KIP-73)."""
        return self._version >= (0, 10, 1)

    def describe(self, *topics: str) -> ShellLine:
        """Show topics with the replicas and the ISR of their partitions."""
        return shell("{} --describe {}", self._topics(), _topic_option(_pattern(*topics)))

    def under_replicated(self) -> ShellLine:
        """List partitions with a replica out of sync; fail if there are any."""
        # "set -e" ignores the status of a pipeline that begins with "!"; a subshell it does not.
        return shell("{} | (! grep .)", self.out_of_sync())

    def out_of_sync(self) -> ShellLine:
        """List partitions with a replica out of sync, in a script; observers are no replicas."""
        under_replicated = self.unhealthy("under-replicated")
        return shell("out_of_sync {}", under_replicated) if self.has_observers else under_replicated

    @property
    def nothing(self) -> str:
        """What is listed as under-replicated while all replicas are in sync, in words."""
        return "nothing but missing observers" if self.has_observers else "nothing"

    def unavailable(self) -> ShellLine:
        """List partitions without a leader; fail if there are any."""
        return shell("{} | (! grep .)", self.unhealthy("unavailable"))

    def unhealthy(self, kind: str) -> ShellLine:
        """List partitions in trouble; before 2.3 (KIP-351) under-replicated ones for min ISR."""
        if kind == "under-min-isr" and self._version < (2, 3):
            kind = "under-replicated"
        return shell("{} --describe {}", self._topics(), shell_word(f"--{kind}-partitions"))

    def controller_status(self, mode: str) -> ShellLine:
        """Show which controller is active; under KRaft before 3.3 the metadata log's tool."""
        if mode == "zookeeper":
            return shell("zookeeper-shell.sh {} get /controller", ZOOKEEPER)
        return shell("{} --status", self._quorum())

    def controller_replication(self) -> ShellLine:
        """Show how far each voter of a KRaft quorum is behind the active one."""
        return shell("{} --replication", self._quorum())

    def _quorum(self) -> ShellLine:
        return shell("kafka-metadata-quorum.sh {} describe", self._bootstrap())

    def enable_elr(self) -> ShellLine | None:
        """Enable eligible leader replicas (KIP-966); None before 4.0, which lacks them."""
        if self._version < (4, 0):
            return None
        feature = shell("--feature eligible.leader.replicas.version=1")
        return shell("kafka-features.sh {} upgrade {}", self._bootstrap(), feature)

    def features(self) -> ShellLine:
        """Show which features are on, such as eligible leader replicas."""
        return shell("kafka-features.sh {} describe", self._bootstrap())

    def create(
        self, topic: str, partitions: int, factor: int, configs: Mapping[str, str]
    ) -> ShellLine:
        """Create a topic."""
        line = shell(
            "{} --create {} --partitions {} --replication-factor {}",
            self._topics(),
            _topic_option(shell_word(topic)),
            partitions,
            factor,
        )
        return shell_joined([line, *_configs(configs)])

    def alter_topic(self, topic: str | ShellLine, settings: Mapping[str, str]) -> ShellLine:
        """Set options of a topic, or of a shell variable's; values must not contain commas."""
        if self._version < (0, 9):
            assert isinstance(topic, str)
            selected = _topic_option(_pattern(topic))
            line = shell("{} --alter {}", self._topics(), selected)
            return shell_joined([line, *_configs(settings)])
        pairs = shell_word(",".join(f"{key}={value}" for key, value in settings.items()))
        return shell("{} --add-config {}", self._alter(topic), pairs)

    def unset_topic(self, topic: str, key: str) -> ShellLine:
        """Remove one option of a topic, so that the brokers' default applies."""
        if self._version < (0, 9):
            older = self._version < (0, 8, 2)
            option = shell("--deleteConfig") if older else shell("--delete-config")
            selected = _topic_option(_pattern(topic))
            return shell("{} --alter {} {} {}", self._topics(), selected, option, shell_word(key))
        return shell("{} --delete-config {}", self._alter(topic), shell_word(key))

    def _alter(self, topic: str | ShellLine) -> ShellLine:
        return shell(
            "kafka-configs.sh {} --alter --entity-type topics {}",
            self._connect((2, 5)),
            _valued(shell("--entity-name"), shell_word(topic) if isinstance(topic, str) else topic),
        )

    @property
    def unsetting(self) -> tuple[ShellLine, ...]:
        """Lines that define the shell function `unset_option`, which runs `unset_topic`.

        The tool refuses to remove what is not set with "Invalid config(s)" (`ConfigCommand`, 0.10.1
        to 3.9); 0.9 and 4.3 do not complain.
        """
        return _UNSET_OPTION

    def alter_default(self, key: str, value: str) -> ShellLine | None:
        """Set a brokers' default at run time (KIP-226); None before 1.1."""
        if self._version < (1, 1):
            return None
        return shell("{} --add-config {}", self._defaults(), shell_word(f"{key}={value}"))

    def unset_default(self, key: str) -> ShellLine | None:
        """Remove a default set at run time; None before 1.1."""
        if self._version < (1, 1):
            return None
        return shell("{} --delete-config {}", self._defaults(), shell_word(key))

    def _defaults(self) -> ShellLine:
        return shell(
            "kafka-configs.sh {} --alter --entity-type brokers --entity-default", self._bootstrap()
        )

    def reassign(self, file: str, bytes_per_second: int, instead: bool = False) -> ShellLine:
        """Start moving replicas, from 2.6 on also instead of moves of these that still run."""
        line = shell("{} --execute", self._reassign(file))
        if instead and self._version >= (2, 6):
            line = shell("{} --additional", line)
        return shell("{} --throttle {}", line, bytes_per_second) if self.throttles else line

    def await_reassignment(self, file: str, moves: int) -> ShellLine:
        """Check every ten seconds whether the moves are done; the last check removes the throttle.

        moves: number of partitions in the file. The tool reports each finished one as "is
            completed" (3.3), "is complete" (2.6) or "completed successfully" (before).
        """
        return shell(
            'until test "$({} --verify | tee /dev/stderr | {})" = {}; do sleep 10; done',
            self._reassign(file),
            shell("grep -cE ' is complete|completed successfully'"),
            moves,
        )

    def cancel_reassignment(self, file: str) -> ShellLine | None:
        """Cancel moves that are still running; None where the tool cannot.

        In 3.7 to 3.9 it overlooks moves that only add replicas, and removes their throttle (fixed
        by apache/kafka#20003, in 4.0.2 at the latest). There, a reassignment back replaces them; in
        4.3 that alone is not enough, since it waits for them.
        """
        return None if self._version < (2, 6) else shell("{} --cancel", self._reassign(file))

    def elect_preferred(self, file: str) -> ShellLine:
        """Elect the preferred leaders of the partitions in a file."""
        path = shell("--path-to-json-file {}", shell_word(file))
        if self._version < (2, 4):
            return shell("kafka-preferred-replica-election.sh --zookeeper {} {}", ZOOKEEPER, path)
        older = self._version < (4, 2)
        option = shell("--admin.config") if older else shell("--command-config")
        elect = shell("kafka-leader-election.sh {}", self._bootstrap(option))
        return shell("{} --election-type preferred {}", elect, path)

    def _reassign(self, file: str) -> ShellLine:
        connection = self._connect((2, 6))
        tool = shell("kafka-reassign-partitions.sh {}", connection)
        return shell("{} --reassignment-json-file {}", tool, shell_word(file))


def tools_of(cluster: Cluster, kafka_version: str) -> Tools:
    """Return Kafka's tools, with the addresses and client settings of a live cluster."""
    tools, observed = Tools(kafka_version, has_observers=cluster.has_observers), cluster.observed
    if observed is None or not observed.bootstrap_servers:
        return tools
    return replace(
        tools,
        bootstrap_servers=observed.bootstrap_servers,
        command_config=observed.command_config,
    )


def _pattern(*topics: str) -> ShellWord:
    """Return topic names as a regular expression."""
    return shell_word("|".join(topic.replace(".", r"\.") for topic in topics))


def _topic_option(name: ShellWord) -> ShellLine:
    return _valued(shell("--topic"), name)


def _valued(option: ShellLine, value: ShellWord | ShellLine) -> ShellLine:
    """Return an option with its value; a value that looks like an option is tied to it by "="."""
    looks_like_option = value.text.lstrip("'").startswith("-")
    return shell("{}={}" if looks_like_option else "{} {}", option, value)


def _configs(settings: Mapping[str, str]) -> list[ShellLine]:
    pairs = (f"{key}={value}" for key, value in settings.items())
    return [shell("--config {}", shell_word(pair)) for pair in pairs]
