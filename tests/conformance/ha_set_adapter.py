"""Family ha_set: `AutoSwitchHAService`, the master of a group with cid 1; the log is a number."""

from conformance.epoch_file_adapter import shown
from conformance.executing import Adapter
from conformance.java_errors import throwing
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet, NoEpochError, SlaveLink

OWN_ID = 1


class HaSet(Adapter):
    def __init__(self, all_ack_in_sync_state_set=False, ha_max_time_slave_not_catchup=15_000):
        self.epochs = EpochFile()
        self.ha = MasterSyncStateSet(
            self.epochs,
            all_ack_in_sync_state_set=all_ack_in_sync_state_set,
            ha_max_time_slave_not_catchup_ms=ha_max_time_slave_not_catchup,
        )
        self.ha.broker_id = OWN_ID
        self.max_offset = 0
        self.fenced = self.follows = False

    def tables(self):
        ha = self.ha
        return {
            "ha": {
                "confirmOffset": ha.confirm_offset(self.max_offset, serves=not (self.fenced or self.follows)),
                "confirmOffsetStored": ha.stored_confirm_offset,
                "inSyncReplicasNums": ha.in_sync_replicas_nums,
                "local": sorted(ha.local),
                "maxOffset": self.max_offset,
                "remote": sorted(ha.remote),
                "stateMachineVersion": ha.state_machine_version,
                "synchronizing": ha.synchronizing,
                "union": sorted(ha.members),
            },
            "caughtUp": {str(slave): f"now+{at_ms}" for slave, at_ms in ha.caught_up_ms.items()},
            "connections": {str(link.slave_id): [link.ack_offset, link.last_master_max_offset] for link in ha.links},
            "epochs": {str(entry.epoch): shown(entry)[1:] for entry in self.epochs.entries},
        }

    # The log and the slaves

    def set_max_offset(self, max):  # noqa: A002 - as the case calls it
        self.max_offset = max

    def set_fenced(self, fenced):
        self.fenced = fenced

    def set_role(self, role):
        self.follows = role == "SLAVE"

    def append_epoch(self, epoch, start):
        self.epochs.append(epoch, start)

    def connect(self, id):  # noqa: A002 - as above
        self.ha.links.append(SlaveLink(id))

    def mark_async_learner(self, id):  # noqa: A002 - as above
        self.link(id).is_async_learner = True

    def transfer(self, id):  # noqa: A002 - as above
        self.ha.on_batch_sent(self.link(id), max_offset=self.max_offset, now_ms=self.at_ms)

    def transfer_idle(self, id):  # noqa: A002 - as above
        self.ha.on_idle(self.link(id), now_ms=self.at_ms)

    def ack(self, id, offset):  # noqa: A002 - as above
        def acknowledged():
            return reports(self.ha.on_ack(self.link(id), offset, max_offset=self.max_offset, now_ms=self.at_ms))

        return throwing({NoEpochError: "NullPointerException"}, acknowledged)

    def disconnect(self, id):  # noqa: A002 - as above
        return reports(self.ha.on_disconnected(self.link(id)))

    def late_removal_of_previous_connection(self, id):  # noqa: A002 - as above
        """The first of two connections of a slave: its next one was there before it was removed."""
        return self.disconnect(id)

    def maybe_shrink(self):
        return {"set": sorted(self.ha.maybe_shrink(self.at_ms))}

    def link(self, slave_id):
        return next(link for link in self.ha.links if link.slave_id == slave_id)

    # Verdicts

    def set_sync_state_set(self, set):  # noqa: A002 - as above
        self.ha.set_sync_state_set(set, self.max_offset)

    def change_to_master(self, epoch):
        changed = self.ha.change_to_master(epoch, self.max_offset)
        return {"ok": changed, "calls": [["recoverTopicQueueTable"]] if changed else None}

    def change_to_master_when_last_role_is_master(self, epoch):
        return {"ok": self.ha.stay_master(epoch, self.max_offset)}

    def change_to_slave_when_master_not_change(self, epoch):
        return {"ok": self.ha.follow(epoch)}

    def change_to_slave_with_old_epoch(self, epoch):
        return {"ok": self.ha.follow(epoch)}


def reports(members):
    return {"reports": None if members is None else [sorted(members)]}
