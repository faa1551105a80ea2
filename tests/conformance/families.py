"""One table of what is compared, and which case cannot agree and why."""

from collections.abc import Callable

from conformance import client_route_answers, offset_store_answers, rebalance_answers, rebalance_push_answers
from conformance.allocation_answers import allocate, ring
from conformance.asking import Answerer, Json
from conformance.auth_adapter import AuthMigration, AuthSession
from conformance.auth_contexts_answers import auth_contexts
from conformance.auth_names_answers import auth_names
from conformance.broker_config_answers import broker_config
from conformance.configuration_answers import configuration
from conformance.consumers_adapter import Consumers
from conformance.container_adapter import Container
from conformance.controller_heartbeat_adapter import ControllerHeartbeats
from conformance.controller_wire_adapter import ControllerWire
from conformance.data_version_adapter import DataVersions
from conformance.elect_policy_adapter import ElectPolicy
from conformance.epoch_file_adapter import EpochFiles
from conformance.escape_adapter import Escape
from conformance.executing import Adapter
from conformance.ha_link_adapters import HaClient, HaMaster
from conformance.ha_set_adapter import HaSet
from conformance.identity_files_adapter import IdentityFiles
from conformance.lock_rpc_adapter import LockRpc
from conformance.membership_adapter import Membership
from conformance.names_answers import names_and_texts
from conformance.offsets_adapter import Offsets
from conformance.order_info_adapter import OrderInfos
from conformance.ordering_answers import ordering, properties
from conformance.pop_answers import pop, without_citations
from conformance.pop_buffer_adapter import PopBuffer
from conformance.pop_client_adapter import PopClient
from conformance.pop_flow_adapter import PopFlow
from conformance.pop_kv_adapter import PopKv
from conformance.pop_polling_adapter import PopPolling
from conformance.pop_revive_adapter import PopRevive
from conformance.pop_tables_adapters import PopInFlight, PopLocks
from conformance.pop_util_adapter import PopUtil
from conformance.process_queue_adapter import pq_clean_expired, process_queue
from conformance.producer_answers import producer_select
from conformance.producers_adapter import Producers
from conformance.query_assignment_adapter import QueryAssignments, alloc4pop, with_callers
from conformance.queue_locks_adapter import QueueLocks
from conformance.replicas_adapter import Replicas
from conformance.replicas_manager_adapter import ReplicasManagers
from conformance.route_answers import broker_addr, route
from conformance.route_table_adapter import NameserverTables
from conformance.schedule_adapter import Schedule
from conformance.slave_sync_adapter import SlaveSync
from conformance.subscription_answers import subscription
from conformance.timer_admit_adapter import TimerAdmit
from conformance.timer_files_adapter import TimerFiles
from conformance.timer_store_adapter import TimerStores
from conformance.timer_wheel_adapter import TimerWheels
from conformance.topics_groups_adapter import TopicsAndGroups
from conformance.vectors import Question
from conformance.wire_body_answers import absent_is_nothing, wire_body
from conformance.wire_command_answers import in_any_order, wire_command
from conformance.wire_header_answers import wire_header, without_java_alone, without_nothing
from conformance.wire_json_adapter import WireJson

