"""The ends of an HA link in controller mode as threads: how often a handshake is answered, how long a slave pauses."""

import attrs
import pytest

from emulator.testing.worlds import PORT, add_host, connected, execute_world, listening, process_of, until_ms
from nodes.broker.ha.auto_switch_client import AutoSwitchHaClient
from nodes.broker.ha.auto_switch_connection import AutoSwitchHaConnection
from nodes.broker.tables.ha.auto_switch_frames import (
    encode_master_handshake,
    encode_slave_handshake,
    parse_master_handshake,
    parse_slave_handshake,
)
from nodes.broker.tables.ha.auto_switch_link import MasterHandshake, SlaveHandshake
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig

SHARED = MasterHandshake(0, 1, ((1, 0),))
FOREIGN = MasterHandshake(100, 7, ((7, 50),))
NEW_ADDRESS = f"127.1.1.3:{PORT}"


@attrs.define
class FakeMaster:
    """Answers each handshake several times, or with an epoch that no slave knows."""

    answers: tuple
    now_ms: object
    handshakes_ms: list = attrs.Factory(list)

    def on_open(self, _channel):
        pass

    def on_command(self, channel, command):
        if parse_slave_handshake(command) is not None:
            self.handshakes_ms.append(self.now_ms())
            for answer in self.answers:
                channel.send(encode_master_handshake(answer))

    def on_close(self, _channel):
        pass


def handshakes(answers, *, new_address_ms=None):
    """When a slave shook hands with its first master, which answers so, and with the one whose address came later."""

    async def main(world):
        def now_ms():
            return world.timeline.now_ns // 1_000_000

        masters = []
        for number, answered in ((2, answers), (3, (SHARED,))):
            masters.append(FakeMaster(answered, now_ms))
            host = process_of(add_host(world, number, f"master-{number}"))
            host.listen(PORT, masters[-1])
        host = process_of(add_host(world, 1, "slave"))
        epochs = EpochFile()
        epochs.append(1, 0)
        nothing = [lambda *_: None] * 4
        client = AutoSwitchHaClient(host, BrokerConfig(), MessageStore("127.1.1.1:10911"), 1, epochs, *nothing)
        client.update_master_address(f"127.1.1.2:{PORT}")
        client.start()
        if new_address_ms is not None:
            await until_ms(world, new_address_ms)
            client.update_master_address(NEW_ADDRESS)
        await until_ms(world, 14_000)
        return [master.handshakes_ms for master in masters]

    return execute_world(main).result


def test_a_slave_that_gets_a_second_answer_pauses_for_5_s():
    first, _ = handshakes((SHARED, SHARED))

    assert [at_ms // 1_000 for at_ms in first] == [0, 5, 10]


def test_a_slave_whose_logs_share_no_epoch_waits_2_s_and_then_pauses_for_5_s():
    first, _ = handshakes((FOREIGN,))

    # The address that the slave started with was still to wake it, and ended its first wait of 2 s.
    assert [at_ms // 1_000 for at_ms in first] == [0, 5, 12]


@pytest.mark.parametrize("answers", [(SHARED, SHARED), (FOREIGN,)])
def test_an_address_that_came_before_such_an_answer_does_not_end_the_pause(answers):
    first, second = handshakes(answers, new_address_ms=0)

    assert len(first) == 1
    assert second[0] // 1_000 == 5


def test_an_address_that_comes_in_the_pause_ends_it():
    _, second = handshakes((SHARED, SHARED), new_address_ms=2_500)

    assert second == [2_500]


def test_a_master_that_reads_several_handshakes_at_once_answers_once():
    async def main(world):
        server, _ = await listening(world, 1, "master")
        channel, _ = await connected(add_host(world, 2, "slave"), server)
        answered = []

        @attrs.define
        class Recorded:
            remote_address = channel.remote_address
            closed = False

            def send(self, command):
                answered.append(parse_master_handshake(command))

            def close(self):
                pass

        epochs = EpochFile()
        epochs.append(1, 0)
        in_sync = MasterSyncStateSet(epochs, all_ack_in_sync_state_set=False, ha_max_time_slave_not_catchup_ms=15_000)
        nothing = [lambda *_: None] * 3
        store = MessageStore("127.1.1.1:10911")
        host = process_of(server)
        end = AutoSwitchHaConnection(host, BrokerConfig(), store, Recorded(), epochs, in_sync, *nothing)
        for _ in range(4):
            end.on_command(encode_slave_handshake(SlaveHandshake(1)))
        await until_ms(world, 100)
        end.on_command(encode_slave_handshake(SlaveHandshake(1)))
        await until_ms(world, 200)
        return answered

    assert len(execute_world(main).result) == 2
