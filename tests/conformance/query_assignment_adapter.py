"""Families query_assignment and alloc4pop: brokers that allocate queues among the members that ask."""

from contextlib import nullcontext
from types import SimpleNamespace

import attrs
import trio

from conformance.executing import Adapter
from conformance.java_errors import throwing
from conformance.queue_texts import queues, text
from nodes.allocation.for_pop import allocate_for_pop
from nodes.allocation.strategies import STRATEGIES_OF_BROKERS
from nodes.allocation.strategy import AllocationError
from nodes.broker.clients.assigner import Assigner
from nodes.broker.clients.query_assignment import QueryAssignment
from nodes.broker.tables.clients.assignments import MessageRequestModeManager, RebalanceSettings
from nodes.broker.tables.clients.consumers import ConsumerManager
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.config import BrokerConfig
from nodes.protocol.bodies import (
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    MessageQueue,
    MessageRequestMode,
    TopicConfig,
)
from nodes.protocol.registry import decode_body, encode_body

BROKER_NAME = "bk-a"
JAVA_KINDS = {AllocationError: "IllegalArgumentException"}


def alloc4pop(requested):
    mq_all = [MessageQueue(*queue) for queue in requested["mqAll"]]

    def share(cid):
        arguments = ("G", cid, mq_all, requested["cidAll"], requested["popShareQueueNum"])
        mine = allocate_for_pop(STRATEGIES_OF_BROKERS[requested["strategy"]], *arguments)
        return {"mqs": [[queue.broker_name, queue.queue_id] for queue in mine]}

    return {
        "results": [
            {"cid": cid} | throwing(JAVA_KINDS, share, cid, quoting=AllocationError) for cid in requested["callers"]
        ]
    }


def with_callers(question):
    """The question with those who ask, whom only the answer names: the members, and here and there somebody else."""
    callers = [result["cid"] for result in question.out["results"]]
    return attrs.evolve(question, requested=question.requested | {"callers": callers})


class QueryAssignments(Adapter):
    def __init__(
        self,
        default_message_request_mode="PULL",
        default_pop_share_queue_num=-1,
        server_load_balancer_enable=True,
        auto_create_subscription_group=True,
    ):
        self.calls = []
        self.routes = {}
        self.client_tables = SimpleNamespace(
            consumers=ConsumerManager(),
            request_modes=MessageRequestModeManager(
                MessageRequestMode(default_message_request_mode), default_pop_share_queue_num
            ),
            rebalance_settings=RebalanceSettings(max_groups=1_000),
        )
        self.broker = SimpleNamespace(
            broker_name=BROKER_NAME,
            config=BrokerConfig(server_load_balancer_enable=server_load_balancer_enable),
            groups=SubscriptionGroupManager(now_ms=0, auto_create_subscription_group=auto_create_subscription_group),
            topics=TopicConfigManager(now_ms=0, cluster="c", broker_name=BROKER_NAME),
            host=SimpleNamespace(
                stopwatch=lambda _: nullcontext(),
                clock=SimpleNamespace(now_ms=lambda: self.at_ms),
                disk=SimpleNamespace(write=lambda *_: None),
                log=SimpleNamespace(warning=lambda *_, **__: None),
            ),
        )
        self.handlers = QueryAssignment(
            self.broker, self.client_tables, self, Assigner(self.broker, self.client_tables, self, None)
        ).handlers()

    # What the handlers are given

    async def topic_subscribe_info(self, topic):
        if not self.routes.get(topic):
            self.calls.append(["fetchRoute", topic])
        return self.routes.get(topic)

    # Operations

    def allocate4_pop(self, strategy, client, mq_all, cid_all, pop_share_queue_num):
        arguments = ("g", client, queues(mq_all), cid_all, pop_share_queue_num)
        found = throwing(
            JAVA_KINDS, allocate_for_pop, STRATEGIES_OF_BROKERS[strategy], *arguments, quoting=AllocationError
        )
        return found if isinstance(found, dict) else {"result": [text(queue) for queue in found]}

    def put_topic(self, topic):
        self.broker.topics.update_topic_config(TopicConfig(topic), now_ms=self.at_ms)

    def set_route(self, topic, brokers):
        counted = zip(brokers[::2], brokers[1::2], strict=True)
        self.routes[topic] = tuple(
            sorted(MessageQueue(topic, name, queue_id) for name, count in counted for queue_id in range(count))
        )

    def set_consumers(self, group, client_ids):
        data = ConsumerData(
            group,
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            (),
        )
        for number, client_id in enumerate(client_ids):
            self.client_tables.consumers.register_consumer(number, client_id, data, now_ms=self.at_ms)

    def query_assignment(self, topic, group, client, strategy, model):
        self.calls.clear()
        body = QueryAssignmentRequestBody(topic, group, client, strategy, MessageModel(model))
        request = Command(RequestCode.QUERY_ASSIGNMENT, body=encode_body(body))
        answer = trio.run(self.handlers[RequestCode.QUERY_ASSIGNMENT].handle, None, request)
        found = decode_body(QueryAssignmentResponseBody, answer.body).message_queue_assignments
        assignments = found and [f"{text(each.message_queue)} {each.mode}" for each in found]
        called = {"calls": [*self.calls]} if self.calls else {}
        return {"code": answer.code, "assignments": assignments if found is None else sorted(assignments)} | called

    def set_message_request_mode(self, topic, group, mode, pop_share_queue_num):
        body = SetMessageRequestModeRequestBody(topic, group, MessageRequestMode(mode), pop_share_queue_num)
        request = Command(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(body))
        answer = self.handlers[RequestCode.SET_MESSAGE_REQUEST_MODE](None, request)
        return {"code": answer.code, "remark": answer.remark}
