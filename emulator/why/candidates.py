"""What may end a harm: candidate options and acts for each mechanism of RocketMQ. None is advice before it was tried.

A candidate changes options of all nodes of a role, or adds an act that takes an act back. Values that depend on the
run, such as a time-out that outlasts a fault, are computed from its causes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from emulator.analysis.attribution.explanation import RuleOfRocketMQ
from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.impacts.amounts import FindingKind
from nodes.units import MS_PER_S

Value = str | int | bool
_ROUND_MS = 10 * MS_PER_S
_PLURALS: Mapping[str, str] = {"proxy": "proxies"}
_LONGER_MS = 60 * MS_PER_S
"""By how much a time-out outlasts a fault: heartbeats come every 30 s, and one of them may be late."""


@attrs.frozen
class OptionChange:
    """An option that all nodes of a role get."""

    role: str
    """Table of the scenario: broker, consumer, producer, nameserver, proxy."""
    option: str
    value: Value


@attrs.frozen
class Candidate:
    """What may end a harm."""

    why: str
    """How it would, in RocketMQ's terms."""
    changes: tuple[OptionChange, ...] = ()
    act: str = ""
    """An act of an administrator, as one types it; empty: options are enough."""
    at_ms: int = 0
    """When the act is carried out."""

    @property
    def title(self) -> str:
        """`channelExpiredTimeout = 400000 ms of brokers`."""
        if self.act:
            return f"{self.act} at {self.at_ms / MS_PER_S:g} s"
        roles: dict[str, list[str]] = {}
        for item in self.changes:
            roles.setdefault(item.role, []).append(f"{item.option} = {_written(item.value)}")
        return ", ".join(
            f"{' and '.join(options)} of {_PLURALS.get(role, f'{role}s')}" for role, options in roles.items()
        )


@attrs.frozen
class RunTerms:
    """What of a run the values of candidates depend on."""

    longest_ms: int = 0
    """The longest cause of the harm that has an end; 0: none."""
    pools: tuple[str, ...] = ()
    """Thread pools that were busy, as their options name them: `sendMessage`."""
    acts: tuple[Mapping[str, Any], ...] = ()
    """The acts among the causes, as tables of the scenario."""
    reachable: tuple[OptionChange, ...] = ()
    """What gives clients addresses that they reach, if they were given others."""


def candidates(harm: str, terms: RunTerms) -> tuple[Candidate, ...]:
    """What may end a harm, what is tried first being first.

    Args:
        harm: a `SymptomKind`, a `FindingKind`, or the id of an invariant.
        terms: of the run.
    """
    mechanisms = () if terms.reachable else MECHANISMS.get(harm, ())
    found = [*_undone(terms.acts), *_reached(terms.reachable)]
    for mechanism in mechanisms:
        found += mechanism(terms)
    return tuple(dict.fromkeys(found))


_ANY = RunTerms()


def candidate_options(harm: str, terms: RunTerms = _ANY) -> tuple[str, ...]:
    """The names of the options that may end a harm."""
    found = candidates(harm, terms)
    return tuple(dict.fromkeys(setting.option for item in found for setting in item.changes))


def reachable(causes: Iterable[CauseShare], tables: Mapping[str, Any]) -> tuple[OptionChange, ...]:
    """What gives clients addresses that they reach, if a harm comes from others.

    Args:
        causes: of the harm.
        tables: of the scenario.
    """
    if all(cause.what != RuleOfRocketMQ.UNREACHABLE for cause in causes):
        return ()
    published = (outside for network in tables.get("private_network", ()) for outside in network.get("publish", ()))
    ips = dict.fromkeys(outside.rpartition(":")[0] for outside in published)
    if any("brokerIP1" in table.get("options", {}) for table in tables.get("broker", ())):
        ips[""] = None
    found = tuple(OptionChange("broker", "brokerIP1", ip) for ip in ips)
    return (*found, OptionChange("proxy", "useEndpointPortFromRequest", True)) if tables.get("proxy") else found


def _reached(changes: Iterable[OptionChange]) -> Iterator[Candidate]:
    why = {
        "broker": "brokers register the address at which their ports are published",
        "proxy": "routes of proxies name the port that the client has asked with",
    }
    for change in changes:
        yield Candidate(why[change.role], (change,))


def _all(role: str, why: str, **options: Value) -> Candidate:
    return Candidate(why, tuple(OptionChange(role, name, value) for name, value in options.items()))


