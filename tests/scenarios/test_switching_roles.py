"""What RocketMQ's own AutoSwitchRoleIntegrationTest does to brokers and a controller, with its options and waits.

That class constructs its servers itself, so it cannot run next to the emulator. Two of its six tests are missing: one
changes the address of a broker, which has one here, and one deletes a file of a log before a broker joins that has
never been there; here all brokers start before a script does. So a broker that is added stops here before the first
message.
"""

from collections.abc import Awaitable, Callable

from emulator.spec import loads
from emulator.testing import Stage, execute
from nodes.protocol.codes import ResponseCode
from support.asking_guest import Guest
from support.popping_guest import popping_guest

_SCENARIO = """
[scenario]
name = "switching-roles"
run_for_s = 3600
[network]
delay_ms = 1
[nameserver]
count = 1
[controller]
count = 1
{brokers}
[[topic]]
name = "orders"
queues = 1
"""
_BROKER = """
[[broker]]
name = "ba"
id = {number}
start_after_s = {after_s}
[broker.options]
enableControllerMode = true
haMaxTimeSlaveNotCatchup = 3000
haSendHeartbeatInterval = 1000
syncBrokerMetadataPeriod = 2000
checkSyncStateSetPeriod = 2000
totalReplicas = 3
{more}
inSyncReplicas = {in_sync}
"""
MESSAGES = 10
FIRST, SECOND, THIRD = "ba", "ba-s1", "ba-s2"


def run(
    script: Callable[[Stage, Guest], Awaitable[None]],
    starts_s: tuple[int, ...] = (0, 5),
    *,
    in_sync: int = 1,
    more: str = "",
) -> None:
    """Run a script, 25 s after the start, when the second broker has replicated for a while."""
    brokers = "".join(
        _BROKER.format(number=number, after_s=after_s, in_sync=in_sync, more=more)
        for number, after_s in enumerate(starts_s)
    )

    async def main(stage: Stage) -> None:
        guest = await popping_guest(stage)
        await stage.at_ms(25_000)
        await script(stage, guest)

    execute(loads(_SCENARIO.format(brokers=brokers), "switching-roles"), main)


async def put(guest: Guest, node: str) -> None:
    for _ in range(MESSAGES):
        assert (await guest.send(node)).code == ResponseCode.SUCCESS


def has(stage: Stage, node: str, count: int) -> bool:
    return len(stage.node(node).context.store.get_message("orders", 0, 0, 32).messages) >= count


async def replicated(stage: Stage, node: str, count: int) -> None:
    """Wait until a broker has messages, 30 s at most."""
    await stage.until(lambda: has(stage, node, count), 30_000)
    assert has(stage, node, count)


def role(stage: Stage, node: str):
    return stage.node(node).replica_role


def test_a_slave_that_stops_leaves_the_sync_state_set_within_six_seconds():
    async def script(stage: Stage, guest: Guest) -> None:
        await put(guest, FIRST)
        await replicated(stage, SECOND, MESSAGES)
        assert len(stage.node(FIRST).parts.group.ha.in_sync.local) == 2
        await stage.stop(SECOND)
        await stage.for_ms(6_000)
        assert len(stage.node(FIRST).parts.group.ha.in_sync.local) == 1

    run(script)


def test_a_master_that_stops_is_replaced_within_six_seconds_and_comes_back_as_a_slave():
    async def script(stage: Stage, guest: Guest) -> None:
        await put(guest, FIRST)
        await replicated(stage, SECOND, MESSAGES)
        await stage.stop(FIRST)
        await stage.for_ms(6_000)
        assert (role(stage, SECOND).is_master, role(stage, SECOND).master_epoch) == (True, 2)
        stage.start(FIRST)
        await stage.for_ms(20_000)
        assert not role(stage, FIRST).is_master
        assert role(stage, FIRST).master_address == stage.node(SECOND).context.address
        await put(guest, SECOND)
        await replicated(stage, FIRST, 2 * MESSAGES)

    run(script)


def test_brokers_go_on_while_there_is_no_controller():
    async def script(stage: Stage, guest: Guest) -> None:
        await put(guest, FIRST)
        await replicated(stage, SECOND, MESSAGES)
        await stage.stop("controller-1")
        await put(guest, FIRST)
        await replicated(stage, SECOND, 2 * MESSAGES)

    run(script, in_sync=2)


def test_a_broker_that_is_added_gets_what_was_stored_before_it_and_what_comes():
    async def script(stage: Stage, guest: Guest) -> None:
        await stage.stop(THIRD)
        await put(guest, FIRST)
        await stage.at_ms(60_000)
        stage.start(THIRD)
        await replicated(stage, THIRD, MESSAGES)
        await put(guest, FIRST)
        await replicated(stage, THIRD, 2 * MESSAGES)

    run(script, (0, 5, 10))


def epochs_of(stage: Stage, node: str) -> list[int]:
    return [entry.epoch for entry in stage.node(node).parts.group.ha.epochs.entries]


def test_an_epoch_is_forgotten_with_the_last_file_that_holds_its_messages():
    async def script(stage: Stage, guest: Guest) -> None:
        await put(guest, FIRST)
        await replicated(stage, SECOND, MESSAGES)
        await stage.stop(FIRST)
        await stage.for_ms(6_000)
        stage.start(FIRST)
        await put(guest, SECOND)
        await replicated(stage, FIRST, 2 * MESSAGES)
        assert (epochs_of(stage, FIRST), epochs_of(stage, SECOND)) == ([1, 2], [1, 2])
        while stage.node(SECOND).context.store.min_commit_log_offset == 0:
            await put(guest, SECOND)
        assert epochs_of(stage, SECOND) == [1, 2], "a part of its messages is still there"
        for _ in range(3):
            await put(guest, SECOND)
        await stage.for_ms(1_000)
        assert (epochs_of(stage, FIRST), epochs_of(stage, SECOND)) == ([2], [2])
        await stage.kill(FIRST)
        stage.start(FIRST)
        await stage.for_ms(10_000)
        assert epochs_of(stage, FIRST) == [2], "it has read its file again"

    run(script, more="storeMaxBytes = 16000")
