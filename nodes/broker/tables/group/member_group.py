"""Members of a broker's group, the member with the lowest id, and the effects of changes.

Nothing here sends or waits: effects are returned, in RocketMQ's order.

Mirrors:
    `org.apache.rocketmq.broker.BrokerController#syncBrokerMemberGroup`, `#updateMinBroker`, `#onMinBrokerChange`,
    `#startService`, `#handleRegisterBrokerResult`; `AdminBrokerProcessor` for 905 and 906.
"""

from collections.abc import Iterable, Mapping

from nodes.protocol.headers import (
    ExchangeHaInfoHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerResponseHeader,
)
from nodes.protocol.model import MASTER_ID
from nodes.protocol.names import broker_vip_channel
from nodes.values import frozen

"""Distance from a broker's port down to its VIP port."""

# Effects, carried out by a flow


@frozen
class SetAliveReplicas:
    """Notify the store how many replicas are alive, this one included."""

    count: int


@frozen
class ChangeSpecialService:
    """Start or stop the special services: delays, timers, transaction checks, pop revival."""

    running: bool


@frozen
class CloseChannels:
    """Close the connections to a master that is gone; calls over them fail."""

    addresses: tuple[str, ...]


@frozen
class UpdateHaMasterAddress:
    """Set the address of the next HA connection; None: no replication. A live connection stays."""

    address: str | None


@frozen
class UpdateMasterAddress:
    """Store the master's address for requests."""

    address: str | None


@frozen
class SetMasterFlushedOffset:
    """Store the flushed offset of the master's log."""

    offset: int


@frozen
class WakeUpHaClient:
    """Connect to the master now."""


@frozen
class RetrieveHaInfo:
    """Send a 906 without fields to a master, and pass the answer to `MemberGroup.on_ha_info` before the next effect."""

    address: str


@frozen
class NotifyMasterOnline:
    """Answer the pulls that are held."""


@frozen
class RegisterBrokerAll:
    """Register with every nameserver, and wait for it."""


Effect = (
    SetAliveReplicas
    | ChangeSpecialService
    | CloseChannels
    | UpdateHaMasterAddress
    | UpdateMasterAddress
    | SetMasterFlushedOffset
    | WakeUpHaClient
    | RetrieveHaInfo
    | NotifyMasterOnline
    | RegisterBrokerAll
)


class MissingFlushOffsetError(ValueError):
    """A peer did not send its flushed offset, and this broker needs it; the addresses are adopted already."""

    def __init__(self, done: tuple[Effect, ...]) -> None:
        super().__init__("906 without masterFlushOffset")
        self.done = done
        """The effects up to that point."""


