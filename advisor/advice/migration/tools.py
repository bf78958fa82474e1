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

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.protocol.rules.versions import Version, parse_version

BOOTSTRAP = "$BS"
ZOOKEEPER = "$ZK"


_OTHER_TOOLS = (
    "# Kafka 0.8.0 has other tools than these: upgrade the brokers first.",
    "command -v kafka-topics.sh",
)
_UNSET_OPTION = (
    "# Kafka may refuse to remove what is not set, as after a plan that was stopped early.",
    "# Then the script goes on; any other error stops it.",
    "unset_option() {",
    '  if said=$("$@" 2>&1); then echo "$said"; return; fi',
    "  case $said in",
    '    *"Invalid config(s)"*) echo "It is not set; going on: $*" ;;',
    '    *) echo "$said" >&2; return 1 ;;',
    "  esac",
    "}",
)


@dataclass(frozen=True)
class Tools:
    """Writes command lines for one version of Kafka.

    Parameters
    ----------
    kafka_version : str
        Such as "4.1" or "2.1".
    bootstrap_servers : str
        Default of the shell variable BS.
    command_config : str or None
        Path of the client properties for connecting.
    """

    kafka_version: str
    bootstrap_servers: str = "localhost:9092"
    command_config: str | None = None

    @property
    def _version(self) -> Version:
        return parse_version(self.kafka_version)

    def _connect(self, since: Version) -> str:
        if self._version >= since:
            return self._bootstrap()
        return f"--zookeeper {ZOOKEEPER}"

    def _bootstrap(self, option: str = "--command-config") -> str:
        server = f"--bootstrap-server {BOOTSTRAP}"
        return server if self.command_config is None else f'{server} {option} "$CLIENT"'

    def _topics(self) -> str:
        return f"kafka-topics.sh {self._connect((2, 2))}"

    @property
    def variables(self) -> tuple[str, ...]:
        """Lines that set the shell variables used; values already set in the shell are kept.

        For 0.8.0, which lacks the tools, they stop the script.
        """
        lines = [] if self._version >= (0, 8, 1) else list(_OTHER_TOOLS)
        if self._version >= (1, 1):
            servers = shlex.quote(self.bootstrap_servers)
            lines.append(f"BS=${{BS:-{servers}}}   # your brokers")
            if self.command_config is not None:
                path = shlex.quote(self.command_config)
                lines.append(f"CLIENT=${{CLIENT:-{path}}}   # your client properties")
        if self._version < (2, 6):
            lines.append("ZK=${ZK:-localhost:2181}   # your ZooKeeper")
        return tuple(lines)

    @property
    def throttles(self) -> bool:
        """Whether moves of replicas can be throttled (KIP-73)."""
        return self._version >= (0, 10, 1)

    def describe(self, *topics: str) -> str:
        """Show topics with the replicas and the ISR of their partitions."""
        return f"{self._topics()} --describe --topic {_pattern(*topics)}"

    def under_replicated(self) -> str:
        """List partitions with a replica out of sync; fail if there are any."""
        # "set -e" ignores the status of a pipeline that begins with "!"; a subshell it does not.
        return f"{self._topics()} --describe --under-replicated-partitions | (! grep .)"

    def unavailable(self) -> str:
        """List partitions without a leader; fail if there are any."""
        return f"{self.unhealthy('unavailable')} | (! grep .)"

    def unhealthy(self, kind: str) -> str:
        """List partitions in trouble; before 2.3 (KIP-351) under-replicated ones for min ISR.

        Parameters
        ----------
        kind : {"unavailable", "under-min-isr", "under-replicated"}
        """
        if kind == "under-min-isr" and self._version < (2, 3):
            kind = "under-replicated"
        return f"{self._topics()} --describe --{kind}-partitions"

    def controller_status(self, mode: str) -> str:
        """Show which controller is active; under KRaft before 3.3 the metadata log's tool."""
        if mode == "zookeeper":
            return f"zookeeper-shell.sh {ZOOKEEPER} get /controller"
        return f"kafka-metadata-quorum.sh {self._bootstrap()} describe --status"

    def enable_elr(self) -> str | None:
        """Enable eligible leader replicas (KIP-966); None before 4.0, which lacks them."""
        if self._version < (4, 0):
            return None
        feature = "--feature eligible.leader.replicas.version=1"
        return f"kafka-features.sh {self._bootstrap()} upgrade {feature}"

    def features(self) -> str:
        """Show which features are on, such as eligible leader replicas."""
        return f"kafka-features.sh {self._bootstrap()} describe"

    def create(self, topic: str, partitions: int, factor: int, configs: Mapping[str, str]) -> str:
        """Create a topic."""
        line = (
            f"{self._topics()} --create --topic {topic} --partitions {partitions} "
            f"--replication-factor {factor}"
        )
        return line + "".join(f" --config {key}={value}" for key, value in configs.items())

    def alter_topic(self, topic: str, settings: Mapping[str, str]) -> str:
        """Set options of a topic; values must not contain commas."""
        pairs = [f"{key}={value}" for key, value in settings.items()]
        if self._version < (0, 9):
            options = " ".join(f"--config {pair}" for pair in pairs)
            return f"{self._topics()} --alter --topic {_pattern(topic)} {options}"
        return (
            f"kafka-configs.sh {self._connect((2, 5))} --alter --entity-type topics "
            f"--entity-name {topic} --add-config {','.join(pairs)}"
        )

    def unset_topic(self, topic: str, key: str) -> str:
        """Remove one option of a topic, so that the brokers' default applies."""
        if self._version < (0, 9):
            option = "--deleteConfig" if self._version < (0, 8, 2) else "--delete-config"
            return f"{self._topics()} --alter --topic {_pattern(topic)} {option} {key}"
        return (
            f"kafka-configs.sh {self._connect((2, 5))} --alter --entity-type topics "
            f"--entity-name {topic} --delete-config {key}"
        )

    @property
    def unsetting(self) -> tuple[str, ...]:
        """Lines that define the shell function `unset_option`, which runs `unset_topic`.

        The tool refuses to remove what is not set with "Invalid config(s)" (`ConfigCommand`, 0.10.1
        to 3.9); 0.9 and 4.3 do not complain.
        """
        return _UNSET_OPTION

    def alter_default(self, key: str, value: str) -> str | None:
        """Set a brokers' default at run time (KIP-226); None before 1.1."""
        if self._version < (1, 1):
            return None
        return f"{self._defaults()} --add-config {key}={value}"

    def unset_default(self, key: str) -> str | None:
        """Remove a default set at run time; None before 1.1."""
        return None if self._version < (1, 1) else f"{self._defaults()} --delete-config {key}"

    def _defaults(self) -> str:
        return (
            f"kafka-configs.sh {self._bootstrap()} --alter --entity-type brokers --entity-default"
        )

    def reassign(self, file: str, bytes_per_second: int, instead: bool = False) -> str:
        """Start moving replicas.

        Parameters
        ----------
        file : str
            Name of the reassignment JSON.
        bytes_per_second : int
            Throttle per broker; before 0.10.1 there is none.
        instead : bool
            Whether to replace moves of these partitions that still run; before 2.6 the tool
            refuses that.
        """
        line = f"{self._reassign()} --reassignment-json-file {file} --execute"
        if instead and self._version >= (2, 6):
            line += " --additional"
        return f"{line} --throttle {bytes_per_second}" if self.throttles else line

    def await_reassignment(self, file: str, moves: int) -> str:
        """Check every ten seconds whether the moves are done; the last check removes the throttle.

        Parameters
        ----------
        file : str
            Name of the reassignment JSON.
        moves : int
            Number of partitions in the file. The tool reports each finished one as "is completed"
            (3.3), "is complete" (2.6) or "completed successfully" (before).
        """
        verify = f"{self._reassign()} --reassignment-json-file {file} --verify"
        done = "grep -cE ' is complete|completed successfully'"
        return f'until test "$({verify} | tee /dev/stderr | {done})" = {moves}; do sleep 10; done'

    def cancel_reassignment(self, file: str) -> str | None:
        """Cancel moves that are still running; None where the tool cannot.

        In 3.7 to 3.9 it overlooks moves that only add replicas, and removes their throttle (fixed
        by apache/kafka#20003, in 4.0.2 at the latest). There, a reassignment back replaces them; in
        4.3 that alone is not enough, since it waits for them.
        """
        if self._version < (2, 6):
            return None
        return f"{self._reassign()} --reassignment-json-file {file} --cancel"

    def elect_preferred(self, file: str) -> str:
        """Elect the preferred leaders of the partitions in a file."""
        if self._version < (2, 4):
            return (
                f"kafka-preferred-replica-election.sh --zookeeper {ZOOKEEPER} "
                f"--path-to-json-file {file}"
            )
        option = "--admin.config" if self._version < (4, 2) else "--command-config"
        return (
            f"kafka-leader-election.sh {self._bootstrap(option)} --election-type preferred "
            f"--path-to-json-file {file}"
        )

    def _reassign(self) -> str:
        return f"kafka-reassign-partitions.sh {self._connect((2, 6))}"


def _pattern(*topics: str) -> str:
    """Return topic names as a regular expression, quoted for a shell."""
    return shlex.quote("|".join(topic.replace(".", r"\.") for topic in topics))
