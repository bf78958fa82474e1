"""A `Verdict` as the first screen of a page: the report's, and a result's in a notebook.

In: the verdict, and what only the page knows (where the cluster is from, its commands). Out: HTML
with its own style, which fits a phone; a script copies commands, and without it nothing else is
missing. It shows what the verdict says and decides nothing; cells and sentences are those of
`advisor.decision.rows`, as on the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from advisor.decision import Action, SettingChoice, Verdict
from advisor.decision.rows import (
    CONSENT,
    Around,
    Change,
    TopicRow,
    around,
    between_losses,
    first_names,
    headline,
    healthy,
    healthy_words,
    in_trouble,
    row,
    unsaid_now,
    without_writes,
)
from advisor.decision.verdict import CRITICAL, OK, WARNING
from advisor.decision.words import whose_doubt
from advisor.formatting import capital
from advisor.present.verdict_pictures import NARROW, WIDE, arrows, price_axis, price_sentence
from advisor.rendering import Html, html, html_joined, markup

_SIGNS = {CRITICAL: "●", WARNING: "▲", OK: "✓"}
_COLUMNS = ("Severity", "Topic", "Today", "Set to", "A loss every", "Without writes", "Why")
_COMMAND = "Command"
_CONFIDENCE = {"depends": "it depends"}
_NOTHING = markup("")
_ARROW = "→"
_FIRST_TOPICS, _MOST_TOPICS = 10, 100
_LEGEND = "To the right: fewer losses; up: less time without writes."
_ARROWS = "Each arrow is a topic, from today (dot) to after the change (ring)."
_HELD = "<li><strong>{}</strong> to {}: it {}.</li>"
_CONSENT = '<p class="av-held">* Held back until you consent with <code>{}</code>:</p>'


@cache
def source(name: str) -> str:
    """Return the text of a file beside this module."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def style() -> Html:
    """Return the style of `first_screen`, for the head of a page or before it."""
    return markup("<style>\n{}</style>\n", markup(source("verdict.css")))


def script() -> Html:
    """Return what copies the commands in every `first_screen` before it."""
    return markup("<script>\n{}</script>\n", markup(source("verdict.js")))


def verdict_html(verdict: Verdict, state: Sequence[str] = ()) -> Html:
    """Return a verdict with its style, for a notebook."""
    parts = [style(), first_screen(verdict, state=state)]
    return html_joined([*parts, script()] if verdict.command_of else parts)


def first_screen(
    verdict: Verdict,
    commands: Html | None = None,
    title: bool = False,
    state: Sequence[str] = (),
) -> Html:
    """Return a verdict as HTML, which needs `style` in the page, and `script` after it to copy.

    The state of the cluster is given where something is out of sync.
    """
    broken, to_do = headline(verdict)
    head = markup(
        '<h1 class="av-headline">{}</h1>' if title else '<p class="av-headline">{}</p>', html(to_do)
    )
    lead = markup("<div>{}<p>{}</p></div>", head, html(verdict.text))
    top = markup('<div class="av-top">{}{}</div>', lead, _two_numbers(verdict))
    sentences = around(verdict)
    parts = [
        _now(broken, (*unsaid_now(verdict), *state)),
        top,
        _topics(verdict),
        _picture(verdict, sentences),
        _commands(verdict, commands),
        _sure(verdict, sentences),
    ]
    return markup('<div class="advisor-verdict">\n{}\n</div>\n', html_joined(parts, "\n"))


def _now(broken: str, sentences: Sequence[str]) -> Html:
    """What is broken now, in red; nothing if nothing is."""
    if not broken and not sentences:
        return _NOTHING
    items = html_joined(markup("<li>{}</li>", html(sentence)) for sentence in sentences)
    more = markup("<ul>{}</ul>", items) if sentences else _NOTHING
    first = markup("<p>{}</p>", html(broken)) if broken else _NOTHING
    return markup('<div class="av-now">{}{}</div>', first, more)


