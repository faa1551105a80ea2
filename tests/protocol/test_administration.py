"""What is read from requests of administrators for the trace: small JSON, whatever the request holds."""

import json
from random import Random

from fuzz.requests import random_value
from nodes.protocol.administration import ADMIN_REQUESTS, changes_of
from nodes.protocol.body_codec import encode_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import BrokerData, QueueData, TopicRouteData
from nodes.protocol.registry import EXCHANGES, encode_header
from support.every_case import each_case


@each_case("code", ADMIN_REQUESTS, ids=lambda code: code.name)
def test_every_valid_request_can_be_recorded(code: RequestCode) -> None:
    exchange = EXCHANGES[code]
    for seed in range(60):
        chance = Random(seed)
        fields = encode_header(random_value(exchange.request_header, chance))
        body = None if exchange.request_body is None else encode_body(random_value(exchange.request_body, chance))
        for change in changes_of(Command(code, ext_fields=fields, body=body)):
            assert all(isinstance(name, str) for name in (change.topic, change.group, change.broker_name))
            assert len(json.dumps(change.detail)) < 20_000


def test_long_values_are_shortened() -> None:
    fields = {"namespace": "n", "key": "k", "value": "v" * 5_000}
    (change,) = changes_of(Command(RequestCode.PUT_KV_CONFIG, ext_fields=fields))
    assert change.detail == {"namespace": "n", "key": "k", "value": "v" * 199 + "…"}
    addresses = dict.fromkeys(range(30), "127.1.2.1:10911")
    route = TopicRouteData((QueueData("b", 4, 4, 6),), (BrokerData("c", "b", addresses),))
    (change,) = changes_of(Command(RequestCode.REGISTER_TOPIC_IN_NAMESRV, body=encode_body(route)))
    assert change.detail["brokerDatas"][0]["brokerAddrs"] == "30 entries"


def test_the_fields_of_a_configuration_are_its_lines() -> None:
    body = b"brokerPermission=4\n no such line\nlabel = a=b\n"
    (change,) = changes_of(Command(RequestCode.UPDATE_BROKER_CONFIG, body=body))
    assert change.detail == {"brokerPermission": "4", "label": "a=b"}
