"""What a proxy makes of requests of RocketMQ 4's clients, without a cluster."""

import pytest

from nodes.broker.tables.clients.consumers import ConsumerGroup
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import PullMessageRequestHeader
from nodes.protocol.model import (
    BrokerData,
    MessageQueue,
    QueueData,
    SubscriptionData,
    TopicQueueMappingInfo,
    TopicRouteData,
)
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.v2.enums import Code
from nodes.proxy.tables.errors import CallError, ProxyExceptionError, TopicNotExistError, null_pointer
from nodes.proxy.tables.remoting import (
    broker_name_of,
    first_broker_name,
    pull_header,
    response_of,
    route_through,
    with_subscription,
)
from support.every_case import each_case

PULL = PullMessageRequestHeader("g", "t", 0, 0, 32, 3, 7, 15_000, 1, bname="b")


def a_pull(header: PullMessageRequestHeader = PULL) -> Command:
    return Command(int(RequestCode.PULL_MESSAGE), ext_fields={**encode_header(header), "unknown": "kept"})


@pytest.mark.trap("G51")
def test_a_route_through_a_proxy_has_its_address_for_each_broker_id_and_loses_what_belongs_to_the_topic() -> None:
    queues = (QueueData("b", 4, 4, 6),)
    mapping = {"b": TopicQueueMappingInfo("t", 4, "b", 1)}
    brokers = (BrokerData("c", "b", {0: "1.1.1.1:10911", 2: "1.1.1.2:10911"}, "zone", enable_acting_master=True),)
    through = route_through(TopicRouteData(queues, brokers, "b:4", {}, mapping), "2.2.2.2:8080")
    same = "2.2.2.2:8080"
    assert through == TopicRouteData(queues, (BrokerData("c", "b", {0: same, 2: same}),))


def test_errors_have_the_codes_of_remoting() -> None:
    conflict = ProxyExceptionError(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "conflict")
    assert response_of(conflict) == (ResponseCode.MESSAGE_ILLEGAL, "conflict")
    assert response_of(ProxyExceptionError(Code.FORBIDDEN, "no")) == (ResponseCode.NO_PERMISSION, "no")
    assert response_of(ProxyExceptionError(Code.BAD_REQUEST, "bad")) == (ResponseCode.SYSTEM_ERROR, "bad")
    code, remark = response_of(TopicNotExistError("t"))
    assert (code, remark.partition("\n")[0]) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "CODE: 17  DESC: No topic route info in name server for the topic: t",
    )
    assert response_of(null_pointer("A.b()", "c")) == (
        ResponseCode.SYSTEM_ERROR,
        'Cannot invoke "A.b()" because "c" is null',
    )
    timeout = CallError(Code.PROXY_TIMEOUT, "wait response on the channel <a> timeout, 3000(ms)")
    assert response_of(timeout)[0] == ResponseCode.SYSTEM_ERROR


@each_case(
    ("code", "field"),
    [
        (RequestCode.SEND_MESSAGE, "bname"),
        (RequestCode.SEND_MESSAGE_V2, "n"),
        (RequestCode.SEND_BATCH_MESSAGE, "n"),
        (RequestCode.PULL_MESSAGE, "bname"),
    ],
)
def test_a_request_names_its_broker_in_the_field_of_its_kind(code: RequestCode, field: str) -> None:
    other = "n" if field == "bname" else "bname"
    assert broker_name_of(Command(int(code), ext_fields={field: "b"})) == "b"
    assert broker_name_of(Command(int(code), ext_fields={other: "b"})) is None
    with pytest.raises(CallError):
        broker_name_of(Command(int(code)))


def test_the_first_queue_is_that_of_a_hash_set_whatever_the_order_of_a_request() -> None:
    queues = tuple(MessageQueue("t", name, queue_id) for name in ("broker-a", "broker-b") for queue_id in range(3))
    assert first_broker_name(queues) == first_broker_name(queues[::-1])
    assert first_broker_name(queues[:3]) == "broker-a"


def test_a_pull_gets_the_subscription_of_its_group_and_keeps_the_rest() -> None:
    group = ConsumerGroup("g", subscriptions={"t": SubscriptionData("t", "a || b", expression_type="TAG")})
    request = a_pull()
    subscribed = with_subscription(request, pull_header(request), group)
    assert isinstance(subscribed, Command)
    header = decode_header(PullMessageRequestHeader, subscribed.ext_fields)
    assert (header.sys_flag, header.subscription, header.expression_type) == (7, "a || b", "TAG")
    assert (header.commit_offset, header.sub_version, subscribed.ext_fields["unknown"]) == (7, 1, "kept")


def test_a_pull_with_a_subscription_is_sent_on_as_it_is() -> None:
    request = a_pull(PullMessageRequestHeader("g", "t", 0, 0, 32, 4, 0, 0, 0, "c", bname="b"))
    assert with_subscription(request, pull_header(request), None) is request
