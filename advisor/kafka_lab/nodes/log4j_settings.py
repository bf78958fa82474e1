"""What the nodes of a cluster write about themselves, in the pattern that Kafka ships."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PATTERN = "[%d] %p %m (%c)%n"
# Which loggers Kafka's own settings give a file of their own; the rest goes to server.log.
_FILES = {
    "controller": (("org.apache.kafka.controller", "INFO"), ("kafka.controller", "TRACE")),
    "state-change": (("state.change.logger", "INFO"),),
}


@dataclass(frozen=True)
class LogSettings:
    """A settings file of the logging library that a release comes with.

    Attributes
    ----------
    name : str
        Of the file.
    text : str
        Its content.
    option : str
        What of the virtual machine's options comes before its path.
    """

    name: str
    text: str
    option: str


def log_settings(major: int, files: Path | None) -> LogSettings:
    """The settings for a release.

    Parameters
    ----------
    major : int
        3 logs through reload4j, 4 through log4j 2.
    files : Path or None
        Where ``server.log``, ``controller.log`` and ``state-change.log`` are written, as by
        Kafka's own ``config/log4j.properties`` and ``log4j2.yaml``. None: all to the output.
    """
    lines = _reload4j(files) if major == 3 else _log4j2(files)
    name = "log4j.properties" if major == 3 else "log4j2.properties"
    option = "-Dlog4j.configuration=file:" if major == 3 else "-Dlog4j2.configurationFile="
    return LogSettings(name, "\n".join(lines) + "\n", option)


def _reload4j(files: Path | None) -> list[str]:
    def appender(name: str, kind: str) -> list[str]:
        base = f"log4j.appender.{name}"
        layout = f"{base}.layout=org.apache.log4j.PatternLayout"
        return [f"{base}={kind}", layout, f"{base}.layout.ConversionPattern={_PATTERN}"]

    lines = appender("out", "org.apache.log4j.ConsoleAppender")
    if files is None:
        return ["log4j.rootLogger=INFO, out", *lines]
    for name in ("server", *_FILES):
        lines += appender(name, "org.apache.log4j.FileAppender")
        lines.append(f"log4j.appender.{name}.File={files / f'{name}.log'}")
    for name, loggers in _FILES.items():
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
    for name in ("server", *_FILES):
        lines += [*appender(name, "File"), f"appender.{name}.fileName={files / f'{name}.log'}"]
    number = 0
    for name, loggers in _FILES.items():
        for logger, level in loggers:
            base = f"logger.l{number}"
            number += 1
            lines += [f"{base}.name={logger}", f"{base}.level={level}", f"{base}.additivity=false"]
            lines.append(f"{base}.appenderRef.own.ref={name}")
    return lines
