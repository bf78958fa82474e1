"""Constants of one CTMC and the controller's decisions under them, memoised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from advisor.protocol.rules import controller
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.isr import refusal_before_append
from advisor.protocol.rules.partition_registration import Registration, Replicas
from advisor.protocol.rules.versions import Rules, rules_for

Active = frozenset[int]
_REMEMBERED = 2**16
_ANY_RULES = rules_for("4.2")


@lru_cache(maxsize=256)
def decisive_rules(rules: Rules) -> Rules:
    """The same rules with every flag that no decision about a quiescent partition reads as in 4.2.

    Versions that differ in other flags only share a chain: those are about offsets, epochs, fetches
    and reassignments, which are over when a partition is quiescent.
    """
    elr = rules.eligible_leader_replicas
    return replace(
        _ANY_RULES,
        mode=rules.mode,
        eligible_leader_replicas=elr,
        elect_in_isr_order=rules.elect_in_isr_order,
        last_known_leader_must_be_active=elr and rules.last_known_leader_must_be_active,
    )


class ControllerDecisions:
    """Decisions of the controller for topics of one policy."""

    def __init__(self, policy: Policy) -> None:
        @lru_cache(maxsize=_REMEMBERED)
        def broker_back(
            registration: Registration, slot: int, active: Active, unclean: bool
        ) -> Registration:
            return controller.broker_back(registration, slot, active, unclean, policy)

        @lru_cache(maxsize=_REMEMBERED)
        def broker_stopping(registration: Registration, slot: int, active: Active) -> Registration:
            return controller.broker_stopping(registration, slot, active, policy)

        @lru_cache(maxsize=_REMEMBERED)
        def broker_gone(registration: Registration, slot: int, active: Active) -> Registration:
            return controller.broker_gone(registration, slot, active, policy)

        @lru_cache(maxsize=_REMEMBERED)
        def isr_proposed(registration: Registration, isr: Replicas, active: Active) -> Registration:
            return controller.isr_proposed(registration, isr, active, policy)

        @lru_cache(maxsize=_REMEMBERED)
        def quiet(registration: Registration) -> Registration:
            return normalised_registration(registration, policy.rules.elect_in_isr_order)

        self.broker_back, self.broker_stopping = broker_back, broker_stopping
        self.broker_gone, self.isr_proposed, self.quiet = broker_gone, isr_proposed, quiet


def normalised_registration(registration: Registration, ordered: bool) -> Registration:
    """Registration of a quiescent partition; its ISR sorted unless the order decides elections."""
    return Registration(
        replicas=registration.replicas,
        isr=registration.isr if ordered else tuple(sorted(registration.isr)),
        leader=registration.leader,
        elr=registration.elr,
        last_known_elr=registration.last_known_elr,
    )


@lru_cache(maxsize=256)
def decisions_for(policy: Policy) -> ControllerDecisions:
    """The memoised decisions of a policy, one object per process."""
    return ControllerDecisions(policy)


@dataclass(frozen=True)
class ChainConstants:
    """Settings that hold for every state of a CTMC.

    policy: effective min ISR, unclean election and the version's rules.
    acks (one of "all", 1, 0).
    copying: a replaced broker needs time to copy the log; False makes it instant.
    page_cache: records are acknowledged before they are on disk, so that losing power loses the
        newest.
    operator: an operator elects a leader at last where Kafka would wait for ever.
    """

    policy: Policy
    acks: str | int
    copying: bool
    page_cache: bool
    operator: bool = False

    def __reduce__(self) -> tuple[type[ChainConstants], tuple[Policy, str | int, bool, bool, bool]]:
        """Pickles without the memoised decisions."""
        numbers = self.policy, self.acks, self.copying, self.page_cache, self.operator
        return ChainConstants, numbers

    @cached_property
    def decisions(self) -> ControllerDecisions:
        """What the controller decides."""
        return decisions_for(self.policy)

    @property
    def shared_by_versions(self) -> ChainConstants:
        """The same for all Kafka versions with equal chains."""
        return replace(self, policy=replace(self.policy, rules=decisive_rules(self.policy.rules)))

    @cached_property
    def refuses(self) -> tuple[bool, ...]:
        """Whether a leader refuses to write, by the size of its ISR; the last is for all larger."""
        isr_sizes = range(max(self.policy.min_isr, 1) + 1)
        refusals = [refusal_before_append(self.acks, n, self.policy.min_isr) for n in isr_sizes]
        return tuple(refusal is not None for refusal in refusals)
