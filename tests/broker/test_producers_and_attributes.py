"""The registry of producers, and the attributes of topics."""

import pytest

from nodes.broker.tables.clients.producers import ProducerChannel, ProducerEvent, ProducerGroupEvent, ProducerManager
from nodes.broker.tables.metadata.attributes import TOPIC_ATTRIBUTES, AttributeRefusedError, alter_current_attributes
from support.every_case import each_case

LEFT, GROUP_LEFT = ProducerGroupEvent.CLIENT_UNREGISTER, ProducerGroupEvent.GROUP_UNREGISTER


@pytest.mark.parametrize("fast", [False, True])
def test_a_closed_channel_leaves_all_its_groups(fast):
    table = ProducerManager(enable_fast_channel_event_process=fast)
    table.register_producer("g1", "x", "c1", 0)
    table.register_producer("g2", "x", "c1", 0)
    table.register_producer("g2", "y", "c2", 0)
    member = ProducerChannel("x", "c1", 0)

    assert table.channel_close_event("x") == (
        ProducerEvent(LEFT, "g1", member),
        ProducerEvent(GROUP_LEFT, "g1"),
        ProducerEvent(LEFT, "g2", member),
    )
    assert (table.group_online("g1"), table.group_online("g2")) == (False, True)


def test_the_close_of_an_old_channel_makes_a_client_unfindable_on_its_new_one():
    table = ProducerManager()
    table.register_producer("g", "old", "c1", 0)
    table.register_producer("g", "new", "c1", 0)
    assert table.find_channel("c1") == "new"

    table.channel_close_event("old")

    assert table.find_channel("c1") is None
    assert table.available_channel("g") == "new"


def test_silence_of_more_than_120_s_expires_a_producer():
    table = ProducerManager()
    table.register_producer("g", "x", "c1", 0)

    assert table.scan_not_active_channels(120_000) == ((), ())
    channels, events = table.scan_not_active_channels(120_001)

    assert channels == ("x",)
    assert [event.kind for event in events] == [LEFT, GROUP_LEFT]


def test_attributes_are_put_changed_and_taken_away_by_the_sign_of_their_key():
    made = alter_current_attributes(TOPIC_ATTRIBUTES, {}, {"+message.type": "FIFO"}, create=True)
    changed = alter_current_attributes(TOPIC_ATTRIBUTES, made, {"+message.type": "DELAY"}, create=False)
    gone = alter_current_attributes(TOPIC_ATTRIBUTES, changed, {"-message.type": ""}, create=False)

    assert (made, changed, gone) == ({"message.type": "FIFO"}, {"message.type": "DELAY"}, {})


@each_case(
    ("current", "wanted", "create", "reason"),
    [
        ({}, {"+nope": "x"}, False, "unsupported key: nope"),
        ({}, {"-message.type": ""}, True, "only add attribute is supported while creating topic. key: message.type"),
        ({}, {"-message.type": ""}, False, "attempt to delete a nonexistent key: message.type"),
        ({}, {"*message.type": ""}, False, "wrong format key: message.type"),
        ({}, {"+": "x"}, False, "kv string format wrong."),
        (
            {},
            {"+message.type": "BAD"},
            True,
            "value is not in set: [UNSPECIFIED, TRANSACTION, FIFO, MIXED, DELAY, NORMAL]",
        ),
        ({}, {"+queue.type": "BatchCQ"}, False, "attempt to update an unchangeable attribute. key: queue.type"),
        ({}, {"+reserve.time": "-2"}, True, "value is not in range(-1, 9223372036854775807)"),
        ({}, {"+reserve.time": "long"}, True, 'For input string: "long"'),
        (
            {"message.type": "FIFO"},
            {"+message.type": "FIFO", "-message.type": ""},
            False,
            "key duplication. key: message.type",
        ),
    ],
)
def test_attributes_that_cannot_be_are_refused_with_a_reason(current, wanted, create, reason):
    with pytest.raises(AttributeRefusedError) as refused:
        alter_current_attributes(TOPIC_ATTRIBUTES, current, wanted, create=create)

    assert str(refused.value) == reason
