"""Producer groups and their members, as one broker knows them; it sends checks of transactions to them.

Mirrors:
    `org.apache.rocketmq.broker.client.ProducerManager`.
"""

from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from typing import NamedTuple

from nodes.config.tables import MAX_GROUPS
from nodes.protocol.errors import require_room

CHANNEL_EXPIRED_TIMEOUT_MS = 120_000
"""Fixed: the option `channelExpiredTimeout` is about consumers."""
_TRIES_MAX = 3


def _always(_channel: Hashable) -> bool:
    return True


class ProducerGroupEvent(StrEnum):
    """Kinds of events."""

    GROUP_UNREGISTER = "GROUP_UNREGISTER"
    """The group lost its last member."""
    CLIENT_UNREGISTER = "CLIENT_UNREGISTER"


class ProducerChannel(NamedTuple):
    """A member: a connection, and the client id of its first heartbeat."""

    channel: Hashable
    client_id: str
    last_update_ms: int = 0


class ProducerEvent(NamedTuple):
    """One event of a group."""

    kind: ProducerGroupEvent
    group: str
    member: ProducerChannel | None = None


class ProducerManager:
    """The producer groups of one broker."""

    def __init__(
        self,
        *,
        enable_register_producer: bool = True,
        reject_transaction_message: bool = False,
        enable_fast_channel_event_process: bool = False,
        max_groups: int = MAX_GROUPS,
    ) -> None:
        self._max_groups = max_groups
        self._registers = enable_register_producer or not reject_transaction_message
        self._fast_close = enable_fast_channel_event_process
        self._groups: dict[str, dict[Hashable, ProducerChannel]] = {}
        self._clients: dict[str, Hashable] = {}
        self._groups_of_channel: dict[Hashable, dict[str, None]] = {}
        self._next_available = 0

    @property
    def groups(self) -> Mapping[str, Mapping[Hashable, ProducerChannel]]:
        """Group -> channel -> member."""
        return self._groups

    @property
    def clients(self) -> Mapping[str, Hashable]:
        """Client id -> its latest channel; may be missing although a group still has the client."""
        return self._clients

    def group_online(self, group: str) -> bool:
        """Whether the group has a member."""
        return bool(self._groups.get(group))

    def find_channel(self, client_id: str) -> Hashable | None:
        """The channel of a client."""
        return self._clients.get(client_id)

    def available_channel(self, group: str, is_usable: Callable[[Hashable], bool] = _always) -> Hashable | None:
        """The next channel of the group in turn; of one that is not usable the next two are tried."""
        channels = list(self._groups.get(group, {}))
        if not channels:
            return None
        self._next_available += 1
        first = self._next_available
        tried = (channels[index % len(channels)] for index in range(first, first + _TRIES_MAX))
        return next(filter(is_usable, tried), None)

    def register_producer(self, group: str, channel: Hashable, client_id: str, now_ms: int) -> None:
        """Register one group of a heartbeat.

        For a known connection only the time is updated, even if the client id is another one.
        """
        if not self._registers:
            return
        require_room(self._groups, group, self._max_groups, "producer groups")
        members = self._groups.setdefault(group, {})
        known = members.get(channel)
        if known is not None:
            members[channel] = ProducerChannel(channel, known.client_id, now_ms)
            return
        members[channel] = ProducerChannel(channel, client_id, now_ms)
        self._clients[client_id] = channel
        self._groups_of_channel.setdefault(channel, {})[group] = None

    def unregister_producer(self, group: str, channel: Hashable, client_id: str) -> tuple[ProducerEvent, ...]:
        """Unregister a member at its own request; its client id is removed whichever connection it belongs to."""
        members = self._groups.get(group)
        if not members:
            return ()
        removed = members.pop(channel, None)
        self._clients.pop(client_id, None)
        leaver = None if removed is None else ProducerChannel(channel, client_id)
        return self._left(group, leaver)

    def channel_close_event(self, channel: Hashable) -> tuple[ProducerEvent, ...]:
        """Remove the member of a closed connection and its client id, even if that has a new connection since.

        Returns:
            The events; none if the connection had no member.
        """
        events: list[ProducerEvent] = []
        recorded = self._groups_of_channel.pop(channel, {})
        for group in list(recorded) if self._fast_close else list(self._groups):
            member = self._groups.get(group, {}).pop(channel, None)
            if member is not None:
                self._clients.pop(member.client_id, None)
                events.extend(self._left(group, member))
        return tuple(events)

    def scan_not_active_channels(self, now_ms: int) -> tuple[tuple[Hashable, ...], tuple[ProducerEvent, ...]]:
        """Remove members that were silent for too long.

        Returns:
            The channels to close, and the events.
        """
        channels: list[Hashable] = []
        events: list[ProducerEvent] = []
        for group, members in list(self._groups.items()):
            for member in list(members.values()):
                if now_ms - member.last_update_ms > CHANNEL_EXPIRED_TIMEOUT_MS:
                    del members[member.channel]
                    if self._clients.get(member.client_id) == member.channel:
                        del self._clients[member.client_id]
                    channels.append(member.channel)
                    events.append(ProducerEvent(ProducerGroupEvent.CLIENT_UNREGISTER, group, member))
            events.extend(self._left(group, None))
        return tuple(channels), tuple(events)

    def _left(self, group: str, member: ProducerChannel | None) -> tuple[ProducerEvent, ...]:
        events: tuple[ProducerEvent, ...] = ()
        if member is not None:
            events = (ProducerEvent(ProducerGroupEvent.CLIENT_UNREGISTER, group, member),)
        if not self._groups[group]:
            del self._groups[group]
            events = (*events, ProducerEvent(ProducerGroupEvent.GROUP_UNREGISTER, group))
        return events
