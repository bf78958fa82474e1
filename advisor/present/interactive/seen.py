"""What a cluster has seen, typed beside the settings: its controls, and the card that follows.

Each number is a control of its own, so that one that is refused is marked where it stands. An empty
one is not counted; that something never happened is a zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from advisor.advice.situation import Situation
from advisor.cluster.model import Cluster
from advisor.decision.rows import between_losses, without_writes
from advisor.decision.rule import MINUTES_PER_YEAR, losses_per_year
from advisor.errors import InputError, shown
from advisor.formatting import as_given, counted, span
from advisor.learning.counts import MOST_BROKERS, MOST_YEARS
from advisor.learning.evidence import length_key
from advisor.learning.learned import Learned, learn
from advisor.present.points import Estimated, Point
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanism import MINUTES
from advisor.reliability.failures.mechanisms import Scope, table

PREFIX = "seen."
"""How the keys of these controls begin."""
YEARS, BROKERS = f"{PREFIX}years", f"{PREFIX}brokers"
MECHANISMS = tuple(entry.name for entry in table().entries if entry.remembered)
"""Those that an operator would know of without a search; files of counts take all of them."""
_LENGTH, _LENGTH_SAID = ".minutes", ": minutes"
_NOTHING = "Nothing is counted yet: say how often each happened, 0 for never."


def _key(mechanism: str) -> str:
    return f"{PREFIX}{mechanism}"


def _length(mechanism: str) -> str:
    return f"{PREFIX}{mechanism}{_LENGTH}"


def _has_minutes(mechanism: str) -> bool:
    """Whether the outages strike several brokers, and last minutes."""
    entry = table()[mechanism]
    return entry.scope is not Scope.BROKER and length_key(entry) == MINUTES.key


KEYS = (
    YEARS,
    BROKERS,
    *(
        key
        for name in MECHANISMS
        for key in (_key(name), *([_length(name)] if _has_minutes(name) else []))
    ),
)
"""Keys of the controls, in the order in which they stand."""
UNCOUNTED = dict.fromkeys(KEYS, "")
"""Their values before something is typed."""


class CountError(InputError):
    """A number that cannot be; `controls` says which of them are to blame, the first most."""

    def __init__(self, message: str, *controls: str) -> None:
        super().__init__(message)
        self.controls = controls


def seen_controls(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the controls; racks are not counted where they are not known."""
    controls = [
        _text(YEARS, "years counted", ""),
        _text(BROKERS, "brokers", str(len(cluster.brokers))),
    ]
    for name in MECHANISMS:
        entry = table()[name]
        if entry.scope is Scope.RACK and _racks(cluster) is None:
            continue
        controls.append(_text(_key(name), entry.words, ""))
        if _has_minutes(name):
            label = f"minutes of {entry.words}, each"
            controls.append({**_text(_length(name), label, "minutes"), "beside": True})
    return controls


def _text(key: str, label: str, hint: str) -> dict[str, Any]:
    return {"key": key, "label": label, "group": PREFIX, "hint": hint}


def _racks(cluster: Cluster) -> int | None:
    return None if None in cluster.brokers.values() else len(cluster.racks)


def learned_from(
    values: Mapping[str, str], prior: FailureModel, cluster: Cluster
) -> Learned | None:
    """Return the card that follows from what was typed; None if nothing was counted."""
    return _learned(tuple(values.get(key, "") for key in KEYS), prior, cluster)


@lru_cache(maxsize=64)
def _learned(typed: tuple[str, ...], prior: FailureModel, cluster: Cluster) -> Learned | None:
    values = dict(zip(KEYS, typed, strict=True))
    document = counts_of(values, cluster)
    if not document["events"]:
        return None
    try:
        return learn(document, prior=prior, cluster=cluster)
    except CountError:
        raise
    except InputError as error:
        raise CountError(str(error).removeprefix("counts: "), *_blamed(str(error))) from None


def _blamed(message: str) -> list[str]:
    """The controls that a message is about."""
    mechanisms = [name for name in MECHANISMS if name in message]
    lengths = [_length(name) for name in mechanisms if f"{name}{_LENGTH_SAID}" in message]
    return [*lengths, *map(_key, mechanisms), YEARS, BROKERS]


