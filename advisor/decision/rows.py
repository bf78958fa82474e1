"""A verdict as the rows and short values that every screen shows, so that no two differ.

`words.py` says sentences; here are the cells of the table of topics, its columns in one place, and
the sentences around it, each under its own name. Nothing is decided here: every value is one that
the `Verdict` has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.decision import words
from advisor.decision.rule import MINUTES_PER_YEAR
from advisor.decision.settings import Setting
from advisor.decision.verdict import OK, Action, Verdict
from advisor.formatting import (
    HOURS_PER_YEAR,
    RAREST_YEARS,
    brief_time_per_year,
    is_rare,
    span,
    years,
)

THIS_SETTING = "this setting"
"""The name of a topic that does not exist yet."""
NEVER, ALWAYS, RARE = "never", "all the time", f"over {RAREST_YEARS:,.0f} years"
CONSENT = "--allow-lower-durability"
"""The option that consents to a lower durability."""
_MOST_NAMES = 6
_LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class Change:
    """A value today and after the change, in words."""

    today: str
    after: str

    def joined(self, arrow: str) -> str:
        """Return both with an arrow between them; one where they read the same.

        >>> Change("17 min", "34 min").joined("->"), Change("never", "never").joined("->")
        ('17 -> 34 min', 'never')
        """
        if self.today == self.after:
            return self.after
        # "to" stands for the arrow while a common unit is left out.
        first = span(self.today, self.after).removesuffix(f" to {self.after}")
        return f"{first} {arrow} {self.after}"


@dataclass(frozen=True)
class TopicRow:
    """What a screen says of one topic.

    today, set_to: `set_to` is "" to keep today's setting.
    losses, minutes: how often it loses records, and how long it stops writes in a year.
    """

    topic: str
    severity: str
    today: str
    set_to: str
    losses: Change
    minutes: Change
    reason: str
    held_back: str


def row(action: Action) -> TopicRow:
    """Return the row of a topic."""
    return TopicRow(
        topic=action.topic or THIS_SETTING,
        severity=action.severity,
        today=setting_words(action.today),
        set_to="" if action.set_to is None else target_words(action),
        losses=Change(between_losses(action.loss_today), between_losses(action.loss_after)),
        minutes=Change(without_writes(action.refused_today), without_writes(action.refused_after)),
        reason="" if action.set_to is None else words.reason(action),
        held_back=words.held_back(action) if action.held_back else "",
    )


def in_trouble(verdict: Verdict) -> tuple[Action, ...]:
    """Return the topics that are not as they should be, the worst first."""
    return tuple(a for a in verdict.actions if a.severity != OK or a.set_to is not None)


def healthy(verdict: Verdict) -> tuple[Action, ...]:
    """Return the topics that stay as they are."""
    return tuple(a for a in verdict.actions if a.severity == OK and a.set_to is None)


def healthy_words(verdict: Verdict) -> str:
    """Return how many topics are as they should be, and the first of their names; "" for none."""
    names = [action.topic or THIS_SETTING for action in healthy(verdict)]
    if not names:
        return ""
    beside = " more" if in_trouble(verdict) else ""
    return f"{len(names):,}{beside}: {first_names(names)}"


def first_names(names: Sequence[str]) -> str:
    """Return the first names and how many there are beside them.

    >>> first_names(["a", "b"]), first_names("abcdefgh")
    ('a, b', 'a, b, c, d, e, f and 2 others')
    """
    more = f" and {len(names) - _MOST_NAMES:,} others" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def headline(verdict: Verdict) -> tuple[str, str]:
    """Return the headline in two: what is broken now ("" for nothing), and what to do."""
    to_do = words.what_to_do(verdict.actions)
    broken = verdict.headline.removesuffix(to_do).strip()
    return (broken, to_do) if verdict.now else ("", verdict.headline)


def unsaid_now(verdict: Verdict) -> tuple[str, ...]:
    """Return what is broken now and does not stand in the headline, a sentence each."""
    return tuple(f"{now}." for now in verdict.now if now not in verdict.headline)


def setting_words(setting: Setting) -> str:
    """Return a setting for a narrow column; what is usual is left out.

    >>> from advisor.protocol.rules.config import Config
    >>> setting_words(Setting(Config(replication_factor=3, min_insync_replicas=2)))
    'RF 3, min ISR 2'
    """
    return f"{setting}".replace(", acks=all", "")


def target_words(action: Action) -> str:
    """Return what to set: only what changes."""
    today, after = action.today, action.after
    changes = []
    if today.replication_factor != after.replication_factor:
        changes.append(f"RF {after.replication_factor}")
    if changes or today.config.min_insync_replicas != after.config.min_insync_replicas:
        changes.append(f"min ISR {after.config.min_insync_replicas}")
    if today.config.acks != after.config.acks:
        changes.append(f"acks={after.config.acks}")
    unclean = today.config.unclean_leader_election_enable
    if unclean != after.config.unclean_leader_election_enable and unclean:
        changes.append("clean election")
    if after.patience != today.patience:
        changes.append(after.patience)
    if not changes:
        return "spread over racks" if action.moves else setting_words(after)
    return ", ".join(changes)


def between_losses(losses_per_year: float) -> str:
    """Return the time between losses for a column.

    >>> between_losses(1 / 270), between_losses(1e-9), between_losses(0.0), between_losses(2e4)
    ('270 years', 'over 2,000 years', 'never', 'all the time')
    """
    if losses_per_year == 0.0:
        return NEVER
    mean_years = 1.0 / losses_per_year
    if is_rare(mean_years):
        return RARE
    return ALWAYS if losses_per_year > HOURS_PER_YEAR else years(mean_years)


def without_writes(minutes: float) -> str:
    """Return the time without writes in a year for a column.

    >>> without_writes(33.8), without_writes(462.5), without_writes(0.0), without_writes(0.01)
    ('34 min', '7.7 h', 'none', 'under 1 s')
    >>> without_writes(MINUTES_PER_YEAR)
    'all year'
    """
    if minutes == 0.0:
        return "none"
    if minutes * words.SECONDS_PER_MINUTE < _LEAST_SECONDS:
        return "under 1 s"
    return brief_time_per_year(minutes / MINUTES_PER_YEAR).removesuffix("/year")


@dataclass(frozen=True)
class Around:
    """The sentences around the table of topics; "" where there is nothing to say."""

    floor: str = ""
    sure: str = ""
    undrawn: str = ""
    goals: tuple[str, ...] = ()
    measure: str = ""


def around(verdict: Verdict) -> Around:
    """Return the sentences around the table of topics."""
    if not verdict.actions or verdict.choice is None:
        return Around()
    return Around(
        floor=words.floor_sentence(verdict.actions),
        sure=words.sure_sentence(verdict.choice, verdict.actions),
        undrawn=words.undrawn_sentence(verdict.undrawn),
        goals=words.goal_sentences(verdict.actions),
        measure=words.measure_sentence(verdict.choice),
    )


def further(verdict: Verdict) -> tuple[str, ...]:
    """Return the sentences below the verdict that `around` leaves out."""
    beside = around(verdict)
    shown = {beside.floor, beside.sure, beside.undrawn, beside.measure, *beside.goals}
    return tuple(sentence for sentence in verdict.below if sentence not in shown)


def held_back_words(actions: Sequence[Action]) -> str:
    """Return why commands are held back; "" if none is. Their rows say from what to what."""
    held_back = any(action.held_back for action in actions)
    return f"held back: lowers min ISR; consent with {CONSENT}" if held_back else ""
