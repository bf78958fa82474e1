"""What users pass in: unknown names with a suggestion, and names of cards and clusters read.

`advisor/__init__.py` fills the registry of readers, so that the rooms that ask for a cluster or a
model need not know how one is read.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, ParamSpec, TypeVar

from advisor.errors import UnknownArgumentError, UnknownAttributeError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A text or a path, or several of one cluster, as `advisor.load_cluster` takes them."""

readers: dict[str, Callable[[Any], Any]] = {}
"""By argument: "cluster" and "model", each a function that takes a text or a path."""

# Words that operators use, and the names that they may stand for.
_ALIASES: dict[str, tuple[str, ...]] = {
    "ack": ("acks",),
    "availability": ("write_unavailability",),
    "az": ("racks", "survive"),
    "azs": ("racks", "survive"),
    "bootstrap_server": ("source", "cluster"),
    "card": ("model", "prior"),
    "downtime": ("write_unavailability",),
    "durability": ("loss_probability_per_year",),
    "elr": ("eligible_leader_replicas",),
    "failure_model": ("model",),
    "failures": ("model",),
    "file": ("source", "cluster"),
    "goal": ("goals",),
    "idempotence": ("enable_idempotence",),
    "idempotent": ("enable_idempotence",),
    "in_flight": ("max_in_flight_requests_per_connection",),
    "isr": ("min_insync_replicas",),
    "lag_time": ("replica_lag_time_max_ms",),
    "loss": ("loss_probability_per_year",),
    "loss_probability": ("loss_probability_per_year",),
    "lost": ("acked_records_lost_per_year",),
    "max_in_flight": ("max_in_flight_requests_per_connection",),
    "message_bytes": ("record_bytes",),
    "message_size": ("record_bytes",),
    "messages_per_second": ("records_per_second",),
    "min_in_sync_replicas": ("min_insync_replicas",),
    "min_isr": ("min_insync_replicas",),
    "minisr": ("min_insync_replicas",),
    "mttdl": ("mean_years_to_loss",),
    "nodes": ("brokers",),
    "path": ("source", "name_or_path"),
    "rack": ("racks", "survive"),
    "rate": ("records_per_second",),
    "record_size": ("record_bytes",),
    "refused": ("records_refused_per_year",),
    "replicas": ("replication_factor",),
    "replication": ("replication_factor",),
    "required_acks": ("acks",),
    "retention": ("retention_hours",),
    "rf": ("replication_factor",),
    "session_timeout": ("broker_session_timeout_ms",),
    "session_timeout_ms": ("broker_session_timeout_ms",),
    "settings": ("config",),
    "throughput": ("records_per_second",),
    "timeout": ("delivery_timeout_ms", "timeout_ms"),
    "topology": ("cluster",),
    "unavailability": ("write_unavailability",),
    "unclean": ("unclean_leader_election_enable",),
    "unclean_election": ("unclean_leader_election_enable",),
    "version": ("kafka_version",),
    "workload": ("load",),
    "zones": ("racks", "survive"),
}


def suggestion(name: str, known: Collection[str]) -> str | None:
    """Return the known name that was probably meant; None if none is near.

    >>> suggestion("min.isr", ["min_insync_replicas", "acks"])
    'min_insync_replicas'
    >>> suggestion("replication_facter", ["replication_factor", "acks"])
    'replication_factor'
    """
    plain = name.strip().lower().replace(".", "_").replace("-", "_")
    for meant in (plain, *_ALIASES.get(plain, ())):
        if meant in known:
            return meant
    near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=0.7)
    return near[0] if near else None


def names_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse keyword arguments that a function does not have, with a suggestion."""
    return _checked(function, f"{function.__qualname__}()")


def _checked(function: Callable[P, R], owner: str) -> Callable[P, R]:
    kinds = inspect.signature(function).parameters.values()
    known = {p.name for p in kinds if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    known.discard("self")

    @functools.wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                raise UnknownArgumentError(_said(owner, "argument", name, known))
        return function(*arguments, **options)

    return checked


def suggests_names(cls: type[T]) -> type[T]:
    """Refuse unknown arguments and attributes of a class with a suggestion; a class decorator."""
    own: Any = cls
    own.__init__ = _checked(own.__init__, cls.__name__)
    own.__getattr__ = missing_attribute
    return cls


def missing_attribute(self: object, name: str) -> Any:
    """Refuse an unknown attribute with a suggestion; a class has it as its ``__getattr__``."""
    cls = type(self)
    if hasattr(cls, name):
        # Its own code raised an AttributeError, which says more.
        return object.__getattribute__(self, name)
    if name.startswith("_"):
        raise AttributeError(f"{cls.__name__} has no attribute {name}")
    known = {*dir(cls), *getattr(cls, "__dataclass_fields__", ())}
    public = {each for each in known if not each.startswith("_")}
    raise UnknownAttributeError(_said(cls.__name__, "attribute", name, public))


def _said(owner: str, kind: str, name: str, known: Collection[str]) -> str:
    meant = suggestion(name, known)
    rest = f". Did you mean {meant}?" if meant else f"; there are {', '.join(sorted(known))}"
    return f"{owner} has no {kind} {name[:60]!r}{rest}"


def cluster_of(cluster: T | Sources) -> T:
    """Return a cluster; a path, address, text or list is read as by `advisor.load_cluster`."""
    is_list = isinstance(cluster, list | tuple)
    read: T = readers["cluster"](cluster) if is_list else _read("cluster", cluster)
    return read


def model_of(model: T | str | os.PathLike[str]) -> T:
    """Return a failure model; a card's name or path is read as by `advisor.load_model`."""
    read: T = _read("model", model)
    return read


def _read(kind: str, value: Any) -> Any:
    return readers[kind](value) if isinstance(value, str | os.PathLike) else value
