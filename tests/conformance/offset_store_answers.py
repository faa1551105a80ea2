"""Family offset_store: both stores, one of them before pretended brokers, and the single offset inside them."""

from types import SimpleNamespace

import attrs
import trio
import trio.testing

from nodes.client.offsets.offset_store import LocalFileOffsetStore, RemoteBrokerOffsetStore, decode_offsets
from nodes.client.tables.client_routes import ClientRoutes
from nodes.client.tables.offset_table import OffsetTable
from nodes.config import ClientConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import BrokerData, MessageQueue, TopicRouteData
from nodes.rpc.errors import BrokerError, RemotingError, RemotingTimeoutError

NOT_FOUND, FAILED, NO_QUEUE = -1, -2, -3
"""What Java's `readOffset` answers in place of an offset."""


def offset_store(requested):
    if requested.get("op") == "ControllableOffset":
        return one_offset(requested)
    if requested.get("op") == "LocalFileOffsetStore":
        return trio.run(local, requested)
    return trio.run(remote, requested)


def one_offset(requested):
    queue, table = MessageQueue("T", "b", 0), OffsetTable()
    table.update(queue, requested["initial"], increase_only=False)
    after = []
    for verb, *text in requested["steps"]:
        if verb == "update":
            offset, increase_only = (*text, False)[:2]
            table.update(queue, offset, increase_only=increase_only)
        elif verb == "updateAndFreeze":
            table.update_and_freeze(queue, *text)
        else:
            assert verb == "getOffset"
        after.append(table.read(queue))
    return {"offsetAfterStep": after}


def without_hash_order(out):
    """The answers with offsets read out of the files: their text is in the order of a hash table."""
    return {
        **out,
        "results": [item | ({"file": entries(item["file"])} if "file" in item else {}) for item in reported(out)],
    }


def reported(out):
    return out.get("results", ())


def entries(text):
    return text and sorted((attrs.astuple(queue), offset) for queue, offset in decode_offsets(text.encode()).items())


async def local(requested):
    executed = Local()
    results = []
    for verb, *text in requested["steps"]:
        ret = await executed.step(verb, *text)
        content = executed.disk.read(executed.store.path)
        results.append({"ret": ret, "table": executed.table(), "file": content and content.decode()})
    return {"results": results}


class Disk:
    """Files in memory."""

    def __init__(self):
        self.files = {}

    def read(self, name):
        return self.files.get(name)

    def write(self, name, content):
        self.files[name] = content


async def remote(requested):
    async with trio.open_nursery() as nursery:
        executed = Remote(requested, nursery)
        results = []
        for verb, *text in requested["steps"]:
            executed.rpcs.clear()
            # Java's tables refuse a null queue without a word; ours has no such thing.
            ret = await executed.step(verb, *text)
            await trio.testing.wait_all_tasks_blocked()
            rpcs = sorted(executed.rpcs, key=str) if verb == "persistAll" else list(executed.rpcs)
            results.append({"ret": ret, "rpcs": rpcs, "table": executed.table()})
    return {
        "results": results,
        "cloneTopicT": executed.table(lambda topic: topic == "T"),
        "cloneTopicBlank": executed.table(),
        "cloneTopicNone": [],
    }


class Stepped:
    """The steps that both stores know."""

    def table(self, wanted=lambda _: True):
        offsets = self.store.memory.offsets
        return [[[q.topic, q.broker_name, q.queue_id], offsets[q]] for q in offsets if wanted(q.topic)]

    async def step(self, verb, queue=None, *text):
        if verb == "persistAll":
            self.store.persist_all(MessageQueue(*item) for item in queue or ())
            return None
        if queue is None:
            return NO_QUEUE if verb == "read" else None
        queue = MessageQueue(*queue)
        match verb:
            case "update":
                offset, increase_only = text
                self.store.memory.update(queue, offset, increase_only=increase_only)
            case "freeze":
                self.store.memory.update_and_freeze(queue, *text)
            case "remove":
                self.store.memory.remove(queue)
            case "persist":
                self.store.persist(queue)
            case "broker":
                (self.stored[queue],) = text
            case "read":
                return await self.read(queue, *text)
            case _:
                raise AssertionError(f"no step is called {verb}")
        return None

    async def read(self, queue, read_type):
        if read_type == "READ_FROM_MEMORY" or (read_type == "MEMORY_FIRST_THEN_STORE" and queue in self.store.memory):
            return self.store.memory.read(queue)
        try:
            found = await self.store.read_from_store(queue)
        except (RemotingError, BrokerError):
            return FAILED
        return NOT_FOUND if found is None else found


class Local(Stepped):
    """A store on a machine of its own."""

    def __init__(self):
        self.disk = Disk()
        self.begin()

    def begin(self):
        self.store = LocalFileOffsetStore(SimpleNamespace(client_id="c", host=SimpleNamespace(disk=self.disk)), "G")

    async def step(self, verb, queue=None, *text):
        if verb in ("load", "reload"):
            self.begin()
            self.store.load()
            return None
        if verb == "read" and queue is None:
            return NOT_FOUND
        return await super().step(verb, queue, *text)


class Remote(Stepped):
    """A store, and around it the answers that the case pretends."""

    def __init__(self, requested, nursery):
        self.stored = {MessageQueue(*queue): value for queue, value in requested["brokerStore"]}
        self.rpcs = []
        routes = ClientRoutes()
        brokers = tuple(
            BrokerData("C", name, {int(broker_id): address for broker_id, address in addrs.items()})
            for name, addrs in requested["brokerAddrTable"].items()
        )
        routes.install("T", TopicRouteData((), brokers))
        instance = SimpleNamespace(
            routes=routes,
            rpc=self,
            config=ClientConfig(),
            update_topic_route=self.update_topic_route,
            host=SimpleNamespace(start_soon=lambda flow, *text, name: nursery.start_soon(flow, *text, name=name)),
        )
        self.store = RemoteBrokerOffsetStore(instance, "G")

    async def update_topic_route(self, topic):
        self.rpcs.append(["updateTopicRouteInfoFromNameServer", topic])

    async def call(self, address, code, ext_fields, _body, *, timeout_ms):
        assert code == RequestCode.QUERY_CONSUMER_OFFSET
        topic, queue_id = ext_fields["topic"], int(ext_fields["queueId"])
        self.rpcs.append(["queryConsumerOffset", address, topic, queue_id, timeout_ms])
        match self.stored[MessageQueue(topic, self.name_of(address), queue_id)]:
            case "timeout":
                raise RemotingTimeoutError(address)
            case "error":
                return Command(ResponseCode.SYSTEM_ERROR)
            case None | "notfound":
                return Command(ResponseCode.QUERY_NOT_FOUND)
            case offset:
                return Command(ResponseCode.SUCCESS, ext_fields={"offset": str(offset)})

    def oneway(self, address, code, ext_fields, _body):
        assert code == RequestCode.UPDATE_CONSUMER_OFFSET
        queue_id, offset = int(ext_fields["queueId"]), int(ext_fields["commitOffset"])
        self.rpcs.append(["updateConsumerOffsetOneway", address, ext_fields["topic"], queue_id, offset])

    def name_of(self, address):
        return next(name for name, addrs in self.store._instance.routes.brokers.items() if address in addrs.values())
