"""Messages as real producers send them, and as operators look at them: batches, ids, keys, times."""

import attrs

from emulator.spec.model.scenario import TopicSpec
from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.batch_body import BatchedMessage
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_message import GetEarliestMsgStoretimeRequestHeader, ViewMessageRequestHeader
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.properties import properties_to_text
from nodes.protocol.registry import decode_header
from support.asking_guest import LAST_MS, a_guest, messages_of

BROKER = "broker-a"
OF_BROKER = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
"""Properties that a broker gives each message with a unique id."""


def keyed(number: int) -> BatchedMessage:
    return BatchedMessage(b"body %d" % number, properties_to_text({"UNIQ_KEY": f"U{number}", "KEYS": f"k{number} all"}))


def test_a_batch_becomes_messages_at_consecutive_offsets_each_of_which_is_found_by_its_id_and_its_keys() -> None:
    seen = {}

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        answer = await guest.send_batch(BROKER, keyed(1), keyed(2), keyed(3))
        stored = decode_header(headers.SendMessageResponseHeader, answer.ext_fields)
        offsets = [decode_message_id(item)[2] for item in stored.msg_id.split(",")]
        viewed = [messages_of(await guest.ask(BROKER, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(o)))
                  for o in offsets]  # fmt: skip
        seen.update(stored=stored, viewed=[message for (message,) in viewed])
        seen.update({key: await guest.query(BROKER, key) for key in ("all", "k2", "U3", "nobody")})
        seen["unique"] = await guest.query(BROKER, "U1", unique=True)

    trace = execute(a_scenario(queues=1), script)
    assert [row.offset for row in trace.select("messages", event="stored", topic="orders")] == [0, 1, 2]
    assert (seen["stored"].queue_id, seen["stored"].queue_offset) == (0, 0)
    assert [m.body for m in seen["viewed"]] == [b"body 1", b"body 2", b"body 3"]
    assert [m.queue_offset for m in seen["all"]] == [0, 1, 2]
    assert [[m.body for m in seen[key]] for key in ("k2", "U3", "unique")] == [[b"body 2"], [b"body 3"], [b"body 1"]]
    assert seen["nobody"] == []
    # The broker adds its cluster, and keeps whether the message waits for replicas.
    sent = {"UNIQ_KEY": "U2", "KEYS": "k2 all", "WAIT": "true"}
    assert seen["k2"][0].properties == {**sent, **OF_BROKER}


def test_a_consumer_that_waits_for_messages_gets_a_batch_as_a_whole() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(5_000)
        guest = await a_guest(stage)
        await guest.send_batch(BROKER, keyed(1), keyed(2), keyed(3))
        await stage.for_ms(2_000)
        offsets = stage.node(BROKER).tables.clients.offsets
        (pulled,) = (queues[0] for place, queues in offsets.pull_offsets.items() if place.startswith("orders@"))
        assert pulled == 3  # the lag of what was pulled is 0, whatever is committed

    trace = execute(a_scenario(queues=1, consumers=1), script)
    pulls = trace.select("rpc", code=int(RequestCode.PULL_MESSAGE), kind="response", status=0, event="delivered")
    assert len(pulls) == 1
    assert len(trace.consumed()) == 3


def test_no_batch_is_stored_in_part_or_for_a_retry_topic() -> None:
    answers = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        answers.append(await guest.send_batch(BROKER, keyed(1), topic="%RETRY%g"))
        header = attrs.evolve(guest.header("orders", {}), batch=True)
        answers.append(await guest.ask(BROKER, RequestCode.SEND_BATCH_MESSAGE, header, b""))
        too_long = BatchedMessage(b"", "KEYS\x01" + "k" * 32_740 + "\x02UNIQ_KEY\x01U\x02")
        answers.append(await guest.send_batch(BROKER, keyed(1), too_long))

    trace = execute(a_scenario(queues=1), script)
    assert [answer.code for answer in answers] == [ResponseCode.MESSAGE_ILLEGAL] * 3
    assert trace.select("messages", event="stored") == []


def test_what_no_log_can_hold_is_illegal_and_not_tried_elsewhere() -> None:
    answers = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        answers.append(await guest.send(BROKER, KEYS="k" * 32_762))  # 32,768 with name and separators
        answers.append(await guest.send(BROKER, KEYS="k" * 32_761))
        answers.append(await guest.send(BROKER, body=b"x" * 101))
        answers.append(await guest.send(BROKER, topic="bad topic"))
        answers.append(await guest.send(BROKER, topic="SCHEDULE_TOPIC_XXXX"))

    execute(a_scenario(brokers=broker_groups(config=BrokerConfig(max_message_size=100))), script)
    illegal = ResponseCode.MESSAGE_ILLEGAL
    refused = [ResponseCode.INVALID_PARAMETER, ResponseCode.NO_PERMISSION]
    assert [answer.code for answer in answers] == [illegal, ResponseCode.SUCCESS, illegal, *refused]


def test_offsets_and_messages_are_found_by_the_time_at_which_they_were_stored() -> None:
    found, ends = [], []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        header = GetEarliestMsgStoretimeRequestHeader("orders", 0)
        ends.append((await guest.ask(BROKER, RequestCode.GET_EARLIEST_MSG_STORETIME, header)).ext_fields["timestamp"])
        for _ in range(3):
            await guest.send(BROKER)
            await stage.for_ms(1_000)
        (first, second, third) = [stage.node(BROKER).context.store.store_timestamp("orders", 0, i) for i in range(3)]
        for at, boundary in ((second, "LOWER"), (second + 1, "LOWER"), (second + 1, "UPPER"), (third + 1, "UPPER"),
                             (first - 1, "UPPER"), (third + 1, "LOWER")):  # fmt: skip
            fields = headers.SearchOffsetRequestHeader("orders", 0, at, headers.BoundaryType(boundary))
            answer = await guest.ask(BROKER, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)
            found.append(answer.ext_fields["offset"])
        answer = await guest.ask(BROKER, RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        ends.append(int(answer.ext_fields["timestamp"]) - first)

    execute(a_scenario(queues=1), script)
    assert found == ["1", "2", "1", "2", "0", "3"]
    assert ends == ["-1", 0]


def test_a_question_by_key_gets_the_newest_64_messages_and_within_its_time() -> None:
    counts = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        for _ in range(7):
            await guest.send_batch(BROKER, *(keyed(number) for number in range(10)))
        every = await guest.query(BROKER, "all")
        counts.append((len(every), every[0].queue_offset, every[-1].queue_offset))
        counts.append(len(await guest.query(BROKER, "all", unique=True)))
        store = stage.node(BROKER).context.store
        counts.append(len(store.index.query_offset("orders", "all", 99, every[-1].store_timestamp + 1, LAST_MS)))

    execute(a_scenario(queues=1, topics=(TopicSpec("orders", (BROKER,), 1),)), script)
    assert counts == [(64, 6, 69), 32, 0]


def test_a_delayed_message_still_says_how_long_it_waited_and_where_it_was_for() -> None:
    found = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send(BROKER, UNIQ_KEY="U", DELAY="2", REAL="own")
        found.append(await guest.query(BROKER, "U"))
        await stage.for_ms(6_000)
        found.append(await guest.query(BROKER, "U"))

    execute(a_scenario(queues=1), script)
    before, (message,) = found
    assert (before, message.queue_offset) == ([], 0)
    waited = {"DELAY": "2", "REAL_TOPIC": "orders", "REAL_QID": "0"}
    assert message.properties == {"UNIQ_KEY": "U", "REAL": "own", **OF_BROKER, **waited}
