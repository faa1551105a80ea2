"""A broker's conversation with its controllers: on its way to service, and about the SyncStateSet and the master.

Mirrors:
    `org.apache.rocketmq.broker.controller.ReplicasManager`, `org.apache.rocketmq.broker.out.BrokerOuterAPI`.
"""

from collections.abc import Iterable
from typing import Protocol

import attrs

from nodes.broker.tables.group.replica_role import (
    AskForElection,
    ControllerVerdict,
    RegisterState,
    ReplicaRole,
    RoleEffect,
    StartState,
)
from nodes.host import Host
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import ElectMasterResponseBody, SyncStateSet
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.java import hash_ordered, long_set
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import invoke, invoke_oneway

_RPC_TIMEOUT_MS = 3_000
_FIND_LEADER_TRIES = 3
_FIND_LEADER_PAUSE_MS = 1_000
_REGISTER_TRIES = 5
_REGISTER_PAUSE_MS_BELOW = 1_000
_UNKNOWN_GROUP_PAUSE_MS = 2_000
_PROBE_PERIOD_MS = 3_000


class ManagedReplica(Protocol):
    """The broker whose role is managed."""

    def perform(self, effect: RoleEffect) -> None:
        """Carry out one effect of a verdict; those that take time go on with what follows."""

    def heartbeat(self) -> BrokerHeartbeatRequestHeader:
        """What the broker says of itself."""

    def maybe_shrink_sync_state_set(self) -> Iterable[int]:
        """The members of its SyncStateSet that are not behind for too long."""


