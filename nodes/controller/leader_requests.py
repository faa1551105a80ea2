"""The requests that only a leading controller answers: each becomes an operation for its queue.

Mirrors:
    `org.apache.rocketmq.controller.processor.ControllerRequestProcessor`.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from nodes.controller.event_queue import Operation
from nodes.controller.tables.heartbeats import Liveness
from nodes.controller.tables.replicas_info import ReplicasInfoManager
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import decode_body, decode_header

T = TypeVar("T")
Prepare = Callable[[Command], Operation | None]
"""Reads a request; None: it asks for nothing."""


class LeaderRequests:
    """Reads requests about one controller's state.

    Args:
        manager: what is done.
        alive: returns the brokers that the controller believes alive when it is done.
    """

    def __init__(self, manager: ReplicasInfoManager, alive: Callable[[], Liveness]) -> None:
        self._manager = manager
        self._alive = alive

    def prepared(self) -> Mapping[RequestCode, Prepare]:
        """Request code -> what reads it."""
        return {
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: self._alter_sync_state_set,
            RequestCode.CONTROLLER_ELECT_MASTER: self._elect_master,
            RequestCode.CONTROLLER_REGISTER_BROKER: self._register_broker,
            RequestCode.CONTROLLER_GET_REPLICA_INFO: self._get_replica_info,
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: self._get_sync_state_data,
            RequestCode.CLEAN_BROKER_DATA: self._clean_broker_data,
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: self._get_next_broker_id,
            RequestCode.CONTROLLER_APPLY_BROKER_ID: self._apply_broker_id,
        }

    def _alter_sync_state_set(self, request: Command) -> Operation:
        requested = _header(headers.AlterSyncStateSetRequestHeader, request)
        answer = decode_body(SyncStateSet, request.body)
        return lambda: self._manager.alter_sync_state_set(requested, answer, self._alive())

    def _elect_master(self, request: Command) -> Operation:
        requested = _header(headers.ElectMasterRequestHeader, request)
        return lambda: self._manager.elect_master(requested, self._alive())

    def _register_broker(self, request: Command) -> Operation:
        requested = _header(headers.RegisterBrokerToControllerRequestHeader, request)
        return lambda: self._manager.register_broker(requested, self._alive())

    def _get_replica_info(self, request: Command) -> Operation:
        requested = _header(headers.GetReplicaInfoRequestHeader, request)
        return lambda: self._manager.get_replica_info(requested)

    def _get_sync_state_data(self, request: Command) -> Operation | None:
        names = decode_body(tuple[str, ...], request.body) if request.body else ()
        return (lambda: self._manager.get_sync_state_data(names, self._alive())) if names else None

    def _clean_broker_data(self, request: Command) -> Operation:
        requested = _header(headers.CleanControllerBrokerDataRequestHeader, request)
        return lambda: self._manager.clean_broker_data(requested, self._alive())

    def _get_next_broker_id(self, request: Command) -> Operation:
        requested = _header(headers.GetNextBrokerIdRequestHeader, request)
        return lambda: self._manager.get_next_broker_id(requested)

    def _apply_broker_id(self, request: Command) -> Operation:
        requested = _header(headers.ApplyBrokerIdRequestHeader, request)
        return lambda: self._manager.apply_broker_id(requested)


def _header(cls: type[T], request: Command) -> T:
    return decode_header(cls, request.ext_fields)
