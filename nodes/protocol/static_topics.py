"""Static topics: logical queues, each a list of physical queues at one broker after another (RIP-21).

A logical queue is read and written at its leader, the broker of the last item. What was written before a remapping
stays at earlier brokers, which the leader asks.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.statictopic`.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from nodes.protocol.model import MessageQueue, TopicConfig, TopicQueueMappingInfo, TopicRouteData
from nodes.protocol.widths import Int32
from nodes.values import frozen

MOCK_BROKER_PREFIX = "__syslo__"
SCOPE_GLOBAL = "__global__"
NO_BROKER = "__syslo__none__"
"""Stands for the leader of a logical queue that no broker of the route has."""
UNDECIDED = -1


class MappingRefusedError(ValueError):
    """A mapping is not possible; the text is that of RocketMQ's exception."""


@frozen
class LogicQueueMappingItem:
    """A physical queue that holds a part of a logical one."""

    gen: Int32
    queue_id: Int32
    bname: str
    logic_offset: int
    """Where the part begins in the logical queue; -1: it is not decided yet."""
    start_offset: int = 0
    """Where the part begins in the physical queue."""
    end_offset: int = UNDECIDED
    """Where it ends there, excluded; -1: it goes on."""
    time_of_start: int = UNDECIDED
    time_of_end: int = UNDECIDED

    def static_offset_loosely(self, physical_offset: int) -> int:
        """The logical offset, within the part; -1: it is not decided."""
        if self.logic_offset < 0:
            return UNDECIDED
        if self.start_offset <= self.end_offset < physical_offset:
            return self.logic_offset + self.end_offset - self.start_offset
        return self.static_offset(physical_offset)

    def static_offset(self, physical_offset: int) -> int:
        """The logical offset, whether the part reaches so far or not."""
        return self.logic_offset + max(0, physical_offset - self.start_offset)

    def physical_offset(self, static_offset: int) -> int:
        """The offset in the physical queue, which may lie outside of it."""
        return static_offset - self.logic_offset + self.start_offset

    @property
    def max_static_offset(self) -> int:
        """The logical end of the part; its beginning as long as it goes on."""
        return self.logic_offset + max(0, self.end_offset - self.start_offset)

    @property
    def has_end(self) -> bool:
        """Whether the end of the part is decided."""
        return self.end_offset > self.start_offset

    @property
    def is_decided(self) -> bool:
        """Whether the beginning of the part in the logical queue is decided."""
        return self.logic_offset >= 0


Items = tuple[LogicQueueMappingItem, ...]


@frozen
class TopicQueueMappingDetail:
    """The mapping of a static topic at one broker: all logical queues that it leads, or has led."""

    topic: str
    total_queues: Int32
    bname: str
    epoch: int
    scope: str = SCOPE_GLOBAL
    dirty: bool = False
    curr_id_map: Mapping[int, int] = MappingProxyType({})
    """Never filled in; registrations have one."""
    hosted_queues: Mapping[int, Items] = MappingProxyType({})
    """Logical queue -> its items, the oldest first."""

    def info(self) -> TopicQueueMappingInfo:
        """What nameservers are to know: the logical queues that the broker leads."""
        leads = {
            global_id: items[-1].queue_id
            for global_id, items in self.hosted_queues.items()
            if items and items[-1].bname == self.bname
        }
        return TopicQueueMappingInfo(self.topic, self.total_queues, self.bname, self.epoch, curr_id_map=leads)


@frozen
class TopicConfigAndQueueMapping(TopicConfig):
    """The answer to 351: a topic, and its mapping if it was asked for and there is one."""

    mapping_detail: TopicQueueMappingDetail | None = None


