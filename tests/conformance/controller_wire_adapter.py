"""Family wire: one request or answer of controller mode, and one entry of the controllers' log, as text.

A case reports the fields of the header, and its body only by the text that came out; the values behind those texts
stand here.
"""

import attrs

from conformance.controller_events import event_of, shown_event
from conformance.executing import Adapter
from nodes.controller.tables import events
from nodes.protocol.bodies import BrokerMemberGroup
from nodes.protocol.bodies_controller import (
    ElectMasterResponseBody,
    EpochEntry,
    EpochEntryCache,
    SyncStateSet,
)
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchanges.controllers import CONTROLLER_EXCHANGES
from nodes.protocol.header_codec import encode_header
from nodes.protocol.json_text import to_json
from nodes.protocol.registry import EXCHANGES
from nodes.protocol.widths import INT64_MAX
from nodes.protocol.wire_names import wire_name

INVOKE_TIME = {"invokeTime": 123}
ADDRESSES = {1: "10.0.0.1:10911", 2: "10.0.0.2:10911"}
VALUES = {
    "alter": SyncStateSet((1, 2, 3), 4),
    "alter response": SyncStateSet((1, 2), 5),
    "register response empty": SyncStateSet((), 0),
    "sync state data": ("b1", "b2"),
    "role changed": SyncStateSet((2,), 9),
    "role changed nulls": SyncStateSet((), 9),
    "elect body": ElectMasterResponseBody((2,), BrokerMemberGroup("c1", "b1", ADDRESSES)),
    "elect body still exists": ElectMasterResponseBody((2, 3)),
    "epoch cache body": EpochEntryCache("c1", "b1", 0, (EpochEntry(1, 0, 100), EpochEntry(3, 100, INT64_MAX)), 250),
}
RAW = {"update config": "enableElectUncleanMaster=true\n"}


class ControllerWire(Adapter):
    def encode(self, code, fields, **case):
        subject = case["what"]
        body = to_json(VALUES[subject]) if subject in VALUES else RAW.get(subject)
        return {"extFields": encode_header(header_of(code, fields)) if fields else {}, "body": body}

    def event(self, event):
        entry = events.to_log_entry(event_of(event))
        return {
            "typeHex": entry[:2].hex(),
            "json": entry[2:].decode(),
            "decoded": shown_event(events.event_of(entry)),
        }


def header_of(code, fields):
    """The header of a request, or of the one answer that has all these fields."""
    if code:
        classes = [EXCHANGES[RequestCode(code)].request_header]
    else:
        classes = [exchange.response_header for exchange in CONTROLLER_EXCHANGES.values()]
    for cls in classes:
        named = {wire_name(cls, field): field.name for field in attrs.fields(cls)}
        if named.keys() >= fields.keys():
            answer = {**{name: value for name, value in INVOKE_TIME.items() if name in named}, **fields}
            return cls(**{named[name]: value for name, value in answer.items()})
    raise AssertionError(f"no header has {fields}")