def counts_of(values: Mapping[str, str], cluster: Cluster) -> dict[str, Any]:
    """Return what was typed as `advisor.learn` takes it."""
    brokers, events = _brokers(values, cluster), _events(values)
    document: dict[str, Any] = {"brokers": brokers, "events": events}
    racks = _racks(cluster)
    if racks is not None:
        document["racks"] = min(racks, brokers)
    document["mode"] = Situation.read(cluster).mode
    years = values[YEARS]
    if years or not events:
        document["years"] = _years(years) if years else 1
        return document
    first = next(key for key in KEYS if values[key] and key not in (YEARS, BROKERS))
    raise CountError("say for how many years this was counted", first, YEARS)


def _years(typed: str) -> float:
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", typed) or not 0 < float(typed) <= MOST_YEARS:
        raise CountError(
            f"{shown(typed)} is no number of years from 0 to {MOST_YEARS:g}, such as 3 or 1.5",
            YEARS,
        )
    return float(typed)


def _brokers(values: Mapping[str, str], cluster: Cluster) -> int:
    typed = values[BROKERS]
    if not typed:
        return len(cluster.brokers)
    number = _whole(typed, BROKERS)
    if not 1 <= number <= MOST_BROKERS:
        raise CountError(f"{number:,} is no number of brokers", BROKERS)
    return number


def _events(values: Mapping[str, str]) -> dict[str, Any]:
    events: dict[str, Any] = {}
    for name in MECHANISMS:
        typed, minutes = values[_key(name)], values.get(_length(name), "")
        if typed:
            events[name] = _whole(typed, _key(name))
        if not minutes:
            continue
        lengths = _minutes(minutes, _length(name))
        if len(lengths) > events.get(name, 0):
            raise CountError(
                f"{counted(len(lengths), 'outage')} with minutes, and {typed or 'none'} counted",
                *(_length(name), _key(name)),
            )
        events[name] = {"events": events[name], "minutes": lengths}
    return events


def _whole(typed: str, key: str) -> int:
    if not re.fullmatch(r"\d{1,9}", typed):
        raise CountError(f"{shown(typed)} is no whole number, such as 0 or 4", key)
    return int(typed)


def _minutes(typed: str, key: str) -> list[float]:
    words = re.split(r"[,;\s]+", typed)
    if not all(re.fullmatch(r"\d{1,7}(\.\d{1,6})?", word) and float(word) for word in words):
        raise CountError(f"{shown(typed)} is not the minutes of each outage, as in 40, 12", key)
    return [float(word) for word in words]


def unused(learned: Learned) -> list[tuple[str, str]]:
    """Return what was counted and changes nothing: the control, and why."""
    return [(_key(name), note) for note in learned.notes for name in MECHANISMS if name in note]


def moved_words(learned: Learned | None, before: Point, after: Point) -> str:
    """Say in a line what the counts did to the setting shown, with intervals if both have them."""
    if learned is None:
        return _NOTHING
    (history,) = learned.histories
    years = as_given(history.years)
    long = f"{years} year{'' if years == '1' else 's'} of {counted(history.brokers, 'broker')}"
    minutes = _moved(_range(before.refused, _time), _range(after.refused, _time))
    losses = _moved(_range(before.loss, _apart, True), _range(after.loss, _apart, True))
    interval = " (95 %)" if before.refused.low < before.refused.high else ""
    return f"With {long}{interval}: time without writes a year {minutes}; a loss every {losses}."


def _moved(before: str, after: str) -> str:
    return f"{after}, as before" if before == after else f"{before} → {after}"


def _range(estimate: Estimated, say: Any, turned: bool = False) -> str:
    if not estimate.low < estimate.high:
        return str(say(estimate.value))
    ends = (estimate.high, estimate.low) if turned else (estimate.low, estimate.high)
    first, last = map(say, ends)
    return span(first, last) if first != last else str(last)


def _time(fraction: float) -> str:
    return without_writes(fraction * MINUTES_PER_YEAR)


def _apart(probability: float) -> str:
    return between_losses(float(losses_per_year(probability)))
