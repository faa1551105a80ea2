"""Family escape: `EscapeBridge` over routes that are set; what other brokers answer is given in advance."""

from conformance.executing import Adapter
from nodes.broker.messages.escape_bridge import EscapeBridge
from nodes.broker.shared import Log
from nodes.broker.tables.store.escape import EscapeRoutes, escape_way
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import BrokerData, Message, QueueData, TopicRouteData
from nodes.rpc.errors import BrokerError, RemotingTimeoutError

BROKER_NAME, CLUSTER = "bk-a", "c"
SEND_TIMEOUT_MS = 3_000
CODES = {
    "SEND_OK": ResponseCode.SUCCESS,
    "FLUSH_DISK_TIMEOUT": ResponseCode.FLUSH_DISK_TIMEOUT,
    "FLUSH_SLAVE_TIMEOUT": ResponseCode.FLUSH_SLAVE_TIMEOUT,
    "SLAVE_NOT_AVAILABLE": ResponseCode.SLAVE_NOT_AVAILABLE,
    "NULL": None,
}
IS_OK = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")


class Escape(Adapter):
    def __init__(self, broker_id, enable_slave_acting_master, enable_remote_escape):
        self.routes = EscapeRoutes(lambda _bound: 0)
        self.calls = []
        self.reply = None
        self.sync = False
        self.is_master = broker_id == 0
        way = escape_way(
            is_master=self.is_master,
            enable_slave_acting_master=enable_slave_acting_master,
            enable_remote_escape=enable_remote_escape,
        )
        group = f"InnerProducerGroup_{BROKER_NAME}_{broker_id}"
        self.bridge = EscapeBridge(BROKER_NAME, group, way, Log(self.put_here, self.put_here), self, self.send)

    # What the bridge asks for

    async def try_to_find_queues(self, topic):
        if not self.routes.queues(topic):
            self.calls.append(["fetchRoute", topic])
        return self.routes.queues(topic)

    def next_queue(self, topic, avoiding):
        return self.routes.next_queue(topic, avoiding)

    def find_broker_address_in_publish(self, broker_name):
        return self.routes.find_broker_address_in_publish(broker_name)

    async def put_here(self, message):
        self.calls.append(["localPut" if self.sync else "localAsyncPut", message.topic])
        return PutMessageResult(PutMessageStatus.PUT_OK)

    async def send(self, address, broker_name, message, group):
        waits = message.properties.get("WAIT") != "false"
        name = "sendSync" if self.sync else "sendAsync"
        self.calls.append([name, address, broker_name, message.topic, message.queue_id, group, SEND_TIMEOUT_MS, waits])
        if self.reply == "FAIL":
            raise RemotingTimeoutError("as the case says")
        return CODES[self.reply]

    # Operations

    def set_route(self, topic, rows):
        brokers = tuple(BrokerData(CLUSTER, row["brokerName"], ids(row["addrs"])) for row in rows)
        queues = tuple(QueueData(row["brokerName"], row["queues"], row["queues"], row["perm"], 0) for row in rows)
        self.routes.install(topic, TopicRouteData(queues, brokers))
        return {"publishList": [f"{q.topic}@{q.broker_name}@{q.queue_id}" for q in self.routes.queues(topic)]}

    def put_message(self, **requested):
        self.sync = True
        return self.reported(self.bridge.put_message(self.message(**requested)))

    def async_put_message(self, **requested):
        self.sync = False
        return self.reported(self.bridge.async_put_message(self.message(**requested)))

    def put_message_to_specific_queue(self, **requested):
        self.sync = self.is_master
        return self.reported(self.bridge.put_message_to_specific_queue(self.message(**requested)))

    def async_put_message_to_specific_queue(self, **requested):
        self.sync = False
        return self.reported(self.bridge.async_put_message_to_specific_queue(self.message(**requested)))

    def put_message_to_remote_broker(self, broker_name, **requested):
        self.sync = True
        message = self.message(**requested)
        code, calls = self.awaited(self.bridge.put_message_to_remote_broker(message, broker_name or ""))
        return {"result": None if code is None else "SEND_OK", "calls": calls}

    def message(self, topic, producer_group, queue_id_before, reply, store_host="", send_which_queue_before=0):
        self.reply = reply
        if self.routes.queues(topic) is not None:
            self.routes._turns[topic].index = send_which_queue_before
        properties = {"PGROUP": producer_group} if producer_group else {}
        host = store_host.removeprefix("/")
        return Message(topic, queue_id_before, 0, 0, 0, 0, b"", properties, store_host=host)

    def reported(self, put):
        try:
            result, calls = self.awaited(put)
        except (RemotingTimeoutError, BrokerError):
            return {"error": "ExecutionException", "calls": self.taken_calls()}
        status = getattr(result, "status", result)
        remote = not self.is_master and status is not PutMessageStatus.SERVICE_NOT_AVAILABLE
        return {"status": status.value, "remotePut": remote, "isOk": remote and status.value in IS_OK, "calls": calls}

    def awaited(self, flow):
        """Run a flow that never waits."""
        try:
            flow.send(None)
        except StopIteration as done:
            return done.value, self.taken_calls()
        raise AssertionError("the flow waits")

    def taken_calls(self):
        calls, self.calls = self.calls, []
        return calls or None


def ids(addrs):
    return {int(broker_id): address for broker_id, address in addrs.items()}