ADAPTERS: dict[str, type[Adapter]] = {
    "auth_authentication": AuthSession,
    "auth_decisions": AuthSession,
    "auth_metadata": AuthSession,
    "auth_migration": AuthMigration,
    "consumers": Consumers,
    "container": Container,
    "data_version": DataVersions,
    "elect_policy": ElectPolicy,
    "epoch_file": EpochFiles,
    "escape": Escape,
    "ha_client": HaClient,
    "ha_master": HaMaster,
    "ha_set": HaSet,
    "heartbeat": ControllerHeartbeats,
    "identity_files": IdentityFiles,
    "lock_rpc": LockRpc,
    "membership": Membership,
    "offsets": Offsets,
    "order_info": OrderInfos,
    "pop_buffer": PopBuffer,
    "pop_client": PopClient,
    "pop_failover": PopFlow,
    "pop_flow": PopFlow,
    "pop_inflight": PopInFlight,
    "pop_kv": PopKv,
    "pop_locks": PopLocks,
    "pop_polling": PopPolling,
    "pop_revive": PopRevive,
    "pop_util": PopUtil,
    "producers": Producers,
    "query_assignment": QueryAssignments,
    "queue_locks": QueueLocks,
    "replicas": Replicas,
    "replicas_manager": ReplicasManagers,
    "route_table": NameserverTables,
    "schedule": Schedule,
    "slave_sync": SlaveSync,
    "timer_admit": TimerAdmit,
    "timer_files": TimerFiles,
    "timer_store": TimerStores,
    "timer_wheel": TimerWheels,
    "topics_groups": TopicsAndGroups,
    "wire": ControllerWire,
    "wire_json": WireJson,
}
"""Families of sequences."""

ANSWERERS: dict[str, Answerer] = {
    "alloc": allocate,
    "alloc4pop": alloc4pop,
    "auth_contexts": auth_contexts,
    "auth_names": auth_names,
    "broker_addr": broker_addr,
    "broker_config": broker_config,
    "client_route": client_route_answers.client_route,
    "names": names_and_texts,
    "offset_store": offset_store_answers.offset_store,
    "ordering": ordering,
    "pop": pop,
    "producer_select": producer_select,
    "properties": properties,
    "configuration": configuration,
    "rebalance": rebalance_answers.rebalance,
    "rebalance_push": rebalance_push_answers.rebalance_push,
    "ring": ring,
    "route": route,
    "subscription": subscription,
    "pq_clean_expired": pq_clean_expired,
    "process_queue": process_queue,
    "wire_body": wire_body,
    "wire_command": wire_command,
    "wire_header": wire_header,
}
"""Families of questions."""

COMPLETED: dict[str, Callable[[Question], Question]] = {
    "alloc4pop": with_callers,
    "rebalance": rebalance_answers.with_configured_queues,
    "wire_header": without_java_alone,
}
"""What makes a question whole of which a case sends a part."""

NORMAL_FORMS: dict[str, Callable[[Json], Json]] = {
    "client_route": client_route_answers.without_order_in_passes,
    "offset_store": offset_store_answers.without_hash_order,
    "pop": without_citations,
    "rebalance": rebalance_answers.without_hash_order,
    "wire_body": absent_is_nothing,
    "wire_command": in_any_order,
    "wire_header": without_nothing,
}
"""What makes two answers of a family alike that say the same."""

EXCEPTED: dict[tuple[str, str], str] = {
    ("names", "names/edge/clientconfig-defaults"): "half of them are options that a client of ours does not have",
    ("producer_select", "producer_select/edge/unknown-broker"): "pickOneAtLeast: no one calls it in 5.3.3 either",
    ("offset_store", "offset_store/edge/7"): "only an application commits and waits (commitSync), which ours never do",
    (
        "rebalance_push",
        "rebalance_push/edge/defaults",
    ): "consumeThreadMax, which RocketMQ never uses, and a wait at the end are no options here",
    ("wire_command", "wire_command/edge/versions"): "names of versions are for people; on the wire they are numbers",
    ("wire_header", "wire_header/EndTransactionRequestHeader"): "one without a decision is refused by its handler",
    ("auth_contexts", "auth_contexts/1002/key-alone"): "controllers answer it, which have no ACL 2.0",
    ("auth_contexts", "auth_contexts/41/no-group"): "a group that is missing is an empty one in our bodies",
    ("auth_contexts", "auth_contexts/42/no-group"): "the same",
    ("auth_metadata", "initial/type"): "the first user comes from an account, which has no status",
    ("route", "route/edge/clone"): "our routes are frozen: no copy shares what anybody could change",
}
"""Family and case that cannot agree by design -> reason."""
