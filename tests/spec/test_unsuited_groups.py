"""Warnings about groups that do not suit what their members do: shared by two applications, or not ordered."""

import pytest

from emulator.spec import loads
from emulator.spec.warnings.group_checks import unsuited_groups
from support.every_case import each_case

HEAD = """
[scenario]
name = "groups"
run_for_s = 10
[[broker]]
name = "broker-a"
[[proxy]]
name = "proxy-1"
[[topic]]
name = "payments"
message_type = "TRANSACTION"
[[topic]]
name = "refunds"
message_type = "TRANSACTION"
[[topic]]
name = "steps"
message_type = "FIFO"
"""
PRODUCER = '[[producer]]\nname = "{name}"\ngroup = "{group}"\ntopic = "{topic}"\n{more}\n'
LOCAL = 'local_transaction = "commit"'
ENDPOINTS = 'endpoints = ["proxy-1"]'
CONSUMER = '[[consumer]]\ngroup = "workers"\ntopics = ["{topic}"]\nmode = "{mode}"\n{more}\n'
ORDERED = '[[admin]]\nat_s = 1\ndo = "update-sub-group workers consumeMessageOrderly=true"\n'


def warned(text):
    return [(found.name, found.where) for found in unsuited_groups(loads(HEAD + text, "groups"))]


def two(*, group="money", topic="refunds", more=LOCAL):
    first = PRODUCER.format(name="pay", group="money", topic="payments", more=LOCAL)
    return first + PRODUCER.format(name="refund", group=group, topic=topic, more=more)


def test_two_applications_with_transactions_in_one_group():
    assert warned(two()) == [("transactions-of-two-applications-in-one-group", "pay, refund")]


@pytest.mark.parametrize("other", [{"group": "another"}, {"topic": "payments"}, {"topic": "steps", "more": ""}])
def test_other_groups_processes_of_one_application_and_ordinary_messages_are_fine(other):
    assert warned(two(**other)) == []


def test_proxies_know_producers_by_their_topics():
    more = f"{LOCAL}\n{ENDPOINTS}"
    text = PRODUCER.format(name="pay", group="money", topic="payments", more=more)
    assert warned(text + PRODUCER.format(name="refund", group="money", topic="refunds", more=more)) == []


@pytest.mark.parametrize("mode", ["push5", "simple"])
def test_a_group_of_a_fifo_topic_that_is_not_ordered(mode):
    assert warned(CONSUMER.format(topic="steps", mode=mode, more="")) == [
        ("unordered-group-of-a-fifo-topic", "workers")
    ]


@each_case(
    "text",
    [
        CONSUMER.format(topic="steps", mode="push5", more="orderly = true"),
        CONSUMER.format(topic="steps", mode="push5", more="") + ORDERED,
        CONSUMER.format(topic="payments", mode="push5", more=""),
        CONSUMER.format(topic="steps", mode="pull", more=""),
    ],
)
def test_groups_that_are_made_ordered_or_read_other_topics_are_fine(text):
    assert warned(text) == []
