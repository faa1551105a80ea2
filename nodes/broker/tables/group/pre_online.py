"""Pre-online: the steps of an isolated broker before it goes online, such as a master's copy of newer metadata.

One attempt is a generator: it yields steps and is sent their results, so that a flow drives it with calls and a
test with answers.

Mirrors:
    `org.apache.rocketmq.broker.BrokerPreOnlineService`.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any

from nodes.broker.tables.group.member_group import Effect, MemberGroup
from nodes.protocol.headers import ExchangeHaInfoHeader
from nodes.protocol.model import MASTER_ID, DataVersion
from nodes.values import frozen


@frozen
class SendHaInfo:
    """Send 906 with `info` to a member. Result: whether it answered."""

    address: str
    info: ExchangeHaInfoHeader


@frozen
class RetrieveMasterHaInfo:
    """Send a 906 without fields to the master. Result: its answer; None: no answer, or no flushed offset in it."""

    address: str


@frozen
class WaitHaTransfer:
    """Wait for the HA link between this broker and a host. Result: whether it stands."""

    host: str


@frozen
class FetchMetadata:
    """Fetch delay offsets (45), consumer offsets (43) and timer check point (60) of a member, in this order.

    Result: their versions, None if one of the calls failed; the flow keeps the data.
    """

    address: str


@frozen
class MetadataVersions:
    """The versions of a member's metadata, or of this broker's; None: there is none."""

    consumer_offsets: DataVersion | None
    delay_offsets: DataVersion | None
    timer_check_point: DataVersion | None


@frozen
class AdoptMetadata:
    """Replace this broker's metadata by what was fetched last. Result: None."""

    consumer_offsets: bool
    delay_offsets: bool
    timer_check_point: bool


@frozen
class StartService:
    """Go online: `MemberGroup.start_service` with these arguments. Result: None."""

    min_broker_id: int
    min_broker_addr: str


@frozen
class Carry:
    """Effects of `MemberGroup`. Result: None."""

    effects: tuple[Effect, ...]


Step = SendHaInfo | RetrieveMasterHaInfo | WaitHaTransfer | FetchMetadata | AdoptMetadata | StartService | Carry
Attempt = Generator[Step, Any, bool]
"""Yields steps, is sent their results, returns whether the broker is online; if not, it tries again after 1 s."""


class PreOnline:
    """The attempts of a broker to go online.

    Args:
        group: the group as this broker sees it.
        init_max_offset: end of this broker's log at its start.
    """

    def __init__(self, group: MemberGroup, *, init_max_offset: int) -> None:
        self._group = group
        self._init_max_offset = init_max_offset
        self.wait_broker_index = 0
        """Number of members that a master has finished with; kept between attempts, though the members may differ."""

    def prepare(self, members: Mapping[int, str] | None, local_versions: Callable[[], MetadataVersions]) -> Attempt:
        """One attempt, from the nameserver's answer on; without an answer the attempt has failed already.

        Args:
            members: broker id -> address; empty or None: the nameserver knows no member.
            local_versions: returns the versions of this broker's metadata.
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
    """Which of a member's metadata replaces a master's: everything that is not older."""
    return AdoptMetadata(
        _wins(fetched.consumer_offsets, local.consumer_offsets),
        _wins(fetched.delay_offsets, local.delay_offsets),
        _wins(fetched.timer_check_point, local.timer_check_point),
    )


def _wins(fetched: DataVersion | None, local: DataVersion | None) -> bool:
    return fetched is not None and local is not None and local.compare(fetched) <= 0


def _host(address: str) -> str:
    return address.rpartition(":")[0]
