"""A controller process: who elects a new master when a broker group has lost its own (RIP-44)."""

from collections.abc import Mapping
from functools import partial

import trio

from nodes.beliefs import Belief, BeliefKind, Json, Lifecycle, LifecycleEvent
from nodes.config import ControllerConfig
from nodes.config.request_pools import controller_pool
from nodes.config_requests import ConfigRequests
from nodes.controller.event_queue import EventQueue, Operation, Outcome
from nodes.controller.leader_requests import LeaderRequests
from nodes.controller.tables.events import DamagedEntryError, event_of
from nodes.controller.tables.heartbeats import BrokerHeartbeats, BrokerIdentity, Liveness
from nodes.controller.tables.replicas_info import ControllerResult, ReplicasInfoManager
from nodes.controller.tables.replicated_state import ReplicatedState, UnknownGroupError
from nodes.dledger.member import MemberRole
from nodes.dledger.server import DLedgerServer
from nodes.host import Channel, Host
from nodes.live_config import LiveConfig
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import ElectMasterResponseBody, SyncStateSet
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.registry import decode_header, encode_body, encode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.server import Handler, Handlers, InTask, RpcServer
from nodes.rpc.thread_pools import ThreadPools
from nodes.rpc.typed import invoke_oneway, success
from nodes.threads import ScheduledThread

_ALL = "controllers"
BLACK_LIST = ("configBlackList", "configStorePath", "rocketmqHome")
"""Options that may not be changed."""
_FIRST_SCAN_MS = 2_000
_ELECT_TIMEOUT_MS = 3_000
"""Of one attempt."""


