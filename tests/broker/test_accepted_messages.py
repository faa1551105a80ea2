"""What a broker stores of a message that a client sent."""

from nodes.broker.tables.ha.ha_in_sync import need_handle_ha
from nodes.broker.tables.store.accepted_message import accepted_batch, accepted_properties
from nodes.config import BrokerConfig, BrokerRole
from nodes.protocol import headers
from nodes.protocol.batch_body import BatchedMessage, encode_messages
from nodes.protocol.properties import CLUSTER, UNIQ_KEY, WAIT_STORE_MSG_OK, properties_to_text

SENT = {UNIQ_KEY: "7F010001000003E80000000000000001", WAIT_STORE_MSG_OK: "false"}
HEADER = headers.SendMessageRequestHeader(
    producer_group="shop",
    topic="orders",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=0,
    sys_flag=0,
    born_timestamp=0,
    flag=0,
    properties=properties_to_text({WAIT_STORE_MSG_OK: "false"}),
    batch=True,
)
SYNC_MASTER = BrokerConfig(broker_role=BrokerRole.SYNC_MASTER)


def test_a_message_keeps_that_it_waits_for_no_replica() -> None:
    stored = accepted_properties(SENT, {CLUSTER: "DefaultCluster"})

    assert stored == {**SENT, CLUSTER: "DefaultCluster"}
    assert not need_handle_ha(SYNC_MASTER, 0, stored)


def test_each_message_of_a_batch_keeps_it() -> None:
    body = encode_messages([BatchedMessage(b"a", properties_to_text(SENT)), BatchedMessage(b"b")])

    messages = accepted_batch(HEADER, 0, body, {CLUSTER: "DefaultCluster"}, "10.0.0.1:40000")

    assert [message.properties[WAIT_STORE_MSG_OK] for message in messages] == ["false", "false"]
