"""What a client makes of the messages of a stream."""

from collections.abc import Iterable

from emulator.guests.grpc.messages import message_class
from emulator.guests.grpc.translation import translation
from nodes.protocol.v2.definition import Message, Status
from nodes.protocol.v2.service import ReceiveMessageResponse


def received_message(parts: Iterable[bytes]) -> ReceiveMessageResponse:
    """The whole answer to ReceiveMessage."""
    status, messages, delivery_timestamp_ms = Status(), [], None
    for content in parts:
        part = message_class("ReceiveMessageResponse").FromString(content)
        match part.WhichOneof("content"):
            case "status":
                status = translation(Status).to_value(part.status)
            case "message":
                messages.append(translation(Message).to_value(part.message))
            case "delivery_timestamp":
                delivery_timestamp_ms = part.delivery_timestamp.ToMilliseconds()
    return ReceiveMessageResponse(status, tuple(messages), delivery_timestamp_ms)
