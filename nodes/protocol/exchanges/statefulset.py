"""Requests that RocketMQ does not have: those of the StatefulSet design."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import headers_statefulset
from nodes.protocol.admin_request import OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

STATEFULSET_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.GET_SCALE: Exchange(
            headers_statefulset.StatefulSetHeader,
            response_header=headers_statefulset.ScaleHeader,
            answered_by=NodeRole.KUBERNETES | NodeRole.SCALER,
            admin=OtherReason.READS,
        ),
        RequestCode.PUT_SCALE: Exchange(
            headers_statefulset.PutScaleRequestHeader, answered_by=NodeRole.KUBERNETES, admin=OtherReason.STATEFULSET
        ),
        RequestCode.ROLLOUT: Exchange(
            headers_statefulset.RolloutRequestHeader, answered_by=NodeRole.KUBERNETES, admin=OtherReason.STATEFULSET
        ),
        RequestCode.PROBE: Exchange(
            headers_statefulset.ProbeRequestHeader, answered_by=NodeRole.POD, admin=OtherReason.STATEFULSET
        ),
        RequestCode.REPLICAS_CHANGED: Exchange(
            headers_statefulset.ScaleHeader, answered_by=NodeRole.CLIENT, admin=OtherReason.STATEFULSET
        ),
        RequestCode.CANCEL_CONSUMER: Exchange(
            headers_statefulset.CancelConsumerRequestHeader, answered_by=NodeRole.BROKER, admin=OtherReason.CLIENTS
        ),
    }
)
