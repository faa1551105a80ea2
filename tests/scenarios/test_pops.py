"""Pops of a broker, and what it answers to acknowledgements and changes of the invisible time."""

from collections.abc import Awaitable, Callable

from emulator.testing import Stage, Trace, a_scenario, play
from nodes.config import BrokerConfig
from nodes.protocol.codes import ResponseCode
from support.popping_guest import BROKER, PoppingGuest, popping_guest


def pops(script: Callable[[PoppingGuest], Awaitable[None]], **options: object) -> Trace:
    """Play a script against one broker with the topic `orders`, with four queues."""

    async def main(stage: Stage) -> None:
        await script(await popping_guest(stage))

    return play(a_scenario(broker=BrokerConfig(**options)), main)  # type: ignore[arg-type]


def test_a_pop_hands_messages_out_once() -> None:
    async def script(guest: PoppingGuest) -> None:
        for _ in range(3):
            await guest.send(BROKER)
        first = await guest.pop(most=2)
        second = await guest.pop()
        assert (first.code, first.offsets, first.header.rest_num) == (ResponseCode.SUCCESS, [0, 1], 1)
        assert (second.offsets, second.header.rest_num) == ([2], 0)
        assert (await guest.pop()).code == ResponseCode.POLLING_TIMEOUT
        await guest.ack_all(first)

    trace = pops(script)
    assert [row.offset for row in trace.select("messages", event="popped")] == [0, 1, 2]
    assert [row.offset for row in trace.select("messages", event="acked")] == [0, 1]
