"""Run emitted scripts like a user: in a shell, with Kafka's tools."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.kafka_tools import MAIN_CLASSES, run_tool, tool_command
from patience import PATIENCE_S

# What the tools print on failure, whatever their exit code.
FAILURES = ("Error", "Exception", "ERROR", "failed", "is not a recognized option")
# Output of kafka-reassign-partitions.sh --verify for a completed reassignment.
_VERIFY_RESULT = re.compile(
    r"eassignment of partition (?P<name>\S+?),? .*?(?P<said>rather than|complete)"
)


@dataclass(frozen=True)
class Ran:
    """Exit code and output of a script."""

    code: int
    output: str

    @property
    def well(self) -> bool:
        """Whether it exited with 0 and no tool reported a failure."""
        said = any(word in self.output for word in FAILURES)
        return self.code == 0 and not said and not self.elsewhere()

    def elsewhere(self) -> list[str]:
        """Return the partitions whose last reported replicas are not the target ones.

        Earlier reports may be stale: the tool asks the controller for running reassignments and
        then a broker, possibly with old metadata, for the replicas
        (`ReassignPartitionsCommand.findPartitionReassignmentStates`).
        """
        last = {found["name"]: found["said"] for found in _VERIFY_RESULT.finditer(self.output)}
        return [name for name, said in last.items() if said == "rather than"]


class Shell:
    """A shell with Kafka's scripts on its path and a cluster's address in its environment.

    Parameters
    ----------
    cluster : RealCluster
    folder : Path
        Empty directory for the scripts and emitted files.
    tools : mapping of str to sequence of str, optional
        Command behind each script; default: those of the cluster's release.
    """

    def __init__(
        self,
        cluster: RealCluster,
        folder: Path,
        tools: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir(parents=True)
        own = {name: tool_command(cluster.jars, name) for name in MAIN_CLASSES}
        for name, command in (own if tools is None else tools).items():
            self._put_tool(name, shlex.join(command) + ' "$@"')
        # The scripts poll every ten seconds, too slow for tests.
        self._put_tool("sleep", "/bin/sleep 1")

    def _put_tool(self, name: str, command: str) -> None:
        (self._bin / name).write_text(f"#!/bin/sh\nexec {command}\n")
        (self._bin / name).chmod(0o755)

    def write(self, files: Mapping[str, str]) -> None:
        """Write emitted files to the working directory."""
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def run(self, script: str) -> Ran:
        """Run an emitted file as a script."""
        path = f"{self._bin}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", script],
            cwd=self.folder,
            env={**os.environ, "PATH": path, **self._addresses()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return Ran(done.returncode, done.stdout)

    def _addresses(self) -> dict[str, str]:
        found = {"BS": self.cluster.bootstrap}
        if self.cluster.spec.mode == "zookeeper":
            found["ZK"] = self.cluster.zookeeper_address
        return found

    def run_lines(self, *lines: str) -> Ran:
        """Run lines as a script that stops at the first failure."""
        self.write({"lines.sh": "\n".join(["set -e", *lines, ""])})
        return self.run("lines.sh")

    def describe(self, *more: str) -> str:
        """Return the output of `kafka-topics.sh --describe`."""
        given = ["--bootstrap-server", self.cluster.bootstrap, "--describe", *more]
        return run_tool(self.cluster.jars, "kafka-topics.sh", given).output

    def describe_until(self, wanted: Callable[[str], bool]) -> str:
        """Describe until a condition holds, as metadata propagates with a delay.

        The last output is returned in any case.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not wanted(text := self.describe()) and time.monotonic() < deadline:
            time.sleep(1)
        return text


def create_topics(
    cluster: RealCluster,
    placed: Mapping[str, list[list[int]]],
    configs: Mapping[str, Mapping[str, str]],
) -> None:
    """Create topics with these replicas by partition, all in one request."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    try:
        wanted = [
            NewTopic(
                name,
                replica_assignments=dict(enumerate(replicas)),
                topic_configs=dict(configs.get(name, {})),
            )
            for name, replicas in placed.items()
        ]
        admin.create_topics(wanted)
    finally:
        admin.close()
