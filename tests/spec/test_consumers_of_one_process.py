"""Groups that share processes or addresses, and what cannot be said of them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.model.addresses import addresses
from nodes.config import ConsumerConfig
from nodes.fields import FieldError
from nodes.protocol.model import MessageModel
from support.every_case import each_case

HEAD = """
[scenario]
name = "shared"
run_for_s = 10
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
"""
GROUPS = """
[[consumer]]
group = "g"
count = 2
topics = ["orders"]
one_address = true
[[consumer]]
group = "h"
topics = ["orders"]
share_process_with = "g"
[consumer.options]
messageModel = "BROADCASTING"
"""


def test_a_group_in_the_processes_of_another_has_no_nodes_of_its_own():
    scenario = loads(HEAD + GROUPS, "shared.toml")

    assert scenario.node_names()[-2:] == ("consumer-1", "consumer-2")
    assert [group.names for group in scenario.consumers] == [("consumer-1", "consumer-2"), ()]
    assert scenario.consumers[1].config.message_model is MessageModel.BROADCASTING


def test_what_is_written_of_them_reads_back():
    scenario = loads(HEAD + GROUPS, "shared.toml")

    assert from_dict(to_dict(scenario)) == scenario


def test_consumers_on_one_address_have_that_of_the_first():
    found = addresses(loads(HEAD + GROUPS, "shared.toml"))

    assert found["consumer-1"] == found["consumer-2"] == "127.1.10.1"


@each_case(
    ("groups", "message"),
    [
        (GROUPS.replace('share_process_with = "g"', 'share_process_with = "absent"'), r"share_process_with: .*absent"),
        (GROUPS.replace('share_process_with = "g"', 'share_process_with = "h"'), r"share_process_with: "),
        (
            GROUPS.replace('share_process_with = "g"', 'share_process_with = "g"\nnames = ["c9"]'),
            r"consumer\[1\]\.names: expected only one of names and share_process_with",
        ),
        (
            GROUPS.replace('share_process_with = "g"', 'share_process_with = "g"\ncount = 2'),
            r"consumer\[1\]\.count: expected only one of count and share_process_with",
        ),
        (GROUPS.replace('group = "h"', 'group = "g"'), r"consumer\[1\]\.group: expected another group"),
    ],
)
def test_what_cannot_be_is_refused(groups, message):
    with pytest.raises(SpecError, match=message):
        loads(HEAD + groups, "shared.toml")


@pytest.mark.parametrize("text", ["yesterday", "20250101", "20251301000000"])
def test_an_instant_to_start_from_is_fourteen_digits_of_a_real_one(text):
    with pytest.raises(FieldError, match=r"consumeTimestamp: expected an instant as yyyyMMddHHmmss"):
        ConsumerConfig(consume_timestamp=text)

    assert ConsumerConfig(consume_timestamp="20250101000030").consume_timestamp == "20250101000030"
