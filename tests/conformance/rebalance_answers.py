"""Family rebalance: `RebalanceImpl#doRebalance`, pass after pass, with a consumer that only writes down what happens.

The order of queues within a phase is that of a Java hash table, in which the cases must not be compared.
"""

from contextlib import nullcontext
from itertools import groupby
from types import SimpleNamespace

import attrs
import trio

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.by_config import AllocateByConfig
from nodes.allocation.by_machine_room import AllocateByMachineRoom
from nodes.client.rebalance.rebalance import Rebalance
from nodes.client.rebalance.rebalance_beliefs import RebalanceBeliefs
from nodes.client.rebalance.roles import FoundAssignment, FoundConsumers, Requested
from nodes.config import ConsumerConfig
from nodes.protocol.assigning import RebalanceMode
from nodes.protocol.bodies import MessageQueueAssignment
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import MessageQueue, MessageRequestMode
from nodes.protocol.names import build_pop_retry_topic
from nodes.rpc.errors import BrokerError, RemotingConnectError

STRATEGIES = {
    "AVG": allocate_averagely,
    "AVG_BY_CIRCLE": allocate_by_circle,
    "MACHINE_ROOM": AllocateByMachineRoom(None),
}
PULL_EXPIRED_MS = 121_000
NEVER_MS = 1_000_000
"""Who pulls by itself loses no queue because it did not."""
NOWHERE = SimpleNamespace(warning=lambda *_, **__: None, info=lambda *_, **__: None)

CONFIGURED = [["T", "broker-a", 0], ["T", "broker-a", 1]]
"""The queues of CONFIG where a case does not list them."""
CONFIGURED_NONE = "rebalance/edge/config-null"
"""The case whose CONFIG has no list, which it only says by its name."""


def strategy_of(requested):
    if requested.get("strategy") != "CONFIG":
        return STRATEGIES[requested.get("strategy", "AVG")]
    listed = requested.get("messageQueueList", CONFIGURED)
    return AllocateByConfig(None if listed is None else tuple(MessageQueue(*queue) for queue in listed))


def with_configured_queues(question):
    """The question with the queues of CONFIG, if a case has none."""
    if question.name != CONFIGURED_NONE:
        return question
    return attrs.evolve(question, requested=question.requested | {"messageQueueList": None})


def rebalance(requested):
    return trio.run(passes, requested)


async def passes(requested):
    consumer = Consumer(requested)
    return {"results": [await consumer.make_pass(item) for item in requested["passes"]]}


def triple(queue):
    return [queue.topic, queue.broker_name, queue.queue_id]


