"""Settings to compute before they are chosen: after one change of a control, and after several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from advisor.present.interactive.combinations import COMBINED, combinations_by_chain
from advisor.present.interactive.controls import SMALL_REPLICAS, STILL
from advisor.present.interactive.explorer_model import ExplorerModel, Values
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS

Group = list[dict[str, str]]

_MOST_OPTIONS = 12
_REPLICAS = ("min_insync_replicas", "replication_factor")
_OFTEN_CHANGED = (
    *_REPLICAS,
    "acks",
    "eligible_leader_replicas",
    "kafka_version",
    "unclean_leader_election_enable",
    "card",
    "topic",
)


class Ahead(NamedTuple):
    """What is computed ahead of the next changes, in this order.

    shared: groups that share a chain, with a setting or more that one change leads to.
    single: the others that one change leads to.
    sends: what one change leads to and has a picture, but no failed sends yet.
    later: groups that only several changes lead to.
    unsent: keys of settings in groups that one change does not lead to.
    """

    shared: list[Group]
    single: list[Group]
    sends: list[Group]
    later: list[Group]
    unsent: set[str]

    @classmethod
    def of(cls, model: ExplorerModel, values: Values) -> Ahead:
        """Return what is not computed yet around a setting.

        Pictures first: if producers do not retry as at first, failed sends follow from the same
        chain.
        """
        pictured = model.same_picture(values)
        likely = list(after_one_change(model, pictured))
        groups = list(after_several_changes(model, pictured))
        next_keys = {model.key(other) for other in likely}
        grouped = {model.key(other) for group in groups for other in group}
        shared = [
            group for group in groups if any(model.key(member) in next_keys for member in group)
        ]
        single = [[other] for other in likely if model.key(other) not in grouped]
        sends = [] if pictured == values else by_chain(model, values)
        missing = {model.key(member): member for group in sends for member in group}

        def with_sends(group: Group) -> Group:
            retried = [model.key({**setting, **_retries(values)}) for setting in group]
            return [*group, *(missing.pop(key) for key in retried if key in missing)]

        return cls(
            [with_sends(group) for group in shared],
            [with_sends(group) for group in single],
            [left for group in sends if (left := [e for e in group if model.key(e) in missing])],
            later=[group for group in groups if group not in shared],
            unsent=grouped - next_keys - {model.key(pictured)},
        )


def _retries(values: Values) -> dict[str, str]:
    return {name: values[name] for name in STILL}


def after_one_change(
    model: ExplorerModel, values: Values, changed: Sequence[str] = _OFTEN_CHANGED
) -> Iterator[dict[str, str]]:
    """Yield the settings that one change of a control leads to and that are not computed.

    The controls that users change most come first.
    """
    shown = {control["key"]: control.get("options", ()) for control in model.controls}
    for key in changed:
        for option, _ in shown[key][: SMALL_REPLICAS if key in _REPLICAS else _MOST_OPTIONS]:
            other = {**values, **(model.of_topic(option) if key == "topic" else {}), key: option}
            if other != values and not model.is_answered(other):
                yield other


def by_chain(
    model: ExplorerModel, values: Values, changed: Sequence[str] = _OFTEN_CHANGED
) -> list[Group]:
    """Return what `after_one_change` yields; settings that share a chain are one group."""
    likely = list(after_one_change(model, values, changed))
    shared = list(combinations(model, values))
    groups = list[Group]()
    for other in likely:
        with_chain = next((group for group in shared if other in group), [other])
        group = [member for member in with_chain if member in likely]
        if group not in groups:
            groups.append(group)
    return groups


def combinations(model: ExplorerModel, values: Values) -> Iterator[Group]:
    """Yield the settings that differ in elections, acks and version and are not computed.

    The settings of a group mostly share a chain. None with more than `SMALL_REPLICAS` replicas
    or with many partitions, which would take too long.
    """
    factor = int(values["replication_factor"])
    if factor > SMALL_REPLICAS or model.load_of_topic(values).partitions > MANY_PARTITIONS:
        return
    options = {
        control["key"]: [option for option, _ in control["options"]]
        for control in model.controls
        if control["key"] in COMBINED
    }
    for group in combinations_by_chain(values, options, model.config_today(values["topic"])):
        left = [other for other in group if not model.is_answered(other)]
        if left:
            yield left


def after_several_changes(model: ExplorerModel, values: Values) -> Iterator[Group]:
    """Yield the settings that several changes lead to and that are not computed, in groups.

    See `combinations`; those with this replication factor and min ISR come first.
    """
    others = [other for other in model.curve_settings(values) if other != values]
    for place in (values, *others):
        yield from combinations(model, place)


def with_other_cards(model: ExplorerModel, values: Values) -> Iterator[dict[str, str]]:
    """Yield one setting for each other card, replication factor and min ISR.

    `combinations` of each of them are all that changes of several controls lead to, for a topic.
    """
    first = {**model.same_picture(values), **{name: model.chosen[name] for name in COMBINED}}
    cards = next(control["options"] for control in model.controls if control["key"] == "card")
    for card, _ in cards:
        if card != values["card"]:
            yield from model.curve_settings({**first, "card": card})
