"""Family replicas_manager: `ReplicasManager` of one broker; what the controllers answer is given in advance.

What the HA service and the broker are notified is written down. What runs next to an operation is run after it.
"""

from conformance.executing import Adapter
from nodes.broker.group.replicas_manager import ReplicasManager
from nodes.broker.tables.group import replica_role as role
from nodes.broker.tables.group.broker_identity import read_broker_metadata, read_temp_broker_metadata
from nodes.broker.tables.group.member_group import ChangeSpecialService, RegisterBrokerAll
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import ElectMasterResponseBody, SyncStateSet
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.model import MASTER_ID
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_body, encode_header
from nodes.protocol.widths import INT32_MAX
from nodes.rpc.errors import RemotingTimeoutError

CLUSTER, NAME, ADDRESS = "c1", "b1", "10.0.0.9:10911"
CONTROLLER = "ct1:1"
CLOCK_BEGINS_MS = 1_000_000_000_000
ASYNC = "--- async"
CHECK, SLAVE_SYNC = "rm:3000/5000", "broker:3000/3000"
SCRIPTS = {
    RequestCode.CONTROLLER_GET_METADATA_INFO: "meta",
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: "next",
    RequestCode.CONTROLLER_APPLY_BROKER_ID: "apply",
    RequestCode.CONTROLLER_REGISTER_BROKER: "register",
    RequestCode.CONTROLLER_ELECT_MASTER: "elect",
    RequestCode.CONTROLLER_GET_REPLICA_INFO: "info",
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: "alter",
}


