"""What a program of administrators did in a run is done again by `by_hand.toml`, request by request."""

from pathlib import Path

import attrs
import pytest

from emulator.acts.catalogue import act_of
from emulator.console.guest_acts import AdminRequestRow, act_of_row
from emulator.run import run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.run.verify import repeat
from emulator.spec import load
from emulator.testing import Stage, Trace, a_scenario, broker_groups
from emulator.trace.run_directory import open_run
from emulator.trace.schema import ADMIN
from nodes.protocol import headers, headers_admin
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.headers_message import ResetOffsetRequestHeader
from support.administrator import an_administrator, run_administered
from support.every_case import each_case
from support.run_rows import table_rows

EPOCH_MS = 1_735_689_600_000
NAMES = ("node", "request", "topic", "group", "broker_name", "detail")


def scenario():
    brokers = broker_groups("broker-a", "broker-b")
    made = a_scenario(nameservers=2, brokers=brokers, consumers=2, rate_per_s=5)
    return attrs.evolve(made, run_for_ms=150_000)


async def ten_acts(stage: Stage) -> None:
    """A session with mqadmin: each command as the requests that it sends."""
    await stage.at_ms(30_000)
    admin = await an_administrator(stage)
    await admin.create_topic("news", queues=4)
    await stage.at_ms(40_000)
    await admin.create_topic("orders", queues=8)
    await stage.at_ms(50_000)
    await admin.update_group("h", retry_max_times=3)
    await stage.at_ms(60_000)
    await admin.update_group("g", consume_enable=False)
    await stage.at_ms(70_000)
    await admin.update_group("g", consume_from_min_enable=False, consume_broadcast_enable=False)
    await stage.at_ms(80_000)
    await admin.reset_offsets("g", "orders", timestamp=EPOCH_MS + 20_000)
    await stage.at_ms(90_000)
    await admin.change("broker-b", Code.UPDATE_CONSUMER_OFFSET, _commit("h", 0, 5))
    await stage.at_ms(100_000)
    await admin.change("broker-a", Code.UPDATE_BROKER_CONFIG, None, b"brokerPermission=4\n")
    await stage.at_ms(110_000)
    for name in ("ns-1", "ns-2"):
        await admin.change(name, Code.WIPE_WRITE_PERM_OF_BROKER, headers.WritePermRequestHeader("broker-b"))
    await stage.at_ms(120_000)
    await admin.delete_topic("news")


def _commit(group: str, queue_id: int, offset: int) -> headers.UpdateConsumerOffsetRequestHeader:
    return headers.UpdateConsumerOffsetRequestHeader(group, "orders", queue_id, offset)


def changes(path: Path) -> list[tuple[object, ...]]:
    """What each row of administrators names, and its details without what a connection decides."""
    return [tuple(row[name] for name in NAMES) for row in table_rows(path, ADMIN)]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trace]:
    return run_administered(scenario(), tmp_path_factory.mktemp("session"), ten_acts)


def test_ten_acts_are_done_again_at_the_same_nodes_in_the_same_order(session, tmp_path: Path):
    path, _ = session
    replay = load(path / BY_HAND_FILE)
    assert len({timed.act.line().partition(" on ")[0] for timed in replay.acts}) >= 10
    again = run_scenario(replay, runs=tmp_path)
    first, second = changes(path), changes(again.path)
    assert len(first) == 20
    assert [row[:5] for row in second] == [row[:5] for row in first]
    # Other headers have more or fewer fields of the same meaning.
    assert [row for row in second if row[1] in _WHOLE] == [row for row in first if row[1] in _WHOLE]


_WHOLE = (Code.INVOKE_BROKER_TO_RESET_OFFSET.name, Code.UPDATE_BROKER_CONFIG.name)


def test_done_again_twice_they_give_the_same_digest(session, tmp_path: Path):
    path, _ = session
    again = run_scenario(load(path / BY_HAND_FILE), runs=tmp_path)
    assert repeat(open_run(again.path)) is None


def test_what_no_act_stands_for_is_a_comment(tmp_path: Path):
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        admin = await an_administrator(stage)
        await admin.change("broker-a", Code.CLEAN_UNUSED_TOPIC)
        clone = headers_admin.CloneGroupOffsetRequestHeader("g", "h", "orders", offline=True)
        await admin.change("broker-a", Code.CLONE_GROUP_OFFSET, clone)

    path, _ = run_administered(attrs.evolve(scenario(), run_for_ms=30_000), tmp_path, script)
    text = (path / BY_HAND_FILE).read_text()
    assert "# Not repeated: 20.003 s: CLEAN_UNUSED_TOPIC at broker-a: no act stands for it" in text
    assert "# Not repeated: 20.005 s: CLONE_GROUP_OFFSET orders h at broker-a: no act stands for it" in text
    assert load(path / BY_HAND_FILE).acts == ()


def test_a_name_with_a_new_line_is_no_line_of_the_file(tmp_path: Path):
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        admin = await an_administrator(stage)
        await admin.change(
            "broker-a", Code.DELETE_TOPIC_IN_BROKER, headers_admin.TopicHeader("a\n[scenario]\nseed = 7")
        )

    path, _ = run_administered(attrs.evolve(scenario(), run_for_ms=30_000), tmp_path, script)
    text = (path / BY_HAND_FILE).read_text()
    assert text.count("\n[scenario]\n") == 1
    assert load(path / BY_HAND_FILE).seed == 1