def _two_numbers(verdict: Verdict) -> Html:
    """The worst topic's losses and time without writes, today and after the change."""
    actions = verdict.actions
    if not actions:
        return _NOTHING
    of_worst = "Worst topic: " if len(actions) > 1 else ""
    losses = Change(
        between_losses(max(action.loss_today for action in actions)),
        between_losses(max(action.loss_after for action in actions)),
    )
    minutes = Change(
        without_writes(max(action.refused_today for action in actions)),
        without_writes(max(action.refused_after for action in actions)),
    )
    changed = any(action.set_to is not None for action in actions)
    return markup(
        '<div><dl class="av-two">{}{}</dl>{}</div>',
        _number(capital(f"{of_worst}a loss every"), losses, changed),
        _number(capital(f"{of_worst}without writes a year"), minutes, changed),
        _how_sure(verdict),
    )


def _how_sure(verdict: Verdict) -> Html:
    """In a word how sure the change is, or that nothing changes; why stands further down."""
    if not verdict.confidence or verdict.choice is None:
        return _NOTHING
    how_sure = '<p class="av-how">How sure: <strong>{}</strong>{}</p>'
    word = html(_CONFIDENCE.get(verdict.confidence, verdict.confidence))
    return markup(how_sure, word, html(whose_doubt(verdict.choice, verdict.actions)))


def _number(title: str, change: Change, changed: bool) -> Html:
    today = markup('<dd class="av-today">today: {}</dd>', html(change.today))
    if not changed:
        today = _NOTHING
    after = '<dd class="av-after"><small>after:</small> {}</dd>'
    only = '<dd class="av-after">{}</dd>'
    number = markup(after if changed else only, html(change.after))
    return markup("<div><dt>{}</dt>{}{}</div>", html(title), today, number)


def _topics(verdict: Verdict) -> Html:
    trouble, well = in_trouble(verdict), healthy(verdict)
    parts = []
    if trouble:
        parts.append(_table(verdict, trouble[:_FIRST_TOPICS], "Topics to change, the worst first."))
    more_trouble = trouble[_FIRST_TOPICS:]
    if more_trouble:
        folded = "<details><summary>{}</summary>{}</details>"
        title = f"{len(more_trouble):,} more topics to change"
        parts.append(
            markup(folded, html(title), _table(verdict, more_trouble, f"{title}, the worst first."))
        )
    if well:
        folded = '<details class="av-healthy"><summary>{} <span>{}</span></summary>{}</details>'
        sign = markup('<span class="av-ok">{} {}</span>', html(_SIGNS[OK]), html(OK))
        table = _table(verdict, well, "Topics that stay as they are.")
        parts.append(markup(folded, sign, html(healthy_words(verdict)), table))
    return html_joined(parts, "\n")


def _table(verdict: Verdict, actions: Sequence[Action], caption: str) -> Html:
    """Topics as a table, as cards on a phone: hence the roles, which cards would lose."""
    head = html_joined(
        markup('<th scope="col" role="columnheader">{}</th>', html(column)) for column in _COLUMNS
    )
    shown = actions[:_MOST_TOPICS]
    changes = verdict.command_of is not None and any(action.set_to for action in shown)
    if changes:
        column = '<th scope="col" role="columnheader" class="av-command">{}</th>'
        head = html_joined([head, markup(column, html(_COMMAND))])
    rows = html_joined(
        (_topic(row(action), _copy(verdict, action) if changes else _NOTHING) for action in shown),
        "\n",
    )
    hidden = len(actions) - _MOST_TOPICS
    caption += f" {hidden:,} more are not shown." if hidden > 0 else ""
    return markup(
        '<table class="av-topics" role="table"><caption>{}</caption>'
        '<thead role="rowgroup"><tr role="row">{}</tr></thead>\n'
        '<tbody role="rowgroup">{}</tbody></table>',
        html(caption),
        head,
        rows,
    )


def _copy(verdict: Verdict, action: Action) -> Html:
    """The cell that copies a topic's command; with the reason if that is held back."""
    cell = '<td role="cell" class="av-cell av-command" data-label="{}"><span>{}</span></td>'
    label, topic = html(_COMMAND), row(action)
    if action.held_back:
        why = f"The command for {topic.topic} is held back: it {topic.held_back}"
        button = markup(
            '<button type="button" disabled title="{}" aria-label="{}">Copy</button>',
            html(why),
            html(why),
        )
        return markup(cell, label, button)
    command = verdict.command_of(action) if verdict.command_of else ""
    if not command:
        return markup('<td role="cell" class="av-command"></td>')
    button = markup(
        '<button type="button" data-command="{}" data-lm-suppress-shortcuts="true" '
        'aria-label="{}">Copy</button>',
        html(command),
        html(f"Copy the command for {topic.topic}"),
    )
    return markup(cell, label, button)