class ReplicasManagers(Adapter):
    """Also the machine, the client and the broker of the manager."""

    def __init__(self):
        self.script = {}
        self.files = {"metadata": None, "temp": None}
        self.role_id, self.fenced, self.isolated = -1, True, True
        self.slave_sync_master = None
        self.topic_version = [0, 0]
        self.log = self.disk = self.clock = self

    # The machine and the broker

    def now_ms(self):
        return CLOCK_BEGINS_MS + self.at_ms

    async def sleep_ms(self, duration_ms):
        """No time passes."""

    def rng(self, _name):
        return self

    def randrange(self, _stop):
        return 0

    def start_soon(self, _flow, *_arguments, name):
        """The one controller is known to be reachable."""
        assert name == "isAddressReachable"

    def warning(self, _text, **_fields):
        """No one reads it."""

    error = warning

    def heartbeat(self):
        epoch = self.script.get("last_epoch", -1)
        confirmed = 0 if self.role_id == MASTER_ID and not self.fenced else -1
        header = [CLUSTER, ADDRESS, self.role.broker_name, self.role.broker_id, epoch, 0, confirmed, 10_000, INT32_MAX]
        return BrokerHeartbeatRequestHeader(*header)

    def maybe_shrink_sync_state_set(self):
        return self.script.get("shrink", ())

    # The client

    async def call(self, address, code, fields, content, *, timeout_ms):
        code = RequestCode(code)
        assert timeout_ms == 3_000
        request = decode_header(EXCHANGES[code].request_header, fields)
        self.calls.append([str(int(code)), *self.shown(code, address, request, content)])
        scripted = self.script.get(SCRIPTS[code], "FAIL")
        if scripted == "FAIL":
            raise RemotingTimeoutError("as the case says")
        if code is not RequestCode.CONTROLLER_GET_NEXT_BROKER_ID and isinstance(scripted, int):
            return Command(scripted, 1, 0)
        header, body = answer(code, scripted)
        encoded = None if body is None else encode_body(body)
        return Command(int(ResponseCode.SUCCESS), 1, 0, ext_fields=encode_header(header), body=encoded)

    def shown(self, code, address, request, content):
        match code:
            case RequestCode.CONTROLLER_GET_METADATA_INFO | RequestCode.CONTROLLER_GET_NEXT_BROKER_ID:
                return [address]
            case RequestCode.CONTROLLER_APPLY_BROKER_ID:
                return [request.applied_broker_id, request.register_check_code.split(";")[0]]
            case RequestCode.CONTROLLER_REGISTER_BROKER:
                return [request.broker_id, request.broker_address]
            case RequestCode.CONTROLLER_ELECT_MASTER:
                return [request.broker_id]
            case RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
                text = decode_body(SyncStateSet, content)
                members = sorted(text.sync_state_set)
                return [request.master_broker_id, request.master_epoch, members, text.sync_state_set_epoch]
            case _:
                return []

    def oneway(self, address, code, fields, _content):
        beat = decode_header(BrokerHeartbeatRequestHeader, fields)
        lines = [beat.epoch, beat.max_offset, beat.confirm_offset, beat.heartbeat_timeout_mills, beat.election_priority]
        self.calls.append([str(int(code)), address, beat.broker_id, *lines])

    # Effects

    def perform(self, effect):
        match effect:
            case role.StartLeaderDiscovery():
                self.calls.append(["schedule", "rm:3000/10000"])
            case role.StartReplicaService():
                self.fenced = self.isolated = False
                self.calls += [["isolated", False], ["schedule", "rm:3000/5000"], ["ha.registerListener"]]
            case role.StoreIdentity():
                files = {"metadata": self.role.metadata, "temp": self.role.temporary}
                self.files = {name: file and file.text for name, file in files.items()}
            case role.SetRoleId(role_id):
                self.role_id = role_id
            case ChangeSpecialService(running):
                self.calls.append(["specialService", running])
            case role.StepTopicVersion(epoch):
                self.topic_version = [epoch, self.topic_version[1] + 1]
            case role.CheckSyncStateSet() | RegisterBrokerAll():
                self.next_to.append(effect)
            case _:
                self.perform_timers(effect) or self.calls.append(shown_ha(effect))

    def perform_timers(self, effect):
        """Whether the effect concerned a timer; one that was ever scheduled is cancelled again and again."""
        match effect:
            case role.StartSyncStateSetCheck():
                self.cancel(CHECK)
                self.schedule(CHECK)
            case role.StopSyncStateSetCheck():
                self.cancel(CHECK)
            case role.StartSlaveSync(master_address):
                self.cancel(SLAVE_SYNC)
                self.schedule(SLAVE_SYNC)
                self.slave_sync_master = master_address
            case role.StopSlaveSync():
                self.cancel(SLAVE_SYNC)
                self.slave_sync_master = None
            case _:
                return False
        return True

    def schedule(self, timer):
        self.scheduled.append(timer)
        self.calls.append(["schedule", timer])

    def cancel(self, timer):
        if timer in self.scheduled:
            self.calls.append(["cancel", timer])

    # Operations

    def boot(self, broker_name=NAME):
        metadata, temporary = self.files["metadata"], self.files["temp"]
        self.role = role.ReplicaRole(
            CLUSTER,
            broker_name,
            ADDRESS,
            metadata=metadata and read_broker_metadata(metadata),
            temporary=temporary and read_temp_broker_metadata(temporary),
        )
        self.manager = ReplicasManager(self, self, self.role, self, [CONTROLLER])
        self.manager.available = {CONTROLLER: None}
        self.role_id, self.fenced, self.isolated, self.slave_sync_master = -1, True, True, None
        self.topic_version, self.scheduled = [0, 0], []
        return {"calls": [["isolated", True]]}

    restart_process = boot

    def answers(self, **script):
        self.script |= script

    def start_basic_service(self):
        return self.done(self.manager.start_basic_service(), "ok")

    def poll_1004(self):
        return self.done(self.manager.poll())

    def check_sync_state_set(self):
        return self.done(self.manager.check_sync_state_set())

    def ha_reports_set(self, set):  # noqa: A002 - as the case calls it
        return self.done(self.manager.report_sync_state_set(set))

    def send_heartbeat(self):
        return self.done(self.at_once(self.manager.send_heartbeat))

    def notify_1008(self, master_id, addr, epoch, set_epoch, set):  # noqa: A002 - as above
        header = headers.NotifyBrokerRoleChangedRequestHeader(addr, epoch, set_epoch, master_id)
        body = SyncStateSet(tuple(set), set_epoch)
        return self.done(self.at_once(lambda: self.manager.on_role_changed(header, body)))

    async def at_once(self, call):
        call()

    def done(self, flow, reported=None):
        """Run a flow that never waits, and what it started next to itself."""
        self.calls, self.next_to = [], []
        result = awaited(flow)
        relative_path, foreground, self.calls = self.next_to, self.calls, []
        for effect in relative_path:
            if isinstance(effect, RegisterBrokerAll):
                isolated = str(self.isolated).lower()
                self.calls.append(["registerNS", f"roleId={self.role_id}", f"isolated={isolated}"])
            else:
                awaited(self.manager.check_sync_state_set())
        background = [[ASYNC], *self.calls] if self.calls else []
        return ({reported: result} if reported else {}) | {"calls": [*foreground, *background] or None}

    def tables(self):
        if not hasattr(self, "role"):
            return {}
        state = self.role
        known = {"set": sorted(state.sync_state_set), "setEpoch": state.sync_state_set_epoch}
        tables = {
            "rm": {
                "cid": state.broker_id,
                "leader": self.manager.controller_leader,
                "masterAddress": state.master_address,
                "masterEpoch": state.master_epoch,
                "masterId": state.master_id,
                "registerState": state.register_state.value,
                "state": state.state.value,
                **known,
            },
            "broker": {
                "fenced": self.fenced,
                "isolated": self.isolated,
                "role": "SYNC_MASTER" if self.role_id == MASTER_ID else "SLAVE",
                "roleId": self.role_id,
                "slaveSyncMaster": self.slave_sync_master,
                "topicCounter": self.topic_version[1],
                "topicStateVersion": self.topic_version[0],
            },
            "files": self.files,
        }
        return {
            table: {row: value for row, value in rows.items() if value is not None} for table, rows in tables.items()
        }


