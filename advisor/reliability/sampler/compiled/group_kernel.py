"""Which replica sets an event strikes, and sets that one group stands for, compiled.

While one broker is out and all else of its sets is healthy, the sets that have it in the same slot
are all in the same state. Of a large cluster, one group by broker and slot is followed for them,
with the sum of their partitions; it is one more entry of ``sim.sets``. A set is followed by itself
from when a second of its brokers is struck, or copies of its log begin, or the controller quorum is
lost, until it is as at the start again. So an event of 1,000 brokers with 100,000 partitions
touches three groups instead of 300 sets. Traffic by the hour says how full the logs of sets are.
"""

from __future__ import annotations

import math

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.solver.jit import called, inlined


@inlined
def mean_hours(sim: KernelState, since: float, until: float) -> float:
    """Hours of mean traffic in which as many records are written as between two times."""
    if sim.control[0].hourly_traffic == 0:
        return until - since
    return _mean_hours_until(sim, until) - _mean_hours_until(sim, since)


@called
def _mean_hours_until(sim: KernelState, time: float) -> float:
    hours = time + sim.control[0].hour_at_time_0
    days = math.floor(hours / 24.0)
    hour = min(int(hours - 24.0 * days), 23)
    part_of_hour = hours - 24.0 * days - hour
    return float(24.0 * days + sim.traffic[hour] + part_of_hour * _step(sim, hour))


@inlined
def traffic_at(sim: KernelState, time: float) -> float:
    """Traffic of the hour, in units of the mean."""
    if sim.control[0].hourly_traffic == 0:
        return 1.0
    hour = (time + sim.control[0].hour_at_time_0) % 24.0
    return float(_step(sim, min(int(hour), 23)))


@inlined
def _step(sim: KernelState, hour: int) -> float:
    return float(sim.traffic[hour + 1] - sim.traffic[hour])


@called
def given_up_before(sim: KernelState, outage_hours: float) -> float:
    """Hours of the wait for a hung follower that are given up, given the outage that follows."""
    control = sim.control[0]
    if outage_hours > control.budget_hours:
        return float(control.hung_stall_hours)
    return given_up_hung(sim, max(control.delivery_hours - outage_hours, 0.0))


@inlined
def given_up_hung(sim: KernelState, hours: float) -> float:
    """Mean hours of the wait for a hung follower beyond a producer's timeouts."""
    control = sim.control[0]
    patience, lag = min(control.waiting_budget_hours, hours), control.lag_hours
    if patience <= lag:
        return float(control.hung_stall_hours - patience)
    # The wait is uniform between 1 and 1.5 lag times.
    remaining_hours = max(1.5 * lag - patience, 0.0)
    return float(remaining_hours * remaining_hours / lag) if remaining_hours > 0.0 else 0.0


# Number of the state in which a partition begins: healthy, with its preferred leader.
_FIRST = 0


@inlined
def mark_broker(sim: KernelState, b: int, afterwards: bool) -> None:
    """Mark a broker as struck by this event, or ``afterwards`` by the next at the same instant."""
    control, broker = sim.control[0], sim.brokers[b]
    if broker.struck == 0:
        sim.brokers[control.struck_count].marked = b
        control.struck_count += 1
    broker.struck |= 2 if afterwards else 1


@called
def mark_sets(sim: KernelState) -> None:
    """Mark the slots of the brokers that are struck in all that stands for their sets."""
    control = sim.control[0]
    for place in range(control.struck_count):
        b = sim.brokers[place].marked
        struck, sim.brokers[b].struck = sim.brokers[b].struck, 0
        if struck & 1:
            _mark_sets_of(sim, b, False)
        if struck & 2:
            _mark_sets_of(sim, b, True)
    control.struck_count = 0


@called
def _mark_sets_of(sim: KernelState, b: int, afterwards: bool) -> None:
    if sim.control[0].grouped == 1 and _mark_groups(sim, b, afterwards):
        return
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        s = sim.served[i].set
        if sim.sets[s].followed == 1:
            _touch(sim, s, sim.served[i].bit, afterwards)


