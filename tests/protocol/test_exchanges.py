"""The properties of requests: those that follow from their headers, and those that need a field of these."""

from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import AclNeed, Exchange
from nodes.protocol.registry import EXCHANGES, codes_where
from support.every_case import each_case

NEEDS_TOPIC = (AclNeed.SEND, AclNeed.PUB_TOPIC, AclNeed.SUB_TOPIC, AclNeed.SUB_BOTH)
NEEDS_GROUP = (AclNeed.SUB_GROUP, AclNeed.SUB_BOTH)


@each_case(
    ("code", "topic", "groups"),
    [
        (RequestCode.SEND_MESSAGE, "topic", ("producerGroup",)),
        (RequestCode.SEND_MESSAGE_V2, "b", ("a",)),
        (RequestCode.PULL_MESSAGE, "topic", ("consumerGroup",)),
        (RequestCode.UNREGISTER_CLIENT, "", ("consumerGroup", "producerGroup")),
        (RequestCode.CONSUMER_SEND_MSG_BACK, "", ("group",)),
        (RequestCode.HEART_BEAT, "", ()),
    ],
    ids=lambda value: value.name if isinstance(value, RequestCode) else "",
)
def test_topic_and_groups_stand_in_the_fields_of_the_header(
    code: RequestCode, topic: str, groups: tuple[str, ...]
) -> None:
    exchange = EXCHANGES[code]
    assert (exchange.topic_field, exchange.group_fields) == (topic, groups)


def lacks(exchange: Exchange) -> bool:
    needs_topic, needs_group = exchange.acl in NEEDS_TOPIC, exchange.acl in NEEDS_GROUP
    return (needs_topic and not exchange.topic_field) or (needs_group and not exchange.group_fields)


def test_a_request_that_needs_something_of_a_topic_or_a_group_names_it_in_its_header() -> None:
    assert [RequestCode(code).name for code in sorted(codes_where(lacks))] == []


def test_codes_are_found_by_a_property_as_plain_numbers() -> None:
    found = codes_where(lambda exchange: exchange.acl is AclNeed.SEND)
    assert sorted(found) == [10, 310, 320]
    assert {type(code) for code in found} == {int}
