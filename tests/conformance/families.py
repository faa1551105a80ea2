"""One table of what is compared, what waits and why, and which case cannot agree."""

from allocation_answers import allocate, ring
from asking import Answerer
from consumers_adapter import Consumers
from data_version_adapter import DataVersions
from escape_adapter import Escape
from lock_rpc_adapter import LockRpc
from membership_adapter import Membership
from names_answers import names_and_texts
from offset_store_answers import offset_store
from offsets_adapter import Offsets
from ordering_answers import ordering, properties
from playing import Adapter
from process_queue_adapter import pq_clean_expired, process_queue
from producer_answers import producer_select
from producers_adapter import Producers
from queue_locks_adapter import QueueLocks
from route_answers import broker_addr, route
from route_table_adapter import NameserverTables
from slave_sync_adapter import SlaveSync
from subscription_answers import subscription
from topics_groups_adapter import TopicsAndGroups
from wire_json_adapter import WireJson

ADAPTERS: dict[str, type[Adapter]] = {
    "consumers": Consumers,
    "data_version": DataVersions,
    "escape": Escape,
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
"""Families of sequences."""

ANSWERERS: dict[str, Answerer] = {
    "alloc": allocate,
    "broker_addr": broker_addr,
    "names": names_and_texts,
    "offset_store": offset_store,
    "ordering": ordering,
    "producer_select": producer_select,
    "properties": properties,
    "ring": ring,
    "route": route,
    "subscription": subscription,
    "pq_clean_expired": pq_clean_expired,
    "process_queue": process_queue,
}
"""Families of questions."""

WAITING: dict[str, str] = {
    "alloc4pop": "there is no pop consumption yet",
    "client_route": "routes of a client are compared table by table, the flow that fetches them is not driven yet",
    "pop": "there is no pop consumption yet",
    "pop_util": "there is no pop consumption yet",
    "query_assignment": "brokers do not assign queues yet",
    "rebalance": "there is no adapter yet",
    "rebalance_push": "there is no adapter yet",
    "schedule": "there are no delayed messages yet",
    "timer_wheel": "there are no timed messages yet",
    "wire_body": "nobody speaks RocketMQ's own wire yet",
    "wire_command": "nobody speaks RocketMQ's own wire yet",
    "wire_header": "nobody speaks RocketMQ's own wire yet",
}
"""Family -> what our side lacks."""

EXCEPTED: dict[tuple[str, str], str] = {
    ("names", "names/edge/clientconfig-defaults"): "half of them are options that a client of ours does not have",
    ("offset_store", "offset_store/edge/local-file"): "broadcasting consumers and their files are not emulated",
    ("producer_select", "producer_select/edge/unknown-broker"): "pickOneAtLeast: nobody calls it in 5.3.3 either",
    ("route", "route/edge/clone"): "our routes are frozen: no copy shares what anybody could change",
}
"""Family and case that cannot agree by design -> reason."""
