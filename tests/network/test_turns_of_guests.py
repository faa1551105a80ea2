"""What is asked over gRPC is handled in turns: one of each peer address, and of each of its connections."""

from collections import Counter

import trio

from emulator.network.guests.turns import GuestTurns


def handled(waits, *, cost_s=0.0):
    """Let (address, connection, number of pieces) begin at once, in this order; returns how they began, by pass."""
    turns = GuestTurns()
    passes = [[]]

    async def piece(address, connection):
        await turns.begin(address, connection)
        passes[-1].append(connection)
        turns.charge(cost_s)

    async def main():
        async with trio.open_nursery() as nursery:
            for address, connection, number in waits:
                for _ in range(number):
                    nursery.start_soon(piece, address, connection)
            while len(nursery.child_tasks):
                await trio.lowlevel.checkpoint()
                if passes[-1]:
                    passes.append([])

    trio.run(main)
    return [begun for begun in passes if begun]


def order(passes):
    return [connection for begun in passes for connection in begun]


def test_a_connection_with_one_piece_waits_for_one_of_each_other():
    passes = handled([("a", name, 200) for name in "xyz"] + [("a", "good", 1)], cost_s=0.001)

    assert order(passes).index("good") <= len(passes[0]) + 24, (
        "of 600 before it; trio may turn the order of a pass around"
    )
    assert Counter(order(passes)) == {"x": 200, "y": 200, "z": 200, "good": 1}


def test_many_connections_of_one_address_have_one_turn_together():
    crowd = [("crowd", f"c{number}", 20) for number in range(40)]
    begun = order(handled([*crowd, ("other", "good", 20)], cost_s=0.001))

    assert begun.index("good") <= 64, "of 800 before it"
    assert len(begun) - 1 - begun[::-1].index("good") <= 160, "every second turn is that of the other address"


def test_a_task_that_is_cancelled_leaves_its_place():
    turns, begun = GuestTurns(), []

    async def piece(connection):
        await turns.begin("a", connection)
        begun.append(connection)

    async def main():
        async with trio.open_nursery() as nursery, trio.open_nursery() as gone:
            for _ in range(100):
                gone.start_soon(piece, "x")
            await trio.lowlevel.checkpoint()
            gone.cancel_scope.cancel()
            nursery.start_soon(piece, "y")

    trio.run(main)
    assert begun[-1] == "y"
    assert len(begun) < 100