class Controller:
    """One of a group of controllers, of the DLedger type.

    Args:
        host: machine of the controller; it listens on the port of its own address.
        config: its options.
        group: name of the group of controllers, which only tools see.
        self_id: of this controller, `n0`.
        peers: id -> address of all controllers, this one included.

    Emits:
        CONTROLLER_LEADER, CONTROLLER_ROLE and SYNC_STATE whenever they change.

    Mirrors:
        `org.apache.rocketmq.controller.ControllerManager`, `DLedgerController`, `ControllerRequestProcessor`.
    """

    def __init__(
        self, host: Host, config: ControllerConfig, group: str, self_id: str, peers: Mapping[str, str]
    ) -> None:
        self._host = host
        self._config = config
        self._group = group
        self._self_id = self_id
        self._peers = peers
        self.state = ReplicatedState()
        self.heartbeats = BrokerHeartbeats()
        self._manager = ReplicasInfoManager(self.state, enable_elect_unclean_master=config.enable_elect_unclean_master)
        self._requests = LeaderRequests(self._manager, self._alive).prepared()
        self._channels: dict[int, Channel] = {}
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._client = RpcClient(host)
        self.dledger = DLedgerServer(
            host,
            self._client,
            self_id,
            peers,
            apply=self._apply,
            on_serving_changed=self._on_serving_changed,
            on_settled=self._believe_leader,
        )
        self._queue = EventQueue(host, self.dledger, self._notify_of_election)
        self._server = RpcServer(
            host,
            config,
            on_channel_closed=self._on_channel_closed,
            executors=self._thread_pools() if config.processing_times else None,
        )
        # RocketMQ writes the changes to controller.properties in the home directory, which is not the file of `-c`.
        config_requests = ConfigRequests(
            LiveConfig(host, config, self._apply_config, BLACK_LIST, keeps=False),
            get=RequestCode.GET_CONTROLLER_CONFIG,
            update=RequestCode.UPDATE_CONTROLLER_CONFIG,
        )
        self._server.serve(self._handlers(), self.dledger.handlers(), config_requests.handlers())
        self._stopping = trio.Event()

    def _thread_pools(self) -> ThreadPools:
        """Requests of the DLedger wait for none of these threads; a thread waits until an entry is committed."""
        sizes = self._config.controller_pool_sizes().items()
        return ThreadPools(self._host, sizes, lambda: self._config.times, controller_pool)

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        self.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def start(self) -> None:
        """Start the threads, and open the port."""
        scan = ScheduledThread(self._host, "scanNotActiveBroker")
        interval_ms = self._config.scan_not_active_broker_interval
        scan.at_fixed_rate("scanNotActiveBroker", self._scan_not_active_brokers, _FIRST_SCAN_MS, interval_ms)
        scan.start()
        self._queue.start()
        _, _, port = self._peers[self._self_id].rpartition(":")
        self._host.listen(int(port), self._server)
        self.dledger.start()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def _handlers(self) -> Handlers:
        threads = self._config.processing_times
        of_leader: Handler | InTask = InTask(self._wait_for_leader) if threads else self._on_leaders_request
        return {
            **dict.fromkeys(self._requests, of_leader),
            RequestCode.CONTROLLER_GET_METADATA_INFO: self._on_get_metadata,
            RequestCode.BROKER_HEARTBEAT: self._on_heartbeat,
        }

    # Requests

    def _on_leaders_request(self, channel: Channel, request: Command) -> Command | None:
        operation = self._operation(request)
        if isinstance(operation, Command):
            return operation
        reply = self._server.reply_to(channel, request)
        self._queue.submit(operation, lambda outcome: reply(_answer(request, outcome)))
        return None

    async def _wait_for_leader(self, _channel: Channel, request: Command) -> Command:
        """The same, where a thread waits for the answer."""
        operation = self._operation(request)
        return operation if isinstance(operation, Command) else _answer(request, await self._queue.ask(operation))

    def _operation(self, request: Command) -> Operation | Command:
        """What a request asks of the leader, or the answer of a member that does not lead."""
        if not self.dledger.serving:
            remark = "The controller is not in leader state"
            return request.answer(ResponseCode.CONTROLLER_NOT_LEADER, remark)
        operation = self._requests[RequestCode(request.code)](request)
        return operation or request.answer(ResponseCode.SYSTEM_ERROR, "not set any response code")

    def _on_get_metadata(self, _channel: Channel, request: Command) -> Command:
        leader = self.dledger.member.leader_id
        known = headers.GetMetaDataResponseHeader(
            self._group,
            leader or None,
            self._peers.get(leader),
            self.dledger.member.role is MemberRole.LEADER,
            "".join(f"{peer}:{address};" for peer, address in self._peers.items()),
        )
        return success(request, known)

    def _on_heartbeat(self, channel: Channel, request: Command) -> Command:
        header = decode_header(BrokerHeartbeatRequestHeader, request.ext_fields)
        if header.broker_id is None:
            return request.answer(ResponseCode.CONTROLLER_INVALID_REQUEST, "Heart beat with empty brokerId")
        broker = BrokerIdentity(header.cluster_name, header.broker_name, header.broker_id)
        self._channels[channel.id] = channel
        self.heartbeats.on_heartbeat(broker, header, channel.id, now_ms=self._host.clock.now_ms())
        return request.answer(ResponseCode.SUCCESS, "Heart beat success")

    def _alive(self) -> Liveness:
        return self.heartbeats.alive_at(self._host.clock.now_ms())

    # The state

    def _apply(self, data: str) -> None:
        try:
            event = event_of(data.encode())
            self.state.apply(event)
        except (DamagedEntryError, UnknownGroupError) as error:
            self._host.log.warning("an event cannot be applied", error=str(error))
        else:
            self._believe_group(event.broker_name)

    def _on_serving_changed(self) -> None:
        self._queue.wake()
        if self.dledger.serving:
            self._host.start_soon(self._scan_inactive_masters, self.dledger.member.term, name="scanInactiveMaster")

    def _apply_config(self, config: ControllerConfig) -> None:
        """Apply changed options; the period of a scan takes effect with the next start."""
        self._config = config
        self._manager.enable_elect_unclean_master = config.enable_elect_unclean_master

    def _believe_leader(self) -> None:
        member = self.dledger.member
        leader = {"leader": member.leader_id or None, "term": member.term}
        self._believe(BeliefKind.CONTROLLER_LEADER, _ALL, leader)
        role = {"role": str(member.role), "serves": self.dledger.serving}
        self._believe(BeliefKind.CONTROLLER_ROLE, self._self_id, role)

    def _believe_group(self, broker_name: str) -> None:
        info = self.state.sync.get(broker_name)
        value = info and {
            "master": info.master_id,
            "epoch": info.master_epoch,
            "in_sync": sorted(info.sync_state_set),
            "in_sync_epoch": info.sync_state_set_epoch,
        }
        self._believe(BeliefKind.SYNC_STATE, broker_name, value)

    def _believe(self, kind: BeliefKind, subject: str, value: Json) -> None:
        if self._believed.get((kind, subject)) != value:
            self._believed[kind, subject] = value
            self._host.record(Belief(kind, subject, value))

    # Brokers that are gone

    async def _scan_not_active_brokers(self) -> None:
        for broker, key in self.heartbeats.evict_silent(self._host.clock.now_ms()):
            channel = self._channels.get(key) if isinstance(key, int) else None
            if channel is not None:
                channel.close()
                self._host.call_later_ms(0, partial(self._on_channel_closed, channel))
            self._on_broker_inactive(broker)

    def _on_channel_closed(self, channel: Channel) -> None:
        self._channels.pop(channel.id, None)
        broker = self.heartbeats.on_channel_close(channel.id)
        if broker is not None:
            self._on_broker_inactive(broker)

    def _on_broker_inactive(self, broker: BrokerIdentity) -> None:
        if self.dledger.serving:
            self._host.start_soon(self._elect_if_master, broker, name="onBrokerInactive")

    async def _elect_if_master(self, broker: BrokerIdentity) -> None:
        requested = headers.GetReplicaInfoRequestHeader(broker.broker_name)
        known = await self._queue.ask(lambda: self._manager.get_replica_info(requested))
        if isinstance(known, ControllerResult) and known.header.master_broker_id == broker.broker_id:
            await self._elect(broker.broker_name)

    async def _scan_inactive_masters(self, term: int) -> None:
        """As long as this controller leads in one term; half a group whose master is dead ends it."""
        while True:
            await self._host.sleep_ms(self._config.scan_inactive_master_interval)
            if not self.dledger.serving or self.dledger.member.term != term:
                return
            self._host.begin_cause("scanInactiveMaster")
            try:
                groups = self._manager.scan_need_reelect(self._alive())
            except UnknownGroupError as error:
                self._host.log.warning("the scan for inactive masters ends", error=str(error))
                return
            for broker_name in groups:
                self._host.start_soon(self._elect, broker_name, name="electMaster")

    async def _elect(self, broker_name: str) -> None:
        """Ask for an election until one succeeds; that the master still exists counts as a failure."""
        requested = headers.ElectMasterRequestHeader(
            "", broker_name, headers.NO_REPLICA, invoke_time=self._host.clock.now_ms()
        )
        for _ in range(self._config.elect_master_max_retry_count):
            outcome = await self._queue.ask(
                lambda: self._manager.elect_master(requested, self._alive()), timeout_ms=_ELECT_TIMEOUT_MS
            )
            if isinstance(outcome, ControllerResult) and outcome.code is ResponseCode.SUCCESS:
                return

    def _notify_of_election(self, result: ControllerResult) -> None:
        """Notify the live members of a group who its new master is; no one waits for it."""
        elected, body = result.header, result.body
        if not self._config.notify_broker_role_changed or not isinstance(body, ElectMasterResponseBody):
            return
        group = body.broker_member_group
        if group is None:  # the old master stays
            return
        notified = headers.NotifyBrokerRoleChangedRequestHeader(
            elected.master_address, elected.master_epoch, elected.sync_state_set_epoch, elected.master_broker_id
        )
        members = SyncStateSet(body.sync_state_set, elected.sync_state_set_epoch)
        alive = self._alive()
        for broker_id, address in group.broker_addrs.items():
            if alive(group.cluster, group.broker_name, broker_id) is not None:
                invoke_oneway(self._client, address, RequestCode.NOTIFY_BROKER_ROLE_CHANGED, notified, members)


def _answer(request: Command, outcome: Outcome) -> Command:
    if isinstance(outcome, str):
        return request.answer(ResponseCode.SYSTEM_ERROR, outcome)
    fields = NO_FIELDS if outcome.header is None else encode_header(outcome.header)
    body = None if outcome.body is None else encode_body(outcome.body)
    return request.answer(outcome.code, outcome.remark, fields, body)
