"""The effect of `consume_mode`: notifies brokers whether the members of a group pull or pop."""

from emulator.cluster.effects.effect import Effect, ImpossibleError
from emulator.cluster.local_session import listening, send_to_brokers
from emulator.spec.model.scenario import BrokerSpec, ConsumerGroupSpec
from faults.consume_mode import ConsumeMode, SetConsumeMode
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.body_codec import encode_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, MessageRequestMode


class ConsumeModeEffect(Effect[SetConsumeMode]):
    """Sends the mode of each topic to the masters that listen; the newest active fault decides, else the scenario."""

    async def begin(self, fault_id: str, fault: SetConsumeMode) -> None:
        """Set the mode."""
        self.scene.count(fault_id, await self._send(fault))

    async def end(self, fault_id: str, fault: SetConsumeMode) -> None:  # noqa: ARG002 - the other active ones decide
        """Set what the newest fault that is still active says, or the scenario."""
        await self._send(fault)

    def require_possible(self, fault: SetConsumeMode) -> None:
        """Refuse to set what is set already, members that ask no broker, and a mode that no broker would receive."""
        spec = self._spec(fault)
        if spec.config.client_rebalance or spec.config.consume_orderly:
            raise ImpossibleError(
                f"the members of {spec.group} allocate their queues themselves: no broker notifies them"
            )
        if self._wanted(fault) == (fault.mode, fault.share):
            raise ImpossibleError(f"{fault.describe()} already: there is nothing to set")
        if not listening(self.scene.world, self.scene.cluster.hosts, self._masters(fault)):
            raise ImpossibleError("no master runs: there is none to set it at")

    def _spec(self, fault: SetConsumeMode) -> ConsumerGroupSpec:
        return next(spec for spec in self.scene.cluster.scenario.consumers if spec.group == fault.scope.group)

    def _wanted(self, fault: SetConsumeMode) -> tuple[ConsumeMode, int]:
        """Mode and share that count now at the brokers of a fault."""
        about = (fault.scope.group, fault.broker)
        active = [item for item in self.scene.active.values() if isinstance(item, SetConsumeMode)]
        active = [item for item in active if (item.scope.group, item.broker) == about]
        spec = self._spec(fault)
        return (
            (active[-1].mode, active[-1].share) if active else (ConsumeMode(spec.mode.value), spec.pop_share_queue_num)
        )

    def _masters(self, fault: SetConsumeMode) -> list[BrokerSpec]:
        """The brokers that the mode is sent to."""
        brokers = self.scene.cluster.scenario.brokers
        return [
            broker for broker in brokers if broker.broker_id == MASTER_ID and fault.broker in (None, broker.broker_name)
        ]

    async def _send(self, fault: SetConsumeMode) -> int:
        """Send the modes; returns how many brokers were notified."""
        scene, spec, brokers = self.scene, self._spec(fault), self._masters(fault)
        mode, share = self._wanted(fault)
        reported = 0
        for topic in spec.topics:
            body = SetMessageRequestModeRequestBody(topic, spec.group, MessageRequestMode(mode.upper()), share)
            command = Command(int(RequestCode.SET_MESSAGE_REQUEST_MODE), body=encode_body(body))
            reported = await send_to_brokers(scene.world, scene.cluster.hosts, brokers, command)
        return reported
