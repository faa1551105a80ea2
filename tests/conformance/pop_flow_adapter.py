"""Families pop_flow and pop_failover: all requests of POP and the services behind them, on a broker without threads."""

import json
from base64 import b64encode

import attrs
import trio

from conformance.escape_adapter import CODES, ids
from conformance.executing import Adapter
from conformance.order_info_adapter import row as order_row
from conformance.pop_buffer_adapter import wrapper_row
from conformance.pop_host import PretendedHost
from conformance.revive_log import ORIGIN_MS, REVIVE_TOPIC, STORED, relative_key, reported
from nodes.broker.clients.denied_beliefs import DeniedBeliefs
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.messages.escape_bridge import EscapeBridge
from nodes.broker.messages.foreign_messages import Fetched
from nodes.broker.pop.pops import Pops
from nodes.broker.shared import Log, Master
from nodes.broker.tables.clients.client_tables import client_tables
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.broker.tables.pop.check_point import AckMsg, PopCheckPoint
from nodes.broker.tables.pop.pop_tables import pop_tables
from nodes.broker.tables.store.escape import EscapeRoutes, escape_way
from nodes.broker.tables.store.get_message_result import GetMessageResult, GetMessageStatus
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.config import BrokerConfig
from nodes.protocol import headers_pop as headers
from nodes.protocol.bodies import BatchAck, BatchAckMessageRequestBody, PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import (
    BrokerData,
    Message,
    QueueData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRouteData,
)
from nodes.protocol.properties import FIRST_POP_TIME, TAGS, TIMER_DELIVER_MS, UNIQ_KEY
from nodes.protocol.registry import decode_body, decode_header, encode_body, encode_header
from nodes.rpc.errors import RemotingTimeoutError
from nodes.rpc.server import InTask

BROKER, CLUSTER = "bk-a", "c1"
REFUSED = (1, 13, 16, 17, 23, 26, 29)
"""Codes of answers to pops without header."""
ORIGIN = "origin"
"""Property of a message that says where its first copy stands."""
LOCAL_MASTER_OFFSET = 50


class StoreOfCases(MessageStore):
    """The real store, with two ways of the cases: none of its messages is in memory, and some queues are missing."""

    in_memory = False
    known = ()
    """Queues that were created."""
    min_offset_of_unknown = 0

    def min_offset(self, topic, queue_id):
        known = (topic, queue_id) in self.known or self.max_offset(topic, queue_id)
        return super().min_offset(topic, queue_id) if known else self.min_offset_of_unknown

    def is_in_memory(self, topic, queue_id, offset):
        return self.in_memory

    def get_message(self, topic, queue_id, offset, *rest, **filters):
        if (topic, queue_id) not in self.known and not self.max_offset(topic, queue_id):
            return GetMessageResult(GetMessageStatus.NO_MATCHED_MESSAGE, 0, -1, 0)
        return super().get_message(topic, queue_id, offset, *rest, **filters)


@attrs.define(eq=False)
class Client:
    """The channel of the one client."""

    remote_address: str = "<addr>"
    closed: bool = False
    id: int = 1


