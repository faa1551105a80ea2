"""Bodies between RocketMQ's own wire and the emulator's encoding."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.guests.remoting.body_json import decode_json_body, encode_json_body
from emulator.guests.remoting.body_kinds import (
    BODIES,
    BodyKind,
    request_from_wire,
    request_to_wire,
    response_from_wire,
    response_to_wire,
)
from emulator.guests.remoting.message_binary import MAGIC_LONG_TOPIC, decode_messages, encode_messages
from emulator.guests.remoting.register_broker_body import decode_register_broker_body
from nodes.protocol.bodies import (
    ClusterInfo,
    LockBatchResponseBody,
    PullMessageResponseBody,
    RegisterBrokerBody,
    TopicConfigSerializeWrapper,
)
from nodes.protocol.body_codec import decode_body, encode_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.errors import ProtocolError
from nodes.protocol.json_text import to_json
from nodes.protocol.model import (
    BrokerData,
    ConsumeFromWhere,
    ConsumeType,
    DataVersion,
    HeartbeatData,
    Message,
    MessageModel,
    MessageQueue,
    TopicConfig,
    TopicQueueMappingInfo,
)
from support.every_case import each_case
from support.register_broker_body import encode_register_broker_body

NO_FIELDS = {}
longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
ports = st.integers(0, 65_535)
hosts = st.builds("{}:{}".format, st.ip_addresses(v=4).map(str), ports) | st.builds(
    "[{}]:{}".format,
    st.lists(st.integers(0, 0xFFFF), min_size=8, max_size=8).map(lambda groups: ":".join(f"{g:x}" for g in groups)),
    ports,
)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=12)
messages = st.builds(
    Message,
    topic=st.text("abc%_-", max_size=200),
    queue_id=ints,
    queue_offset=longs,
    commit_log_offset=longs,
    born_timestamp=longs,
    store_timestamp=longs,
    body=st.binary(),
    properties=st.dictionaries(words, words, max_size=4),
    reconsume_times=st.integers(0, 16),
    sys_flag=st.sampled_from([0, 0x301, 0x8]),
    flag=ints,
    born_host=hosts,
    store_host=hosts,
)


@given(st.lists(messages, max_size=4))
@settings(max_examples=60)
def test_messages_come_out_of_the_bytes_as_they_went_in(stored):
    found = decode_messages(encode_messages(stored))

    assert [m._replace(sys_flag=m.sys_flag & ~0x30) for m in found] == stored


@given(messages, st.integers(0, 2**16))
@settings(max_examples=100)
def test_messages_that_end_in_the_middle_are_refused(message, length):
    raw = encode_messages([message])
    with pytest.raises(ProtocolError, match="no message at byte 0"):
        decode_messages(raw[: 1 + length % (len(raw) - 1)])


def test_the_zeros_of_an_address_of_ipv6_may_be_left_out():
    (found,) = decode_messages(encode_messages([Message("t", 0, 0, 0, 0, 0, b"", born_host="[fd00::1]:5")]))

    assert found.born_host == "[fd00:0:0:0:0:0:0:1]:5"


def test_a_long_topic_has_two_bytes_of_length():
    raw = encode_messages([Message("t" * 128, 0, 0, 0, 0, 0, b"")])

    assert int.from_bytes(raw[4:8], "big") == MAGIC_LONG_TOPIC


def test_a_heartbeat_may_say_its_choices_by_their_places_and_its_numbers_as_texts():
    answer = (
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":1,"messageModel":1,"consumeFromWhere":0,'
        b'"subscriptionDataSet":[{"topic":"t","subString":"a","tagsSet":["a"],"codeSet":[0],"subVersion":"5"}]}]}'
    )
    (consumer,) = decode_body(
        HeartbeatData, request_from_wire(RequestCode.HEART_BEAT, NO_FIELDS, answer)
    ).consumer_data_set

    assert consumer.consume_type is ConsumeType.CONSUME_PASSIVELY
    assert consumer.message_model is MessageModel.CLUSTERING
    assert consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    (subscription,) = consumer.subscription_data_set
    assert (subscription.sub_version, subscription.expression_type) == (5, "TAG")


@each_case("bad", [b"", b"{", b"[]", b"null", b'{"consumerDataSet":7}', b'{"consumerDataSet":[7]}', b"\xff"])
def test_a_heartbeat_that_is_none_is_refused(bad):
    with pytest.raises(ProtocolError):
        request_from_wire(RequestCode.HEART_BEAT, NO_FIELDS, bad)


def test_numbers_that_are_keys_are_texts_in_what_clients_get():
    body = ClusterInfo({"b": BrokerData("c", "b", {0: "1.2.3.4:1", 1: "1.2.3.5:1"})}, {"c": ("b",)})
    reported = response_to_wire(RequestCode.GET_BROKER_CLUSTER_INFO, encode_body(body))

    assert json.loads(reported)["brokerAddrTable"]["b"]["brokerAddrs"] == {"0": "1.2.3.4:1", "1": "1.2.3.5:1"}
    assert decode_json_body(ClusterInfo, reported) == body


def test_an_object_that_is_a_key_is_an_object_in_what_clients_get():
    assert to_json({MessageQueue("t", "b", 0): 7}, standard=True) == '{{"brokerName":"b","queueId":0,"topic":"t"}:7}'


def test_locks_come_and_go_as_json():
    body = LockBatchResponseBody((MessageQueue("t", "b", 3),))
    reported = response_to_wire(RequestCode.LOCK_BATCH_MQ, encode_body(body))

    assert reported == b'{"lockOKMQSet":[{"brokerName":"b","queueId":3,"topic":"t"}]}'
    assert decode_body(LockBatchResponseBody, response_from_wire(RequestCode.LOCK_BATCH_MQ, reported)) == body


def test_a_pull_is_answered_with_messages_whose_hosts_can_be_dialled():
    body = encode_body(PullMessageResponseBody((Message("t", 0, 0, 0, 0, 0, b"x", store_host="127.1.2.1:10911"),)))
    reported = response_to_wire(RequestCode.PULL_MESSAGE, body, lambda host: host.replace("127.1.", "127.7."))

    assert decode_messages(reported)[0].store_host == "127.7.2.1:10911"


def test_bodies_of_messages_and_of_unknown_codes_pass_as_they_are():
    assert request_from_wire(RequestCode.SEND_MESSAGE_V2, NO_FIELDS, b"{") == b"{"
    assert request_to_wire(4_711, b"{") == response_to_wire(4_711, b"{") == b"{"


def test_every_kind_of_body_is_in_the_table():
    kinds = [kind for bodies in BODIES.values() for kind in (bodies.request, bodies.response)]

    assert [kind for kind in BodyKind if kind not in kinds] == []


def registration(**changed):
    wrapper = TopicConfigSerializeWrapper(
        {"t": TopicConfig("t", 4, 8, 6, attributes={"+message.type": "FIFO"})},
        DataVersion(1, 2, 3),
        {"s": TopicQueueMappingInfo("s", 4, "b", 1, curr_id_map={0: 0})},
    )
    return RegisterBrokerBody(wrapper, ("1.2.3.4:5",), **changed)


def test_a_registration_is_read_plain_and_compressed():
    assert decode_register_broker_body(encode_json_body(registration()), compressed=False) == registration()
    compressed = encode_register_broker_body(registration())
    assert decode_register_broker_body(compressed, compressed=True) == registration()
    body = request_from_wire(RequestCode.REGISTER_BROKER, {"compressed": "true"}, compressed)
    assert decode_body(RegisterBrokerBody, body) == registration()


@given(st.binary(max_size=60))
@settings(max_examples=60)
def test_a_damaged_registration_is_refused(garbage):
    with pytest.raises(ProtocolError):
        decode_register_broker_body(encode_register_broker_body(registration())[: len(garbage)], compressed=True)
    with pytest.raises(ProtocolError):
        decode_register_broker_body(garbage, compressed=True)