class Consumer:
    """Assigner, source and listener in one: what a recording subclass of `RebalanceImpl` is there."""

    def __init__(self, requested):
        self.clock = SimpleNamespace(now_ms=lambda: NEVER_MS, monotonic_ns=lambda: 0)
        self.client_rebalance = requested["op"] == "doRebalance_client"
        self.group = requested["group"]
        self.subscribed = {} if self.client_rebalance else {"T": None}
        self.events, self.instance_events = [], []
        self.reported = {}
        host = SimpleNamespace(clock=self.clock, log=NOWHERE, record=lambda _: None, stopwatch=lambda _: nullcontext())
        config = ConsumerConfig(
            consume_orderly=requested["isOrder"],
            message_model=requested.get("messageModel", "CLUSTERING"),
            pull_max_idle_time_ms=NEVER_MS if requested.get("consumeType") == "CONSUME_ACTIVELY" else 120_000,
        )
        self.rebalance = Rebalance(
            host,
            config,
            self.group,
            requested["clientId"],
            strategy_of(requested),
            self,
            self,
            self,
            RebalanceBeliefs(host, self.group, lambda _: -1),
            {},
        )

    async def make_pass(self, item):
        self.reported = item
        self.events, self.instance_events = [], []
        if self.client_rebalance:
            self.subscribed = dict.fromkeys(item["subscribed"])
            routes = {topic: queues for topic, queues in item["routes"].items() if queues is not None}
            self.rebalance.subscribe_info = {
                topic: tuple(sorted(MessageQueue(*queue) for queue in queues)) for topic, queues in routes.items()
            }
        for queue in item.get("pullExpired", ()):
            if MessageQueue(*queue) in self.rebalance.process_queues:
                expired = self.rebalance.process_queues[MessageQueue(*queue)]
                expired.last_pull_ms = self.clock.now_ms() - PULL_EXPIRED_MS
        balanced = await self.rebalance.do_rebalance()
        return {
            "balanced": balanced,
            "events": self.events,
            "instanceEvents": self.instance_events,
            "after": tables(self.rebalance, self.subscribed),
        }

    def is_in(self, name, queue):
        return triple(queue) in self.reported[name]

    # Who is asked

    async def find_consumers(self, topic):
        self.instance_events.append(["findConsumerIdList", topic])
        found = self.reported["cids"].get(topic)
        return None if found is None else FoundConsumers(tuple(found), Requested("a0"))

    async def query_assignment(self, topic):
        self.instance_events.append(["queryAssignment", topic, "AVG", 3000])
        found = self.reported["assignments"].get(topic)
        if found == "exception":
            raise BrokerError(1, "as the case says")
        if found is None:
            return FoundAssignment(None, Requested("a0"))
        return FoundAssignment(
            tuple(
                MessageQueueAssignment(queue and MessageQueue(*queue), MessageRequestMode(mode))
                for queue, mode in found
            ),
            Requested("a0"),
        )

    # What is done with queues

    def rebalance_mode(self, _wanted):
        return RebalanceMode.CLIENT if self.client_rebalance else RebalanceMode.BROKER

    async def lock(self, queue):
        locked = not self.is_in("lockRefused", queue)
        self.events.append(["lock", triple(queue), locked])
        return locked

    def remove_dirty_offset(self, queue):
        self.events.append(["removeDirtyOffset", triple(queue)])

    async def compute_pull_from_where(self, queue):
        fails = self.is_in("offsetFails", queue)
        if self.client_rebalance:
            name, failure = "computePullFromWhere", -1
        else:
            name, failure = "computePullFromWhereWithException", "throws"
        self.events.append([name, triple(queue), failure if fails else 100 + queue.queue_id])
        if fails:
            raise RemotingConnectError("as the case says")
        return 100 + queue.queue_id

    async def remove_unnecessary(self, queue, process_queue):
        assert process_queue.dropped
        removed = not self.is_in("releaseRefused", queue)
        self.events.append(["removeUnnecessary", triple(queue), "dropped=true", removed])
        return removed

    def remove_unnecessary_pop(self, queue, process_queue):
        assert process_queue.dropped
        removed = not self.is_in("releaseRefused", queue)
        self.events.append(["removeUnnecessaryPop", triple(queue), "dropped=true", removed])
        return removed

    # What a pass leads to

    def topics(self):
        return tuple(hash_ordered(self.subscribed))

    def dispatch_pulls(self, requests, delay_ms):
        listed = [[triple(request.queue), request.next_offset] for request in requests]
        self.events.append(["dispatchPullRequest", listed, delay_ms])

    def dispatch_pops(self, requests, delay_ms):
        self.events.append(["dispatchPopPullRequest", [[triple(each.queue), 1] for each in requests], delay_ms])

    async def message_queue_changed(self, topic, mq_all, mq_divided):
        everything = mq_all if mq_all is None else sorted(map(triple, mq_all))
        self.events.append(["messageQueueChanged", topic, everything, sorted(map(triple, mq_divided))])

    def rebalance_later(self, delay_ms):
        self.instance_events.append(["rebalanceLater", delay_ms])

    def switch_pop_retry(self, topic, *, subscribe):
        retry_topic = build_pop_retry_topic(topic, self.group)
        if subscribe:
            self.subscribed[retry_topic] = None
        else:
            self.subscribed.pop(retry_topic, None)


def tables(rebalanced, subscribed):
    queues, popped = rebalanced.process_queues, rebalanced.pop_process_queues
    return {
        "processQueueTable_mq_dropped_locked": [
            [triple(queue), queues[queue].dropped, queues[queue].locked] for queue in sorted(queues)
        ],
        "popProcessQueueTable_mq_dropped": [[triple(queue), popped[queue].dropped] for queue in sorted(popped)],
        "subscriptions": sorted(subscribed),
    }


def without_hash_order(out):
    """The answers with queues sorted within each phase, all that belongs to one queue staying in its order."""
    return {"results": [item and ({**item, "events": phases(item["events"])}) for item in out["results"]]}


def phases(events):
    in_order = []
    for phase, listed in groupby(events, key=lambda event: phase_of(event[0])):
        lines = list(listed)
        if phase in ("release", "release popped", "add"):
            lines.sort(key=lambda event: event[1])
        elif phase == "dispatch":
            lines = [[name, sorted(requests), delay_ms] for name, requests, delay_ms in lines]
        in_order += lines
    return in_order


def phase_of(name):
    match name:
        case "removeUnnecessary":
            return "release"
        case "removeUnnecessaryPop":
            return "release popped"
        case "dispatchPullRequest" | "dispatchPopPullRequest":
            return "dispatch"
        case "messageQueueChanged":
            return "changed"
        case "lock" | "removeDirtyOffset" | "computePullFromWhere" | "computePullFromWhereWithException":
            return "add"
    raise AssertionError(f"nothing is called {name}")
