"""Events: what a controller writes to the replicated log, and how.

An entry of the log is the type of its event in two bytes, and JSON. Epochs stand in no event: a member that applies one
counts them.

Mirrors:
    `org.apache.rocketmq.controller.impl.event.*`.
"""

import json
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from nodes.protocol.java import long_set
from nodes.protocol.json_text import to_json
from nodes.protocol.wire_names import wire, wire_name
from nodes.values import frozen


class DamagedEntryError(ValueError):
    """An entry of the log is none that a controller has written."""


_TYPE_BYTES = 2
_EVENT_TYPE = "eventType"


class EventType(IntEnum):
    """The first two bytes of an entry. Type 4 belongs to reads, which are never written."""

    ALTER_SYNC_STATE_SET_EVENT = 1
    APPLY_BROKER_ID_EVENT = 2
    ELECT_MASTER_EVENT = 3
    CLEAN_BROKER_DATA_EVENT = 5
    UPDATE_BROKER_ADDRESS = 6


@frozen
class AlterSyncStateSet:
    """The master of a group has said who is in sync."""

    event_type: ClassVar[EventType] = EventType.ALTER_SYNC_STATE_SET_EVENT

    broker_name: str
    new_sync_state_set: tuple[int, ...] = attrs.field(converter=long_set)


@frozen
class ApplyBrokerId:
    """A broker has got an id for ever."""

    event_type: ClassVar[EventType] = EventType.APPLY_BROKER_ID_EVENT

    cluster_name: str
    broker_name: str
    broker_address: str
    new_broker_id: int
    register_check_code: str


@frozen
class ElectMaster:
    """A group has got a master, or has lost it because no one could be elected."""

    event_type: ClassVar[EventType] = EventType.ELECT_MASTER_EVENT

    broker_name: str
    new_master_elected: bool
    new_master_broker_id: int | None = None


@frozen
class CleanBrokerData:
    """An operator has removed replicas."""

    event_type: ClassVar[EventType] = EventType.CLEAN_BROKER_DATA_EVENT

    broker_name: str
    broker_ids: tuple[int, ...] | None = attrs.field(
        converter=attrs.converters.optional(long_set), metadata=wire("brokerIdSetToClean")
    )
    """None: the whole group."""


@frozen
class UpdateBrokerAddress:
    """A broker has moved."""

    event_type: ClassVar[EventType] = EventType.UPDATE_BROKER_ADDRESS

    cluster_name: str
    broker_name: str
    broker_address: str
    broker_id: int


Event = AlterSyncStateSet | ApplyBrokerId | ElectMaster | CleanBrokerData | UpdateBrokerAddress

_CLASSES: Mapping[int, type[Any]] = MappingProxyType(
    {
        int(cls.event_type): cls
        for cls in (AlterSyncStateSet, ApplyBrokerId, ElectMaster, CleanBrokerData, UpdateBrokerAddress)
    }
)


def to_log_entry(event: Event) -> bytes:
    """Write an event.

    Mirrors:
        `org.apache.rocketmq.controller.impl.event.EventSerializer#serialize`.
    """
    fields = {wire_name(type(event), field): getattr(event, field.name) for field in attrs.fields(type(event))}
    fields[_EVENT_TYPE] = event.event_type.name
    shown = {name: value for name, value in sorted(fields.items()) if value is not None}
    return event.event_type.to_bytes(_TYPE_BYTES, "big") + to_json(shown).encode()


def event_of(entry: bytes) -> Event:
    """Read an entry that `to_log_entry` wrote.

    Raises:
        DamagedEntryError: it is none.

    Mirrors:
        `org.apache.rocketmq.controller.impl.event.EventSerializer#deserialize`.
    """
    try:
        cls = _CLASSES[int.from_bytes(entry[:_TYPE_BYTES], "big")]
        fields: dict[str, Any] = json.loads(entry[_TYPE_BYTES:])
        event: Event = cls(**{field.name: fields.get(wire_name(cls, field)) for field in attrs.fields(cls)})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedEntryError(f"{entry[:80]!r} is no event") from error
    return event