def check_items(items: Sequence[LogicQueueMappingItem]) -> None:
    """Refuse items that contradict each other.

    Raises:
        MappingRefusedError: they do.

    Mirrors:
        `TopicQueueMappingUtils#checkLogicQueueMappingItemOffset`.
    """
    last_gen = last_offset = UNDECIDED
    for place, item in reversed(list(enumerate(items))):
        if min(item.start_offset, item.gen, item.queue_id) < 0:
            raise MappingRefusedError("The field is illegal, should not be negative")
        if place < len(items) - 1 and not item.is_decided:
            raise MappingRefusedError("The non-latest item has negative logic offset")
        if last_gen != UNDECIDED and item.gen >= last_gen:
            raise MappingRefusedError("The gen does not increase monotonically")
        if item.end_offset != UNDECIDED and item.end_offset < item.start_offset:
            raise MappingRefusedError("The endOffset is smaller than the start offset")
        if UNDECIDED not in (last_offset, item.logic_offset):
            if item.logic_offset >= last_offset:
                raise MappingRefusedError("The base logic offset does not increase monotonically")
            if item.max_static_offset >= last_offset:
                raise MappingRefusedError("The max logic offset does not increase monotonically")
        last_gen, last_offset = item.gen, item.logic_offset


def check_leader_stays(
    old: Sequence[LogicQueueMappingItem], new: Sequence[LogicQueueMappingItem], *, epoch_equal: bool
) -> None:
    """Refuse another leader without another epoch; what RocketMQ asserts is not checked, as in a Java without `-ea`.

    Raises:
        MappingRefusedError: there is one, or the new items are empty.

    Mirrors:
        `TopicQueueMappingUtils#makeSureLogicQueueMappingItemImmutable`.
    """
    if not old:
        return
    if not new:
        raise MappingRefusedError("The new item list is null or empty")
    mine, other = old[-1], new[-1]
    same = (mine.gen, mine.bname, mine.queue_id, mine.start_offset) == (
        *(other.gen, other.bname, other.queue_id),
        other.start_offset,
    )
    if epoch_equal and not same:
        raise MappingRefusedError("The new leader is different but epoch equal")


def find_item(items: Sequence[LogicQueueMappingItem], static_offset: int) -> LogicQueueMappingItem | None:
    """The item that holds a logical offset: the last decided one that begins at or before it, else the first decided.

    Mirrors:
        `TopicQueueMappingUtils#findLogicQueueMappingItem` with `ignoreNegative`.
    """
    decided = [item for item in items if item.is_decided]
    return next((item for item in reversed(decided) if static_offset >= item.logic_offset), next(iter(decided), None))


def find_next(items: Sequence[LogicQueueMappingItem], current: LogicQueueMappingItem) -> LogicQueueMappingItem | None:
    """The item after another one; None: there is none, or it is not decided.

    Mirrors:
        `TopicQueueMappingUtils#findNext` with `ignoreNegative`.
    """
    place = next((number for number, item in enumerate(items) if item.is_decided and item.gen == current.gen), None)
    if place is None or place + 1 >= len(items) or not items[place + 1].is_decided:
        return None
    return items[place + 1]


def mock_broker_name(scope: str) -> str:
    """What stands for a broker in a logical queue."""
    return MOCK_BROKER_PREFIX + (scope[2:] if scope == SCOPE_GLOBAL else scope)


def static_endpoints(topic: str, route: TopicRouteData) -> dict[MessageQueue, str]:
    """Logical queue -> the broker that leads it, by queue id; empty: the topic is not static.

    Of two brokers that claim a queue the one with the later epoch has it. A queue that no one claims is there, too.

    Mirrors:
        `org.apache.rocketmq.remoting.rpc.ClientMetadata#topicRouteData2EndpointsForStaticTopic`.
    """
    by_scope: dict[str, list[TopicQueueMappingInfo]] = {}
    for info in (route.topic_queue_mapping_by_broker or {}).values():
        by_scope.setdefault(info.scope, []).append(info)
    found: dict[MessageQueue, str] = {}
    for scope, infos in by_scope.items():
        found |= _endpoints_of_scope(topic, scope, infos)
    return found


def _endpoints_of_scope(topic: str, scope: str, infos: Iterable[TopicQueueMappingInfo]) -> dict[MessageQueue, str]:
    leaders: dict[int, TopicQueueMappingInfo] = {}
    total = 0
    for info in sorted(infos, key=lambda item: -item.epoch):
        total = max(total, info.total_queues)
        for global_id in info.curr_id_map:
            known = leaders.get(global_id)
            if known is None or known.epoch <= info.epoch:
                leaders[global_id] = info
    name = mock_broker_name(scope)
    return {
        MessageQueue(topic, name, global_id): leaders[global_id].bname if global_id in leaders else NO_BROKER
        for global_id in range(total)
    }