def awaited(flow):
    try:
        flow.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the flow waits")


def answer(code, scripted):
    """Header and body of a good answer."""
    match code:
        case RequestCode.CONTROLLER_GET_METADATA_INFO:
            return headers.GetMetaDataResponseHeader(controller_leader_address=scripted or None), None
        case RequestCode.CONTROLLER_GET_NEXT_BROKER_ID:
            return headers.GetNextBrokerIdResponseHeader(CLUSTER, NAME, scripted), None
        case RequestCode.CONTROLLER_APPLY_BROKER_ID:
            return headers.ApplyBrokerIdResponseHeader(CLUSTER, NAME), None
        case RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
            members, epoch = scripted
            return headers.AlterSyncStateSetResponseHeader(epoch), SyncStateSet(tuple(members), epoch)
    master, address, epoch, set_epoch, members = scripted
    match code:
        case RequestCode.CONTROLLER_REGISTER_BROKER:
            reported = (master, address, epoch, set_epoch)
            header = headers.RegisterBrokerToControllerResponseHeader(CLUSTER, NAME, *reported)
            return header, SyncStateSet(tuple(members), set_epoch)
        case RequestCode.CONTROLLER_ELECT_MASTER:
            header = headers.ElectMasterResponseHeader(master, address, epoch, set_epoch)
            return header, ElectMasterResponseBody(tuple(members))
        case _:
            header = headers.GetReplicaInfoResponseHeader(master, address, epoch)
            return header, SyncStateSet(tuple(members), set_epoch)


def shown_ha(effect):
    match effect:
        case role.SetLocalBrokerId(broker_id):
            return ["ha.setLocalBrokerId", broker_id]
        case role.SetSyncStateSet(members):
            return ["ha.setSyncStateSet", sorted(members)]
        case role.ChangeHaToMaster(epoch):
            return ["ha.changeToMaster", epoch]
        case role.StayHaMaster(epoch):
            return ["ha.changeToMasterWhenLastRoleIsMaster", epoch]
        case role.ChangeHaToSlave(address, epoch, broker_id):
            return ["ha.changeToSlave", address, epoch, broker_id]
        case role.StayHaSlave(address, epoch):
            return ["ha.changeToSlaveWhenMasterNotChange", address, epoch]
    raise AssertionError(f"unknown {effect}")
