"""What a proxy answers to receipt handles that it has not given: the codes of a real one.

They were taken from the released proxy (rocketmq-proxy 5.3.3, Java 17, mode CLUSTER, one broker): words in the handle
of a message are replaced, and the handle is used to acknowledge it, to hide it, and to make it a dead letter.
"""

import attrs

from emulator.testing import Stage
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.definition import Message, Resource
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import AckMessageEntry, AckMessageRequest
from nodes.proxy.ack_message_activity import ENTRIES_MAX
from support.proxy_guest import GROUP, TOPIC, ProxyGuest, a_message, proxies, runs

OFFSET, POP_TIME, INVISIBLE, REVIVE_QUEUE, TOPIC_TYPE, BROKER, QUEUE, QUEUE_OFFSET, LOG_OFFSET = range(9)

OK = (Code.OK,) * 3
NO_HANDLE = (Code.INTERNAL_SERVER_ERROR,) * 3
"""Of a text that is no handle: an exception of Java, not INVALID_RECEIPT_HANDLE."""
UNKNOWN_BROKER = (Code.INVALID_RECEIPT_HANDLE,) * 3
EXPIRED = (Code.INVALID_RECEIPT_HANDLE, Code.INVALID_RECEIPT_HANDLE, Code.OK)
"""A dead letter has no time."""
ABNORMAL = (Code.INTERNAL_SERVER_ERROR, Code.INTERNAL_SERVER_ERROR, Code.OK)
"""The broker has no such place, which a dead letter does not need."""

TEXTS = {
    "empty": "",
    "random": "garbage",
    "a blank": " ",
    "another script": "é☃",
    "two words": "a b",
    "seven words": "0 1 1 0 0 b 0",
}
"""Handles that have none of their words."""

FORGED = {
    "no number where it begins": ({OFFSET: "x"}, NO_HANDLE),
    "no number when it was received": ({POP_TIME: "x"}, NO_HANDLE),
    "no number for how long": ({INVISIBLE: "x"}, NO_HANDLE),
    "no number of a revive queue": ({REVIVE_QUEUE: "x"}, NO_HANDLE),
    "no number of a queue": ({QUEUE: "x"}, NO_HANDLE),
    "no number in its queue": ({QUEUE_OFFSET: "x"}, NO_HANDLE),
    "no number in the log": ({LOG_OFFSET: "x"}, NO_HANDLE),
    "beyond 64 bits": ({OFFSET: "9" * 30}, NO_HANDLE),
    "a queue beyond 32 bits": ({QUEUE: str(2**40)}, NO_HANDLE),
    "a revive queue beyond 32 bits": ({REVIVE_QUEUE: str(2**40)}, NO_HANDLE),
    "no digits": ({OFFSET: ""}, NO_HANDLE),
    "a plus": ({QUEUE_OFFSET: "+0"}, OK),
    "another broker": ({BROKER: "broker-zzz"}, UNKNOWN_BROKER),
    "no broker": ({BROKER: ""}, UNKNOWN_BROKER),
    "no name of a broker": ({BROKER: "%"}, UNKNOWN_BROKER),
    "its time is over": ({POP_TIME: "1000"}, EXPIRED),
    "for a negative time": ({INVISIBLE: "-1"}, EXPIRED),
    "for no time": ({INVISIBLE: "0"}, EXPIRED),
    "far ahead": ({POP_TIME: str(10**15)}, OK),
    "the largest time, which overflows": ({POP_TIME: str(2**63 - 1)}, EXPIRED),
    "of the retry topic that is not there": ({TOPIC_TYPE: "2"}, ABNORMAL),
    "of a topic of an unknown type": ({TOPIC_TYPE: "9"}, OK),
    "of a topic of no type": ({TOPIC_TYPE: ""}, OK),
    "queue 99": ({QUEUE: "99"}, ABNORMAL),
    "queue -1": ({QUEUE: "-1"}, ABNORMAL),
    "beyond the end of its queue": ({QUEUE_OFFSET: "1000000000"}, ABNORMAL),
    "before its queue": ({QUEUE_OFFSET: "-1"}, ABNORMAL),
    "revive queue 99": ({REVIVE_QUEUE: "99"}, OK),
    "nowhere in the log": ({LOG_OFFSET: "-1"}, (Code.OK, Code.OK, Code.INVALID_RECEIPT_HANDLE)),
    "beyond the log": ({LOG_OFFSET: str(10**12)}, (Code.OK, Code.OK, Code.INTERNAL_SERVER_ERROR)),
    "received before the queue began": ({OFFSET: "-5"}, OK),
}
"""Words that are replaced, and the codes: of an ack, of another invisible time, of a dead letter."""


def with_handle(message: Message, text: str) -> Message:
    return attrs.evolve(message, system_properties=attrs.evolve(message.system_properties, receipt_handle=text))


async def codes(guest: ProxyGuest, message: Message) -> tuple[Code, ...]:
    acknowledged = (await guest.ack(message)).code
    hidden = (await guest.change(message, 60_000)).status.code
    return acknowledged, hidden, (await guest.forward(message)).code


def test_a_proxy_answers_forged_handles_as_a_real_one_does() -> None:
    answered: dict[str, tuple[Code, ...]] = {}

    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        await guest.receive()
        await guest.send(a_message())
        await stage.for_ms(100)
        (message,) = (await guest.receive()).messages
        text = message.system_properties.receipt_handle or ""
        handles = dict(TEXTS)
        for name, (changes, _) in FORGED.items():
            handles[name] = " ".join(changes.get(place, word) for place, word in enumerate(text.split(" ")))
        handles["without the log"], handles["of more words"] = text.rpartition(" ")[0], f"{text} 5"
        for name, handle in handles.items():
            answered[name] = await codes(guest, with_handle(message, handle))

    runs(proxies(queues=1), script)
    expected = dict.fromkeys(TEXTS, NO_HANDLE) | {name: codes for name, (_, codes) in FORGED.items()}
    expected |= {"without the log": (Code.OK, Code.OK, Code.INVALID_RECEIPT_HANDLE), "of more words": OK}
    assert answered == expected


def test_a_call_with_very_many_handles_is_refused() -> None:
    async def script(_stage: Stage, guest: ProxyGuest) -> None:
        entries = tuple(AckMessageEntry("i", f"0 1 {2**60} 0 0 b{number} 0 0 0") for number in range(ENTRIES_MAX + 1))
        answer = await guest.call(
            RequestCode.V2_ACK_MESSAGE, AckMessageRequest(Resource(GROUP), Resource(TOPIC), entries)
        )
        assert (answer.status.code, answer.entries) == (Code.PAYLOAD_TOO_LARGE, ())

    runs(proxies(queues=1), script)
