"""Limits for tests that wait: an answer may come late, since the machine may be busy.

They end a test that hangs, and say nothing of how quick the product is.
"""

from pathlib import Path

PATIENCE_S = 1800.0
PATIENCE_MS = 1_800_000
# As a Java client's properties; without them a connection is given up after ten seconds.
PATIENT_LINES = (
    f"request.timeout.ms={PATIENCE_MS}",
    f"socket.connection.setup.timeout.ms={PATIENCE_MS}",
    f"default.api.timeout.ms={PATIENCE_MS}",
)


def patient_properties(folder: Path, *lines: str) -> Path:
    """Write a properties file with which a client waits for late answers; return its path."""
    path = folder / "patient.properties"
    path.write_text("".join(f"{line}\n" for line in (*PATIENT_LINES, *lines)))
    return path
