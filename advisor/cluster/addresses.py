"""Addresses of brokers, as users write them: `host:9092`, several separated by commas."""

from __future__ import annotations

import re
from dataclasses import dataclass

from advisor.errors import InputError, shown

# A host has no character that means something to a shell or in a URL.
ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([\w.-]+)):([0-9]{1,5})")


@dataclass(frozen=True)
class Address:
    """Host and port (1 to 65535)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def looks_like_addresses(text: str) -> bool:
    """Whether a text is `host:port`, or several separated by commas."""
    return all(ADDRESS.fullmatch(address.strip()) for address in text.split(","))


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse `host:9092,host2:9092`."""
    addresses = []
    for written in text.split(","):
        match = ADDRESS.fullmatch(written.strip())
        if match is None:
            raise InputError(f"{shown(written.strip())} is not an address; write host:9092")
        address = Address(match[1] or match[2], int(match[3]))
        if not 1 <= address.port <= 65_535:
            raise InputError(f"{written.strip()}: ports are numbered 1 to 65535")
        addresses.append(address)
    return tuple(dict.fromkeys(addresses))
