"""Where the next pop of a queue begins."""

from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.tables.pop.buffer import PopBufferMerge
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.protocol.names import build_polling_key

_INIT_MIN = 0


class PopOffset:
    """The offsets at which pops, peeks and notifications begin.

    Mirrors:
        `PopMessageProcessor#getPopOffset`, `#getInitOffset`, `#resetPopOffset`; `PeekMessageProcessor#getPopOffset`.
    """

    def __init__(
        self, broker: BrokerContext, buffer: PopBufferMerge, offsets: OffsetManage, orders: OrderInfoService
    ) -> None:
        self._broker = broker
        self._buffer = buffer
        self._offsets = offsets
        self._orders = orders

    def begin(self, topic: str, group: str, queue_id: int, init_mode: int, key: str) -> int:
        """Where a pop begins; a group without offset gets one, and a reset that waits is carried out.

        Args:
            key: of topic, group and queue id, `build_polling_key`.
        """
        table = self._offsets.table
        offset = table.query_offset(group, topic, queue_id)
        if offset < 0:
            offset = self.init(topic, group, queue_id, init_mode)
        reset = table.query_then_erase_reset_offset(group, topic, queue_id)
        if reset is not None:
            self._orders.clear_block(topic, group, queue_id)
            self._buffer.clear_offset_queue(key)
            self._offsets.commit(group, topic, queue_id, reset, "")
            return reset
        return max(offset, self._buffer.get_latest_offset(key))

    def pulled(self, topic: str, group: str, queue_id: int) -> int:
        """The next offset in memory of a group whose pops are kept as records; below 0: there is none."""
        return self._offsets.table.query_pull_offset(group, topic, queue_id)

    def init(self, topic: str, group: str, queue_id: int, init_mode: int) -> int:
        """Give a group its first offset."""
        offset = self._init(topic, queue_id, init_mode)
        self._offsets.commit(group, topic, queue_id, offset, "")
        return offset

    def look(self, topic: str, group: str, queue_id: int, init_mode: int = _INIT_MIN) -> int:
        """Where a pop would begin, as far as nothing is changed for it."""
        offset = self._offsets.table.query_offset(group, topic, queue_id)
        if offset < 0:
            offset = self._init(topic, queue_id, init_mode)
        return max(offset, self._in_memory(topic, group, queue_id))

    def _in_memory(self, topic: str, group: str, queue_id: int) -> int:
        return self._buffer.get_latest_offset(build_polling_key(topic, group, queue_id))

    def _init(self, topic: str, queue_id: int, init_mode: int) -> int:
        """Where a group without offset begins: at the end of a queue with the last message that it has."""
        store = self._broker.store
        if init_mode == _INIT_MIN or topic.startswith(RETRY_TOPIC_PREFIX):
            return store.min_offset(topic, queue_id)
        is_whole = store.min_offset(topic, queue_id) <= 0 and store.is_in_memory(topic, queue_id, 0)
        if self._broker.config.init_pop_offset_by_check_msg_in_mem and is_whole:
            return 0
        return max(0, store.max_offset(topic, queue_id) - 1)
