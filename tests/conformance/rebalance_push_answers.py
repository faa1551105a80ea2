"""Family rebalance_push: what a push consumer does with queues that come and go."""

from types import SimpleNamespace

import attrs
import trio

from nodes.client.consumer.consumer_setup import ConsumerSetup
from nodes.client.consumer.push_consumer import PushConsumer
from nodes.client.offsets.offset_store import RemoteBrokerOffsetStore
from nodes.client.rebalance.order_locks import OrderLocks
from nodes.client.rebalance.queue_sources import PushQueues
from nodes.client.rebalance.rebalance import configured_mode
from nodes.client.tables.client_routes import ClientRoutes
from nodes.client.tables.popped_messages import consume_init_mode
from nodes.client.tables.process_queue import ProcessQueue
from nodes.config import ConsumerConfig
from nodes.protocol.assigning import RebalanceMode
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.body_codec import decode_body
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import BrokerData, MessageQueue, TopicRouteData
from nodes.rpc.errors import BrokerError, RemotingError, RemotingTimeoutError

NOW_MS = 1_700_000_000_000
UNLOCK_TIMEOUT_MS = 1_000
"""What Java hands over, also where no one waits."""
NOWHERE = SimpleNamespace(warning=lambda *_, **__: None)
FAILED = -1


def rebalance_push(requested):
    match requested["op"]:
        case "computePullFromWhere":
            return trio.run(compute, requested)
        case "messageQueueChanged":
            return trio.run(message_queue_changed, requested)
        case "removeUnnecessaryMessageQueue":
            return trio.run(remove, requested)
        case "clientRebalance":
            mode = VerbOutput(requested).queues.rebalance_mode(configured_mode(config_of(requested)))
            return {"ret": mode is RebalanceMode.CLIENT}
        case "DefaultMQPushConsumer_defaults":
            return defaults()
    raise AssertionError(f"no operation is called {requested['op']}")


def config_of(requested):
    options = {
        "consume_from_where": requested.get("consumeFromWhere"),
        "consume_timestamp": requested["consumeTimestamp"].split()[0] if "consumeTimestamp" in requested else None,
        "consume_orderly": requested.get("consumeOrderly", requested.get("orderly")),
        "message_model": requested.get("messageModel"),
        "client_rebalance": requested.get("clientRebalance"),
        "pull_threshold_for_topic": requested.get("pullThresholdForTopic"),
        "pull_threshold_size_for_topic": requested.get("pullThresholdSizeForTopic"),
    }
    return ConsumerConfig(**{name: value for name, value in options.items() if value is not None})


class VerbOutput:
    """The queues of a consumer, and around them a broker that answers as the case says."""

    def __init__(self, requested):
        self.requested = requested
        self.rpcs = []
        self.routes = ClientRoutes()
        self.clock = SimpleNamespace(now_ms=lambda: NOW_MS)
        self.rpc, self.config, self.host = self, config_of(requested), self
        self.log, self.record = NOWHERE, lambda _: None
        self.client_id = "c1"
        if requested.get("brokerStoredOffset") != "noaddr":
            self.routes.install("T", TopicRouteData((), (BrokerData("C", "broker-a", {0: "a0"}),)))
        self.store = RemoteBrokerOffsetStore(self, "G")
        self.process_queues = {}
        self.queues = PushQueues(self, self.config, self.store, OrderLocks(self, "G", self.process_queues))

    @staticmethod
    def timeout_ms(duration_ms):
        return trio.fail_after(duration_ms / 1_000)

    async def update_topic_route(self, topic):
        self.rpcs.append(["updateTopicRouteInfoFromNameServer", topic])

    async def call(self, address, code, ext_fields, _body, *, timeout_ms):
        topic, queue_id = ext_fields["topic"], int(ext_fields["queueId"])
        match code:
            case RequestCode.QUERY_CONSUMER_OFFSET:
                self.rpcs.append(["queryConsumerOffset", address, topic, queue_id, timeout_ms])
                found = self.requested["brokerStoredOffset"]
                if found == "notfound":
                    return Command(ResponseCode.QUERY_NOT_FOUND)
                if found == "error":
                    return Command(ResponseCode.SYSTEM_ERROR)
            case RequestCode.GET_MAX_OFFSET:
                self.rpcs.append(["maxOffset", topic, "broker-a", queue_id])
                found = self.requested["maxOffset"]
            case RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
                self.rpcs.append(["searchOffset", topic, "broker-a", queue_id, int(ext_fields["timestamp"])])
                found = self.requested["searchOffset"]
        if found is None:
            raise RemotingTimeoutError(address)
        return Command(ResponseCode.SUCCESS, ext_fields={"offset": str(found)})

    def oneway(self, address, code, ext_fields, body):
        if code == RequestCode.UNLOCK_BATCH_MQ:
            unlocked = [attrs.astuple(queue) for queue in decode_body(LockBatchRequestBody, body).mq_set]
            self.rpcs.append(["unlockBatchMQ", address, [list(queue) for queue in unlocked], UNLOCK_TIMEOUT_MS, True])
        else:
            assert code == RequestCode.UPDATE_CONSUMER_OFFSET
            queue_id, offset = int(ext_fields["queueId"]), int(ext_fields["commitOffset"])
            self.rpcs.append(["updateConsumerOffsetOneway", address, ext_fields["topic"], queue_id, offset])


