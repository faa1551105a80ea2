"""When a broker reports a new version of one of its tables."""

from broker.group_of_brokers import Member, believed
from emulator.testing.worlds import add_host, execute_world, process_of
from nodes.broker.clients.client_manage import ClientManage
from nodes.broker.registration.registration import NameserverRegistration
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import ConsumeFromWhere, ConsumerData, ConsumeType, HeartbeatData, MessageModel
from nodes.rpc.client import RpcClient
from nodes.rpc.typed import invoke

BEAT = HeartbeatData(
    "c1",
    (),
    (
        ConsumerData(
            "new", ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ()
        ),
    ),
)


def counters(executed, subject):
    return [value[2] for _, value in believed(executed, "b0", "data_version", subject)]


def test_499_commits_say_nothing_and_the_next_sends_a_new_version():
    def committed(times):
        async def main(world):
            broker = Member(world, 0)
            broker.context.versions.believe()
            for offset in range(times):
                broker.commit(offset)

        return counters(execute_world(main), "consumer_offsets")

    assert (committed(499), committed(500)) == ([0], [0, 1])


def test_versions_of_commits_are_reported_once_a_second_and_the_newest_when_offsets_are_persisted():
    async def main(world):
        broker = Member(world, 0, BrokerConfig(consumer_offset_update_version_step=1))
        await broker.offset_manage.start()
        for offset in range(25):
            broker.commit(offset)
            await broker.context.host.sleep_ms(100)
        await broker.context.host.sleep_ms(15_000)

    assert counters(execute_world(main), "consumer_offsets") == [1, 11, 21, 25]


def test_a_heartbeat_that_makes_a_group_and_its_retry_topic_reports_both_versions_once():
    async def main(world):
        broker = Member(world, 0)
        registration = NameserverRegistration(broker.context, broker.client, broker.group)
        clients = ClientManage(broker.context, broker.tables.clients, registration)
        broker.server.serve(clients.handlers())
        broker.context.versions.believe()
        client = RpcClient(process_of(add_host(world, 90, "c1")))
        for _ in range(2):
            await invoke(client, broker.context.address, RequestCode.HEART_BEAT, None, BEAT, timeout_ms=3_000)

    executed = execute_world(main)

    assert (counters(executed, "topics"), counters(executed, "subscription_groups")) == ([0, 1], [0, 1])


def test_a_broker_without_timer_reports_four_tables_another_of_five():
    def reported(**options):
        async def main(world):
            Member(world, 0, BrokerConfig(**options)).context.versions.believe()

        return [row["subject"] for row in execute_world(main).trace.select("beliefs", kind="data_version")]

    four = ["topics", "consumer_offsets", "subscription_groups", "delay_offsets"]
    assert reported(timer_wheel_enable=False) == four
    assert reported() == [*four, "timer_check_point"]