@called
def _mark_groups(sim: KernelState, b: int, afterwards: bool) -> bool:
    """Mark a broker's groups, and follow the sets that another broker is out for.

    Returns whether the groups stand for all sets on the broker.
    """
    control, broker = sim.control[0], sim.brokers[b]
    if broker.start == broker.end:
        return True
    for slot in range(sim.slots.shape[1]):
        if _touch(sim, group_of(sim, b, slot), 1 << slot, afterwards) and broker.active == 0:
            broker.active = 1
            control.active_count += 1
    if control.active_count > broker.active:
        for i in range(broker.start, broker.end):
            if not _is_beside_active(sim, i):
                continue
            s = sim.served[i].set
            if sim.sets[s].followed == 0:
                _follow_from(sim, s, _other_active(sim, s, b))
    return bool(broker.followed == 0)


@inlined
def _is_beside_active(sim: KernelState, place: int) -> bool:
    """Whether any other broker of the set at a place of ``served`` is active."""
    for other in range(sim.beside.shape[1]):
        if sim.brokers[sim.beside[place, other]].active == 1:
            return True
    return False


@inlined
def group_of(sim: KernelState, b: int, slot: int) -> int:
    """The group of a broker's sets that have it in a slot."""
    return int(sim.control[0].sets + b * sim.slots.shape[1] + slot)


@inlined
def _touch(sim: KernelState, s: int, bit: int, afterwards: bool) -> bool:
    """Mark a slot as struck; False for a group that stands for no set and is as at the start."""
    control, replica_set = sim.control[0], sim.sets[s]
    if replica_set.mask == 0 and replica_set.second_mask == 0:
        if replica_set.weight == 0.0 and replica_set.state == _FIRST:
            return False
        sim.touched[control.touched_count] = s
        control.touched_count += 1
    if afterwards:
        replica_set.second_mask |= bit
    else:
        replica_set.mask |= bit
    return True


@inlined
def _other_active(sim: KernelState, s: int, b: int) -> int:
    """The slot of a set whose broker is not as at the start, other than ``b``; -1 for none."""
    for slot in range(sim.slots.shape[1]):
        other = sim.slots[s, slot]
        if other != b and sim.brokers[other].active == 1:
            return slot
    return -1


@called
def _follow_from(sim: KernelState, s: int, slot: int) -> None:
    """Follow a set by itself from here: it is what the group of this slot is."""
    control, group = sim.control[0], group_of(sim, sim.slots[s, slot], slot)
    weight, undecided = sim.sets[s].weight, sim.sets[s].undecided
    sim.sets[s] = sim.sets[group]
    sim.sets[s].weight, sim.sets[s].undecided = weight, undecided
    for gap in range(sim.gaps.shape[1]):
        sim.gaps[s, gap] = sim.gaps[group, gap]
    for cause in range(sim.attribution.shape[1]):
        sim.attribution[s, cause] = sim.attribution[group, cause]
    if sim.sets[s].mask != 0 or sim.sets[s].second_mask != 0:
        sim.touched[control.touched_count] = s
        control.touched_count += 1
    control.sets_not_healthy += sim.sets[s].not_healthy
    _leave_groups(sim, s)


@inlined
def _leave_groups(sim: KernelState, s: int) -> None:
    sim.control[0].followed_count += 1
    sim.sets[s].followed = 1
    for slot in range(sim.slots.shape[1]):
        b = sim.slots[s, slot]
        sim.brokers[b].followed += 1
        sim.sets[group_of(sim, b, slot)].weight -= sim.sets[s].weight


@called
def follow_all(sim: KernelState) -> None:
    """Follow every set by itself."""
    control = sim.control[0]
    if control.grouped == 0 or control.followed_count == control.sets:
        return
    for s in range(control.sets):
        if sim.sets[s].followed == 0:
            slot = _other_active(sim, s, -1)
            if slot >= 0:
                _follow_from(sim, s, slot)
            else:
                _leave_groups(sim, s)
    still_touched = 0
    for i in range(control.touched_count):
        if sim.touched[i] < control.sets:
            sim.touched[still_touched] = sim.touched[i]
            still_touched += 1
    control.touched_count = still_touched
    for group in range(control.sets, len(sim.sets)):
        _empty(sim, group)
    for b in range(control.brokers):
        sim.brokers[b].active = 0
    control.active_count = 0


