"""Explanations: which disturbances are needed for something, and of which each suffices; and their shares in a sum."""

from collections.abc import Iterable
from enum import StrEnum

import attrs

from emulator.analysis.findings.cause_share import RULE, CauseShare, in_order, share_of
from emulator.history.origins import TracedDisturbance

_ALTERNATIVES_MAX = 4


class RuleOfRocketMQ(StrEnum):
    """A rule of RocketMQ by which something happens without any disturbance."""

    START = "a node starts as planned"
    ROUND = "a member allocates with its next rebalance round"
    HEARTBEAT = "a client sends heartbeats every heartbeatBrokerInterval"
    POLL = "a client polls routes every pollNameServerInterval"
    LISTENER = "the listener takes longer than messages come"
    FAILING = "the listener fails"
    COMMIT = "offsets are committed every persistConsumerOffsetInterval"
    ALLOCATION = "the strategy allocates so"
    FIRST_OFFSET = "a group without an offset begins where consumeFromWhere says"
    LISTENER_FAILS = "the listener fails as often as maxReconsumeTimes allows"
    TURNS = "a simple consumer waits for messages of one broker after the other"
    REPLICAS = "a SYNC_MASTER answers when inSyncReplicas brokers have a message"
    READ_QUEUES = "consumers read the read queues of a topic alone"
    RETRY_QUEUE = "the group has no retry queue"
    RETENTION = "brokers delete messages after fileReservedTime"
    CHECKS = "a transaction without a decision is checked transactionCheckMax times"
    CHECKED_BY_ANOTHER = "a broker asks any producer of a group how a transaction went"
    INVISIBLE = "the listener takes longer than the invisible time"
    SUBSCRIPTIONS = "members of the group subscribe to different messages"
    PERMISSIONS = "users and permissions do not allow it"
    REFUSED = "brokers and proxies refuse what clients ask"
    UNREACHABLE = "clients are given addresses that lead nowhere from where they are"
    UNKNOWN = "nothing on its chain is a disturbance"


@attrs.frozen
class CauseChain:
    """Why something is so, at one instant."""

    needed: tuple[tuple[TracedDisturbance, ...], ...] = ()
    """Each item is needed, and of its origins each suffices; empty: a rule of RocketMQ alone."""
    rule: RuleOfRocketMQ = RuleOfRocketMQ.UNKNOWN

    def __bool__(self) -> bool:
        """Whether it names a disturbance."""
        return bool(self.needed)

    def also(self, other: "CauseChain") -> "CauseChain":
        """Both explanations: what both need is needed."""
        if not other.needed:
            return self if self.needed or self.rule is not RuleOfRocketMQ.UNKNOWN else other
        if not self.needed:
            return other
        return CauseChain(tuple(dict.fromkeys((*self.needed, *other.needed))), self.rule)

    def origins(self) -> tuple[TracedDisturbance, ...]:
        """All of its origins."""
        return tuple(dict.fromkeys(origin for item in self.needed for origin in item))


def by(*origins: TracedDisturbance | None) -> CauseChain:
    """All of these are needed; those that are None are left out."""
    return CauseChain(tuple((origin,) for origin in dict.fromkeys(origins) if origin is not None))


def either(origins: Iterable[TracedDisturbance]) -> CauseChain:
    """Each of these suffices."""
    found = tuple(dict.fromkeys(origins))[:_ALTERNATIVES_MAX]
    return CauseChain((found,)) if found else CauseChain()


def ruled(rule: RuleOfRocketMQ) -> CauseChain:
    """A rule of RocketMQ."""
    return CauseChain((), rule)


def both(explanations: Iterable[CauseChain]) -> CauseChain:
    """All of these explanations."""
    found = CauseChain()
    for item in explanations:
        found = found.also(item)
    return found


def of_chains(chains: Iterable[tuple[CauseChain, int]]) -> tuple[CauseShare, ...]:
    """The causes of an amount whose parts have a chain each.

    Args:
        chains: (chain, part of the amount).
    """
    shares = Shares()
    for chain, weight in chains:
        shares.add(chain, weight)
    return shares.causes()


class Shares:
    """Adds up explanations of parts of an amount."""

    def __init__(self) -> None:
        self._needed: dict[TracedDisturbance, int] = {}
        self._suffices: dict[TracedDisturbance, int] = {}
        self._rules: dict[RuleOfRocketMQ, int] = {}
        self.total = 0

    def add(self, explanation: CauseChain, weight: int) -> None:
        """So much of the amount has this explanation."""
        if weight <= 0:
            return
        self.total += weight
        if not explanation.needed:
            self._rules[explanation.rule] = self._rules.get(explanation.rule, 0) + weight
        needed = [item[0] for item in explanation.needed if len(item) == 1]
        for origin in dict.fromkeys(needed):
            self._needed[origin] = self._needed.get(origin, 0) + weight
        alternatives = (origin for item in explanation.needed if len(item) > 1 for origin in item)
        for origin in dict.fromkeys(alternatives):
            if origin not in needed:
                self._suffices[origin] = self._suffices.get(origin, 0) + weight

    def causes(self) -> tuple[CauseShare, ...]:
        """The shares, the greatest first; those of rules last."""
        if not self.total:
            return ()
        origins = dict.fromkeys((*self._needed, *self._suffices))
        found = [
            CauseShare(
                origin.id,
                origin.kind,
                origin.what,
                origin.t_ns,
                share_of(self._needed.get(origin, 0), self.total),
                share_of(self._suffices.get(origin, 0), self.total),
            )
            for origin in origins
        ]
        rules = (
            CauseShare("", RULE, rule, -1, share_of(weight, self.total), 0.0) for rule, weight in self._rules.items()
        )
        return in_order((*found, *rules))