class PopFlow(Adapter):
    def __init__(self, broker_id=0, in_mem=False, local_master=False, **options):
        self.dice = 0
        self.host = PretendedHost(f"10.0.0.{broker_id}", lambda: self.at_ms, self._deliver, lambda: self.dice)
        self.config = BrokerConfig(**options)
        self.is_master = broker_id == 0
        now_ms = self.host.now_ms()
        self.store_ = StoreOfCases(f"{self.host.ip}:10911")
        self.store_.in_memory = in_mem
        self.broker = BrokerContext(
            self.host,
            self.config,
            CLUSTER,
            BROKER,
            broker_id,
            (),
            TopicConfigManager(now_ms=now_ms, cluster=CLUSTER, broker_name=BROKER),
            SubscriptionGroupManager(now_ms=now_ms),
            self.store_,
        )
        self.routes = EscapeRoutes(lambda _bound: 0)
        self.calls = []
        self.put_status = self.send_reply = self.pull_reply = None
        self.waiting = {}
        self.arrived = 0
        self.waits_for_async = True
        way = escape_way(
            is_master=self.is_master,
            enable_slave_acting_master=self.config.enable_slave_acting_master,
            enable_remote_escape=self.config.enable_remote_escape,
        )
        group = f"InnerProducerGroup_{BROKER}_{broker_id}"
        log_next_to = Log(self._put_into_local_master, self._put_into_local_master)
        neighbour = Master(log_next_to, None)
        peek_master = (lambda: neighbour) if local_master else None
        log = Log(self._put_in_turn, self._put_in_turn)
        self.bridge = EscapeBridge(BROKER, group, way, log, self, self._send, peek_master)
        self.pop_tables = pop_tables(self.config, now_ms=now_ms)
        # The records wait here, so it has no timer.
        self.clients, wheel = client_tables(self.config, now_ms=now_ms), None
        offsets = OffsetManage(self.broker, self.clients.offsets, self.clients.single_active)
        consumers, denied = self.clients.consumers, DeniedBeliefs(self.broker.host)
        self.pops = Pops(self.broker, self.pop_tables, consumers, offsets, self.bridge, self._put, self, wheel, denied)
        self.handlers = self.pops.handlers()

    # --- what the bridge and the reviver ask for

    def store_of(self, broker_name):
        return self.store_ if broker_name == BROKER else None

    async def try_to_find_queues(self, topic):
        if not self.routes.queues(topic):
            self.calls.append(["fetchRoute", topic])
        return self.routes.queues(topic)

    def next_queue(self, topic, avoiding):
        return self.routes.next_queue(topic, avoiding)

    def find_broker_address_in_publish(self, broker_name):
        return self.routes.find_broker_address_in_publish(broker_name)

    async def address(self, topic, broker_name):
        found = self.routes.find_broker_address_in_subscribe(broker_name)
        if found is None:
            self.calls.append(["fetchRoute", topic])
        return found

    async def pull(self, address, broker_name, topic, queue_id, offset):
        self.calls.append(["pullAsync", address, broker_name, topic, queue_id, offset])
        if self.pull_reply in (None, "FOUND"):
            return Fetched(Message(topic, queue_id, offset, 0, 0, 0, b"", {}))
        return Fetched(need_retry=self.pull_reply != "NOT_FOUND")

    async def _send(self, address, broker_name, message, _group):
        call = {
            "op": "sendAsync" if self.waits_for_async else "sendSync",
            "addr": address,
            "broker": broker_name,
            "topic": message.topic,
            "queueId": message.queue_id,
            "record": record_of(message),
        }
        self.calls.append(call)
        if self.send_reply == "FAIL":
            raise RemotingTimeoutError("as the case says")
        return CODES[self.send_reply or "SEND_OK"]

    async def _put_into_local_master(self, message):
        place = {"topic": message.topic, "queueId": message.queue_id}
        self.calls.append({"op": "localMasterPut", **place, "record": record_of(message)})
        return PutMessageResult(PutMessageStatus.PUT_OK, message._replace(queue_offset=LOCAL_MASTER_OFFSET))

    async def _put_in_turn(self, message):
        return self._put(message)

    def _put(self, message):
        """Into the log, or into the wheel as long as its time has not come."""
        status = PutMessageStatus(self.put_status or "PUT_OK")
        if not self.is_master:
            status = PutMessageStatus.SERVICE_NOT_AVAILABLE
        if self.put_status or not self.is_master:
            self.calls.append(["put", message.topic, message.queue_id, status.value])
        if status not in STORED:
            return PutMessageResult(status)
        if int(message.properties.get(TIMER_DELIVER_MS, 0)) <= self.host.now_ms():
            return PutMessageResult(status, self._append(message))
        self.waiting[self.arrived] = message
        self.arrived += 1
        return PutMessageResult(status, message._replace(queue_offset=self.arrived - 1))

    def _append(self, message):
        stored = self.store_.put_message(message, now_ms=self.host.now_ms())
        self.pops.on_message_arrived(stored.topic, stored.queue_id)
        return stored

    def _deliver(self):
        now_ms = self.host.now_ms()
        due = [
            (int(message.properties[TIMER_DELIVER_MS]), number)
            for number, message in self.waiting.items()
            if int(message.properties[TIMER_DELIVER_MS]) <= now_ms
        ]
        return [self._append(self.waiting.pop(number)) for _, number in sorted(due)]

    # --- what a case sees

    def tables(self):
        retained = [key for key in self.store_._queues if key[0] == REVIVE_TOPIC or key[0].startswith("%RETRY%")]
        return {
            "offsets": flat(self.clients.offsets.offsets),
            "buffer": {
                relative_key(key, found.ck): wrapper_row(found) for key, found in self.pop_tables.buffer.buffer.items()
            },
            "offsetQueues": {
                key: [found.next_begin_offset for found in queue]
                for key, queue in self.pop_tables.buffer.offset_queues.items()
            },
            "inflight": flat(self.pop_tables.in_flight.counts),
            "log": {
                f"{topic}@{queue_id}#{message.queue_offset}": record_of(message)
                for topic, queue_id in retained
                for message in self.store_.messages(topic, queue_id, 0, 1 << 30)
            },
            "wheel": {
                f"{number:06}": {"topic": message.topic, "queueId": message.queue_id, "record": record_of(message)}
                for number, message in self.waiting.items()
            },
            "order": {
                f"{key}@{queue_id}": order_row(found, ORIGIN_MS)
                for key, queues in self.pop_tables.order_infos.table.items()
                for queue_id, found in queues.items()
            },
        }

    def _ask(self, code, header, body=None):
        """An answer, and the calls that it took."""
        self.host.slept_ms = 0
        fields = {} if header is None else encode_header(header)
        request = Command(int(code), ext_fields=fields, body=None if body is None else encode_body(body))
        handler = self.handlers[code]
        if isinstance(handler, InTask):
            return trio.run(handler.handle, Client(), request)
        return handler(Client(), request)

    def _taken(self):
        calls, self.calls = self.calls, []
        return {"calls": calls or None}

    # --- preparations

    def create_topic(self, topic, queues):
        self.broker.topics.update_topic_config(TopicConfig(topic, queues, queues), now_ms=self.host.now_ms())
        self.store_.known += tuple((topic, queue_id) for queue_id in range(queues))

    def create_group(self, group):
        self.broker.groups.update_subscription_group_config(SubscriptionGroupConfig(group), now_ms=self.host.now_ms())

    def disable_group(self, group):
        config = SubscriptionGroupConfig(group, consume_enable=False)
        self.broker.groups.update_subscription_group_config(config, now_ms=self.host.now_ms())

    def set_perm(self, topic, perm):
        config = attrs.evolve(self.broker.topics.select_topic_config(topic), perm=perm)
        self.broker.topics.update_topic_config(config, now_ms=self.host.now_ms())

    def send(self, topic, queue_id, n, tag):
        for _ in range(n):
            place = f"{topic}#{queue_id}#{self.store_.max_offset(topic, queue_id)}"
            properties = {ORIGIN: place} | ({} if tag is None else {TAGS: tag})
            self._append(Message(topic, queue_id, 0, 0, 0, 0, b"", properties))
        return {"maxOffset": self.store_.max_offset(topic, queue_id)}

    def set_offset(self, group, topic, queue_id, offset):
        self.clients.offsets.commit_offset(group, topic, queue_id, offset, now_ms=self.host.now_ms())

    def reset_offset(self, group, topic, queue_id, offset):
        self.clients.offsets.assign_reset_offset(group, topic, queue_id, offset)

    def set_min_offset(self, topic, queue_id, min):  # noqa: A002
        self.store_.delete_before(topic, queue_id, min)

    def store(self, **knobs):
        for name, value in knobs.items():
            setattr(self, name, value)

    def set_route(self, topic, rows):
        brokers = tuple(BrokerData(CLUSTER, row["brokerName"], ids(row["addrs"])) for row in rows)
        queues = tuple(QueueData(row["brokerName"], row["queues"], row["queues"], row["perm"], 0) for row in rows)
        self.routes.install(topic, TopicRouteData(queues, brokers))

    def lock_queue(self, key):
        assert self.pop_tables.queue_locks.try_lock(key, self.host.now_ms())

    def unlock_queue(self, key):
        self.pop_tables.queue_locks.unlock(key)

    def special_services_on(self):
        self.pops.revive.change(running=True)

    def special_services_off(self):
        self.pops.revive.change(running=False)

    def revive_flags(self):
        return {"running": self.pops.revive.is_running}

    def append_ck(self, revive_queue_id, topic, group, queue_id, start_offset, pop_time, **rest):
        diffs = None if rest["diffs"] is None else tuple(rest["diffs"])
        times = (start_offset, ORIGIN_MS + pop_time, rest["invisible_time"])
        ck = PopCheckPoint(topic, group, queue_id, *times, rest["num"], rest["broker_name"], diffs)
        ck = attrs.evolve(ck, re_put_times=rest["re_put_times"])
        self._append(self._record("ck", ck.to_json(), revive_queue_id, rest["deliver_at"]))

    @staticmethod
    def _record(tag, body, queue_id, deliver_at):
        properties = {TAGS: tag, TIMER_DELIVER_MS: str(ORIGIN_MS + deliver_at)}
        return Message(REVIVE_TOPIC, queue_id, 0, 0, 0, 0, body.encode(), properties)

    # --- requests

    def pop(self, group, topic, queue_id, max, invisible_time, poll_time, init_mode, order, attempt_id, exp, random_q):  # noqa: A002
        self.dice = random_q
        times = (invisible_time, poll_time, 0)
        requested = headers.PopMessageRequestHeader(
            group, topic, queue_id, max, *times, init_mode, None, exp, order, attempt_id
        )
        answer = self._ask(RequestCode.POP_MESSAGE, requested)
        if answer.code in REFUSED:
            return {"code": answer.code, "remark": answer.remark.replace(" apply first please!", "")}
        reported_ = decode_header(headers.PopMessageResponseHeader, answer.ext_fields)
        out = {
            "code": answer.code,
            "popTime": reported_.pop_time - ORIGIN_MS,
            "invisibleTime": reported_.invisible_time,
            "reviveQid": reported_.revive_qid,
            "restNum": reported_.rest_num,
            "startOffsetInfo": reported_.start_offset_info,
            "msgOffsetInfo": reported_.msg_offset_info,
            "orderCountInfo": reported_.order_count_info,
            **self._taken(),
        }
        found = messages_of(answer)
        if found:
            out["messages"] = [
                [found.topic, found.queue_id, found.queue_offset, found.reconsume_times, relative_handle(found)]
                for found in found
            ]
        return out

    def ack(self, group, topic, queue_id, offset, extra_info):
        requested = headers.AckMessageRequestHeader(group, topic, queue_id, absolute(extra_info), offset)
        return {"code": self._ask(RequestCode.ACK_MESSAGE, requested).code, **self._taken()}

    def batch_ack(self, group, topic, retry, start_offset, queue_id, revive_queue_id, **rest):
        bits = sum(1 << offset - start_offset for offset in rest["offsets"])
        packed = b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little")).decode()
        times = (ORIGIN_MS + rest["pop_time"], rest["invisible_time"])
        entry = BatchAck(group, topic, retry, start_offset, queue_id, revive_queue_id, *times, packed)
        body = BatchAckMessageRequestBody(rest["broker_name"], (entry,))
        return {"code": self._ask(RequestCode.BATCH_ACK_MESSAGE, None, body).code, **self._taken()}

    def change_invisible(self, group, topic, queue_id, offset, extra_info, invisible_time):
        handle = absolute(extra_info)
        requested = headers.ChangeInvisibleTimeRequestHeader(group, topic, queue_id, handle, offset, invisible_time)
        answer = self._ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, requested)
        if answer.code:
            return {"code": answer.code, **self._taken()}
        reported_ = decode_header(headers.ChangeInvisibleTimeResponseHeader, answer.ext_fields)
        times = {
            "popTime": reported_.pop_time and reported_.pop_time - ORIGIN_MS,
            "invisibleTime": reported_.invisible_time,
        }
        return {"code": 0, **times, "reviveQid": reported_.revive_qid, **self._taken()}

    def notification(self, group, topic, queue_id, order, random_q):
        self.dice = random_q
        requested = headers.NotificationRequestHeader(group, topic, queue_id, 0, 0, order)
        answer = self._ask(RequestCode.NOTIFICATION, requested)
        has_msg = not answer.code and decode_header(headers.NotificationResponseHeader, answer.ext_fields).has_msg
        return {"code": answer.code, "hasMsg": has_msg}

    def peek(self, group, topic, queue_id, max, random_q):  # noqa: A002
        self.dice = random_q
        answer = self._ask(RequestCode.PEEK_MESSAGE, headers.PeekMessageRequestHeader(topic, queue_id, max, group))
        reported_ = decode_header(headers.PopMessageResponseHeader, answer.ext_fields)
        found = [[found.topic, found.queue_id, found.queue_offset] for found in messages_of(answer)]
        return {"code": answer.code, "restNum": reported_.rest_num, "messages": found or None}

    # --- services

    def deliver_due(self):
        self.host.slept_ms = 0
        delivered = self._deliver()
        return {"delivered": [[at.topic, at.queue_id, at.queue_offset, at.properties[TAGS]] for at in delivered]}

    def buffer_scan(self):
        self.host.slept_ms = 0
        trio.run(self.pops._merge.scan)
        buffer = self.pop_tables.buffer
        return {"serving": buffer.serving, "counter": buffer.counter, **self._taken()}

    def revive_pass(self, revive_queue_id):
        self.host.slept_ms = 0
        service = self.pops.revive.services[revive_queue_id]
        service._busy = True
        scan = trio.run(service.revive_pass)
        service._busy = False
        return {
            "scanSleptMs": self.host.slept_ms,
            "oldOffset": scan.old_offset,
            "endTime": scan.end_time_ms and scan.end_time_ms - ORIGIN_MS,
            "checkPoints": {
                relative_key(key, ck): [ck.revive_offset, ck.num, ck.bit_map]
                for key, ck in sorted(scan.check_points.items())
            },
            "newOffset": service.revive_offset if service.is_running else None,
            "reviveOffset": service.revive_offset,
            "leftInflight": len(service.in_flight),
            **self._taken(),
        }

    def wheel_releases(self, tag, start_offset, queue_id_before, send_which_queue_start):
        assert send_which_queue_start == 0
        self.waits_for_async = False
        if tag == "ck":
            record = PopCheckPoint("tA", "g", 0, start_offset, ORIGIN_MS, 10_000, 1, BROKER, (0,))
        else:
            record = AckMsg(start_offset, start_offset, "g", "tA", 0, ORIGIN_MS, BROKER)
        message = self._record(tag, record.to_json(), queue_id_before, 9000)
        return {"status": trio.run(self.bridge.put_message, message).value, **self._taken()}


