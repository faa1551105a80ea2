"""Family replicas: `ReplicasInfoManager`, its events and their serializer; who is alive is set."""

import json

from conformance.controller_events import event_of, shown_event
from conformance.executing import Adapter
from conformance.java_errors import throwing
from nodes.controller.tables import events
from nodes.controller.tables.heartbeats import ReplicaLiveInfo
from nodes.controller.tables.replicas_info import ReplicasInfoManager
from nodes.controller.tables.replicated_state import ReplicatedState, UnknownGroupError
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.header_codec import encode_header
from nodes.protocol.json_text import to_json

NUMBERS = ("Id", "Epoch")


class Replicas(Adapter):
    def __init__(self, enable_elect_unclean_master=False):
        self.state = ReplicatedState()
        self.options = {"enable_elect_unclean_master": enable_elect_unclean_master}
        self.manager = ReplicasInfoManager(self.state, **self.options)
        self.log = []
        self.live = {}
        self.applies_at_once = True
        self.pending = []

    def tables(self):
        return {
            "groups": {name: shown_group(group) for name, group in self.state.groups.items()},
            "sync": {name: shown_sync(info) for name, info in self.state.sync.items()},
        }

    def ordered(self, op, out):
        if op != "get_sync_state_data":
            return out
        body = json.loads(out["body"])
        for info in body["replicasInfoTable"].values():
            for replicas in ("inSyncReplicas", "notInSyncReplicas"):
                info[replicas] = sorted(info[replicas], key=lambda replica: replica["brokerId"])
        return out | {"body": body}

    # Liveness

    def alive(self, cluster, name, id, epoch, max_offset, priority):  # noqa: A002 - as the case calls it
        info = ReplicaLiveInfo("", 0, 0, None, epoch, max_offset, 0, priority)
        self.live[cluster, name, id] = info

    def dead(self, cluster, name, id):  # noqa: A002 - as above
        self.live.pop((cluster, name, id), None)

    def live_info(self, *identity):
        return self.live.get(identity)

    # Requests

    def get_next_broker_id(self, cluster, name):
        return self.reported(self.manager.get_next_broker_id(headers.GetNextBrokerIdRequestHeader(cluster, name)))

    def apply_broker_id(self, cluster, name, id, check_code):  # noqa: A002 - as above
        header = headers.ApplyBrokerIdRequestHeader(cluster, name, id, check_code)
        return self.reported(self.manager.apply_broker_id(header))

    def register(self, cluster, name, id, addr):  # noqa: A002 - as above
        header = headers.RegisterBrokerToControllerRequestHeader(cluster, name, id, addr, self.at_ms)
        return self.reported(self.manager.register_broker(header, self.live_info))

    def elect(self, cluster, name, id, designate):  # noqa: A002 - as above
        header = headers.ElectMasterRequestHeader(cluster, name, id, designate, self.at_ms)
        return self.reported(self.manager.elect_master(header, self.live_info))

    def alter(self, name, master_id, master_epoch, set, set_epoch):  # noqa: A002 - as above
        header = headers.AlterSyncStateSetRequestHeader(name, master_id, master_epoch, self.at_ms)
        answer = SyncStateSet(tuple(set), set_epoch)
        return self.reported(self.manager.alter_sync_state_set(header, answer, self.live_info))

    def get_replica_info(self, name):
        return self.reported(self.manager.get_replica_info(headers.GetReplicaInfoRequestHeader(name)))

    def get_sync_state_data(self, names):
        return self.reported(self.manager.get_sync_state_data(names, self.live_info))

    def clean(self, cluster, name, ids, clean_living):
        header = headers.CleanControllerBrokerDataRequestHeader(name, cluster, ids, clean_living, self.at_ms)
        return self.reported(self.manager.clean_broker_data(header, self.live_info))

    def scan_need_reelect(self):
        return throwing(
            {UnknownGroupError: "NullPointerException"},
            lambda: {"groups": sorted(self.manager.scan_need_reelect(self.live_info))},
        )

    def reported(self, result):
        if not self.applies_at_once:
            self.pending += result.events
        else:
            for event in result.events:
                self.commit(event)
        return {
            "code": int(result.code),
            "remark": result.remark,
            "header": None if result.header is None else shown_header(result.header),
            "body": None if result.body is None else to_json(result.body),
            "events": [shown_event(event) for event in result.events],
        }

    # Events

    def commit_mode(self, apply_at_once):
        self.applies_at_once = apply_at_once

    def apply_pending(self):
        applied, self.pending = self.pending, []
        for event in applied:
            self.commit(event)
        return {"events": [shown_event(event) for event in applied]}

    def apply_event(self, event):
        return throwing({UnknownGroupError: "NullPointerException"}, self.commit, event_of(event))

    def commit(self, event):
        entry = events.to_log_entry(event)
        self.state.apply(events.event_of(entry))
        self.log.append(entry)

    def snapshot_roundtrip(self):
        """What a restart without a snapshot gives: the whole log is applied again."""
        self.state = ReplicatedState()
        for entry in self.log:
            self.state.apply(events.event_of(entry))
        self.manager = ReplicasInfoManager(self.state, **self.options)


def shown_group(group):
    brokers = {str(broker_id): [replica.address, replica.check_code] for broker_id, replica in group.brokers.items()}
    return {"cluster": group.cluster, "nextId": group.next_id, "brokers": brokers}


def shown_sync(info):
    return {
        "cluster": info.cluster,
        "masterId": info.master_id,
        "masterEpoch": info.master_epoch,
        "set": sorted(info.sync_state_set),
        "setEpoch": info.sync_state_set_epoch,
    }


def shown_header(header):
    return {name: int(text) if name.endswith(NUMBERS) else text for name, text in encode_header(header).items()}
