"""Origin of a report: date, versions, and hashes of the cluster and the card."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from advisor.advice import Recommendation

_PACKAGES = ("numpy", "scipy")
_DIGITS = 16
_MOST_SECONDS_DIGITS = 11


def made_by(recommendation: Recommendation) -> str:
    """Return the day, the versions that computed a recommendation, and hashes of its inputs.

    ``SOURCE_DATE_EPOCH`` (seconds since 1970) stands for today where it is set, so that a report
    can be made again to the same bytes (reproducible-builds.org).
    """
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    return (
        f"Made on {_today()} by kafka-replication-advisor "
        f"{_version('kafka-replication-advisor')} with Python "
        f"{platform.python_version()}, {packages}. All numbers are exact solutions except the 95 % "
        "intervals and what is marked as sampled; their seeds are fixed. SHA-256 of the cluster "
        f"{hashed(recommendation.cluster.to_dict())}, of the failure model "
        f"{hashed(recommendation.model.to_dict())} (of to_dict() as JSON with sorted keys, the "
        f"first {_DIGITS} digits)."
    )


def hashed(data: Mapping[str, Any]) -> str:
    """Return the first digits of the SHA-256 of plain data as JSON with sorted keys.

    >>> hashed({"a": 1})
    '015abd7f5cc57a2d'
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _today() -> str:
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    utc = datetime.UTC
    if given.isascii() and given.isdigit() and len(given) <= _MOST_SECONDS_DIGITS:
        return datetime.datetime.fromtimestamp(int(given), utc).date().isoformat()
    return datetime.datetime.now(utc).date().isoformat()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