@called
def split_group(sim: KernelState, place: int) -> None:
    """Follow every set of a group by itself, which is at a place of ``touched``."""
    control, group = sim.control[0], sim.touched[place]
    b, slot = divmod(group - control.sets, sim.slots.shape[1])
    control.touched_count -= 1
    sim.touched[place] = sim.touched[control.touched_count]
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        s = sim.served[i].set
        if sim.sets[s].followed == 0 and sim.slots[s, slot] == b:
            _follow_from(sim, s, slot)
    _empty(sim, group)
    _rest(sim, b)


@inlined
def _empty(sim: KernelState, group: int) -> None:
    """Put a group that stands for no set back to the start."""
    replica_set = sim.sets[group]
    sim.control[0].sets_not_healthy -= replica_set.not_healthy
    (
        replica_set.state,
        replica_set.not_healthy,
        replica_set.stall_cause,
        replica_set.mask,
        replica_set.second_mask,
    ) = _FIRST, 0, 0, 0, 0
    replica_set.accounted_until, replica_set.base_records = (
        sim.control[0].now,
        sim.control[0].retained_records,
    )
    for gap in range(sim.gaps.shape[1]):
        sim.gaps[group, gap] = 0.0


@called
def settle(sim: KernelState) -> None:
    """Let what is as at the start again be stood for by groups."""
    control = sim.control[0]
    for i in range(control.touched_count):
        if sim.touched[i] >= control.sets:
            _rest(sim, (sim.touched[i] - control.sets) // sim.slots.shape[1])
    if control.followed_count == 0:
        return
    for i in range(control.touched_count):
        s = sim.touched[i]
        if s < control.sets and sim.sets[s].followed == 1 and _as_at_start(sim, s):
            _join_groups(sim, s)


@called
def join_all(sim: KernelState) -> None:
    """Let groups stand for all sets that are as at the start."""
    for s in range(sim.control[0].sets):
        if sim.sets[s].followed == 1 and _as_at_start(sim, s):
            _join_groups(sim, s)


@inlined
def _join_groups(sim: KernelState, s: int) -> None:
    """Let groups stand for a set, unless one of them, or a broker, is not as at the start.

    A broker that lags while the quorum is lost leaves its sets as they are.
    """
    for slot in range(sim.slots.shape[1]):
        _rest(sim, sim.slots[s, slot])
        if sim.brokers[sim.slots[s, slot]].condition != WELL:
            return
    if _other_active(sim, s, -1) >= 0:
        return
    sim.control[0].followed_count -= 1
    sim.sets[s].followed = 0
    sim.sets[s].base_records = sim.control[0].retained_records
    for slot in range(sim.slots.shape[1]):
        b = sim.slots[s, slot]
        sim.brokers[b].followed -= 1
        sim.sets[group_of(sim, b, slot)].weight += sim.sets[s].weight


@inlined
def _rest(sim: KernelState, b: int) -> None:
    """Note whether a broker is well and all its groups are as at the start again."""
    if sim.brokers[b].active == 0 or sim.brokers[b].condition != WELL:
        return
    for slot in range(sim.slots.shape[1]):
        if not _as_at_start(sim, group_of(sim, b, slot)):
            return
        sim.sets[group_of(sim, b, slot)].base_records = sim.control[0].retained_records
    sim.brokers[b].active = 0
    sim.control[0].active_count -= 1


@inlined
def _as_at_start(sim: KernelState, s: int) -> bool:
    """Whether a set is healthy, its preferred leader leads, and its logs are full."""
    control, replica_set = sim.control[0], sim.sets[s]
    if replica_set.state != _FIRST or replica_set.mask != 0 or replica_set.second_mask != 0:
        return False
    if replica_set.base_records < control.retained_records:
        hours = mean_hours(sim, replica_set.accounted_until, control.now)
        return bool(
            replica_set.base_records + hours * control.records_per_hour >= control.retained_records
        )
    return True
