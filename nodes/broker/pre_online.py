"""What an isolated broker does before it goes online: it looks at its group, and a master takes back what slaves did.

One attempt is a generator: it yields what to do and is sent how that went, so that a flow drives it with calls and
a test with answers.

Mirrors:
    `org.apache.rocketmq.broker.BrokerPreOnlineService`.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any

import attrs

from nodes.broker.member_group import Effect, MemberGroup
from nodes.protocol.headers import ExchangeHaInfoHeader
from nodes.protocol.model import MASTER_ID, DataVersion


@attrs.frozen
class SendHaInfo:
    """Send 906 with `info` to a member; sent back: whether it answered."""

    address: str
    info: ExchangeHaInfoHeader


@attrs.frozen
class RetrieveMasterHaInfo:
    """Send an empty 906 to the master; sent back: its answer, None if there is none or it names no flushed offset."""

    address: str


@attrs.frozen
class WaitHaTransfer:
    """Wait until bytes may flow between this broker and a host; sent back: whether they may."""

    host: str


@attrs.frozen
class FetchMetadata:
    """Ask a member for delay offsets (45), consumer offsets (43) and timer check point (60), in this order.

    Sent back: their versions, None where one of the calls failed; the flow keeps the data.
    """

    address: str


@attrs.frozen
class MetadataVersions:
    """The versions of what a member sent, or of what this broker has; None: it has none."""

    consumer_offsets: DataVersion | None
    delay_offsets: DataVersion | None
    timer_check_point: DataVersion | None


@attrs.frozen
class AdoptMetadata:
    """Replace what this broker has by what was fetched last; sent back: nothing."""

    consumer_offsets: bool
    delay_offsets: bool
    timer_check_point: bool


@attrs.frozen
class StartService:
    """Go online: `MemberGroup.start_service` with these; sent back: nothing."""

    min_broker_id: int
    min_broker_addr: str


@attrs.frozen
class Carry:
    """Effects of the group's own table; sent back: nothing."""

    effects: tuple[Effect, ...]


Step = SendHaInfo | RetrieveMasterHaInfo | WaitHaTransfer | FetchMetadata | AdoptMetadata | StartService | Carry
Attempt = Generator[Step, Any, bool]
"""Yields what to do, is sent how it went, returns whether the broker is online; if not, it tries again in 1 s."""


class PreOnline:
    """The attempts of one broker to go online.

    Args:
        group: what this broker believes of its group.
        init_max_offset: end of this broker's log when it started.
    """

    def __init__(self, group: MemberGroup, *, init_max_offset: int) -> None:
        self._group = group
        self._init_max_offset = init_max_offset
        self.wait_broker_index = 0
        """How many members a master is done with. It outlives an attempt, though the next one counts other members."""

    def prepare(self, members: Mapping[int, str] | None, local_versions: Callable[[], MetadataVersions]) -> Attempt:
        """One attempt, from the nameserver's answer on; a call without answer is a failed attempt by itself.

        Args:
            members: broker id -> address; empty or None: nobody is online, as far as the nameserver says.
            local_versions: tells what this broker has at the time of the call.
        """
        group = self._group
        if not members:
            yield StartService(group.broker_id, group.address)
            return True
        if group.broker_id == MASTER_ID:
            return (yield from self._prepare_master(members, local_versions))
        min_id = min((member for member in members if member != group.broker_id), default=group.broker_id)
        if min_id == MASTER_ID:
            return (yield from self._prepare_slave(members[MASTER_ID]))
        yield StartService(min_id, members[min_id])
        return True

    def _prepare_master(self, members: Mapping[int, str], local_versions: Callable[[], MetadataVersions]) -> Attempt:
        group = self._group
        addresses = [members[member] for member in sorted(members)]
        info = ExchangeHaInfoHeader(group.ha_address, self._init_max_offset, group.address)
        while self.wait_broker_index < len(addresses):
            address = addresses[self.wait_broker_index]
            if not (yield SendHaInfo(address, info)):
                return False
            if not (yield WaitHaTransfer(_host(address))):
                return False
            fetched = yield FetchMetadata(address)
            if fetched is None:
                return False
            yield newer_or_equal(fetched, local_versions())
            self.wait_broker_index += 1
        yield StartService(MASTER_ID, group.address)
        return True

    def _prepare_slave(self, master: str) -> Attempt:
        group = self._group
        info = yield RetrieveMasterHaInfo(master)
        if info is None:
            return False
        flushed = group.adopt_flush_offset(info)
        if flushed:
            yield Carry(flushed)
        if info.master_ha_address is not None:
            yield Carry(group.follow(info))
            if not (yield WaitHaTransfer(_host(info.master_ha_address))):
                return False
        yield StartService(MASTER_ID, master)
        return True


def newer_or_equal(fetched: MetadataVersions, local: MetadataVersions) -> AdoptMetadata:
    """What of a member's metadata replaces a master's: all that is not older, a tie included."""
    return AdoptMetadata(
        _wins(fetched.consumer_offsets, local.consumer_offsets),
        _wins(fetched.delay_offsets, local.delay_offsets),
        _wins(fetched.timer_check_point, local.timer_check_point),
    )


def _wins(fetched: DataVersion | None, local: DataVersion | None) -> bool:
    return fetched is not None and local is not None and local.compare(fetched) <= 0


def _host(address: str) -> str:
    return address.rpartition(":")[0]
