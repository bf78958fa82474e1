"""`explorer`: a notebook widget with controls for the settings and a chart of their effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from advisor import catalog
from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError
from advisor.present.interactive.neighbourhood import (
    Neighbourhood,
    refusal_html,
    setting_html,
    waiting_html,
)
from advisor.present.setting_text import verdict
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import MAX_INT, NEWEST_KNOWN
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.workload import Workload

_LONGEST_DELIVERY_TIMEOUT_MS = 86_400_000
_IDEMPOTENCE = (("Kafka's default", None), ("true", True), ("false", False))
_STYLE = {"description_width": "11.5em"}
_LAYOUT = {"width": "21em"}


def explorer(
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    config: Config | None = None,
) -> widgets.Box:
    """Return controls for the settings of one topic beside their effect.

    Every change is evaluated exactly and redrawn. A setting that Kafka refuses shows Kafka's
    reason. Without a kernel the last chart remains.

    Parameters
    ----------
    cluster : Cluster
        Brokers and racks. Replication factors go up to the number of brokers, at most 5.
    model : FailureModel
        Initial failure model; the shipped cards can be selected too.
    load : Workload, optional
        Default: one partition with 1,000 records per second.
    config : Config, optional
        Initial settings. Default: those of Kafka's newest version with replication factor 3 and
        min ISR 2, or as near as the brokers allow.

    Returns
    -------
    ipywidgets.Box
        Controls and chart.
    """
    load = load or Workload()
    start = config or _start(cluster)
    by_card: dict[str, Neighbourhood] = {}
    controls = _controls(start, model, _most(cluster))
    picture = widgets.HTML()

    def redraw(_change: object = None) -> None:
        name = controls["card"].value
        try:
            if name not in by_card:
                card = model if name == model.name else load_model(name)
                by_card[name] = Neighbourhood(cluster, card, load)
            chosen = _config(start, controls)
            if by_card[name].is_slow(chosen):
                picture.value = waiting_html(chosen)
            picture.value = setting_html(by_card[name], chosen)
        except AdvisorError as error:
            picture.value = refusal_html(error)

    redraw()
    for control in controls.values():
        control.observe(redraw, names="value")
    # Wraps where controls and chart do not fit side by side.
    return widgets.HBox(
        [widgets.VBox(list(controls.values())), picture], layout={"flex_flow": "row wrap"}
    )


@dataclass(frozen=True, repr=False)
class Snapshot:
    """One setting with its chart and its measures.

    Attributes
    ----------
    verdict : str
        Losses and refused writes, in one sentence.
    html : str
        Chart and measures as an HTML fragment.
    """

    verdict: str
    html: str

    def __repr__(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        return self.html


def snapshot(
    cluster: Cluster,
    model: FailureModel,
    load: Workload | None = None,
    config: Config | None = None,
) -> Snapshot:
    """Return what `explorer` shows for its initial setting, without controls or kernel.

    For printed or exported pages, where controls do not appear.

    Parameters
    ----------
    cluster : Cluster
    model : FailureModel
    load : Workload, optional
    config : Config, optional
        All as for `explorer`.

    Returns
    -------
    Snapshot
        Shows itself in a notebook.

    Raises
    ------
    AdvisorError
        If the setting cannot be evaluated on this cluster.
    """
    around = Neighbourhood(cluster, model, load or Workload())
    chosen = config or _start(cluster)
    return Snapshot(verdict(around.result(chosen)), setting_html(around, chosen, "snapshot"))


def _most(cluster: Cluster) -> int:
    return Neighbourhood(cluster, FailureModel("", "", "", {}), Workload()).most_replicas


def _start(cluster: Cluster) -> Config:
    factor = min(3, len(cluster.brokers))
    return Config(
        kafka_version=cluster.kafka_version or NEWEST_KNOWN,
        replication_factor=factor,
        min_insync_replicas=max(1, factor - 1),
        acks="all",
    )


def _controls(start: Config, model: FailureModel, most: int) -> dict[str, Any]:
    """Return the controls by `Config` option, and "card" for the failure model.

    Only lists and number fields: sliders and buttons of ipywidgets 8.1 have no accessible name.
    """
    assert start.replication_factor is not None
    assert start.min_insync_replicas is not None
    factors = range(1, max(most, start.replication_factor) + 1)
    least = range(1, max(most, start.min_insync_replicas) + 1)
    names = sorted({*catalog.model_names(), model.name})
    return {
        "replication_factor": _choice("replication factor", factors, start.replication_factor),
        "min_insync_replicas": _choice("min.insync.replicas", least, start.min_insync_replicas),
        "acks": _choice("acks", ("all", 1, 0), start.acks),
        "enable_idempotence": _choice("enable.idempotence", _IDEMPOTENCE, None),
        "retries": _number("retries", start.retries, MAX_INT, 1),
        "delivery_timeout_ms": _number(
            "delivery.timeout.ms", start.delivery_timeout_ms, _LONGEST_DELIVERY_TIMEOUT_MS, 10_000
        ),
        "card": _choice("failure model", names, model.name),
    }


def _choice(name: str, options: Any, value: object) -> widgets.Dropdown:
    return widgets.Dropdown(
        description=name, options=list(options), value=value, style=_STYLE, layout=_LAYOUT
    )


def _number(name: str, value: int | None, most: int, step: int) -> widgets.BoundedIntText:
    return widgets.BoundedIntText(
        description=name,
        value=most if value is None else value,
        min=0,
        max=most,
        step=step,
        style=_STYLE,
        layout=_LAYOUT,
    )


def _config(start: Config, controls: dict[str, Any]) -> Config:
    """Return the setting that the controls show.

    Options that they leave unchanged stay as in `start`, explicit or Kafka's default.
    """
    changes = {}
    for name, control in controls.items():
        if name == "card" or control.value is None:
            continue
        before = getattr(start, name)
        if name in ("replication_factor", "min_insync_replicas", "acks") or (
            name == "enable_idempotence" or control.value != before
        ):
            changes[name] = control.value
    if start.delivery_timeout_ms is None:
        # Before 2.1 there is no delivery.timeout.ms.
        changes.pop("delivery_timeout_ms", None)
    return start.changed(**changes)