def test_a_reset_of_one_queue_is_one_act_although_it_is_two_requests(tmp_path: Path):
    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        admin = await an_administrator(stage)
        await admin.change("broker-a", Code.UPDATE_CONSUMER_OFFSET, _commit("g", 1, 7))
        await admin.change(
            "broker-a", Code.INVOKE_BROKER_TO_RESET_OFFSET, ResetOffsetRequestHeader("g", "orders", 1, 7)
        )

    path, _ = run_administered(attrs.evolve(scenario(), run_for_ms=50_000), tmp_path, script)
    (timed,) = load(path / BY_HAND_FILE).acts
    assert timed.act.line() == "reset-offset g orders 1 7 on broker-a"


@each_case(
    ("request_name", "named", "detail", "line"),
    [
        (
            Code.UPDATE_AND_CREATE_TOPIC,
            ("t", "", "b"),
            {"readQueueNums": "8", "writeQueueNums": "4", "perm": "6"},
            "update-topic t queues 8 read 8 write 4 on b",
        ),
        (
            Code.UPDATE_AND_CREATE_TOPIC_LIST,
            ("t", "", "b"),
            {"readQueueNums": 2, "writeQueueNums": 2, "perm": 4, "order": False, "attributes": {}},
            "update-topic t queues 2 perm 4 on b",
        ),
        (Code.UPDATE_AND_CREATE_TOPIC, ("t", "", "b"), {"order": "true"}, "update-topic t queues 8 order true on b"),
        (
            Code.UPDATE_AND_CREATE_TOPIC,
            ("t", "", "b"),
            {"attributes": "+message.type=FIFO,-a"},
            "update-topic t queues 8 attributes +message.type=FIFO,-a on b",
        ),
        (
            Code.UPDATE_AND_CREATE_TOPIC_LIST,
            ("t", "", "b"),
            {"readQueueNums": 2, "writeQueueNums": 2, "attributes": {"+message.type": "FIFO", "-a": ""}},
            "update-topic t queues 2 attributes +message.type=FIFO,-a on b",
        ),
        (
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            ("", "g", "b"),
            {"attributes": {"+k": "v"}},
            "update-sub-group g attributes +k=v on b",
        ),
        (Code.ADD_BROKER, ("", "", ""), {"configPath": "conf/broker-c.conf"}, "add-broker broker-c"),
        (Code.ADD_BROKER, ("", "", ""), {"configPath": "other.conf"}, None),
        (Code.REMOVE_BROKER, ("", "", "x"), {"brokerId": "0"}, "remove-broker x"),
        (Code.REMOVE_BROKER, ("", "", "x"), {"brokerId": "2"}, "remove-broker x-s2"),
        (Code.DELETE_TOPIC_IN_NAMESRV, ("t", "", ""), {"clusterName": "c"}, "delete-topic t on b"),
        (
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            ("", "g", "b"),
            {"consumeEnable": False, "consumeBroadcastEnable": True, "consumeFromMinEnable": False, "attributes": {}},
            "update-sub-group g consumeEnable=false consumeBroadcastEnable=true on b",
        ),
        (
            Code.DELETE_SUBSCRIPTIONGROUP,
            ("", "g", "b"),
            {"cleanOffset": "true"},
            "delete-sub-group g removeOffset true on b",
        ),
        (
            Code.INVOKE_BROKER_TO_RESET_OFFSET,
            ("t", "g", "b"),
            {"timestamp": "-1", "isForce": "true"},
            "skip-accumulated-message g t on b",
        ),
        (
            Code.INVOKE_BROKER_TO_RESET_OFFSET,
            ("t", "g", "b"),
            {"timestamp": str(EPOCH_MS + 1_500), "isForce": "false"},
            "reset-offset-by-time g t 1500ms force false on b",
        ),
        (
            Code.INVOKE_BROKER_TO_RESET_OFFSET,
            ("t", "g", "b"),
            {"timestamp": "0", "isForce": "true"},
            "reset-offset-by-time g t 000000000000 on b",
        ),
        (Code.UPDATE_NAMESRV_CONFIG, ("", "", ""), {"a": "1"}, "update-namesrv-config a=1 on b"),
        (Code.UPDATE_CONTROLLER_CONFIG, ("", "", ""), {"a": "1"}, "update-controller-config a=1 on b"),
        (
            Code.SET_MESSAGE_REQUEST_MODE,
            ("t", "g", "b"),
            {"mode": "POP", "popShareQueueNum": 1},
            "set-consume-mode g t POP share 1 on b",
        ),
        (
            Code.PUT_KV_CONFIG,
            ("", "", ""),
            {"namespace": "N", "key": "k", "value": "v w"},
            "update-kv-config N k 'v w' on b",
        ),
        (Code.DELETE_KV_CONFIG, ("", "", ""), {"namespace": "N", "key": "k"}, "delete-kv-config N k on b"),
        (Code.ADD_WRITE_PERM_OF_BROKER, ("", "", "x"), {}, "add-write-perm x on b"),
        (Code.CLEAN_UNUSED_TOPIC, ("", "", "b"), {}, None),
    ],
)
def test_a_request_is_the_act_that_sends_it_to_its_node(request_name, named, detail, line):
    act = act_of_row(AdminRequestRow("b", request_name.name, *named, detail), EPOCH_MS)
    assert (None if act is None else act.line()) == line
    assert act is None or act_of(act.line()) == act


def test_an_option_that_is_a_secret_is_not_written():
    row = AdminRequestRow("b", Code.UPDATE_BROKER_CONFIG.name, "", "", "b", {"secretKey": "***"})
    with pytest.raises(ValueError, match="it sets a secret"):
        act_of_row(row, EPOCH_MS)
