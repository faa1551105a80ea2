"""Family membership: what a broker believes of its group, and how it goes online."""

import attrs

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS, shown_version
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.group import member_group as effects
from nodes.broker.tables.group.member_group import MemberGroup, MissingFlushOffsetError
from nodes.broker.tables.group.pre_online import MetadataVersions, PreOnline
from nodes.protocol.codes import ResponseCode
from nodes.protocol.headers import (
    ExchangeHaInfoHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerResponseHeader,
)
from nodes.protocol.model import DataVersion

FAIL = "FAIL"
INIT_MAX_OFFSET = 777


class Membership(Adapter):
    def __init__(
        self,
        broker_id=0,
        enable_slave_acting_master=False,
        sync_master_flush_offset_when_startup=False,
        master_flushed_offset=0,
        no_ha_service=False,
        init_max_offset=INIT_MAX_OFFSET,
        state_machine_version=0,
    ):
        self.group = MemberGroup(
            broker_id=broker_id,
            address=f"10.0.0.{broker_id}:10911",
            ha_address=f"10.1.0.{broker_id}:10912",
            enable_slave_acting_master=enable_slave_acting_master,
            sync_master_flush_offset_when_startup=sync_master_flush_offset_when_startup,
        )
        self.group.master_flushed_offset = master_flushed_offset
        self.pre_online = PreOnline(self.group, init_max_offset=init_max_offset)
        self.init_max_offset = init_max_offset
        self.no_ha_service = no_ha_service
        self.state_version = state_machine_version
        self.offsets = ConsumerOffsetManager(now_ms=ORIGIN_MS)
        self.delay_version = self.timer_version = DataVersion(timestamp=ORIGIN_MS)
        self.delay_version_is_known = False
        self.calls = []

    def tables(self):
        group = self.group
        broker = {
            "getMinBrokerIdInGroup": group.broker_id,
            "isolated": group.isolated,
            "masterFlushedOffset": group.master_flushed_offset,
            "members": None if group.members is None else addresses(group.members),
            "minBrokerAddr": group.min_broker_addr,
            "minBrokerId": group.min_broker_id,
            "slaveSyncMasterAddr": group.slave_sync_master_addr,
            "waitBrokerIndex": self.pre_online.wait_broker_index,
        }
        return {
            "broker": {row: value for row, value in broker.items() if value is not None},
            "offsets": {
                key: {str(queue): offset for queue, offset in queues.items()}
                for key, queues in self.offsets.offsets.items()
            },
            "versions": {"offsets": shown_version(self.offsets.data_version)},
        }

    def ordered(self, op, out):
        """Delay offsets come from a file: a case that neither sets nor adopts them began with what another one left."""
        if op == "prepareForBrokerOnline" and not self.delay_version_is_known:
            return {name: value for name, value in out.items() if name != "delayVersion"}
        return out

    def initial(self):
        return {}

    def set_isolated(self, isolated):
        self.group.isolated = isolated

    def set_slave_sync_master(self, addr):
        self.group.slave_sync_master_addr = addr

    def set_ha_tracking(self, update_master_ha_server_addr_periodically):
        self.group.update_master_ha_server_addr_periodically = update_master_ha_server_addr_periodically

    def set_local_versions(self, dv, offsets):
        version = DataVersion(*dv)
        self.offsets.put_all(numbered(offsets), version)
        self.delay_version = self.timer_version = version
        self.delay_version_is_known = True

    # The group

    def poll_member_group(self, ns_answer, ha_info_reply=None):
        if ns_answer != FAIL:
            self._carry(self.group.on_polled(members_of(ns_answer)), ha_info_reply)
        return self._called()

    def notify_min_broker_change(
        self, min_broker_id, min_broker_addr, offline_broker_addr, ha_broker_addr, ha_info_reply=None
    ):
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id, None, min_broker_addr, offline_broker_addr, ha_broker_addr
        )
        self._carry(self.group.on_notified(header), ha_info_reply)
        return self._called(code=int(ResponseCode.SUCCESS))

    def register_results(self, results):
        answers = [
            result and RegisterBrokerResponseHeader(result["haServerAddr"], result["masterAddr"]) for result in results
        ]
        self._carry(self.group.on_registered(answers))
        return self._called()

    def exchange_ha_info(self, master_ha_address, master_flush_offset, master_address):
        info = ExchangeHaInfoHeader(master_ha_address, master_flush_offset, master_address)
        answer = ExchangeHaInfoHeader()
        if master_ha_address is None:
            answer = self.group.ha_info(self.init_max_offset)
        else:
            try:
                self._carry(self.group.adopt_ha_info(info))
            except MissingFlushOffsetError as error:
                self._carry(error.done)
                return self._called(error="NullPointerException")
        return self._called(
            code=int(ResponseCode.SUCCESS),
            masterHaAddress=answer.master_ha_address,
            masterFlushOffset=answer.master_flush_offset,
            masterAddress=answer.master_address,
        )

    def start_service(self, min_broker_id, min_broker_addr):
        self._start_service(self.group.start_service(min_broker_id, min_broker_addr))
        return self._called()

    def start_service_without_condition(self):
        self._start_service(self.group.start_service_without_condition())
        return self._called()

    # Going online

    def prepare_for_broker_online(self, ns_answer, ha_info_reply=None, failures=(), members=None):
        online = False
        if ns_answer != FAIL:
            reported = Scripted(self, ha_info_reply, failures, members or {})
            online = reported.drive(self.pre_online.prepare(members_of(ns_answer), self._versions))
        return self._called(success=online, delayVersion=shown_version(self.delay_version))

    def _versions(self):
        return MetadataVersions(self.offsets.data_version, self.delay_version, self.timer_version)

    # What the tables ask for

    def _start_service(self, requested):
        self._carry(requested)
        self.group.end_isolation()

    def _carry(self, requested, ha_info_reply=None):
        for effect in requested:
            call = called(effect, isolated=self.group.isolated)
            if call is not None:
                self.calls.append(call)
            if isinstance(effect, effects.RetrieveHaInfo):
                self._carry(self.group.on_ha_info(ha_info(ha_info_reply)))

    def _called(self, **out):
        calls, self.calls = self.calls, []
        return out | {"calls": calls or None}


