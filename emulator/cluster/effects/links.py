"""The effect of faults of links: rules of the network fabric."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeVar

from emulator.cluster.effects.effect import Effect
from emulator.network.link import LinkEffect, LinkRule, Matches, Quota, Sender
from faults.link import Cut, Delay, Drop, FrameFault, LinkFault, Loss, Partition, TcpLoss
from faults.refuse import Refuse
from nodes.protocol.command import Command
from nodes.protocol.registry import EXCHANGES

L = TypeVar("L", bound=LinkFault)
_GROUP_FIELDS: Mapping[int, tuple[str, ...]] = {code: exchange.group_fields for code, exchange in EXCHANGES.items()}
_TOPIC_FIELDS: Mapping[int, tuple[str, ...]] = {
    code: (exchange.topic_field,) if exchange.topic_field else () for code, exchange in EXCHANGES.items()
}
_USUAL_GROUP_FIELDS, _USUAL_TOPIC_FIELDS = ("consumerGroup", "producerGroup", "group"), ("topic",)
"""Those of requests that no node answers."""


class LinksEffect(Effect[L]):
    """A rule on the links as long as the fault lasts; it also hits frames in flight."""

    async def begin(self, fault_id: str, fault: L) -> None:
        """Add the rule of the fault."""
        self.scene.world.fabric.add_rule(self.rule(fault_id, fault))

    async def end(self, fault_id: str, fault: L) -> None:  # noqa: ARG002 - the rule bears the fault's id
        """Remove the rule of the fault."""
        self.scene.world.fabric.remove_rule(fault_id)

    @staticmethod
    @abstractmethod
    def rule(fault_id: str, fault: L) -> LinkRule:
        """The fault as the network applies it."""


class CutEffect(LinksEffect[Cut | Partition]):
    """No frame passes."""

    @staticmethod
    def rule(fault_id: str, fault: Cut | Partition) -> LinkRule:
        """Cut all links of the scope."""
        return LinkRule(fault_id, LinkEffect.CUT, fault.scope.matches)


class LossEffect(LinksEffect[Loss]):
    """A share of the frames vanishes."""

    @staticmethod
    def rule(fault_id: str, fault: Loss) -> LinkRule:
        """Lose them by chance."""
        share = fault.percent / 100
        return LinkRule(fault_id, LinkEffect.LOSS, fault.scope.matches, loss=share, matches=frame_filter(fault))


class TcpLossEffect(LinksEffect[TcpLoss]):
    """A share of the segments is lost, and repeated."""

    @staticmethod
    def rule(fault_id: str, fault: TcpLoss) -> LinkRule:
        """Lose them by chance."""
        return LinkRule(fault_id, LinkEffect.TCP_LOSS, fault.scope.matches, loss=fault.percent / 100)


class DelayEffect(LinksEffect[Delay]):
    """Frames take longer."""

    @staticmethod
    def rule(fault_id: str, fault: Delay) -> LinkRule:
        """Delay each, with jitter."""
        return LinkRule(
            fault_id,
            LinkEffect.DELAY,
            fault.scope.matches,
            delay_ms=fault.delay_ms,
            jitter_ms=fault.jitter_ms,
            matches=frame_filter(fault),
        )


class DropEffect(LinksEffect[Drop]):
    """The next few frames vanish."""

    @staticmethod
    def rule(fault_id: str, fault: Drop) -> LinkRule:
        """Drop them, up to the quota."""
        quota = Quota(fault.skip, fault.next)
        return LinkRule(fault_id, LinkEffect.DROP, fault.scope.matches, matches=frame_filter(fault), quota=quota)


class RefuseEffect(LinksEffect[Refuse]):
    """The next few requests are answered with an error."""

    @staticmethod
    def rule(fault_id: str, fault: Refuse) -> LinkRule:
        """Refuse them, up to the quota."""
        return LinkRule(
            fault_id,
            LinkEffect.REFUSE,
            fault.scope.matches,
            matches=frame_filter(fault),
            quota=Quota(fault.skip, fault.next),
            response=fault.response,
        )


def frame_filter(fault: FrameFault) -> Matches | None:
    """A predicate for the frames that a fault hits; None: all frames."""
    if fault.matches_all:
        return None
    code, group, topic, during = fault.code, fault.group, fault.topic, fault.during

    def matches(sender: Sender, command: Command) -> bool:
        request_code = command.request_code if command.is_response else command.code
        return (
            code in (None, request_code)
            and (group is None or _has(command, _GROUP_FIELDS.get(command.code, _USUAL_GROUP_FIELDS), group))
            and (topic is None or _has(command, _TOPIC_FIELDS.get(command.code, _USUAL_TOPIC_FIELDS), topic))
            and (during is None or sender.is_in(during))
        )

    return matches


def _has(command: Command, names: tuple[str, ...], wanted: str) -> bool:
    return not command.is_response and any(command.ext_fields.get(name) == wanted for name in names)
