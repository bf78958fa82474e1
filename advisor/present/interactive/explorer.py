"""`explorer`: a notebook widget with controls for the settings and curves of their effect."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.core.getipython import get_ipython

from advisor import catalog
from advisor.advice.deciding import Decision, surviving
from advisor.advice.goals import Goals
from advisor.advice.situation import Situation
from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.cluster.model import Cluster
from advisor.decision import Verdict
from advisor.errors import InputError, expect
from advisor.learning.learned import Learned
from advisor.present.interactive.controls import (
    MOST_TOPICS,
    NEW_TOPIC,
    PRICE,
    SWITCHED_VERSIONS,
    as_text,
    min_isr_refusal,
    values_of,
)
from advisor.present.interactive.explorer_model import Answer, ExplorerModel, worst_first
from advisor.present.interactive.fragment import html_fragment, source, stored_fragment
from advisor.present.interactive.switches import (
    Elsewhere,
    curves_elsewhere,
    first_of_cards,
    switchable,
)
from advisor.present.interactive.worker import Task, Worker, after_one_change
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.times.exactness import check_exact
from advisor.reliability.workload import Workload

# Controls whose other values are computed while the kernel computes the first picture, in this
# order. Unclean elections take one process about as long as all cards take another.
_BEGUN_WITH = (
    "unclean_leader_election_enable",
    "card",
    "topic",
    "eligible_leader_replicas",
    "kafka_version",
)


class Explorer(anywidget.AnyWidget):
    """The widget: `explorer.js` with a kernel that computes settings missing from its page.

    The first curve is there at once. The rest of what a page without a kernel offers is computed
    when the widget is shown, or when its `html` is read. Where a user sees the cell, it ends with
    the first curve and other processes compute the rest, so that the kernel answers meanwhile.

    Traits follow what a user chooses, and most of them choose when they are set. Other widgets can
    be linked to them, and functions observe them.

    Attributes
    ----------
    topic : str
        The topic shown; "" for a new one. A topic that is set is shown as it is today.
    setting : Config
        The setting shown; never one that Kafka refuses.
    minutes_per_loss : float
        The price of losing records: one of the control's steps.
    verdict : Verdict
        On the setting shown, as if it ran today; read only. How sure it is comes later.
    learned : Learned or None
        What follows from what the cluster has seen; read only. None if nothing is counted.
    page : dict
        Controls and settings, as `settings_grid.page_json` returns them.
    values : dict of str to str
        Value of each control; synchronised with the page.
    token : str
        By which the page that is stored in a notebook knows this widget.

    Examples
    --------
    >>> import advisor
    >>> card = {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    >>> cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    >>> view = advisor.explorer(cluster, advisor.FailureModel.from_dict(card), cards=[])
    >>> view.observe(lambda change: print(change.new.headline), "verdict")
    >>> view.setting = view.setting.changed(min_insync_replicas=1)
    Keep RF 3, min ISR 1, acks=all.
    """

    _esm = source("explorer.js") + source("widget.js")
    _css = source("explorer.css")
    page = traitlets.Dict().tag(sync=True)
    values = traitlets.Dict().tag(sync=True)
    token = traitlets.Unicode().tag(sync=True)
    topic = traitlets.Unicode()
    setting = traitlets.Instance(Config)
    minutes_per_loss = traitlets.Float()
    verdict = traitlets.Instance(Verdict, allow_none=True, read_only=True)
    learned = traitlets.Instance(Learned, allow_none=True, read_only=True)

    def __init__(
        self, explorer_model: ExplorerModel, topics: Sequence[str] = (), cards: Sequence[str] = ()
    ) -> None:
        self._explorer_model = explorer_model
        self._worker = Worker(explorer_model)
        self._elsewhere = (topics, cards, SWITCHED_VERSIONS if cards else ())
        self._offline: dict[str, Any] | None = None
        self._completing = False
        self._updates: list[Callable[[], None]] = []
        first = explorer_model.chosen
        if _cell_of_user() is None:
            explorer_model.answer(first)
        else:
            self._begin(first)
        super().__init__(
            page=explorer_model.live_page(explorer_model.page()), values=first, token=uuid4().hex
        )
        self._show(first)
        self.on_msg(self._asked)
        self.observe(lambda change: self._show(change.new), "values")
        self.observe(self._set, ["topic", "setting", "minutes_per_loss"])

    def _show(self, values: Mapping[str, str]) -> None:
        """Let the traits follow what the page shows."""
        with self.hold_trait_notifications():
            self.topic = values["topic"]
            self.minutes_per_loss = self._explorer_model.prices[values[PRICE]]
            self.setting = self._explorer_model.config(values)
            verdicts = self._explorer_model.verdicts(values)
            self.set_trait("verdict", verdicts.get(values[PRICE]))
            self.set_trait("learned", self._explorer_model.learned(values))

    def _set(self, change: Any) -> None:
        """Show what another widget or the user's code has set."""
        explorer_model, values = self._explorer_model, dict(self.values)
        if change.name == "topic" and change.new != values["topic"]:
            values |= {**explorer_model.of_topic(change.new), "topic": change.new}
        if change.name == "minutes_per_loss":
            values[PRICE] = as_text(change.new)
        if change.name == "setting" and change.new != explorer_model.config(values):
            shown_values = values_of(change.new, values["topic"], values["card"])
            values |= {**shown_values, PRICE: values[PRICE]}
        self.values = values

    @traitlets.validate("topic")
    def _valid_topic(self, proposal: Any) -> str:
        if proposal.value != NEW_TOPIC:
            self._explorer_model.cluster.topic(proposal.value)
        return str(proposal.value)

    @traitlets.validate("minutes_per_loss")
    def _valid_price(self, proposal: Any) -> float:
        prices = self._explorer_model.prices
        if as_text(proposal.value) not in prices:
            raise InputError(
                f"minutes_per_loss={proposal.value:g} is no step of this explorer: there are "
                f"{', '.join(prices)}; give the explorer Goals(minutes_per_loss=...) for another"
            )
        return float(proposal.value)

    @traitlets.validate("setting")
    def _valid_setting(self, proposal: Any) -> Config:
        if refused := min_isr_refusal(proposal.value):
            raise InputError(refused)
        return proposal.value  # type: ignore[no-any-return]

    def _begin(self, first: Mapping[str, str]) -> None:
        """Compute the first curve, and in other processes what users change most after it."""
        # In a thread, since it returns when the first process has started.
        begin = self._worker.begin
        threading.Thread(target=begin, args=(first, _BEGUN_WITH), daemon=True).start()
        self._explorer_model.answer(first)
        for likely in after_one_change(self._explorer_model, first, ("acks",)):
            self._explorer_model.setting(likely)

    @property
    def html(self) -> str:
        """The explorer as an HTML fragment that needs neither kernel nor network."""
        return html_fragment(self._complete()).text

    def __repr__(self) -> str:
        if self.verdict is None:
            return str(self._explorer_model.setting(self.values)["refusal"])
        return str(self.verdict)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if bundle is not None else ({}, {})
        return {**data, "text/html": self.html}, metadata

    def _ipython_display_(self, **options: Any) -> None:
        """Show the widget with the first picture, compute the rest, and store the whole page.

        The page is an output of its own: where an output has both, JupyterLab shows a dead widget's
        error alone.
        """
        shell: Any = get_ipython()
        if self._offline is not None or getattr(shell, "kernel", None) is None:
            # IPython's own sign to go on with `_repr_mimebundle_`; users never see it.
            raise NotImplementedError
        data, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        shell.display_pub.publish(data, metadata=metadata, transient={})
        message: dict[str, Any] = {"metadata": {}, "transient": {"display_id": self.model_id}}

        def publish(page: dict[str, Any], **display: bool) -> None:
            stored = stored_fragment(page, self.token).text
            shell.display_pub.publish(
                {"text/html": stored, "text/plain": repr(self)}, **display, **message
            )

        def update() -> None:
            publish(self._complete(), update=True)

        publish(self._explorer_model.page())
        cell = _cell_of_user()
        if cell is None:
            update()
            return
        self._updates.append(update)
        if not self._completing:
            self._start_beside(cell)

    def _start_beside(self, cell: str) -> None:
        # The same cell run again shows another explorer: this one's page is not waited for.
        earlier = _SHOWN.get(cell)
        if earlier is not None and earlier is not self:
            earlier._worker.stop()
        _SHOWN[cell] = self
        self._completing = True
        # In the cell's context, so that what is sent belongs to the cell.
        run, task = copy_context().run, self._complete_beside
        threading.Thread(target=run, args=(task,), daemon=True).start()

    def _complete_beside(self) -> None:
        """Compute the page in a background process; send its answers, then update the outputs."""
        explorer_model, worker = self._explorer_model, self._worker
        topics, settings = curves_elsewhere(explorer_model, *self._elsewhere)
        elsewhere = [*topics, *settings]
        try:
            for _ in worker.answers(self._missing_here()):
                self.page = explorer_model.live_page(explorer_model.page())
                self._follow()
            for _ in worker.answers(self._missing_elsewhere(elsewhere)):
                pass
        finally:
            self._completing = False
        if worker.stopped:
            return
        self._offline = explorer_model.page(elsewhere)
        self.page = self._explorer_model.live_page(self._offline)
        for update in self._updates:
            update()

    def _missing_here(self) -> Iterator[Task]:
        """Yield tasks for what the page lacks of its first topic and card, intervals first."""
        explorer_model = self._explorer_model
        for values in explorer_model.looked_at_first():
            if not explorer_model.has_intervals(values):
                yield ExplorerModel.with_intervals, values
        for offered in explorer_model.offered():
            unanswered = [setting for setting in offered if not explorer_model.is_answered(setting)]
            if unanswered:
                yield ExplorerModel.answers, unanswered

    def _missing_elsewhere(self, elsewhere: Sequence[Mapping[str, str]]) -> Iterator[Task]:
        """Yield tasks for what the page lacks of other topics, cards and versions by then."""
        explorer_model = self._explorer_model
        for values in elsewhere:
            if explorer_model.missing_settings(values) or not explorer_model.is_marked(values):
                yield ExplorerModel.answer, values
        for values in first_of_cards(explorer_model, self._elsewhere[1]):
            if not explorer_model.has_intervals(values):
                yield ExplorerModel.with_intervals, values

    def _complete(self) -> dict[str, Any]:
        """Return the page without a kernel; what is computed for it also reaches the widget."""
        if self._offline is None:
            explorer_model = self._explorer_model
            other_curves = Elsewhere(explorer_model, *self._elsewhere)
            try:
                for _ in explorer_model.curves():
                    self.page = explorer_model.live_page(explorer_model.page())
                self._offline = explorer_model.page(other_curves.computed())
            finally:
                other_curves.stop()
            self.page = self._explorer_model.live_page(self._offline)
            self._follow()
        return self._offline

    def _asked(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        """Answer with a setting; background processes compute its curve and likely next ones."""
        values = {name: str(value) for name, value in content["values"].items()}
        explorer_model, worker = self._explorer_model, self._worker
        if content["kind"] == "cancel":
            worker.give_up()
        elif content["kind"] == "ahead":
            worker.compute_likely_next(values, lambda answer: self._reply(content, answer))
        elif content["kind"] == "around":
            pictured = explorer_model.same_picture(values)
            worker.compute_curve(pictured, lambda answer: self._reply(content, answer))
        elif explorer_model.is_long(values) and not explorer_model.is_answered(values):
            # The kernel stays free to hear that the user gives it up.
            worker.compute_chosen(
                values,
                lambda answer: self._reply(content, answer, more=True),
                lambda answer: self._reply(content, answer),
            )
        else:
            answer = Answer({}, {})
            try:
                if not explorer_model.is_answered(values):
                    worker.await_setting(values)
                answer = explorer_model.answers([values])
            finally:
                # Also when interrupted: the page asks its next question after the reply.
                self._reply(content, answer)

    def _reply(self, content: dict[str, Any], answer: Answer, more: bool = False) -> None:
        settings, marks = dict(answer.settings), dict(answer.marks)
        message = {"id": content["id"], "settings": settings, "marks": marks}
        self.send({**message, "more": True} if more else message)
        if not more:
            self._follow()

    def _follow(self) -> None:
        """Let the verdict follow what has become known of the setting shown."""
        if self._explorer_model.is_answered(self.values):
            verdicts = self._explorer_model.verdicts(self.values)
            self.set_trait("verdict", verdicts.get(self.values[PRICE]))


def _cell_of_user() -> str | None:
    """Return the identity of the running cell if a user may be there; None if a program runs it.

    Programs such as nbconvert allow no input, and keep what a cell shows at its end.
    """
    shell: Any = get_ipython()
    parent = getattr(getattr(shell, "kernel", None), "get_parent", None)
    request = {} if parent is None else parent("shell") or {}
    if not request.get("content", {}).get("allow_stdin", False):
        return None
    metadata, header = request.get("metadata", {}), request.get("header", {})
    return str(metadata.get("cellId") or header.get("msg_id", ""))


_SHOWN: dict[str, Explorer] = {}
"""What each cell of a notebook shows."""


@names_checked
def explorer(
    cluster: Cluster | Sources,
    model: FailureModel | str | os.PathLike[str],
    load: Workload | None = None,
    goals: Goals | None = None,
    config: Config | None = None,
    cards: Sequence[str] | None = None,
) -> Explorer:
    """Return controls for the settings of a topic beside what they do to durability and downtime.

    The curves of up to three replicas appear first; then other acks and elections follow, and the
    curves of six topics, of other failure models and of some Kafka versions. What else you choose,
    the kernel computes: also the failure model that follows from what your cluster has seen. On an
    exported page everything that followed can still be chosen.

    Parameters
    ----------
    cluster : Cluster, str, path or list
        Brokers, racks and topics; or what `load_cluster` reads. Replication factors go up to the
        number of brokers, at most 5.
    model : FailureModel, str or path
        The failure model, or the name or path of its card; the shipped cards can be chosen too.
    load : Workload, optional
        The traffic of all topics together, which share it by their partitions, or of a new topic.
        Default: 1,000 records per second for each.
    goals : Goals, optional
        Limits, and the price of losing records at first. Default: ``Goals()``.
    config : Config, optional
        A new topic with these settings is shown first. Default: the cluster's worst topic as it is
        today, Kafka's own aside; without topics a new one with replication factor 3 and min ISR 2,
        or as near as the brokers allow.
    cards : sequence of str, optional
        Names of other failure models on exported pages. Default: the shipped ones; with none, and
        no other Kafka version, the cell ends sooner.

    Returns
    -------
    Explorer
        A widget. Its ``verdict`` says what to set, its ``html`` is a page without a kernel; its
        ``topic``, ``setting`` and ``verdict`` can be linked to other widgets and observed.

    Raises
    ------
    AdvisorError
        If cluster or card cannot be read.

    See Also
    --------
    advisor.evaluate : One setting, with everything that is known about it.
    advisor.recommend : The settings that meet the goals at least cost.

    Examples
    --------
    >>> import advisor
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
    >>> view = advisor.explorer(cluster, model)
    >>> "<script>" in view.html
    True
    """
    cluster, model = cluster_of(cluster), model_of(model)
    expect("cluster", cluster, Cluster, "a Cluster, or what load_cluster reads")
    expect("model", model, FailureModel, "a FailureModel, or the name or path of a card")
    expect("load", load, Workload | None, "a Workload, or None")
    expect("goals", goals, Goals | None, "Goals, or None")
    expect("config", config, Config | None, "a Config, or None")
    expect("cards", cards, tuple | list | None, "a list of cards' names, or None")
    check_exact(model)
    goals = goals or Goals()
    surviving(goals.survive, cluster)  # says at once if that cannot be told
    situation = Situation.read(cluster, load)
    decision = Decision(situation, model, goals.requirements)
    topics = worst_first(decision)
    users = [name for name in topics if not cluster.topic(name).internal]
    first = NEW_TOPIC if config is not None or not topics else (users or topics)[0]
    start = config or decision.of_new_topic.questions[0].today.config
    explorer_model = ExplorerModel(
        cluster, model, load, goals, start, first, situation, topics[:MOST_TOPICS]
    )
    card_names = catalog.model_names() if cards is None else list(cards)
    return Explorer(explorer_model, switchable(cluster, topics), card_names)
