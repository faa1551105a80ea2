"""The effect of faults of links: rules of the network fabric."""

from collections.abc import Mapping
from typing import TypeVar

from emulator.cluster.effects.effect import Effect
from emulator.network.link import LinkEffect, LinkRule, Matches, Quota, Sender
from faults.link import Cut, Delay, Drop, FrameFault, LinkFault, Loss, Partition, TcpLoss
from faults.refuse import Refuse
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command

L = TypeVar("L", bound=LinkFault)
_GROUP = ("consumerGroup", "producerGroup", "group")
_TOPIC = ("topic",)
_GROUP_V2, _TOPIC_V2 = ("a",), ("b",)
"""The names in the header of SEND_MESSAGE_V2."""


class LinksEffect(Effect[LinkFault], kinds=(Cut, Partition, Loss, TcpLoss, Delay, Drop, Refuse)):
    """A rule on the links as long as the fault lasts; it also hits frames in flight."""

    async def begin(self, fault_id: str, fault: LinkFault) -> None:
        """Add the rule of the fault."""
        self.scene.world.fabric.add_rule(link_rule(fault_id, fault))

    async def end(self, fault_id: str, fault: LinkFault) -> None:  # noqa: ARG002 - the rule bears the fault's id
        """Remove the rule of the fault."""
        self.scene.world.fabric.remove_rule(fault_id)


def link_rule(fault_id: str, fault: LinkFault) -> LinkRule:
    """The rule by which the network applies a fault."""
    covers = fault.scope.matches
    match fault:
        case Loss():
            return LinkRule(fault_id, LinkEffect.LOSS, covers, loss=fault.percent / 100, matches=frame_filter(fault))
        case TcpLoss():
            return LinkRule(fault_id, LinkEffect.TCP_LOSS, covers, loss=fault.percent / 100)
        case Delay():
            matches = frame_filter(fault)
            return LinkRule(
                fault_id, LinkEffect.DELAY, covers, delay_ms=fault.delay_ms, jitter_ms=fault.jitter_ms, matches=matches
            )
        case Drop():
            quota = Quota(fault.skip, fault.next)
            return LinkRule(fault_id, LinkEffect.DROP, covers, matches=frame_filter(fault), quota=quota)
        case Refuse():
            quota = Quota(fault.skip, fault.next)
            return LinkRule(
                fault_id, LinkEffect.REFUSE, covers, matches=frame_filter(fault), quota=quota, response=fault.response
            )
        case _:
            return LinkRule(fault_id, LinkEffect.CUT, covers)


def frame_filter(fault: FrameFault) -> Matches | None:
    """A predicate for the frames that a fault hits; None: all frames."""
    if fault.matches_all:
        return None
    code, group, topic, during = fault.code, fault.group, fault.topic, fault.during

    def matches(sender: Sender, command: Command) -> bool:
        request_code = command.request_code if command.is_response else command.code
        return (
            code in (None, request_code)
            and (group is None or _says(command, _GROUP, _GROUP_V2, group))
            and (topic is None or _says(command, _TOPIC, _TOPIC_V2, topic))
            and (during is None or sender.is_in(during))
        )

    return matches


def _says(command: Command, names: tuple[str, ...], names_v2: tuple[str, ...], wanted: str) -> bool:
    if command.is_response:
        return False
    fields: Mapping[str, str] = command.ext_fields
    is_v2 = command.code == RequestCode.SEND_MESSAGE_V2
    return any(fields.get(name) == wanted for name in (names_v2 if is_v2 else names))