class ReplicasManager:
    """Speaks for one broker.

    Args:
        host: of the broker.
        client: to the controllers.
        role: what is decided.
        replica: who carries it out.
        controllers: addresses.
    """

    def __init__(
        self, host: Host, client: RpcClient, role: ReplicaRole, replica: ManagedReplica, controllers: Iterable[str]
    ) -> None:
        self._host = host
        self._client = client
        self._role = role
        self._replica = replica
        self._controllers = tuple(controllers)
        self.controller_leader = ""
        """Where requests go; another answer than a found leader does not change it."""
        self.available: dict[str, None] = {}
        """The controllers that could be reached when it was last tried; heartbeats go to them alone."""

    def start_probing(self) -> None:
        """Try which controllers can be reached, now and every 3 s."""
        self._probe()
        self._host.start_soon(self._probe_periodically, name="scanAvailableControllerAddresses")

    async def _probe_periodically(self) -> None:
        while True:
            await self._host.sleep_ms(_PROBE_PERIOD_MS)
            self._probe()

    def _probe(self) -> None:
        for address in self._controllers:
            self._host.start_soon(self._try_to_reach, address, name="isAddressReachable")

    async def _try_to_reach(self, address: str) -> None:
        if await self._client.reach(address):
            self.available[address] = None
        else:
            self.available.pop(address, None)

    # The way to service

    async def start_basic_service(self) -> bool:
        """Go through the states that are left, up to RUNNING; false if one of them fails, to be tried again later.

        Mirrors:
            `ReplicasManager#startBasicService`.
        """
        role = self._role
        if role.state is StartState.INITIAL:
            # Probes take longer than it takes to look whom they found, so the first try after a start finds no one.
            if not await self._find_leader_with_retries():
                return False
            self._perform(role.on_leader_found())
        if role.state is StartState.FIRST_TIME_SYNC_CONTROLLER_METADATA_DONE:
            if not await self._register_with_retries():
                return False
            role.state = StartState.REGISTER_TO_CONTROLLER_DONE
        if role.state is StartState.REGISTER_TO_CONTROLLER_DONE:
            self.send_heartbeat()
            if role.master_id is None and not await self.elect():
                return False
            self._perform(role.on_master_known())
        return True

    async def find_leader(self) -> bool:
        """Ask one available controller after the other who leads; the first that names one is believed (1005)."""
        for address in hash_ordered(self.available):
            answer = await self._ask(RequestCode.CONTROLLER_GET_METADATA_INFO, address=address)
            if answer is not None and answer.code == ResponseCode.SUCCESS:
                known = decode_header(headers.GetMetaDataResponseHeader, answer.ext_fields)
                if known.controller_leader_address:
                    self.controller_leader = known.controller_leader_address
                    return True
        return False

    async def _find_leader_with_retries(self) -> bool:
        for _ in range(_FIND_LEADER_TRIES):
            if await self.find_leader():
                return True
            await self._host.sleep_ms(_FIND_LEADER_PAUSE_MS)
        return False

    async def _register_with_retries(self) -> bool:
        pauses = self._host.rng("controller registration")
        for _ in range(_REGISTER_TRIES):
            if await self._get_id_and_register():
                return True
            await self._host.sleep_ms(pauses.randrange(_REGISTER_PAUSE_MS_BELOW))
        return False

    async def _get_id_and_register(self) -> bool:
        role = self._role
        self._perform(role.confirm_register_state())
        if not role.has_its_own_files:
            self._host.log.error("the identity files are those of another broker", broker=role.broker_name)
            return False
        if role.register_state is RegisterState.INITIAL and not await self._get_next_broker_id():
            return False
        if role.register_state is RegisterState.CREATE_TEMP_METADATA_FILE_DONE and not await self._apply_broker_id():
            return False
        if role.register_state is not RegisterState.CREATE_METADATA_FILE_DONE or not await self._register():
            return False
        role.register_state = RegisterState.REGISTERED
        return True

    async def _get_next_broker_id(self) -> bool:
        role = self._role
        requested = headers.GetNextBrokerIdRequestHeader(role.cluster_name, role.broker_name)
        answer = await self._ask(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, requested)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return False
        broker_id = decode_header(headers.GetNextBrokerIdResponseHeader, answer.ext_fields).next_broker_id
        if broker_id is None:
            return False
        self._perform(role.on_next_broker_id(broker_id, now_ms=self._host.clock.now_ms()))
        return True

    async def _apply_broker_id(self) -> bool:
        role = self._role
        assert role.temporary is not None
        broker_id, check_code = role.temporary.broker_id, role.temporary.register_check_code
        requested = headers.ApplyBrokerIdRequestHeader(role.cluster_name, role.broker_name, broker_id, check_code)
        answer = await self._ask(RequestCode.CONTROLLER_APPLY_BROKER_ID, requested)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            self._perform(role.on_broker_id_failed())
            return False
        self._perform(role.on_broker_id_applied(broker_id))
        return True

    async def _register(self) -> bool:
        role = self._role
        assert role.broker_id is not None
        requested = headers.RegisterBrokerToControllerRequestHeader(
            role.cluster_name, role.broker_name, role.broker_id, role.address, self._host.clock.now_ms()
        )
        answer = await self._ask(RequestCode.CONTROLLER_REGISTER_BROKER, requested)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return False
        reported = decode_header(headers.RegisterBrokerToControllerResponseHeader, answer.ext_fields)
        if reported.master_address:
            members = decode_body(SyncStateSet, answer.body).sync_state_set
            self._perform(role.on_verdict(_verdict(reported, members)))
        return True

    async def elect(self) -> bool:
        """Ask for an election; any master, also the old one, is a success (1002)."""
        role = self._role
        requested = headers.ElectMasterRequestHeader(
            role.cluster_name,
            role.broker_name,
            role.broker_id or headers.NO_REPLICA,
            invoke_time=self._host.clock.now_ms(),
        )
        answer = await self._ask(RequestCode.CONTROLLER_ELECT_MASTER, requested)
        if answer is None or answer.code not in (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_STILL_EXIST):
            return False
        reported = decode_header(headers.ElectMasterResponseHeader, answer.ext_fields)
        members = decode_body(ElectMasterResponseBody, answer.body).sync_state_set
        self._perform(role.on_verdict(_verdict(reported, members)))
        return True

    # Periodic jobs

    def send_heartbeat(self) -> None:
        """Report every available controller that this broker lives (904), not only to the leader."""
        for address in self.available:
            invoke_oneway(self._client, address, RequestCode.BROKER_HEARTBEAT, self._replica.heartbeat())

    async def poll(self) -> None:
        """Ask who is master (1004); a group that no one knows is registered, which cannot succeed.

        Mirrors:
            `ReplicasManager#schedulingSyncBrokerMetadata`.
        """
        requested = headers.GetReplicaInfoRequestHeader(self._role.broker_name)
        answer = await self._ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, requested)
        if answer is None:
            return
        if answer.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST:
            await self._register()
            await self._host.sleep_ms(_UNKNOWN_GROUP_PAUSE_MS)
        elif answer.code == ResponseCode.SUCCESS:
            reported = decode_header(headers.GetReplicaInfoResponseHeader, answer.ext_fields)
            known = decode_body(SyncStateSet, answer.body)
            await self._adopt(
                ControllerVerdict(
                    reported.master_broker_id,
                    reported.master_address,
                    reported.master_epoch or 0,
                    known.sync_state_set_epoch,
                    known.sync_state_set,
                )
            )

    async def _adopt(self, polled: ControllerVerdict) -> None:
        for effect in self._role.on_polled(polled):
            if isinstance(effect, AskForElection):
                await self.elect()
            else:
                self._replica.perform(effect)

    async def check_sync_state_set(self) -> None:
        """Report the members that are not behind, if they are not all."""
        own = () if self._role.broker_id is None else (self._role.broker_id,)
        members = long_set((*self._replica.maybe_shrink_sync_state_set(), *own))
        if sorted(members) != sorted(self._role.sync_state_set):
            await self.report_sync_state_set(members)

    async def report_sync_state_set(self, members: Iterable[int]) -> None:
        """Send the controller the SyncStateSet (1001); without a good answer nothing changes or is repeated."""
        role = self._role
        assert role.broker_id is not None
        requested = headers.AlterSyncStateSetRequestHeader(
            role.broker_name, role.broker_id, role.master_epoch, self._host.clock.now_ms()
        )
        text = SyncStateSet(long_set(members), role.sync_state_set_epoch)
        answer = await self._ask(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, requested, text)
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            self._perform(role.on_sync_state_set(decode_body(SyncStateSet, answer.body)))

    def on_role_changed(self, header: headers.NotifyBrokerRoleChangedRequestHeader, body: SyncStateSet) -> None:
        """Handle a notification of the controller (1008)."""
        self._perform(self._role.on_verdict(_verdict(header, body.sync_state_set)))

    def _perform(self, effects: Iterable[RoleEffect]) -> None:
        for effect in effects:
            self._replica.perform(effect)

    async def _ask(
        self,
        code: RequestCode,
        header: attrs.AttrsInstance | None = None,
        body: SyncStateSet | None = None,
        *,
        address: str | None = None,
    ) -> Command | None:
        """The answer, whatever its code; None: there was none."""
        to = self.controller_leader if address is None else address
        try:
            return await invoke(self._client, to, code, header, body, timeout_ms=_RPC_TIMEOUT_MS)
        except RemotingError as error:
            self._host.log.warning("no answer from a controller", address=to, code=int(code), error=str(error))
            return None


_Reported = (
    headers.RegisterBrokerToControllerResponseHeader
    | headers.ElectMasterResponseHeader
    | headers.NotifyBrokerRoleChangedRequestHeader
)


def _verdict(reported: _Reported, members: tuple[int, ...]) -> ControllerVerdict:
    return ControllerVerdict(
        reported.master_broker_id,
        reported.master_address,
        reported.master_epoch or 0,
        reported.sync_state_set_epoch or 0,
        members,
    )
