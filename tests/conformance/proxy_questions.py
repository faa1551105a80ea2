"""Questions to a proxy: the same for a real proxy and for ours.

Each question has topics, groups and clients of its own, so that none depends on another one.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from conformance.proxy_probe import DAY_MS, ENDPOINTS, PUSH, TYPES, Probe, consumer, producer
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Address, Endpoints, FilterExpression, Resource, Settings
from nodes.protocol.v2.enums import AddressScheme, ClientType, Encoding, FilterType, MessageType

Question = Callable[[Probe], Awaitable[None]]
QUESTIONS: dict[str, Question] = {}


def question(ask: Question) -> Question:
    """Add a question under the name of its function."""
    QUESTIONS[ask.__name__.replace("_", "-")] = ask
    return ask


# --- settings ----------------------------------------------------------------------------


@question
async def settings_taken(probe: Probe) -> None:
    probe.note("simple consumer", await probe.come())
    probe.note("push consumer", await probe.come(kind=PUSH, client_id="settings-push"))
    probe.note("producer", await probe.report(producer(probe.topic), client_id="settings-producer"))
    probe.note("producer of an unknown topic", await probe.report(producer("nowhere"), client_id="settings-unknown"))
    probe.note("producer without topics", await probe.report(producer(), client_id="settings-none"))


@question
async def settings_refused(probe: Probe) -> None:
    refused = {
        "neither": Settings(ClientType.PRODUCER),
        "system topic": producer("TBW102"),
        "illegal topic": producer("a b"),
        "blank topic": producer(" "),
        "long topic": producer("x" * 128),
        "second topic illegal": producer(probe.topic, "a b"),
        "blank group": consumer(" ", probe.topic),
        "illegal group": consumer("a/b", probe.topic),
        "system group": consumer("CID_RMQ_SYS_x", probe.topic),
        "consumer of type producer": consumer(probe.group, probe.topic, ClientType.PRODUCER),
    }
    for number, (name, settings) in enumerate(refused.items()):
        probe.note(name, await probe.report(settings, client_id=f"refused-{number}"))
    probe.note("no client id", await probe.report(producer(probe.topic), client_id=""))
    probe.note("unknown language", await probe.report(producer(probe.topic), client_id="golang", language="GOLANG"))
    probe.note("no language", await probe.report(producer(probe.topic), client_id="speechless", language=""))


@question
async def heartbeats(probe: Probe) -> None:
    probe.note("without settings", await probe.heartbeat())
    probe.note("no client id", await probe.heartbeat(client_id=" "))
    await probe.come()
    probe.note("with settings", await probe.heartbeat())
    probe.note("foreign group", await probe.heartbeat("foreign"))
    probe.note("illegal group", await probe.heartbeat("a b"))
    probe.note("unknown language", await probe.heartbeat(language="KLINGON"))
    terminate = service.NotifyClientTerminationRequest
    code = RequestCode.V2_NOTIFY_CLIENT_TERMINATION
    probe.note("end without settings", await probe.call(code, terminate(Resource(probe.group)), client_id="nobody"))
    probe.note("end", await probe.call(code, terminate(Resource(probe.group))))
    probe.note("second end", await probe.call(code, terminate(Resource(probe.group))))
    probe.note("heartbeat after the end", await probe.heartbeat())
    await probe.report(producer(probe.topic), client_id="heartbeat-producer")
    probe.note("producer", await probe.heartbeat(client_id="heartbeat-producer"))
    probe.note("end of a producer", await probe.call(code, terminate(), client_id="heartbeat-producer"))
    await probe.come(client_id="ends-without")
    probe.note("end without a group", await probe.call(code, terminate(), client_id="ends-without"))


@question
async def other_proxy(probe: Probe) -> None:
    await probe.come()
    await probe.calls.sleep_ms(2_000)
    probe.note("heartbeat at once", await probe.heartbeat(proxy=1))
    await probe.heartbeat()
    await probe.calls.sleep_ms(2_000)
    probe.note("heartbeat after a second report", await probe.heartbeat(proxy=1))
    probe.note("receive there", await probe.receive(proxy=1))


# --- routes ------------------------------------------------------------------------------


@question
async def routes(probe: Probe) -> None:
    def request(topic: str, endpoints: Endpoints = ENDPOINTS) -> service.QueryRouteRequest:
        return service.QueryRouteRequest(Resource(topic), endpoints)

    async def ask(name: str, given: service.QueryRouteRequest) -> None:
        probe.note(name, await probe.call(RequestCode.V2_QUERY_ROUTE, given))

    for kind in TYPES:
        await ask(kind, request(f"{probe.name}-{kind}"))
    for topic in ("unknown", "", " ", "a b", "x" * 128, "TBW102", "rmq_sys_x", "%RETRY%x"):
        await ask(f"topic {topic!r:.20}", request(topic))
    await ask("no endpoints", request(probe.topic, Endpoints(AddressScheme.IPv4)))
    domain = Endpoints(AddressScheme.DOMAIN_NAME, (Address("proxy.example", 80), Address("proxy.example", 81)))
    await ask("two domain names", request(probe.topic, domain))
    await ask("namespace", service.QueryRouteRequest(Resource(probe.topic, "ns"), ENDPOINTS))


@question
async def assignments(probe: Probe) -> None:
    def request(topic: str, group: str) -> service.QueryAssignmentRequest:
        return service.QueryAssignmentRequest(Resource(topic), Resource(group), ENDPOINTS)

    cases = {
        "plain": (probe.topic, probe.group),
        "unknown topic": ("unknown-too", probe.group),
        "illegal topic": ("a b", probe.group),
        "illegal group": (probe.topic, "a b"),
        "blank group": (probe.topic, ""),
        "system group": (probe.topic, "CID_RMQ_SYS_x"),
        "orderly group": (probe.topic, "orderly"),
    }
    for name, (topic, group) in cases.items():
        probe.note(name, await probe.call(RequestCode.V2_QUERY_ASSIGNMENT, request(topic, group)))


# --- sends -------------------------------------------------------------------------------


@question
async def sends_taken(probe: Probe) -> None:
    probe.note("one", await probe.send(probe.message()))
    probe.note("two", await probe.send(probe.message(message_id="a"), probe.message(message_id="b")))
    user = {str(number): "" for number in range(128)}
    probe.note("128 properties", await probe.send(probe.message(user=user)))
    probe.note("other queue", await probe.send(probe.message(queue_id=7)))
    probe.note("namespace", await probe.send(attrs.evolve(probe.message(), topic=Resource(probe.topic, "ns"))))
    probe.note("gzip", await probe.send(probe.message(body_encoding=Encoding.GZIP)))
    probe.note("digest of nothing", await probe.send(probe.message(trace_context="t")))


@question
async def sends_refused(probe: Probe) -> None:
    message = probe.message
    refused = {
        "body empty": message(body=b""),
        "body too large": message(body=b"x" * (4 * 1024 * 1024 + 1)),
        "129 properties": message(user={str(number): "" for number in range(129)}),
        "reserved name": message(user={"UNIQ_KEY": "x"}),
        "reserved name 2": message(user={"__BORNHOST": "x"}),
        "control in name": message(user={"a\x01": "x"}),
        "control in value": message(user={"a": "x\x02"}),
        "blank tag": message(tag=" "),
        "tag with bar": message(tag="a|b"),
        "tag with control": message(tag="a\n"),
        "blank key": message(keys=(" ",)),
        "key with control": message(keys=("a\x00",)),
        "properties too large": message(user={"a": "x" * 16_384}),
        "no id": message(message_id=""),
        "delay too long": message(delivery_timestamp_ms=probe.calls.now_ms() + DAY_MS + 60_000),
        "blank message group": message(message_group=" "),
        "message group too long": message(message_group="x" * 64),
        "message group with control": message(message_group="a\x1f"),
        "blank topic": message(""),
        "illegal topic": message("a b"),
        "system topic": message("TBW102"),
        "unknown topic": message("unknown-again"),
    }
    for name, given in refused.items():
        probe.note(name, await probe.send(given))
    recovery = message(
        f"{probe.name}-TRANSACTION",
        message_type=MessageType.TRANSACTION,
        orphaned_transaction_recovery_duration_ms=3_601_000,
    )
    probe.note("recovery too long", await probe.send(recovery))
    probe.note("nothing", await probe.send())
    probe.note("two topics", await probe.send(message(), message(f"{probe.name}-FIFO")))
    probe.note("no client id", await probe.send(message(), client_id=""))


@question
async def types(probe: Probe) -> None:
    later = probe.calls.now_ms() + 5_000
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "group": {"message_group": "g"},
        "delay": {"delivery_timestamp_ms": later},
        "transaction": {"message_type": MessageType.TRANSACTION},
        "declared fifo": {"message_type": MessageType.FIFO},
        "declared delay": {"message_type": MessageType.DELAY},
    }
    for kind in TYPES:
        for name, given in kinds.items():
            answer = await probe.send(probe.message(f"{probe.name}-{kind}", **given))
            probe.note(f"{name} to {kind}", answer.status if hasattr(answer, "status") else answer)


# --- receives ----------------------------------------------------------------------------


@question
async def receives_refused(probe: Probe) -> None:
    probe.note("without settings", await probe.receive(client_id="stranger"))
    await probe.come()
    later: dict[str, dict[str, Any]] = {
        "invisible absent": {"invisible_ms": None},
        "invisible 9.9 s": {"invisible_ms": 9_900},
        "invisible 12 h": {"invisible_ms": 43_200_001},
        "illegal group": {"group": "a b"},
        "no tag": {"expression": FilterExpression(FilterType.TAG, "||")},
        "no sql": {"expression": FilterExpression(FilterType.SQL, "")},
        "sql where it is off": {"expression": FilterExpression(FilterType.SQL, "a = 1")},
        "deadline 4 s": {"poll_ms": 20_000, "timeout_ms": 4_000},
        "deadline 4 s, 5.0.2": {"poll_ms": 20_000, "timeout_ms": 4_000, "version": "5.0.2"},
    }
    for name, given in later.items():
        probe.note(name, (await probe.receive(**given)).status)
    for topic in ("a b", "TBW102", "unknown-once-more"):
        probe.note(f"topic {topic}", (await probe.receive(topic)).status)


@question
async def receives_empty(probe: Probe) -> None:
    await probe.come()
    begin_ms = probe.calls.now_ms()
    probe.note("poll of 0.1 s", (await probe.receive(poll_ms=100)).status)
    probe.note("takes 5 s", 4_700 <= probe.calls.now_ms() - begin_ms <= 6_000)
    probe.note("unknown broker", (await probe.receive(broker="gone")).status)
    probe.note("no broker", (await probe.receive(broker="")).status)
    probe.note("auto renew", (await probe.receive(auto_renew=True, invisible_ms=None)).status)


@question
async def received(probe: Probe) -> None:
    await probe.come()
    await probe.receive()
    user = {"color": "red", "size": "1"}
    await probe.send(probe.message(body=b"abc", user=user, tag="t", keys=("k1", "k2"), trace_context="c"))
    probe.note("a message", await probe.receive())
    await probe.send(probe.message(message_id="gz", body_encoding=Encoding.GZIP, tag="u"))
    probe.note("compressed", await probe.receive())
    await probe.send(probe.message(message_id="filtered", tag="v"))
    nothing = FilterExpression(FilterType.TAG, "w")
    probe.note("filtered", (await probe.receive(expression=nothing)).status)
    await probe.calls.sleep_ms(1_000)
    probe.note("gone for the group", (await probe.receive()).status)


@question
async def received_again(probe: Probe) -> None:
    message = await probe.one_message()
    probe.note("first", message)
    await probe.calls.sleep_ms(14_000)
    again = await probe.receive()
    probe.note("second", again)
    if again.messages:
        probe.note("ack of the second", await probe.ack(again.messages[0].system_properties.receipt_handle or ""))


# --- acknowledgements --------------------------------------------------------------------


@question
async def acks(probe: Probe) -> None:
    message = await probe.one_message()
    handle = message.system_properties.receipt_handle or ""
    words = handle.split(" ")

    def changed(place: int, word: str) -> str:
        return " ".join([*words[:place], word, *words[place + 1 :]])

    handles = {
        "empty": "",
        "one word": "x",
        "seven words": " ".join(words[:7]),
        "no number": changed(1, "soon"),
        "no queue": changed(6, "x"),
        "expired": changed(1, "1000"),
        "unknown broker": changed(5, "gone"),
        "eight words": " ".join(words[:8]),
    }
    for name, given in handles.items():
        probe.note(name, await probe.ack(given))
    probe.note("unknown group", await probe.ack(handle, group="unknown-group"))
    probe.note("unknown topic", await probe.ack(handle, topic="unknown-at-last"))
    probe.note("illegal topic", await probe.ack(handle, topic="a b"))
    probe.note("illegal group", await probe.ack(handle, group=""))
    probe.note("good", await probe.ack(handle))
    probe.note("again", await probe.ack(handle))
    none = service.AckMessageRequest(Resource(probe.group), Resource(probe.topic), ())
    probe.note("no entries", await probe.call(RequestCode.V2_ACK_MESSAGE, none))
    entries = (service.AckMessageEntry("a", handle), service.AckMessageEntry("b", "x"))
    mixed = service.AckMessageRequest(Resource(probe.group), Resource(probe.topic), entries)
    probe.note("one good, one bad", await probe.call(RequestCode.V2_ACK_MESSAGE, mixed))


@question
async def changes(probe: Probe) -> None:
    message = await probe.one_message()
    handle = message.system_properties.receipt_handle or ""
    words = handle.split(" ")
    probe.note("negative", await probe.change(handle, -1))
    probe.note("too long", await probe.change(handle, 43_200_001))
    probe.note("no handle", await probe.change("x", 10_000))
    probe.note("unknown broker", await probe.change(" ".join([*words[:5], "gone", *words[6:]]), 10_000))
    probe.note("expired", await probe.change(" ".join([words[0], "1000", *words[2:]]), 10_000))
    probe.note("illegal group", await probe.change(handle, 10_000, group="a b"))
    probe.note("good", await probe.change(handle, 20_000))
    probe.note("with the old handle", await probe.change(handle, 20_000))
    probe.note("to 0", await probe.change(handle, 0))


@question
async def dead_letters(probe: Probe) -> None:
    message = await probe.one_message()
    handle = message.system_properties.receipt_handle or ""
    words = handle.split(" ")
    probe.note("no handle", await probe.forward("x"))
    probe.note("without a place in the log", await probe.forward(" ".join(words[:8])))
    probe.note("unknown broker", await probe.forward(" ".join([*words[:5], "gone", *words[6:]])))
    probe.note("illegal topic", await probe.forward(handle, topic=""))
    probe.note("good", await probe.forward(handle))
    probe.note("again", await probe.forward(handle))


@question
async def handles_of_push_consumers(probe: Probe) -> None:
    await probe.come(kind=PUSH)
    await probe.receive(auto_renew=True, invisible_ms=None)
    await probe.send(probe.message())
    (message,) = (await probe.receive(auto_renew=True, invisible_ms=None)).messages
    handle = message.system_properties.receipt_handle or ""
    probe.note("invisible 60 s", handle.split(" ")[2])
    probe.note("wrong id", await probe.ack(handle, "other"))


# --- order -------------------------------------------------------------------------------


@question
async def order(probe: Probe) -> None:
    topic = f"{probe.name}-FIFO"
    given = {"topic": topic, "group": "orderly"}
    settings = consumer("orderly", topic, PUSH)
    probe.note("settings", await probe.report(settings))
    await probe.receive(**given)
    for number in range(3):
        await probe.send(probe.message(topic, str(number).encode(), message_id=f"id-{number}", message_group="a"))
    batch = await probe.receive(**given, attempt_id="one")
    probe.note("a batch", batch)
    handles = [message.system_properties.receipt_handle or "" for message in batch.messages]
    probe.note("revive queue", [handle.split(" ")[3] for handle in handles])
    probe.note("to another attempt", (await probe.receive(**given, attempt_id="two")).status)
    again = await probe.receive(**given, attempt_id="one")
    probe.note("to the same attempt", [message.body for message in again.messages])
    handles = [message.system_properties.receipt_handle or "" for message in again.messages]
    for number, handle in enumerate(handles):
        probe.note(f"ack {number}", await probe.ack(handle, f"id-{number}", **given))
    probe.note("after all of them", (await probe.receive(**given, attempt_id="three")).status)


# --- transactions and recalls --------------------------------------------------------------


@question
async def transactions(probe: Probe) -> None:
    topic = f"{probe.name}-TRANSACTION"
    half = probe.message(topic, message_type=MessageType.TRANSACTION)
    first = await probe.send(half)
    probe.note("half message", first)
    transaction_id = first.entries[0].transaction_id
    probe.note("blank id", await probe.end(" ", topic))
    probe.note("unknown id", await probe.end("unknown", topic))
    probe.note("illegal topic", await probe.end(transaction_id, "a b"))
    probe.note("other topic", await probe.end(transaction_id, probe.topic))
    probe.note("other proxy", await probe.end(transaction_id, topic, proxy=1))
    probe.note("good", await probe.end(transaction_id, topic))
    probe.note("again", await probe.end(transaction_id, topic))
    late = (await probe.send(half)).entries[0].transaction_id
    await probe.calls.sleep_ms(31_000)
    probe.note("after 31 s", await probe.end(late, topic))
    probe.note("batch", await probe.send(half, half))


@question
async def recalls(probe: Probe) -> None:
    topic = f"{probe.name}-DELAY"

    async def recall(handle: str, of_topic: str = topic) -> Any:
        request = service.RecallMessageRequest(Resource(of_topic), handle)
        return await probe.call(RequestCode.V2_RECALL_MESSAGE, request)

    timed = probe.message(topic, delivery_timestamp_ms=probe.calls.now_ms() + 60_000)
    sent = await probe.send(timed)
    probe.note("timed message", sent)
    handle = sent.entries[0].recall_handle
    probe.note("no handle", await recall(""))
    probe.note("bad handle", await recall("none"))
    probe.note("topic of another type", await recall(handle, probe.topic))
    probe.note("illegal topic", await recall(handle, "a b"))
    probe.note("good", await recall(handle))
    past = await probe.send(probe.message(topic, delivery_timestamp_ms=probe.calls.now_ms() - 1_000))
    probe.note("a time that is over", past)
