"""Family client_route: how a client instance gets its routes, and who learns of them."""

from random import Random
from types import SimpleNamespace

import trio

from conformance.rebalance_answers import Consumer as RecordingConsumer
from conformance.rebalance_answers import tables as rebalance_tables
from conformance.rebalance_answers import without_hash_order
from conformance.route_answers import route_of
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.default_producer import DefaultProducer
from nodes.client.rebalance.assigner import BrokerAssigner
from nodes.config import ConsumerConfig, ProducerConfig
from nodes.protocol.bodies import GetConsumerListByGroupResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.registry import encode_body
from nodes.routes import TopicPublishInfo, topic_subscribe_info
from nodes.rpc.errors import RemotingError, RemotingTimeoutError

SILENT = "timeout"
QUIET = SimpleNamespace(warning=lambda *_, **__: None, info=lambda *_, **__: None)
HOST = SimpleNamespace(
    ip="10.9.9.9",
    pid=1,
    clock=SimpleNamespace(now_ms=lambda: 0, monotonic_ns=lambda: 0),
    rng=lambda _: Random(1),  # only one broker is ever there to be drawn
    log=QUIET,
    record=lambda _: None,
    timeout_ms=lambda duration_ms: trio.fail_after(duration_ms / 1_000),
)


def client_route(requested):
    return trio.run(results_of, requested)


def without_order_in_passes(out):
    """The answers with queues sorted within each phase of a pass; other steps as they are."""
    passed = [item if item and "events" in item else None for item in out["results"]]
    sorted_passes = without_hash_order({"results": passed})["results"]
    return {
        "results": [
            reported or sorted_pass for reported, sorted_pass in zip(sorted_passes, out["results"], strict=True)
        ]
    }


async def results_of(requested):
    executed = Passes(requested) if "op" in requested else Routes(requested)
    return {"results": [await executed.step(*step) for step in requested["steps"]]}


class Nameserver:
    """Answers as the case says, and knows what it was asked."""

    chosen = "ns"

    def __init__(self, calls):
        self.calls = calls
        self.answers = {}

    async def call(self, code, header, *, timeout_ms):
        assert (code, timeout_ms) == (RequestCode.GET_ROUTEINFO_BY_TOPIC, 3_000)
        self.calls.append(header.topic)
        match self.answers.get(header.topic):
            case "timeout":
                raise RemotingTimeoutError("ns")
            case "error":
                return Command(ResponseCode.SYSTEM_ERROR)
            case None:
                return Command(ResponseCode.TOPIC_NOT_EXIST)
            case route:
                return Command(ResponseCode.SUCCESS, body=encode_body(route))

    def set(self, topic, answer):
        self.answers[topic] = route_of(answer) if isinstance(answer, dict) else answer


class Subscriber:
    """A consumer that has not started, so that there is no producer inside it."""

    def __init__(self, subscribed):
        self.subscribed = subscribed
        self.queues = {}

    def topics(self):
        return tuple(self.subscribed)

    def lacks_info(self, topic):
        return topic in self.subscribed and topic not in self.queues

    def update_topic_info(self, topic, route):
        if topic in self.subscribed:
            self.queues[topic] = topic_subscribe_info(topic, route)


