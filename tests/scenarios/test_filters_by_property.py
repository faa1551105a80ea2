"""Consumers that subscribe by SQL92."""

import attrs
import pytest

from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.bodies import CheckClientRequestBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_admin import UpdateGroupForbiddenRequestHeader
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from nodes.protocol.sys_flags import PullSysFlag
from support.asking_guest import Guest, a_guest, messages_of

BROKER = "broker-a"
FILTERING = BrokerConfig(enable_property_filter=True)
WANTED = SubscriptionData("orders", "price > 5 AND kind <> 'gift'", sub_version=1, expression_type="SQL92")


async def subscribe(guest: Guest, subscription: SubscriptionData) -> None:
    consumer = ConsumerData(
        "sql",
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        (subscription,),
    )
    await guest.ask(BROKER, RequestCode.HEART_BEAT, None, HeartbeatData("c", (), (consumer,)))


def pull(offset: int = 0, flag: int = 0, subscription: str | None = None) -> headers.PullMessageRequestHeader:
    kind = None if subscription is None else "SQL92"
    return headers.PullMessageRequestHeader("sql", "orders", 0, offset, 32, flag, 0, 0, 1, subscription, kind)


async def send_some(guest: Guest) -> None:
    for price, kind in ((3, "toy"), (7, "toy"), (9, "gift"), (11, "book")):
        await guest.send(BROKER, price=str(price), kind=kind)
    await guest.send(BROKER, kind="free")


def test_a_pull_gets_the_messages_whose_properties_match_and_goes_on_behind_the_others() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await subscribe(guest, WANTED)
        await send_some(guest)
        answer = await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pull())
        assert [message.properties["price"] for message in messages_of(answer)] == ["7", "11"]
        assert answer.ext_fields["nextBeginOffset"] == "5"
        nothing = await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pull(4))
        assert (nothing.code, nothing.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "5")

    execute(a_scenario(queues=1, brokers=broker_groups(config=FILTERING)), script)


def test_a_pull_that_carries_its_own_expression_is_served_by_that() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await subscribe(guest, WANTED)
        await send_some(guest)
        own = pull(flag=PullSysFlag.SUBSCRIPTION, subscription="kind IS NOT NULL AND price IS NULL")
        answer = await guest.ask(BROKER, RequestCode.LITE_PULL_MESSAGE, own)
        assert [message.properties["kind"] for message in messages_of(answer)] == ["free"]
        broken = pull(flag=PullSysFlag.SUBSCRIPTION, subscription="price >")
        answer = await guest.ask(BROKER, RequestCode.LITE_PULL_MESSAGE, broken)
        assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED

    execute(a_scenario(queues=1, brokers=broker_groups(config=FILTERING)), script)


@pytest.mark.parametrize(
    ("broker", "subscription", "code", "remark"),
    [
        (FILTERING, WANTED, ResponseCode.SUCCESS, None),
        (FILTERING, SubscriptionData("orders", "a || b"), ResponseCode.SUCCESS, None),
        (
            FILTERING,
            attrs.evolve(WANTED, sub_string="price >"),
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "Invalid MessageSelector. a value was expected, not the end",
        ),
        (
            FILTERING,
            attrs.evolve(WANTED, expression_type="XPATH"),
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "'XPATH' is no kind of expression; there are TAG and SQL92",
        ),
        (
            BrokerConfig(),
            WANTED,
            ResponseCode.SYSTEM_ERROR,
            "The broker does not support consumer to filter message by SQL92",
        ),
    ],
)
def test_a_consumer_hears_when_it_starts_whether_its_subscription_can_be_retained(
    broker: BrokerConfig, subscription: SubscriptionData, code: ResponseCode, remark: str | None
) -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        body = CheckClientRequestBody("c", "sql", subscription)
        answer = await guest.ask(BROKER, RequestCode.CHECK_CLIENT_CONFIG, None, body)
        assert (answer.code, answer.remark) == (code, remark)

    execute(a_scenario(brokers=broker_groups(config=broker)), script)


def test_who_subscribes_by_what_cannot_be_retained_is_refused_at_each_pull() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await subscribe(guest, attrs.evolve(WANTED, sub_string="price >"))
        answer = await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pull())
        assert answer.code == ResponseCode.FILTER_DATA_NOT_EXIST

    execute(a_scenario(brokers=broker_groups(config=FILTERING)), script)


def test_a_group_that_is_forbidden_to_read_a_topic_is_refused_there() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await subscribe(guest, SubscriptionData("orders", sub_version=1))
        codes = []
        for readable in (False, True):
            header = UpdateGroupForbiddenRequestHeader("sql", "orders", readable)
            await guest.ask(BROKER, RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)
            codes.append((await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pull())).code)
        assert codes == [ResponseCode.NO_PERMISSION, ResponseCode.PULL_NOT_FOUND]

    execute(a_scenario(), script)
