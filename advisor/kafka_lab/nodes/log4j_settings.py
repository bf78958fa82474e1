"""Logging configuration of the nodes, with Kafka's default pattern."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.rendering import FileLines, file_lines

_PATTERN = "[%d] %p %m (%c)%n"
# Loggers with a file of their own in Kafka's defaults; the rest goes to server.log.
_LOG_FILES = {
    "controller": (("org.apache.kafka.controller", "INFO"), ("kafka.controller", "TRACE")),
    "state-change": (("state.change.logger", "INFO"),),
}


@dataclass(frozen=True)
class LogSettings:
    """A configuration file of reload4j or log4j 2.

    lines: content of the file.
    option: JVM option to prepend to its path.
    """

    name: str
    lines: FileLines
    option: str


def log_settings(major: int, files: Path | None) -> LogSettings:
    """Return the logging configuration for a release.

    major: 3 for reload4j, 4 for log4j 2.
    files: directory for ``server.log``, ``controller.log`` and ``state-change.log``, as in Kafka's
        ``config/log4j.properties`` and ``log4j2.yaml``. None: everything to stdout.
    """
    lines = _reload4j(files) if major == 3 else _log4j2(files)
    name = "log4j.properties" if major == 3 else "log4j2.properties"
    option = "-Dlog4j.configuration=file:" if major == 3 else "-Dlog4j2.configurationFile="
    return LogSettings(name, file_lines(lines), option)


def _reload4j(files: Path | None) -> list[str]:
    def appender(name: str, kind: str) -> list[str]:
        base = f"log4j.appender.{name}"
        layout = f"{base}.layout=org.apache.log4j.PatternLayout"
        return [f"{base}={kind}", layout, f"{base}.layout.ConversionPattern={_PATTERN}"]

    lines = appender("out", "org.apache.log4j.ConsoleAppender")
    if files is None:
        return ["log4j.rootLogger=INFO, out", *lines]
    for name in ("server", *_LOG_FILES):
        lines += appender(name, "org.apache.log4j.FileAppender")
        lines.append(f"log4j.appender.{name}.File={files / f'{name}.log'}")
    for name, loggers in _LOG_FILES.items():
        for logger, level in loggers:
            lines.append(f"log4j.logger.{logger}={level}, {name}")
            lines.append(f"log4j.additivity.{logger}=false")
    return ["log4j.rootLogger=INFO, out, server", *lines]


def _log4j2(files: Path | None) -> list[str]:
    def appender(name: str, kind: str) -> list[str]:
        base = f"appender.{name}"
        layout = [f"{base}.layout.type=PatternLayout", f"{base}.layout.pattern={_PATTERN}"]
        return [f"{base}.type={kind}", f"{base}.name={name}", *layout]

    lines = [*appender("out", "Console"), "rootLogger.level=INFO"]
    lines.append("rootLogger.appenderRef.out.ref=out")
    if files is None:
        return lines
    lines.append("rootLogger.appenderRef.server.ref=server")
    for name in ("server", *_LOG_FILES):
        lines += [*appender(name, "File"), f"appender.{name}.fileName={files / f'{name}.log'}"]
    number = 0
    for name, loggers in _LOG_FILES.items():
        for logger, level in loggers:
            base = f"logger.l{number}"
            number += 1
            lines += [f"{base}.name={logger}", f"{base}.level={level}", f"{base}.additivity=false"]
            lines.append(f"{base}.appenderRef.own.ref={name}")
    return lines