class Routes:
    """Producers and consumers of one instance."""

    def __init__(self, requested):
        self.calls = []
        self.instance = ClientInstance(HOST, ProducerConfig(), ())
        self.nameserver = self.instance.nameservers = Nameserver(self.calls)
        self.queue_nums = requested["defaultTopicQueueNums"]
        config = ProducerConfig(default_topic_queue_nums=self.queue_nums)
        self.producers = []
        for given in requested["producers"]:
            producer = DefaultProducer(self.instance, config, given["group"])
            producer._publish.update((topic, TopicPublishInfo(())) for topic in given["publishedTopics"])
            self.producers.append(producer)
        self.consumers = [Subscriber(given["subscribedTopics"]) for given in requested["consumers"]]
        for member in (*self.producers, *self.consumers):
            self.instance.register(member)

    async def step(self, verb, *reported):
        if verb == "ns":
            self.nameserver.set(*reported)
            return None
        self.calls.clear()
        try:
            ret = await getattr(self, verb)(*reported)
        except RemotingError:
            ret = {"error": "IllegalStateException"}
        return {"ret": ret, "nsCalls": [*self.calls], "state": self.state()}

    async def refresh(self, topic):
        return await self.instance.update_topic_route(topic)

    async def refreshAll(self):  # noqa: N802 - as the step is called
        # The periodic task logs what it is stopped by; the case calls what is inside.
        await self.instance._refresh_routes()
        if any(self.nameserver.answers.get(topic) == SILENT for topic in self.calls):
            return {"error": "IllegalStateException"}
        return "ok"

    async def refreshDefault(self, topic, producer):  # noqa: N802
        return await self.instance.update_topic_route(topic, default_queue_nums=producer and self.queue_nums)

    async def clean(self):
        self.instance.routes.clean_offline_brokers()

    async def tryToFind(self, topic):  # noqa: N802
        found = await self.producers[0]._try_to_find_topic_publish_info(topic)
        return {"have": found.have_topic_router_info, "ok": found.ok, "size": len(found.message_queues)}

    def state(self):
        routes = self.instance.routes
        return {
            "brokerAddrTable": {
                name: {str(broker_id): addrs[broker_id] for broker_id in addrs}
                for name, addrs in routes.brokers.items()
            },
            "topicRouteTable": [*routes.topics()],
            "producers": [
                {topic: published(info) for topic, info in producer._publish.items()} for producer in self.producers
            ],
            "consumers": [
                {topic: pairs(queues) for topic, queues in consumer.queues.items()} for consumer in self.consumers
            ],
        }


def published(info):
    return {
        "have": info.have_topic_router_info,
        "order": info.order_topic,
        "queues": pairs(info.message_queues),
    }


def pairs(queues):
    return [[queue.broker_name, queue.queue_id] for queue in queues]


class Passes:
    """Passes of a recording consumer that asks through a real instance."""

    def __init__(self, requested):
        self.calls = []
        self.lists = {}
        self.instance = ClientInstance(HOST, ConsumerConfig(), ())
        self.instance.rpc = self
        self.nameserver = self.instance.nameservers = Nameserver(self.calls)
        self.consumer = RecordingConsumer({**requested, "op": "doRebalance_client", "isOrder": False})
        self.consumer.subscribed = dict.fromkeys(requested["subscribed"])
        self.consumer.reported = {"lockRefused": (), "offsetFails": (), "releaseRefused": ()}
        asker = BrokerAssigner(self.instance, ConsumerConfig(), requested["group"], requested["strategy"], None)
        self.consumer.find_consumers = asker.find_consumers
        self.subscriber = Subscriber(self.consumer.subscribed)
        self.subscriber.queues = self.consumer.rebalance.subscribe_info
        self.instance.register(self.subscriber)

    async def call(self, address, code, _fields, _body, *, timeout_ms):
        assert timeout_ms == ConsumerConfig().mq_client_api_timeout
        self.calls.append(f"{RequestCode(code).name}@{address}")
        listed = self.lists.get(address)
        if listed is None:
            return Command(ResponseCode.SYSTEM_ERROR)
        return Command(0, body=encode_body(GetConsumerListByGroupResponseBody(tuple(listed.split(",")))))

    async def step(self, verb, *reported):
        if verb == "ns":
            self.nameserver.set(*reported)
            return None
        if verb == "list":
            self.lists[reported[0]] = reported[1]
            return None
        self.calls.clear()
        self.consumer.events = []
        if verb == "refreshAll":
            await self.instance._refresh_routes()
            ret = "ok"
        else:
            ret = await self.consumer.rebalance.do_rebalance()
        after = rebalance_tables(self.consumer.rebalance, self.consumer.subscribed)
        return {"ret": ret, "rpcs_in_order": [*self.calls], "events": self.consumer.events, "after": after}
