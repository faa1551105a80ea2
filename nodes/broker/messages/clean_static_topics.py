"""What brokers forget of logical queues: parts whose messages have expired, and queues that they led long ago.

Mirrors:
    `org.apache.rocketmq.broker.topic.TopicQueueMappingCleanService`.
"""

from collections.abc import Callable, Mapping

from nodes.broker.context import BrokerContext
from nodes.broker.messages.other_masters import FORWARD_TIMEOUT_MS, OtherMasters
from nodes.broker.tables.metadata.static_topics import (
    TopicQueueMappingManager,
    first_items,
    forgotten_queues,
    leaders_elsewhere,
)
from nodes.broker.tables.store.expired_files import is_time_to_delete
from nodes.protocol.bodies_admin import TopicOffset, TopicStatsTable
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers import GetRouteInfoRequestHeader
from nodes.protocol.headers_admin import TopicHeader
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import MessageQueue, TopicRouteData
from nodes.protocol.registry import decode_body
from nodes.protocol.static_topics import (
    MOCK_BROKER_PREFIX,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    mock_broker_name,
    static_endpoints,
)
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import succeeded
from nodes.threads import ScheduledThread
from nodes.units import NS_PER_MS

_PERIOD_MS = 300_000
_PAUSE_MS = 10
"""After each topic."""


class CleanStaticTopics:
    """Looks at the mappings of a broker every 5 minutes, in the hours of `deleteWhen`.

    Args:
        mappings: of the broker.
        persist: writes them.
    """

    def __init__(
        self,
        broker: BrokerContext,
        mappings: TopicQueueMappingManager,
        others: OtherMasters,
        nameservers: Nameservers,
        persist: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._mappings = mappings
        self._others = others
        self._nameservers = nameservers
        self._persist = persist
        self._thread = ScheduledThread(broker.host, "TopicQueueMappingCleanService")
        self._begun_ns: int | None = None
        self._runs = False

    def begin(self) -> None:
        """The broker starts."""
        self._begun_ns = self._broker.host.clock.monotonic_ns()
        self.start_when_needed()

    def start_when_needed(self) -> None:
        """Start the thread, once there is a mapping, as if it had run from the start on."""
        if self._runs or self._begun_ns is None or not self._mappings.table:
            return
        self._runs = True
        passed_ms = (self._broker.host.clock.monotonic_ns() - self._begun_ns) / NS_PER_MS
        self._thread.with_fixed_delay("cleanStaticTopics", self._clean, _PERIOD_MS - passed_ms % _PERIOD_MS, _PERIOD_MS)
        self._thread.start()

    async def _clean(self) -> None:
        for clean in (self._clean_expired, self._clean_queues_led_long_ago):
            if not is_time_to_delete(self._broker.config, self._broker.host.clock.now_ms()):
                return
            changed = False
            for topic in hash_ordered(self._mappings.table):
                detail = self._mappings.table.get(topic)
                if detail is not None and detail.hosted_queues and detail.bname == self._broker.broker_name:
                    changed = await clean(detail) or changed
                await self._broker.host.sleep_ms(_PAUSE_MS)
            if changed:
                self._mappings.step_version(now_ms=self._broker.host.clock.now_ms())
                self._persist()

    async def _clean_expired(self, detail: TopicQueueMappingDetail) -> bool:
        """Drop the first part of queues that are led here, if it has no messages; returns whether there was one."""
        first = first_items(detail)
        stats: dict[str, Mapping[MessageQueue, TopicOffset]] = {}
        for broker_name in hash_ordered(dict.fromkeys(item.bname for item in first.values())):
            header = TopicHeader(detail.topic, lo=False)
            answer = await self._asked(broker_name, RequestCode.GET_TOPIC_STATS_INFO, header)
            if answer is not None:
                stats[broker_name] = decode_body(TopicStatsTable, answer).offset_table
        empty = {}
        for global_id, item in first.items():
            queue = MessageQueue(detail.topic, item.bname, item.queue_id)
            offsets = stats.get(item.bname, {}).get(queue)
            if offsets is not None and offsets.max_offset in (offsets.min_offset, 0):
                empty[global_id] = detail.hosted_queues[global_id][1:]
        if empty:
            self._mappings.replace_queues(detail.topic, {**detail.hosted_queues, **empty})
        return bool(empty)

    async def _clean_queues_led_long_ago(self, detail: TopicQueueMappingDetail) -> bool:
        """Forget queues that have gone on from the broker that got them from here; returns whether there are any."""
        elsewhere = leaders_elsewhere(detail)
        leaders = await self._leaders(detail) if elsewhere else None
        if leaders is None:
            return False
        remote: dict[str, TopicQueueMappingDetail] = {}
        for global_id in elsewhere:
            leader = leaders.get(global_id, MOCK_BROKER_PREFIX)
            if leader.startswith(MOCK_BROKER_PREFIX) or leader in remote:
                continue
            answer = await self._asked(leader, RequestCode.GET_TOPIC_CONFIG, TopicHeader(detail.topic, lo=True))
            found = None if answer is None else decode_body(TopicConfigAndQueueMapping, answer).mapping_detail
            if found is not None and found.bname == leader:
                remote[leader] = found
        forgotten = forgotten_queues(detail, leaders, remote)
        if forgotten:
            stays = {queue: items for queue, items in detail.hosted_queues.items() if queue not in forgotten}
            self._mappings.replace_queues(detail.topic, stays)
        return bool(forgotten)

    async def _leaders(self, detail: TopicQueueMappingDetail) -> dict[int, str] | None:
        """Logical queue -> the broker that leads it, as nameservers have it; None: they do not answer."""
        header = GetRouteInfoRequestHeader(detail.topic)
        try:
            answer = succeeded(
                await self._nameservers.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=FORWARD_TIMEOUT_MS)
            )
        except (RemotingError, BrokerError) as error:
            self._report(detail.topic, error)
            return None
        endpoints = static_endpoints(detail.topic, decode_body(TopicRouteData, answer.body))
        mock = mock_broker_name(detail.scope)
        return {queue.queue_id: name for queue, name in endpoints.items() if queue.broker_name == mock}

    async def _asked(self, broker_name: str, code: RequestCode, header: TopicHeader) -> bytes | None:
        """The body of an answer; None: there is none."""
        try:
            return succeeded(await self._others.ask(broker_name, code, header)).body
        except (RemotingError, BrokerError) as error:
            self._report(header.topic, error)
            return None

    def _report(self, topic: str, error: Exception) -> None:
        self._broker.host.log.warning("topic queue mapping clean failed", topic=topic, error=str(error))
