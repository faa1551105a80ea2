"""POP of a broker: assembly of the parts."""

from collections.abc import Callable

from nodes.allocation.for_pop import ALL_QUEUES
from nodes.broker.clients.denied_beliefs import DeniedBeliefs
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.messages.escape_bridge import EscapeBridge
from nodes.broker.messages.foreign_messages import ForeignMessages
from nodes.broker.part import Part
from nodes.broker.pop.ack_message import AckMessage
from nodes.broker.pop.buffer_merge import PopBufferMergeService
from nodes.broker.pop.change_invisible_time import ChangeInvisibleTime
from nodes.broker.pop.consumer_pop import PopFromRecords
from nodes.broker.pop.consumer_service import PopConsumerService
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.pop.peek_message import Notification, PeekMessage
from nodes.broker.pop.pop_message import PopMessage
from nodes.broker.pop.pop_offset import PopOffset
from nodes.broker.pop.queue_locks import QueueLocks
from nodes.broker.pop.queue_pop import QueuePop
from nodes.broker.pop.records import ReviveLog
from nodes.broker.pop.revive import PopReviveService, PopReviveServices
from nodes.broker.pop.revive_message import MessageReviver
from nodes.broker.tables.clients.consumers import ConsumerManager
from nodes.broker.tables.pop.pop_tables import PopTables
from nodes.broker.tables.store.put_message_result import PutMessageResult
from nodes.broker.tables.timer.timer_store import TimerStore
from nodes.protocol.model import Message
from nodes.rpc.server import Handlers, Wake

_BEHIND_MS = 1_000


class Pops(Part):
    """Answers pops and what follows them.

    A broker that is never popped from has no timer and no task for it.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController`, what it does for `PopMessageProcessor`, `AckMessageProcessor`,
        `ChangeInvisibleTimeProcessor`, `PeekMessageProcessor`, `NotificationProcessor` and `PollingInfoProcessor`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        tables: PopTables,
        consumers: ConsumerManager,
        offsets: OffsetManage,
        escape: EscapeBridge,
        put: Callable[[Message], PutMessageResult],
        foreign: ForeignMessages,
        wheel: TimerStore | None,
        denied: DeniedBeliefs,
        wake: Wake | None = None,
    ) -> None:
        self._broker = broker
        self._wheel = wheel
        self._log = log = ReviveLog(broker, escape)
        self._locks = locks = QueueLocks(broker, tables.queue_locks)
        self._orders = orders = OrderInfoService(broker, tables.order_infos, self._on_lock_free)
        self._merge = merge = PopBufferMergeService(broker, tables.buffer, log, offsets, locks)
        self._begin = begin = PopOffset(broker, tables.buffer, offsets, orders)
        reviver = MessageReviver(broker, tables.in_flight, log, offsets, escape, put, foreign)
        self._service = service = PopConsumerService(broker, tables, offsets, reviver, log)
        from_records = PopFromRecords(broker, tables, offsets, begin, orders, service)
        from_log = QueuePop(broker, tables.in_flight, offsets, locks, begin, orders, merge)
        self._pops = pops = PopMessage(broker, consumers, from_log, service, from_records, denied, wake)
        self._notification = Notification(broker, begin, orders, pops.polling, wake)
        self.revive = PopReviveServices(
            tuple(
                PopReviveService(broker, log, offsets, reviver, queue_id, self._is_timer_behind)
                for queue_id in range(broker.config.revive_queue_num)
            ),
            log.topic,
        )
        """One of the special services."""
        self._revive_topic = log.topic
        self._pollings = (pops.polling, self._notification.polling)
        self._parts = (
            pops,
            self._notification,
            AckMessage(broker, tables.in_flight, offsets, locks, orders, merge, log, pops.polling, service),
            ChangeInvisibleTime(broker, offsets, locks, orders, merge, log, service),
            PeekMessage(broker, begin),
            service,
        )

    def handlers(self) -> Handlers:
        """All requests of POP."""
        return {code: handler for part in self._parts for code, handler in part.handlers().items()}

    def load(self) -> None:
        """Read the file of an earlier process."""
        self._orders.load()
        self._service.load()

    async def start(self) -> None:
        """Begin to count the periods of the services."""
        self._locks.start()
        self._orders.start()
        self._merge.start()
        self._pops.polling.start()
        self._notification.polling.start()
        self._service.start()
        self.revive.start()

    async def stop(self) -> None:
        """Answer held requests, store what is in memory, and write the file."""
        await self._service.stop()
        self._pops.polling.stop()
        self._notification.polling.stop()
        await self._merge.stop()
        self._orders.stop()

    def on_message_arrived(self, topic: str, queue_id: int) -> None:
        """Carry out what is held for a queue that was written to; look at a record to revive."""
        if topic == self._revive_topic:
            self.revive.on_message_arrived(queue_id)
        if self._broker.config.long_polling_enable:
            for polling in self._pollings:
                if polling.is_used:
                    polling.on_message_arrived(topic, queue_id)

    def _is_timer_behind(self) -> bool:
        """Whether a slot that is released next was due a second ago."""
        wheel = self._wheel
        return wheel is not None and wheel.dequeue_behind_ms(self._broker.host.clock.now_ms()) >= _BEHIND_MS

    def _on_lock_free(self, topic: str, group: str, queue_id: int) -> None:
        """Wake requests for a queue whose batch is visible again, if it has messages.

        Mirrors:
            `PopMessageProcessor#notifyLongPollingRequestIfNeed`.
        """
        if self._broker.store.max_offset(topic, queue_id) <= self._begin.look(topic, group, queue_id):
            return
        if not self._pops.polling.notify(topic, group, ALL_QUEUES):
            self._pops.polling.notify(topic, group, queue_id)
        self._notification.polling.notify_arrival(topic, queue_id)
