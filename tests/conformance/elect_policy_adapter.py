"""Family elect_policy: `DefaultElectPolicy`; what is known of each replica is given."""

from conformance.executing import Adapter
from nodes.controller.tables.elect_policy import elect
from nodes.controller.tables.heartbeats import ReplicaLiveInfo


class ElectPolicy(Adapter):
    def elect(self, sync, all, old, prefer, live, has_live_info):  # noqa: A002 - as the case calls it
        nothing_known = [0, 0, 0]
        infos = {int(replica): info if has_live_info else nothing_known for replica, info in live.items()}
        known = {
            replica: ReplicaLiveInfo("", 0, 0, None, epoch, max_offset, 0, priority)
            for replica, (epoch, max_offset, priority) in infos.items()
        }
        return {"master": elect(sync or (), all or (), old_master=old, prefer=prefer, live_info=known.get)}
