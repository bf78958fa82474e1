"""Run Kafka's command-line tools, as the scripts in ``bin`` do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, Jars

# Main class of each script.
MAIN_CLASSES = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-reassign-partitions.sh": ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand"),
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",  # kafka.admin.AclCommand before 4.0
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-dump-log.sh": "org.apache.kafka.tools.DumpLogSegments",
}
_TOOL_TIMEOUT_S = 120


@dataclass(frozen=True)
class ToolResult:
    """Exit code of a tool, and what it wrote to stdout and stderr."""

    code: int
    output: str
    errors: str


def tool_command(jars: Jars, script: str) -> tuple[str, ...]:
    """Return the command behind a script, to be followed by its arguments."""
    if script not in MAIN_CLASSES:
        raise BrokersUnavailableError(f"no class is known for {script}")
    main = MAIN_CLASSES[script]
    if jars.major == 3 and script == "kafka-dump-log.sh":
        main = "kafka.tools.DumpLogSegments"  # Moved in 4.0.
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # Class loading dominates the run time; the broker archive has most of the classes.
    if jars.archive.is_file():
        options += ["-Xshare:auto", f"-XX:SharedArchiveFile={jars.archive}", "-Xlog:disable"]
    return (jars.java, *options, "-cp", jars.class_path, main)


def run_tool(jars: Jars, script: str, arguments: Sequence[str]) -> ToolResult:
    """Run a script of Kafka's ``bin``, such as ``kafka-topics.sh``."""
    parts = [*tool_command(jars, script), *arguments]
    try:
        done = subprocess.run(
            parts, capture_output=True, text=True, check=False, timeout=_TOOL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise BrokersUnavailableError(f"{script} did not end within {_TOOL_TIMEOUT_S} s") from None
    return ToolResult(done.returncode, done.stdout, done.stderr)