class Scripted:
    """Carries out the steps of one attempt with the answers that a case gives."""

    def __init__(self, broker, ha_info_reply, failures, metadata):
        self.broker = broker
        self.ha_info_reply = ha_info_reply
        self.failures = failures
        self.metadata = metadata
        self.fetched = None

    def drive(self, attempt):
        answer = None
        while True:
            try:
                step = attempt.send(answer)
            except StopIteration as end:
                return end.value
            answer = getattr(self, f"_{type(step).__name__}")(step)

    def _call(self, *call):
        self.broker.calls.append(list(call))

    def _SendHaInfo(self, step):  # noqa: N802
        info = step.info
        self._call(
            "sendBrokerHaInfo", step.address, info.master_ha_address, info.master_flush_offset, info.master_address
        )
        return f"906={step.address}" not in self.failures

    def _RetrieveMasterHaInfo(self, step):  # noqa: N802
        self._call("retrieveBrokerHaInfo", step.address)
        return ha_info(self.ha_info_reply)

    def _WaitHaTransfer(self, step):  # noqa: N802
        if self.broker.no_ha_service:
            return False
        self._call("waitHaTransfer", step.host)
        return f"wait={step.host}" not in self.failures

    def _FetchMetadata(self, step):  # noqa: N802
        for code, name in ((45, "getAllDelayOffset"), (43, "getAllConsumerOffset"), (60, "getTimerCheckPoint")):
            self._call(name, step.address)
            if f"{code}={step.address}" in self.failures:
                return None
        self.fetched = self.metadata.get(step.address)
        if self.fetched is None:
            return MetadataVersions(None, None, None)
        return MetadataVersions(*[DataVersion(*self.fetched["dv"])] * 3)

    def _AdoptMetadata(self, step):  # noqa: N802
        broker = self.broker
        if step.consumer_offsets:
            broker.offsets.put_all(numbered(self.fetched["offsets"]), DataVersion(*self.fetched["dv"]))
        if step.delay_offsets:
            broker.delay_version = DataVersion(*self.fetched["dv"])
            broker.delay_version_is_known = True
        if step.timer_check_point:
            broker.timer_version = DataVersion(*self.fetched["dv"])

    def _StartService(self, step):  # noqa: N802
        self.broker._start_service(self.broker.group.start_service(step.min_broker_id, step.min_broker_addr))

    def _Carry(self, step):  # noqa: N802
        self.broker._carry(step.effects)


def members_of(answer):
    return None if answer is None else {int(broker_id): address for broker_id, address in answer.items()}


def addresses(group):
    return {str(broker_id): address for broker_id, address in group.items()}


def numbered(offsets):
    return {key: {int(queue): offset for queue, offset in queues.items()} for key, queues in offsets.items()}


def ha_info(reply):
    if reply is None or reply == FAIL or reply["masterFlushOffset"] is None:
        return None
    return ExchangeHaInfoHeader(reply["masterHaAddress"], reply["masterFlushOffset"], reply["masterAddress"])


def called(effect, *, isolated):
    """What the class called; None for what the sequences do not record."""
    if isinstance(effect, effects.RegisterBrokerAll):
        return ["registerBrokerAll", True, False, True, f"isolated={str(isolated).lower()}"]
    name = CALLS.get(type(effect))
    values = attrs.astuple(effect, recurse=False)
    return name and [name, *(list(value) if isinstance(value, tuple) else value for value in values)]


CALLS = {
    effects.SetAliveReplicas: "setAliveReplicaNumInGroup",
    effects.ChangeSpecialService: "changeSpecialServiceStatus",
    effects.CloseChannels: "closeChannels",
    effects.UpdateHaMasterAddress: "updateHaMasterAddress",
    effects.UpdateMasterAddress: "updateMasterAddress",
    effects.SetMasterFlushedOffset: "setMasterFlushedOffset",
    effects.WakeUpHaClient: "wakeupHAClient",
    effects.RetrieveHaInfo: "retrieveBrokerHaInfo",
}
