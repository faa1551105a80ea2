"""ACL 1.0: signatures and permissions, against what RocketMQ's own classes answered.

`plain_access.jsonl.xz` was made once, with the classes `PlainAccessValidator` and `RemoteAddressStrategyFactory` of
the released jar `rocketmq-acl` 5.3.2, which had `ACCOUNTS` and `WHITE` as its `plain_acl.yml`: 260 requests drawn by
lot, each with the text of its `AclException` or null, and 120 pairs of an entry of a white list and an address.
"""

import base64
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.guests.remoting import body_kinds
from nodes.broker.tables.clients.plain_access import (
    AccessRequest,
    AclError,
    PlainPermissionManager,
    needs_of,
    to_consume,
    white_addresses,
)
from nodes.config.accounts import PlainAccessConfig
from nodes.fields import FieldError
from nodes.protocol.acl_signature import SIGNATURE, TranslatedBody, signature, signed, signed_content
from nodes.protocol.codes import RequestCode
from support.every_case import each_case

WHITE = ("10.10.103.*", "192.168.0-3.*", "10.10.10.{7,9}")
SHOP = PlainAccessConfig(
    "rocketmq-shop",
    "secret-of-shop",
    default_group_perm="SUB",
    topic_perms=("orders=PUB|SUB", "audit=SUB", "bills=PUB", "closed=DENY"),
    group_perms=("billing=DENY", "mailing=PUB"),
)
READER = PlainAccessConfig(
    "rocketmq-reader",
    "secret-of-reader",
    white_remote_address="172.16.0.5,172.16.0.6",
    default_topic_perm="SUB",
    group_perms=("billing=SUB",),
)
ADMIN = PlainAccessConfig("rocketmq-admin", "secret-of-admin", admin=True)
ACCOUNTS = (SHOP, READER, ADMIN)
with lzma.open(Path(__file__).with_name("plain_access.jsonl.xz"), "rt") as _lines:
    ANSWERS = [json.loads(line) for line in _lines]
REQUESTS = [answer for answer in ANSWERS if "code" in answer]
ADDRESSES = [answer for answer in ANSWERS if "pattern" in answer]


def as_guest_sent_it(answer):
    raw = None if answer["body"] is None else base64.b64decode(answer["body"])
    body = raw
    if answer["code"] == RequestCode.HEART_BEAT:
        body = TranslatedBody(body_kinds.request_from_wire(answer["code"], answer["extFields"], raw), raw)
    ip = answer["remoteAddr"].partition(":")[0]
    return AccessRequest(ip, answer["code"], answer["extFields"], body, answer["version"])


def refusal(manager, request):
    try:
        manager.validate(request)
    except AclError as error:
        return str(error)
    return None


def test_every_request_is_let_in_or_refused_as_by_the_real_classes():
    manager = PlainPermissionManager(ACCOUNTS, WHITE)
    found = [refusal(manager, as_guest_sent_it(answer)) for answer in REQUESTS]
    assert found == [answer["error"] for answer in REQUESTS]
    assert len(dict.fromkeys(found)) > 20


def test_white_lists_have_the_addresses_that_the_real_ones_have():
    found = [white_addresses(answer["pattern"])(answer["ip"]) for answer in ADDRESSES]
    assert found == [answer["match"] for answer in ADDRESSES]


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
FIELDS = st.dictionaries(TEXTS.filter(lambda name: name != SIGNATURE), TEXTS, max_size=5)


@given(fields=FIELDS, body=st.none() | st.binary(max_size=20), other=st.text(min_size=7, max_size=9))
def test_only_the_secret_with_which_a_request_was_signed_lets_it_in(fields, body, other):
    manager = PlainPermissionManager((ADMIN,), ())
    for secret in (ADMIN.secret_key.reveal(), other):
        sent = signed(fields, body, access_key=ADMIN.access_key, secret_key=secret)
        refused = refusal(manager, AccessRequest("1.2.3.4", 10, sent, body, 479))
        assert (refused is None) == (secret == ADMIN.secret_key.reveal())


@given(fields=FIELDS, body=st.binary(max_size=20), changed=st.binary(max_size=20))
def test_a_signed_request_whose_body_was_changed_is_refused(fields, body, changed):
    manager = PlainPermissionManager((ADMIN,), ())
    sent = signed(fields, body, access_key=ADMIN.access_key, secret_key=ADMIN.secret_key.reveal())
    refused = refusal(manager, AccessRequest("1.2.3.4", 10, sent, changed, 479))
    assert (refused is None) == (body == changed)


def test_the_content_is_what_the_sender_signed_not_what_a_codec_made_of_it():
    body = TranslatedBody(b"as the node reads it", b"as sent")
    assert signed_content({"b": "2", "a": "1", SIGNATURE: "x"}, body, 479) == b"12as sent"
    assert signature(b"12as sent", "secret") == signature(
        signed_content({"a": "1", "b": "2"}, b"as sent", 479), "secret"
    )


def test_pops_and_locks_need_no_permission_of_a_topic():
    for code in (RequestCode.POP_MESSAGE, RequestCode.LOCK_BATCH_MQ, RequestCode.QUERY_CONSUMER_OFFSET):
        assert needs_of(code, {"topic": "orders", "consumerGroup": "g"}, None) == {}


def test_a_group_stands_under_the_name_of_its_retry_topic():
    assert list(to_consume("g", ("orders",))) == ["%RETRY%g", "orders"]


@each_case(
    "wrong",
    [
        {"access_key": "short6"},
        {"secret_key": "short6"},
        {"white_remote_address": "10.0.0"},
        {"white_remote_address": "10.0.0.256"},
        {"white_remote_address": "*.1.1.1"},
        {"white_remote_address": "10.0.0.{}"},
        {"default_topic_perm": "ALL"},
        {"topic_perms": ("orders",)},
        {"topic_perms": ("orders=SOME",)},
        {"group_perms": ("=SUB",)},
    ],
)
def test_an_account_that_rocketmq_would_refuse_or_misread_is_refused(wrong):
    with pytest.raises(FieldError):
        PlainAccessConfig(**{"access_key": "rocketmq", "secret_key": "12345678", **wrong})
