"""The state of a cluster in words: what is wrong now, what the next failure does, what to do."""

from __future__ import annotations

from dataclasses import replace

from advisor.advice.audits.current_state import CurrentState, NextFailure
from advisor.advice.findings.missing_brokers import missing_words
from advisor.advice.migration.tools import Tools
from advisor.advice.phrases import first_of, listed


def state_lines(state: CurrentState, brief: bool = False) -> tuple[str, ...]:
    """Return the state in up to three lines: now, next, first; none if all is in sync.

    In brief without what the next failure would do. Where partitions are broken, which the verdict
    names, also without their numbers, and without a missing broker that the last line names.
    """
    if state.in_sync:
        return ()
    all_offline = len(state.offline) == state.partitions
    worst = "" if brief or all_offline else _next(state.worst_next)
    lines = (_now(state, brief), worst, _first(state))
    return tuple(line for line in lines if line)


def _now(state: CurrentState, brief: bool) -> str:
    if brief and state.missing and (state.offline or state.under_min_isr or state.one_left):
        named = state.missing == (state.start_first,)
        return "" if named else f"Now: {_missing(state).removesuffix('; ')}."
    wrong = []
    if state.offline:
        is_single = len(state.offline) == 1
        wrong.append(f"{len(state.offline):,} {'is' if is_single else 'are'} offline")
    if state.under_min_isr:
        refuse = "refuses" if len(state.under_min_isr) == 1 else "refuse"
        wrong.append(f"{len(state.under_min_isr):,} {refuse} acks=all (below min ISR)")
    if state.one_left:
        have = "has" if len(state.one_left) == 1 else "have"
        wrong.append(f"{len(state.one_left):,} {have} one in-sync replica left")
    at_min = len(set(state.at_min_isr) - set(state.one_left))
    if at_min:
        wrong.append(f"{at_min:,} will refuse acks=all after one more failure (at min ISR)")
    if state.out_of_sync and not wrong:
        have = "has" if len(state.out_of_sync) == 1 else "have"
        wrong.append(f"{len(state.out_of_sync):,} {have} replicas out of sync")
    if not wrong:
        wrong.append("all have every replica in sync")
    return f"Now: {_missing(state)}of {_partitions(state.partitions)} {listed(wrong)}."


def _missing(state: CurrentState) -> str:
    failed = state.presence.failed_directories
    words = missing_words(state.presence) if state.missing else ["no broker is missing"]
    if failed:
        names = first_of([str(broker) for broker in failed])
        running = f"brokers {names} run" if len(failed) > 1 else f"broker {names} runs"
        words.append(f"{running}, but not all of its log directories work")
    return "".join(f"{text}; " for text in words)


def _partitions(number: int) -> str:
    return f"{number:,} partition{'' if number == 1 else 's'}"


def _next(worst: NextFailure | None) -> str:
    if worst is None:
        return "Next: if any one more broker crashes, no further partition stops."
    harm = []
    if worst.unclean:
        harm.append(f"{_partitions(worst.unclean)} may lose acknowledged records")
    if worst.offline:
        goes = "goes" if worst.offline == 1 else "go"
        harm.append(f"{_partitions(worst.offline)} {goes} offline")
    if worst.refusing:
        refuses = "refuses" if worst.refusing == 1 else "refuse"
        more = f"{worst.refusing:,} more" if harm else _partitions(worst.refusing)
        harm.append(f"{more} {refuses} acks=all")
    text = f"Next: the worst broker to lose now is {worst.broker}: {listed(harm)}"
    if worst.last_copies:
        whose = _partitions(worst.last_copies)
        text += f", and no other disk has the newest acknowledged records of {whose}"
    return f"{text}."


def _first(state: CurrentState) -> str:
    tools = _tools(state)
    if state.not_elected:
        names = first_of([str(broker) for broker in state.not_elected])
        brokers = f"brokers {names} were" if len(state.not_elected) > 1 else f"broker {names} was"
        return (
            f"First: find out why {brokers} not elected, though up and allowed to lead. Often it "
            "is a failed log directory, which the broker's own log names. If no partition gets a "
            "leader, look at the controllers. "
            f"Check: {tools.controller_status(state.mode).text}"
        )
    broker = state.start_first
    if broker is None:
        return ""
    what = f"find out why broker {broker} is behind"
    if broker in state.presence.down:
        what = f"bring back broker {broker}"
    elif broker in state.presence.failed_directories:
        what = f"repair the failed log directory of broker {broker}"
    elif broker in state.presence.unknown and state.presence.part:
        what = f"see whether broker {broker} runs, and why it is behind"
    elif broker in (*state.presence.unknown, *state.presence.offline):
        what = f"bring back broker {broker} (if it is up, see its log)"
    if state.offline:
        others = "elect no other replica unless its disk is lost"
        if state.sole:
            others = "there is no other replica to elect: if its disk is lost, so are the records"
        return (
            f"First: {what}, which offline partitions wait for; {others}. "
            f"Check: {tools.unhealthy('unavailable').text}"
        )
    if state.under_min_isr:
        return (
            f"First: {what}; leave min.insync.replicas as it is. "
            f"Check: {tools.unhealthy('under-min-isr').text}"
        )
    return (
        f"First: {what}; restart no other broker until this prints {tools.nothing}: "
        f"{tools.unhealthy('under-replicated').text}"
    )


def _tools(state: CurrentState) -> Tools:
    """Return the tools, with the addresses and client properties that the cluster was read with.

    In place of the shell variables, which are set only in the scripts of a plan.
    """
    servers, config = state.bootstrap_servers, state.command_config
    tools = Tools(state.kafka_version, command_config=config, has_observers=state.has_observers)
    return replace(tools, bootstrap_servers=servers, by_hand=True) if servers else tools
