"""One table of what is compared, what waits and why, and which case cannot agree."""

from consumers_adapter import Consumers
from data_version_adapter import DataVersions
from lock_rpc_adapter import LockRpc
from membership_adapter import Membership
from offsets_adapter import Offsets
from playing import Adapter
from producers_adapter import Producers
from queue_locks_adapter import QueueLocks
from route_table_adapter import NameserverTables
from slave_sync_adapter import SlaveSync
from topics_groups_adapter import TopicsAndGroups
from wire_json_adapter import WireJson

ADAPTERS: dict[str, type[Adapter]] = {
    "consumers": Consumers,
    "data_version": DataVersions,
    "lock_rpc": LockRpc,
    "membership": Membership,
    "offsets": Offsets,
    "producers": Producers,
    "queue_locks": QueueLocks,
    "route_table": NameserverTables,
    "slave_sync": SlaveSync,
    "topics_groups": TopicsAndGroups,
    "wire_json": WireJson,
}

WAITING: dict[str, str] = {
    "escape": "brokers do not write to other brokers yet",
    "pop_util": "there is no pop consumption yet",
    "query_assignment": "brokers do not assign queues yet",
    "schedule": "there are no delayed messages yet",
    "timer_wheel": "there are no timed messages yet",
}
"""Family -> what our side lacks."""

EXCEPTED: dict[tuple[str, str], str] = {}
"""Family and case that cannot agree by design -> reason."""
