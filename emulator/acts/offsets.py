"""Acts on offsets of consumer groups: to reset, skip, set and clone them."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places, place
from faults.words import Wording, WordsError, duration_ms
from nodes.fields import INT_MAX, LONG_MAX, Rule, checked, flag, text, whole
from nodes.host import Clock
from nodes.protocol.headers_message import ResetOffsetRequestHeader
from nodes.protocol.model import MessageQueue
from nodes.tools.errors import AdminToolError
from nodes.units import NS_PER_MS

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

_NOW = "now"
_EPOCH_DIGITS = 12
"""So many digits are milliseconds since 1970, fewer are an instant of the run."""
_TO_THE_END = -1


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return False
    if value == _NOW or _is_epoch(value):
        return True
    try:
        duration_ms(value)
    except WordsError:
        return False
    return True


def _is_epoch(value: str) -> bool:
    return value.isdigit() and value.isascii() and _EPOCH_DIGITS <= len(value) <= 15


_TIME = Rule("an instant of the run such as 30s, or now, or milliseconds since 1970", _is_time)


def _timestamp_ms(to: str, clock: Clock) -> int:
    """The wall clock of an instant, in ms since 1970."""
    if to == _NOW:
        return clock.now_ms()
    if _is_epoch(to):
        return int(to)
    return clock.now_ms() - clock.monotonic_ns() // NS_PER_MS + duration_ms(to)


async def _reset(admin: "MQAdminExt", places: Places, on: str | None, header: ResetOffsetRequestHeader) -> None:
    """Have each broker in the route of the topic reset offsets, up to the first that fails; or one broker."""
    if on is not None:
        await admin.invoke_broker_to_reset_offset(places.brokers[on], header)
        return
    for group in (await admin.topic_route(header.topic)).broker_datas:
        address = admin.broker_address(group)
        if address is not None:
            await admin.invoke_broker_to_reset_offset(address, header)


@attrs.frozen
class ResetOffsetByTime(Act):
    """Resets the offsets of a group in a topic to the messages of an instant.

    The brokers in the route of the topic are asked one after the other; a group without its master has a slave asked,
    which refuses. The first that fails ends the command.

    Mirrors:
        `org.apache.rocketmq.tools.command.offset.ResetOffsetByTimeCommand`.
    """

    kind: ClassVar[str] = "reset_offset_by_time"
    wording: ClassVar[Wording] = Wording(
        "reset-offset-by-time",
        "GROUP TOPIC TIME [force true|false] [on BROKER]",
        "reset the offsets of a group to an instant of the run such as 30s, or to now",
        3,
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.BROKER
    group: str = text()
    """The consumer group."""
    topic: str = text()
    """The topic."""
    to: str = checked(_TIME)
    """An instant of the run, `30s`; `now`; or milliseconds since 1970."""
    force: bool = flag(default=True)
    """Whether offsets also go forward; without `useServerSideResetOffset` only."""
    on: str | None = place()
    """The only broker that is asked; none: all in the route of the topic."""

    def concerns(self) -> Concerned:
        """Its topic and its group exist."""
        return Concerned(topic=self.topic, group=self.group)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask a nameserver for the route, then the brokers in it."""
        timestamp = _timestamp_ms(self.to, admin.host.clock)
        header = ResetOffsetRequestHeader(self.group, self.topic, timestamp=timestamp, is_force=self.force)
        await _reset(admin, places, self.on, header)