def flat(table):
    return {f"{key}@{queue}": value for key, queues in table.items() for queue, value in queues.items()}


def messages_of(answer):
    return decode_body(PullMessageResponseBody, answer.body).messages if answer.body else ()


def absolute(handle):
    return " ".join(str(ORIGIN_MS + int(word[4:])) if word.startswith("now+") else word for word in handle.split(" "))


def relative_handle(message):
    handle = message.properties.get("POP_CK")
    if handle is None:
        return None
    words = handle.split(" ")
    words[1] = f"now+{int(words[1]) - ORIGIN_MS}"
    return " ".join(words)


def record_of(message):
    properties = message.properties
    if message.topic != REVIVE_TOPIC:
        first = properties.get(FIRST_POP_TIME)
        return {
            "reconsumeTimes": message.reconsume_times,
            "tag": properties.get(TAGS),
            "firstPopTime": None if first is None else int(first) - ORIGIN_MS,
            "origin": properties.get(ORIGIN),
        }
    body = message.body.decode()
    popped_ms = json.loads(body)["pt"]
    key = properties.get(UNIQ_KEY)
    return {
        "tag": properties[TAGS],
        "deliverAt": int(properties[TIMER_DELIVER_MS]) - ORIGIN_MS,
        "uniqKey": None if key is None else key.replace(str(popped_ms), f"now+{popped_ms - ORIGIN_MS}"),
        "json": reported(body),
    }
