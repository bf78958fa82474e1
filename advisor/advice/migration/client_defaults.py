"""Defaults of client libraries: what a producer does with `acks`, retries and idempotence unset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from advisor import catalog

_FILE = "client_defaults.csv"


@dataclass(frozen=True)
class ClientDefaults:
    """One row of `data/client_defaults.csv`, which `data/README.md` explains.

    client, language, versions: the library, who uses it, and the versions that have these defaults.
    acks (one of "all", "1", "0").
    retries: a number, or "unlimited".
    delivery_timeout_ms: milliseconds until a send fails for good; None if the library has no such
        limit.
    request_timeout_ms: milliseconds that one response is waited for.
    max_in_flight: requests in flight on a connection: a number, "unlimited", or "" if not stated.
    url, retrieved, verified, note: source, day, "primary" if read in the source itself, and a
        remark.
    """

    client: str
    language: str
    versions: str
    acks: str
    enable_idempotence: bool
    retries: str
    delivery_timeout_ms: int | None
    request_timeout_ms: int
    max_in_flight: str
    url: str
    retrieved: str
    verified: str
    note: str

    @property
    def name(self) -> str:
        """The library with its versions."""
        return f"{self.client} {self.versions}"

    @property
    def gaps(self) -> tuple[str, ...]:
        """Settings that must be set to keep records safe; empty if the defaults are safe."""
        gaps = []
        if self.acks != "all":
            gaps.append(f"acks={self.acks}")
        if not self.enable_idempotence:
            gaps.append("no idempotence")
        if self.retries.isdigit() and int(self.retries) < 10:
            gaps.append(f"{self.retries} retries")
        return tuple(gaps)


@cache
def client_defaults() -> tuple[ClientDefaults, ...]:
    """Return the shipped table of client libraries, in its order.

    Raises ModelError if a column or field is missing.
    """
    table = catalog.table_rows(catalog.data_path(_FILE), ClientDefaults)
    return tuple(_client(row) for _, row in table)


def _client(row: Mapping[str, str]) -> ClientDefaults:
    limit = row["delivery_timeout_ms"]
    texts = "client", "language", "versions", "acks", "retries", "max_in_flight"
    origin = "url", "retrieved", "verified", "note"
    return ClientDefaults(
        **{name: row[name] for name in (*texts, *origin)},
        enable_idempotence=row["enable_idempotence"] == "true",
        delivery_timeout_ms=int(limit) if limit else None,
        request_timeout_ms=int(row["request_timeout_ms"]),
    )


def newest(client: str) -> ClientDefaults:
    """Return the newest defaults of a library; each library's rows start with them."""
    return next(row for row in client_defaults() if row.client == client)