def _membership(terms: RunTerms) -> Iterator[Candidate]:
    """A broker forgets a member that lives, or keeps one that is dead."""
    if terms.longest_ms >= _LONGER_MS:
        lasting_ms = -(-(terms.longest_ms + _LONGER_MS) // _ROUND_MS) * _ROUND_MS
        yield _all(
            "broker", "brokers remember silent members for longer than the fault", channelExpiredTimeout=lasting_ms
        )
    yield _all("broker", "brokers forget dead members sooner", channelExpiredTimeout=60 * MS_PER_S)
    yield _all("consumer", "members report to brokers more often", heartbeatBrokerInterval=10 * MS_PER_S)
    yield _all("consumer", "members look at the list of members more often", rebalanceWaitIntervalMs=5 * MS_PER_S)
    yield _all("consumer", "a change of members moves fewer queues", allocateMessageQueueStrategy="CONSISTENT_HASH")


def _commits(_: RunTerms) -> Iterator[Candidate]:
    """A new owner begins at the last commit."""
    yield _all("consumer", "members commit more often", persistConsumerOffsetInterval=MS_PER_S)


def _consuming(_: RunTerms) -> Iterator[Candidate]:
    """Messages wait for their consumer."""
    yield _all("consumer", "a pull without answer is given up sooner", consumerTimeoutMillisWhenSuspend=20 * MS_PER_S)
    yield _all("consumer", "more listeners run at the same time", consumeThreadMin=64)
    yield _all("broker", "slaves answer pulls when their master does not", slaveReadEnable=True)


def _routes(_: RunTerms) -> Iterator[Candidate]:
    """Clients use brokers that are gone, or do not see those that are back."""
    poll_ms = 5 * MS_PER_S
    yield Candidate(
        "clients ask for routes more often",
        tuple(OptionChange(role, "pollNameServerInterval", poll_ms) for role in ("consumer", "producer")),
    )
    yield Candidate(
        "a slave acts for its dead master, and nameservers learn of a death after 10 s",
        (
            OptionChange("broker", "enableSlaveActingMaster", True),
            OptionChange("nameserver", "supportActingMaster", True),
        ),
    )
    yield _all("broker", "brokers register more often", registerNameServerPeriod=10 * MS_PER_S)


def _sending(_: RunTerms) -> Iterator[Candidate]:
    """A send has no broker that takes it in time."""
    yield _all("producer", "a send avoids brokers that were slow or failed", sendLatencyEnable=True)
    yield _all("producer", "an attempt leaves time for the next one", sendMsgMaxTimeoutPerRequest=MS_PER_S)
    yield _all("producer", "a send has more attempts", retryTimesWhenSendFailed=5)
    yield _all("producer", "a send has more time", sendMsgTimeout=10 * MS_PER_S)
    yield _all("broker", "a send does not wait for the disk", flushDiskType="ASYNC_FLUSH")


def _slave_offsets(_: RunTerms) -> Iterator[Candidate]:
    """A client repeats a request that the answer asks it to repeat."""
    yield _all("broker", "slaves correct offsets that they do not have yet", offsetCheckInSlave=True)
    yield _all("broker", "consumers stay away from slaves", slaveReadEnable=False)


def _notifications(_: RunTerms) -> Iterator[Candidate]:
    """Each change of members is sent to each member."""
    yield _all("broker", "members see changes with their next rebalance only", notifyConsumerIdsChangedEnable=False)


def _threads(terms: RunTerms) -> Iterator[Candidate]:
    """Requests wait for a thread of a pool."""
    for pool in terms.pools:
        yield _all("broker", f"more threads for {pool}", **{f"{pool}ThreadPoolNums": 64})
    yield _all("broker", "sends may wait longer before they are refused", waitTimeMillsInSendQueue=MS_PER_S)


def _storing(_: RunTerms) -> Iterator[Candidate]:
    """A message is acknowledged before it is safe."""
    yield _all("broker", "a send waits until its message is on the disk", flushDiskType="SYNC_FLUSH")
    yield _all("broker", "a send waits until a slave has its message", brokerRole="SYNC_MASTER", inSyncReplicas=2)


def _beginning(_: RunTerms) -> Iterator[Candidate]:
    """A group begins at the end of a queue."""
    first = "CONSUME_FROM_FIRST_OFFSET"
    yield _all("consumer", "a group begins with the first message of a queue", consumeFromWhere=first)


def _retries(_: RunTerms) -> Iterator[Candidate]:
    """A message is given up after so many attempts."""
    yield _all("consumer", "a message has more attempts", maxReconsumeTimes=100)


def _failures(_: RunTerms) -> Iterator[Candidate]:
    """A listener gets a message again with which it has failed."""
    yield _all("consumer", "a message is a dead letter after fewer attempts, and others follow", maxReconsumeTimes=3)


def _popping(_: RunTerms) -> Iterator[Candidate]:
    """A message is handed out again when its invisible time is over."""
    yield _all("consumer", "messages stay hidden for longer", popInvisibleTime=300 * MS_PER_S)
    yield _all("consumer", "a pop takes fewer messages, which are answered sooner", popBatchNums=8)


def _checks(_: RunTerms) -> Iterator[Candidate]:
    """The broker asks for the end of a transaction."""
    yield _all("broker", "transactions have more time before they are checked", transactionTimeOut=60 * MS_PER_S)


def _waiting_messages(_: RunTerms) -> Iterator[Candidate]:
    """Timed and delayed messages of a dead master wait for it."""
    yield Candidate(
        "an acting slave delivers what waits at its master",
        (
            OptionChange("broker", "enableSlaveActingMaster", True),
            OptionChange("broker", "enableRemoteEscape", True),
            OptionChange("nameserver", "supportActingMaster", True),
        ),
    )


def _sharing(_: RunTerms) -> Iterator[Candidate]:
    """Queues are dealt out unevenly."""
    yield _all("consumer", "queues are dealt out one by one", allocateMessageQueueStrategy="AVG_BY_CIRCLE")


_UNDONE_AFTER_MS = 20 * MS_PER_S


def _undone(acts: Iterable[Mapping[str, Any]]) -> Iterator[Candidate]:
    """Acts that take acts back."""
    for act in acts:
        at_ms = act["at_ms"] + _UNDONE_AFTER_MS
        why = f"it takes {act['id']} back after {_UNDONE_AFTER_MS / MS_PER_S:g} s"
        on = f" on {act['on']}" if "on" in act else ""
        match act["kind"]:
            case "update_sub_group" if act.get("options", {}).get("consumeEnable") == "false":
                yield Candidate(why, act=f"update-sub-group {act['group']} consumeEnable=true{on}", at_ms=at_ms)
            case "wipe_write_perm":
                yield Candidate(why, act=f"add-write-perm {act['broker']}", at_ms=at_ms)
            case "update_topic_perm" if act["perm"] != _READ_AND_WRITE:
                yield Candidate(why, act=f"update-topic-perm {act['topic']} 6{on}", at_ms=at_ms)


_READ_AND_WRITE = 6
_OWNERS = (_membership,)
_LATE = (_membership, _consuming, _routes)
_SENDS = (_sending, _routes)
MECHANISMS: Mapping[str, Sequence[Any]] = {
    SymptomKind.AGAIN: (_membership, _commits),
    SymptomKind.LATENCY: _LATE,
    SymptomKind.LAG: _LATE,
    SymptomKind.STALLED: _LATE,
    SymptomKind.CHURN: _OWNERS,
    SymptomKind.FAILED_SENDS: _SENDS,
    SymptomKind.UNWRITABLE: _SENDS,
    SymptomKind.STALE_ROUTES: (_routes,),
    SymptomKind.STORM: (_slave_offsets, _routes),
    SymptomKind.FAN_OUT: (_notifications,),
    SymptomKind.BUSY: (_threads, _slave_offsets),
    SymptomKind.LOST: (_storing,),
    SymptomKind.MISSED: (_beginning,),
    SymptomKind.DEAD_LETTERS: (_retries,),
    SymptomKind.FAILING: (_failures,),
    SymptomKind.POPPED_AGAIN: (_popping,),
    SymptomKind.TRANSACTIONS: (_checks,),
    SymptomKind.CHECKED: (_checks,),
    SymptomKind.DISCARDED: (_checks, _waiting_messages),
    SymptomKind.DELIVERY: (_waiting_messages, _routes),
    SymptomKind.SPREAD: (_sharing,),
    SymptomKind.IDLE: (_sharing,),
    FindingKind.OVERLAPS: _OWNERS,
    FindingKind.ORPHANS: _OWNERS,
    FindingKind.VIEWS: _OWNERS,
    FindingKind.OFFSETS_BACK: (_membership, _commits),
    "V1": _OWNERS,
    "V2": _OWNERS,
    "V4": (_membership, _commits),
    "V5": (_commits,),
    "V6": _OWNERS,
    "V7": (_storing, _beginning),
    "V8": _LATE,
    "V9": (_routes,),
    "V15": (_waiting_messages,),
    "V16": (_checks,),
    "V18": (_retries,),
    "V19": (_threads, _membership),
}
"""Mapping harm -> the mechanisms that may be behind it."""


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value == "":
        return '""'
    # All numbers of this size are times.
    return f"{value} ms" if isinstance(value, int) and value >= MS_PER_S else str(value)
