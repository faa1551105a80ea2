"""Which frames a fault means, by what stands in their headers and by what their nodes are doing."""

from collections.abc import Mapping

from emulator.network.endpoint import Endpoint
from emulator.network.link import Means
from faults.link import Delay, Drop, Loss
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command

_GROUP = ("consumerGroup", "producerGroup", "group")
_TOPIC = ("topic",)
_GROUP_V2, _TOPIC_V2 = ("a",), ("b",)
"""The names in the header of SEND_MESSAGE_V2."""


def frames_meant(fault: Loss | Delay | Drop) -> Means | None:
    """Whether a fault means a frame; None where it means all of them."""
    if fault.means_all:
        return None
    code, group, topic, during = fault.code, fault.group, fault.topic, fault.during

    def means(sender: Endpoint, command: Command) -> bool:
        request_code = command.request_code if command.is_response else command.code
        return (
            code in (None, request_code)
            and (group is None or _says(command, _GROUP, _GROUP_V2, group))
            and (topic is None or _says(command, _TOPIC, _TOPIC_V2, topic))
            and (during is None or sender.process.is_in(during) or sender.peer.process.is_in(during))
        )

    return means


def _says(command: Command, names: tuple[str, ...], names_v2: tuple[str, ...], wanted: str) -> bool:
    if command.is_response:
        return False
    fields: Mapping[str, str] = command.ext_fields
    is_v2 = command.code == RequestCode.SEND_MESSAGE_V2
    return any(fields.get(name) == wanted for name in (names_v2 if is_v2 else names))