@attrs.frozen
class SkipAccumulatedMessage(Act):
    """Resets the offsets of a group in a topic to the ends of its queues: what waits is never consumed.

    Mirrors:
        `org.apache.rocketmq.tools.command.offset.SkipAccumulationSubCommand`.
    """

    kind: ClassVar[str] = "skip_accumulated_message"
    wording: ClassVar[Wording] = Wording(
        "skip-accumulated-message", "GROUP TOPIC [on BROKER]", "reset the offsets of a group to the ends of queues", 2
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.BROKER
    group: str = text()
    """The consumer group."""
    topic: str = text()
    """The topic."""
    on: str | None = place()
    """The only broker that is asked; none: all in the route of the topic."""

    def concerns(self) -> Concerned:
        """Its topic and its group exist."""
        return Concerned(topic=self.topic, group=self.group)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask a nameserver for the route, then the brokers in it."""
        header = ResetOffsetRequestHeader(self.group, self.topic, timestamp=_TO_THE_END, is_force=True)
        await _reset(admin, places, self.on, header)


@attrs.frozen
class _OfQueue(Act):
    """An act on the offset of a group in one queue, at one broker."""

    place_kind: ClassVar[PlaceKind] = PlaceKind.BROKER
    needs_place: ClassVar[bool] = True
    group: str = text()
    """The consumer group."""
    topic: str = text()
    """The topic."""
    queue: int = whole(minimum=0, limit=INT_MAX)
    """Id of the queue."""
    offset: int = whole(minimum=0, limit=LONG_MAX)
    """The new offset."""
    on: str = text()
    """The broker."""


@attrs.frozen
class ResetOffset(_OfQueue):
    """Resets the offset of a group in one queue: commits it at the broker, then has the broker reset it; none to 0.

    Mirrors:
        `mqadmin resetOffsetByTime -b -q -o`: `DefaultMQAdminExtImpl#resetOffsetByQueueId`.
    """

    kind: ClassVar[str] = "reset_offset"
    wording: ClassVar[Wording] = Wording(
        "reset-offset", "GROUP TOPIC QUEUE OFFSET on BROKER", "reset the offset of a group in one queue", 6
    )

    def concerns(self) -> Concerned:
        """Its topic and its group exist."""
        return Concerned(topic=self.topic, group=self.group)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the broker twice."""
        if not self.offset:
            raise AdminToolError("mqadmin resets no offset to 0: it has done nothing")
        address = places.brokers[self.on]
        await admin.update_consume_offset(address, self.group, MessageQueue(self.topic, "", self.queue), self.offset)
        header = ResetOffsetRequestHeader(self.group, self.topic, self.queue, self.offset)
        await admin.invoke_broker_to_reset_offset(address, header)


@attrs.frozen
class UpdateConsumeOffset(_OfQueue):
    """Commits an offset of a group in one queue; a member that owns the queue overwrites it with its next commit.

    Mirrors:
        `DefaultMQAdminExtImpl#updateConsumeOffset`, which several commands use.
    """

    kind: ClassVar[str] = "update_consume_offset"
    wording: ClassVar[Wording] = Wording(
        "update-consume-offset", "GROUP TOPIC QUEUE OFFSET on BROKER", "commit an offset of a group in one queue", 6
    )

    def concerns(self) -> Concerned:
        """Its topic exists; the group may be new."""
        return Concerned(topic=self.topic, new_group=self.group)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the broker."""
        queue = MessageQueue(self.topic, places.broker_names[self.on], self.queue)
        await admin.update_consume_offset(places.brokers[self.on], self.group, queue, self.offset)


@attrs.frozen
class CloneGroupOffset(Act):
    """Gives a group the offsets of another one, queue by queue: in all topics of that one, its retry topic included.

    Only brokers in the route of the named topic are asked; a queue of another broker ends the command.

    Mirrors:
        `org.apache.rocketmq.tools.command.offset.CloneGroupOffsetCommand`.
    """

    kind: ClassVar[str] = "clone_group_offset"
    wording: ClassVar[Wording] = Wording(
        "clone-group-offset", "SOURCE DESTINATION TOPIC", "give a group the offsets of another one", 3
    )
    source: str = text()
    """The group whose offsets are read."""
    destination: str = text()
    """The group that gets them."""
    topic: str = text()
    """The topic whose brokers are asked."""

    def concerns(self) -> Concerned:
        """Its topic and the group that it reads exist."""
        return Concerned(topic=self.topic, group=self.source, new_group=self.destination)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:  # noqa: ARG002 - the route has the addresses
        """Read the offsets at all brokers, then set them, one queue after the other."""
        stats = await admin.consume_stats(self.source)
        groups = {data.broker_name: data for data in (await admin.topic_route(self.topic)).broker_datas}
        for queue, offsets in stats.offset_table.items():
            data = groups.get(queue.broker_name)
            address = None if data is None else admin.broker_address(data)
            if address is None:
                raise AdminToolError(f"no broker of {queue.broker_name} is in the route of {self.topic}")
            if offsets.consumer_offset >= 0:
                await admin.update_consume_offset(address, self.destination, queue, offsets.consumer_offset)