def _topic(topic: TopicRow, copy: Html) -> Html:
    severity = markup(
        '<td role="cell"><span class="av-{}">{} {}</span></td>',
        html(topic.severity),
        html(_SIGNS[topic.severity]),
        html(topic.severity),
    )
    name = markup('<th scope="row" role="rowheader">{}</th>', html(topic.topic))
    held = markup("<small>held back *</small>") if topic.held_back else _NOTHING
    set_to = markup('<span class="av-set">{}</span>{}', html(topic.set_to or "keep"), held)
    cells = [
        _cell(2, html(topic.today)),
        _cell(3, set_to),
        _cell(4, html(topic.losses.joined(_ARROW)), "av-number"),
        _cell(5, html(topic.minutes.joined(_ARROW)), "av-number"),
    ]
    cells.append(
        _cell(6, html(topic.reason), "av-why") if topic.reason else markup('<td role="cell"></td>')
    )
    return markup('<tr role="row">{}{}{}{}</tr>', severity, name, html_joined(cells), copy)


def _cell(column: int, content: Html, kind: str = "") -> Html:
    """A cell that names its column, for the cards of a phone."""
    cell = '<td role="cell" class="av-cell {}" data-label="{}"><span>{}</span></td>'
    return markup(cell, html(kind), html(_COLUMNS[column]), content)


def _picture(verdict: Verdict, sentences: Around) -> Html:
    if not verdict.actions:
        return _NOTHING
    arrow = _ARROWS if any(action.set_to is not None for action in verdict.actions) else ""
    return markup(
        '<figure><div class="av-wide">{}</div><div class="av-narrow">{}</div>'
        "<figcaption>{}</figcaption></figure>",
        arrows(verdict, WIDE),
        arrows(verdict, NARROW),
        html(" ".join(filter(None, (arrow, _LEGEND, sentences.floor)))),
    )


def _commands(verdict: Verdict, commands: Html | None) -> Html:
    """What is held back and why, and the commands of the page."""
    groups: dict[tuple[str, str], list[str]] = {}
    for topic in map(row, verdict.actions):
        if topic.held_back:
            groups.setdefault((topic.set_to, topic.held_back), []).append(topic.topic)
    items = [
        markup(_HELD, html(first_names(names)), html(set_to), html(reason))
        for (set_to, reason), names in groups.items()
    ]
    held = _NOTHING
    if items:
        why = markup('<ul class="av-more">{}</ul>', html_joined(items))
        held = html_joined([markup(_CONSENT, html(CONSENT)), why])
    return html_joined([held, commands or _NOTHING])


def _sure(verdict: Verdict, around_table: Around) -> Html:
    """How sure the choice is, drawn and in a sentence; goals, and what to measure next."""
    choice = verdict.choice
    if choice is None:
        return _NOTHING
    sentences = [around_table.sure, around_table.undrawn, *around_table.goals]
    words = html_joined(
        markup('<p class="av-said">{}</p>', html(sentence)) for sentence in sentences if sentence
    )
    measure = _measured(around_table.measure, choice)
    drawn = price_axis(choice)
    if drawn is None:
        return markup('<div class="av-sure"><div>{}{}</div></div>', words, measure)
    figure = markup(
        "<figure>{}<figcaption>{}</figcaption></figure>", drawn, html(price_sentence(choice))
    )
    return markup('<div class="av-sure av-drawn"><div>{}{}</div>{}</div>', words, measure, figure)


def _measured(sentence: str, choice: SettingChoice) -> Html:
    """What to measure next, and where a user finds it."""
    if not sentence:
        return _NOTHING
    items = html_joined(
        markup("<li><code>{}</code>: {}</li>", html(number.path), html(number.how))
        for number in choice.measure_next
    )
    where = '<details><summary>Where to measure</summary><ul class="av-more">{}</ul></details>'
    return markup("<p><small>{}</small></p>{}", html(sentence), markup(where, items))
