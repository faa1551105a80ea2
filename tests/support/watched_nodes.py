"""Nodes whose guests are watched, in virtual time: what a guest sends and receives, and the rows that follow."""

from itertools import count

from emulator.guests.views.guest_views import GuestViews
from emulator.testing.worlds import execute_world, listening, until_ms
from nodes.cause import cause
from nodes.protocol import bodies, headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.model import (
    BrokerData,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    MessageQueue,
    ProducerData,
    QueueData,
    SubscriptionData,
    TopicRouteData,
)
from nodes.protocol.registry import encode_body, encode_header

NAMESERVER, BROKER = "ns-1", "broker-a"
PUSH, POP, PULL = ConsumeType.CONSUME_PASSIVELY, ConsumeType.CONSUME_POP, ConsumeType.CONSUME_ACTIVELY
CLUSTERING, BROADCASTING = MessageModel.CLUSTERING, MessageModel.BROADCASTING
PORTS = {NAMESERVER: "127.1.1.1:10911", BROKER: "127.1.1.2:10911", "broker-b": "127.1.1.3:10911"}


def consumer(*topics, group="g", kind=PUSH, model=CLUSTERING):
    subscriptions = tuple(SubscriptionData(topic) for topic in topics or ("t",))
    return ConsumerData(group, kind, model, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, subscriptions)


def route(**queues):
    names = {name.replace("_", "-"): number for name, number in queues.items()}
    return TopicRouteData(
        tuple(QueueData(name, number, number, 6) for name, number in names.items()),
        tuple(BrokerData("c", name, {0: PORTS[name]}) for name in names),
    )


class Connection:
    """One connection of a guest, at its end."""

    opaques = count(1)

    def __init__(self, watched):
        self.watched = watched

    def say(self, code, header=None, body=None, *, oneway=False):
        fields = {} if header is None else encode_header(header)
        raw = None if body is None else encode_body(body)
        flag = CommandFlag.ONEWAY if oneway else 0
        return self.watched.on_request(Command(code, flag, next(self.opaques), ext_fields=fields, body=raw))

    def answer(self, requested, body=None, *, code=ResponseCode.SUCCESS, led=0):
        cause.set(led)
        self.watched.on_frame(requested.answer(code, None, body=None if body is None else encode_body(body)))

    def heartbeat(self, client_id, *consumers, producers=()):
        self.say(RequestCode.HEART_BEAT, None, HeartbeatData(client_id, tuple(map(ProducerData, producers)), consumers))

    def route(self, topic, reported, led=0):
        self.answer(
            self.say(RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader(topic)), reported, led=led
        )

    def members(self, *client_ids, group="g", led=0):
        requested = self.say(RequestCode.GET_CONSUMER_LIST_BY_GROUP, headers.ConsumerGroupRequestHeader(group))
        self.answer(requested, bodies.GetConsumerListByGroupResponseBody(client_ids), led=led)
        return requested

    def pull(self, queue_id, offset=0, *, group="g", topic="t", code=RequestCode.PULL_MESSAGE):
        return self.say(code, headers.PullMessageRequestHeader(group, topic, queue_id, offset, 32, 2, 0, 15_000, 0))

    def nothing_found(self, requested):
        self.answer(requested, code=ResponseCode.PULL_NOT_FOUND)

    def lock(self, client_id, *queue_ids, granted):
        body = bodies.LockBatchRequestBody("g", client_id, queues(*queue_ids))
        self.answer(self.say(RequestCode.LOCK_BATCH_MQ, None, body), bodies.LockBatchResponseBody(queues(*granted)))

    def unlock(self, client_id, *queue_ids):
        self.say(RequestCode.UNLOCK_BATCH_MQ, None, bodies.LockBatchRequestBody("g", client_id, queues(*queue_ids)))

    def unregister(self, client_id, group="g"):
        header = headers.UnregisterClientRequestHeader(client_id, consumer_group=group)
        self.say(RequestCode.UNREGISTER_CLIENT, header)

    def end(self, *, by_node=False):
        self.watched.on_end(by_node=by_node)


def queues(*queue_ids):
    return tuple(MessageQueue("t", BROKER, queue_id) for queue_id in queue_ids)


class WatchedNodes:
    """Nodes to dial, and the watches of the programs that dial them."""

    def __init__(self, world):
        self.world = world
        self.names = {}
        self.hosts = {}
        self.views = GuestViews(world.fabric, {BROKER: BROKER, "broker-b": "broker-b"}, self.names)

    async def open(self):
        for number, name in enumerate((NAMESERVER, BROKER, "broker-b"), start=1):
            self.hosts[name], _ = await listening(self.world, number, name)
        return self

    def dial(self, node=BROKER, program="shop"):
        ip, _, port = PORTS[node].partition(":")
        return Connection(self.views.watch(program, self.world.fabric.listeners[ip, int(port)]))

    def member(self, client_id, program="shop", *consumers):
        connection = self.dial(program=program)
        connection.heartbeat(client_id, *(consumers or (consumer(),)))
        return connection

    async def after(self, duration_ms):
        await until_ms(self.world, self.world.timeline.now_ns // 1_000_000 + duration_ms)


def executed(scene):
    async def main(world):
        return await scene(await WatchedNodes(world).open())

    return execute_world(main)


def guest_rows(run, table, *columns, **fields):
    rows = [row for row in run.trace.select(table, **fields) if row["node"].startswith(("shop", "mail"))]
    return [tuple(row[column] for column in columns) for row in rows]


def owned(run):
    return guest_rows(run, "ownership", "node", "event", "queue_id")