class MemberGroup:
    """The group as one broker sees it.

    Args:
        broker_id: of this broker.
        address: of this broker.
        ha_address: of this broker's HA service.
        enable_slave_acting_master: whether the minimum broker id is tracked.
        sync_master_flush_offset_when_startup: whether an empty log adopts the master's flushed offset.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        address: str,
        ha_address: str,
        enable_slave_acting_master: bool,
        sync_master_flush_offset_when_startup: bool = False,
        update_master_ha_server_addr_periodically: bool = False,
        isolated: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.address = address
        self.ha_address = ha_address
        self._tracks_minimum = enable_slave_acting_master and broker_id != MASTER_ID
        self._syncs_flush_offset = sync_master_flush_offset_when_startup
        self.members: Mapping[int, str] | None = {broker_id: address}
        """As last polled: broker id -> address, ordered by id; None if the answer contained no group."""
        self.min_broker_id = MASTER_ID
        self.min_broker_addr: str | None = None
        self.isolated = isolated
        """Does not register, send heartbeats or track the minimum."""
        self.slave_sync_master_addr: str | None = None
        """The broker whose metadata this broker copies."""
        self.update_master_ha_server_addr_periodically = update_master_ha_server_addr_periodically
        """Whether answers to registrations set the address to replicate from."""
        self.master_flushed_offset = 0
        self._knows_ha_address = False

    def become(self, broker_id: int) -> None:
        """Serve under another id, as a controller says; a slave copies the master that its registrations name."""
        self.broker_id = broker_id
        self.update_master_ha_server_addr_periodically = broker_id != MASTER_ID

    # The nameserver's answers and notifications

    def on_polled(self, members: Mapping[int, str] | None) -> tuple[Effect, ...]:
        """Handle the answer to a poll; calls without answer are not passed here."""
        self.members = None if members is None else {member: members[member] for member in sorted(members)}
        if not members:
            return ()
        alive = SetAliveReplicas(len(members) + (self.broker_id not in members))
        if self.isolated:
            return (alive,)
        lowest = min(members)
        return (alive, *self._on_polled_minimum(lowest, members[lowest]))

    def on_notified(self, header: NotifyMinBrokerIdChangeRequestHeader) -> tuple[Effect, ...]:
        """Handle a NOTIFY_MIN_BROKER_ID_CHANGE (905), even while isolated."""
        min_id = header.min_broker_id
        if not self._tracks_minimum or min_id is None or min_id == self.min_broker_id:
            return ()
        return self._on_min_broker_change(
            min_id, header.min_broker_addr, header.offline_broker_addr, header.ha_broker_addr
        )

    def on_registered(self, results: Iterable[RegisterBrokerResponseHeader | None]) -> tuple[Effect, ...]:
        """Handle the answers to a registration in order of arrival; only the first counts, even without a master in it.

        Args:
            results: the answers; None for a nameserver that did not answer.
        """
        first = next((result for result in results if result is not None), None)
        if first is None:
            return ()
        self.slave_sync_master_addr = first.master_addr
        if not self.update_master_ha_server_addr_periodically or first.ha_server_addr is None:
            return ()
        return (UpdateHaMasterAddress(first.ha_server_addr), UpdateMasterAddress(first.master_addr))

    def _on_polled_minimum(self, min_id: int, address: str) -> tuple[Effect, ...]:
        if not self._tracks_minimum or min_id == self.min_broker_id:
            return ()
        offline = self.min_broker_addr if min_id > self.min_broker_id else None
        return self._on_min_broker_change(min_id, address, offline, None)

    def _on_min_broker_change(
        self, min_id: int, address: str | None, offline: str | None, ha_address: str | None
    ) -> tuple[Effect, ...]:
        self.min_broker_id, self.min_broker_addr = min_id, address
        effects: list[Effect] = [ChangeSpecialService(self.broker_id == min_id)]
        if offline is not None and offline == self.slave_sync_master_addr:
            effects += self._on_master_offline(offline)
        if min_id == MASTER_ID:
            if address is not None:
                effects += self._on_master_online(address, ha_address)
            effects.append(NotifyMasterOnline())
        return tuple(effects)

    def _on_master_offline(self, address: str) -> tuple[Effect, ...]:
        self.slave_sync_master_addr = None
        return (CloseChannels((address, broker_vip_channel(address, is_change=True))), UpdateHaMasterAddress(None))

    def _on_master_online(self, address: str, ha_address: str | None) -> tuple[Effect, ...]:
        """The address to copy metadata from is not set here: the next registration sets it."""
        self._knows_ha_address = ha_address is not None
        effects: list[Effect] = []
        if ha_address is None or self.needs_flush_offset:
            effects.append(RetrieveHaInfo(address))
        if ha_address is not None:
            effects.append(UpdateHaMasterAddress(ha_address))
        return (*effects, WakeUpHaClient())

    def on_ha_info(self, info: ExchangeHaInfoHeader | None) -> tuple[Effect, ...]:
        """Handle the HA address of a master that came online; None: it did not answer, and is not asked again."""
        if info is None:
            return ()
        flushed = self.adopt_flush_offset(info)
        return flushed if self._knows_ha_address else (*flushed, *self.follow(info))

    # Exchange of HA addresses

    @property
    def needs_flush_offset(self) -> bool:
        """Whether this broker has to adopt the master's flushed offset."""
        return self.master_flushed_offset == 0 and self._syncs_flush_offset

    def adopt_ha_info(self, info: ExchangeHaInfoHeader) -> tuple[Effect, ...]:
        """Handle a 906 that names a master: replicate from it.

        Raises:
            MissingFlushOffsetError: the flushed offset is missing, and this broker needs it.
        """
        followed = self.follow(info)
        if self.needs_flush_offset and info.master_flush_offset is None:
            raise MissingFlushOffsetError(followed)
        return (*followed, *self.adopt_flush_offset(info))

    def follow(self, info: ExchangeHaInfoHeader) -> tuple[Effect, ...]:
        """Replicate from the master that the exchange names."""
        return (UpdateHaMasterAddress(info.master_ha_address), UpdateMasterAddress(info.master_address))

    def adopt_flush_offset(self, info: ExchangeHaInfoHeader) -> tuple[Effect, ...]:
        """Adopt the master's flushed offset, if this broker needs it."""
        if not self.needs_flush_offset or info.master_flush_offset is None:
            return ()
        self.master_flushed_offset = info.master_flush_offset
        return (SetMasterFlushedOffset(info.master_flush_offset),)

    def ha_info(self, init_max_offset: int) -> ExchangeHaInfoHeader:
        """Answer a 906 without fields: a master returns its own addresses, a slave none.

        Args:
            init_max_offset: end of this broker's log at its start.
        """
        if self.broker_id != MASTER_ID:
            return ExchangeHaInfoHeader()
        return ExchangeHaInfoHeader(self.ha_address, init_max_offset, self.address)

    # Service

    def start_service(self, min_id: int, address: str) -> tuple[Effect, ...]:
        """Go online in a group with this minimum; the caller carries out the effects, then calls `end_isolation`."""
        self.min_broker_id, self.min_broker_addr = min_id, address
        return (ChangeSpecialService(self.broker_id == min_id), RegisterBrokerAll())

    def start_service_without_condition(self) -> tuple[Effect, ...]:
        """Go online without a minimum; the caller carries out the effects, then calls `end_isolation`."""
        return (ChangeSpecialService(self.broker_id == MASTER_ID), RegisterBrokerAll())

    def end_isolation(self) -> None:
        """Let this broker register, send heartbeats and track the minimum."""
        self.isolated = False