async def compute(requested):
    reported = VerbOutput(requested)
    init_mode = {"initMode": consume_init_mode(reported.config.consume_from_where)}
    try:
        offset = await reported.queues.compute_pull_from_where(MessageQueue(requested["topic"], "broker-a", 0))
    except (RemotingError, BrokerError):
        return {"withException": {"error": "MQClientException"}, "plain": FAILED, "rpcs": reported.rpcs} | init_mode
    return {"withException": offset, "plain": offset, "rpcs": reported.rpcs} | init_mode


async def remove(requested):
    reported, queue = VerbOutput(requested), MessageQueue("T", "broker-a", 0)
    process_queue = reported.process_queues[queue] = ProcessQueue(now_ms=NOW_MS)
    process_queue.locked = True
    process_queue.dropped = requested["dropped"]
    process_queue.last_lock_ms = NOW_MS - requested["lastLockAgeMs"]
    if requested["localOffset"] is not None:
        reported.store.memory.update(queue, requested["localOffset"], increase_only=False)
    if requested["listenerHoldsReadLock"]:
        await process_queue.consume_lock.acquire()

        async def somebody_else():
            return await reported.queues.remove_unnecessary(queue, process_queue)

        ret = await in_a_task_of_its_own(somebody_else)
    else:
        ret = await reported.queues.remove_unnecessary(queue, process_queue)
    return {
        "ret": ret,
        "rpcs": reported.rpcs,
        "offsetStillInMemory": reported.store.memory.read(queue),
        "lockedFlag": process_queue.locked,
        "tryUnlockTimes": process_queue.try_unlock_times,
    }


async def in_a_task_of_its_own(flow):
    results = []

    async def run():
        results.append(await flow())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
    return results[0]


async def message_queue_changed(requested):
    reported = VerbOutput(requested)
    heartbeats = []

    async def heartbeat_all(*, is_rebalance=False):
        heartbeats.append(["sendHeartbeatToAllBrokerWithLockV2", is_rebalance])

    reported.heartbeat_all = heartbeat_all
    reported.rng = lambda _: SimpleNamespace(randrange=lambda _: 0)
    reported.clock.monotonic_ns = lambda: 0
    topics = ("T",) if requested["topicSubscribed"] else ()
    consumer = PushConsumer(reported, ConsumerSetup("G", topics, reported.config, ()), instance=reported)
    for queue_id in range(requested["processQueueTableSize"]):
        process_queue = ProcessQueue(now_ms=NOW_MS)
        process_queue.dropped = queue_id < requested["ofWhichDropped"]
        consumer.rebalance.process_queues[MessageQueue("T", "broker-a", queue_id)] = process_queue
    reported.clock.now_ms = lambda: NOW_MS + 1
    await consumer.message_queue_changed("T", (), ())
    subscription, thresholds = consumer.subscription("T"), consumer._pulls.thresholds
    return {
        # Java finds nothing to change and stumbles; ours looks first.
        "ret": "ok" if subscription else {"error": "NullPointerException"},
        "pullThresholdForQueue": thresholds.for_queue,
        "pullThresholdSizeForQueue": thresholds.size_for_queue_mib,
        "subVersionChanged": subscription is not None and subscription.sub_version == NOW_MS + 1,
        "instanceEvents": heartbeats,
    }


def defaults():
    config = ConsumerConfig()
    return {
        "clientRebalance": config.client_rebalance,
        "messageModel": config.message_model,
        "consumeFromWhere": config.consume_from_where,
        "pullThresholdForQueue": config.pull_threshold_for_queue,
        "pullThresholdSizeForQueue": config.pull_threshold_size_for_queue,
        "pullThresholdForTopic": config.pull_threshold_for_topic,
        "pullThresholdSizeForTopic": config.pull_threshold_size_for_topic,
        "consumeConcurrentlyMaxSpan": config.consume_concurrently_max_span,
        "pullInterval": config.pull_interval,
        "pullBatchSize": config.pull_batch_size,
        "consumeMessageBatchMaxSize": config.consume_message_batch_max_size,
        "consumeTimeout": config.consume_timeout,
        "maxReconsumeTimes": config.max_reconsume_times,
        "suspendCurrentQueueTimeMillis": config.suspend_current_queue_time_millis,
        "popThresholdForQueue": config.pop_threshold_for_queue,
        "popInvisibleTime": config.pop_invisible_time,
        "popBatchNums": config.pop_batch_nums,
        "consumeThreadMin": config.consume_thread_min,
        "strategy": config.allocate_message_queue_strategy,
    }
