"""The six operations of RIP-32's first list, before and after the death of a master: the promise, and what is true."""

import pytest

from emulator.spec import from_dict
from emulator.testing import Stage, execute
from nodes.protocol import headers, headers_message
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import MessageQueue, TopicRouteData
from nodes.protocol.registry import decode_body

QUEUE = MessageQueue("orders", "broker-a", 0)
NO_MASTER = "the route names no master"
OPERATIONS = {
    "searchOffset": (
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        headers.SearchOffsetRequestHeader(QUEUE.topic, QUEUE.queue_id, 0),
        None,
    ),
    "maxOffset": (RequestCode.GET_MAX_OFFSET, headers.GetMaxOffsetRequestHeader(QUEUE.topic, QUEUE.queue_id), None),
    "minOffset": (RequestCode.GET_MIN_OFFSET, headers.GetMinOffsetRequestHeader(QUEUE.topic, QUEUE.queue_id), None),
    "earliestMsgStoreTime": (
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        headers_message.GetEarliestMsgStoretimeRequestHeader(QUEUE.topic, QUEUE.queue_id),
        None,
    ),
    "endTransaction": (RequestCode.END_TRANSACTION, headers.EndTransactionRequestHeader("shop", 0, 0, 8), None),
    "lockBatchMQ": (RequestCode.LOCK_BATCH_MQ, None, LockBatchRequestBody("g", "somebody", (QUEUE,))),
    "unlockBatchMQ": (RequestCode.UNLOCK_BATCH_MQ, None, LockBatchRequestBody("g", "somebody", (QUEUE,))),
}
DONE, REFUSED = "SUCCESS", "SLAVE_NOT_AVAILABLE"
UNKNOWN_HALF = "SYSTEM_ERROR"
"""There is no half message at the offset that was asked for."""

TABLE = {
    # operation:             classic and rip32, master lives; classic, it is dead; rip32, a slave acts
    "searchOffset": (DONE, NO_MASTER, DONE),
    "maxOffset": (DONE, NO_MASTER, DONE),
    "minOffset": (DONE, NO_MASTER, DONE),
    "earliestMsgStoreTime": (DONE, NO_MASTER, DONE),
    # The proposal promises it, and 5.3.3 refuses it: a slave's log takes no message.
    "endTransaction": (UNKNOWN_HALF, NO_MASTER, REFUSED),
    "lockBatchMQ": (DONE, NO_MASTER, DONE),
    "unlockBatchMQ": (DONE, NO_MASTER, DONE),
}


def answers(preset, after_death):
    """What a client is reported by the node that the route calls the master, and the values of the answers."""
    reported, values = {}, {}

    async def script(stage: Stage) -> None:
        caller = await stage.probe()
        await stage.at_ms(20_000)
        if after_death:
            await stage.kill("broker-a")
            await stage.for_ms(150_000)  # the slave acts, and every silent broker is forgotten
        header = headers.GetRouteInfoRequestHeader(QUEUE.topic)
        answer = await caller.ask("ns-1", RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        (members,) = decode_body(TopicRouteData, answer.body).broker_datas
        master = members.broker_addrs.get(0)
        name = next((name for name, host in stage.cluster.hosts.items() if f"{host.ip}:10911" == master), None)
        for operation, (code, requested, body) in OPERATIONS.items():
            if name is None:
                reported[operation] = NO_MASTER
                continue
            answer = await caller.ask(name, code, requested, body)
            reported[operation] = ResponseCode(answer.code).name
            values[operation] = dict(answer.ext_fields)
            if code is RequestCode.LOCK_BATCH_MQ:
                values[operation] = decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set

    tables = {
        "scenario": {"name": "six-operations", "run_for_s": 300, "preset": preset, "start_spread_s": 0},
        "nameserver": {"count": 1},
        "broker": [{"name": "broker-a", "replicas": 2}],
        "topic": [{"name": "orders", "queues": 1}],
        "producer": [{"group": "shop", "topic": "orders", "rate_per_s": 10}],
    }
    execute(from_dict(tables), script)
    return reported, values


@pytest.mark.parametrize("preset", ["classic", "rip32"])
def test_a_living_master_does_all_six(preset):
    reported, values = answers(preset, after_death=False)

    assert reported == {operation: row[0] for operation, row in TABLE.items()}
    assert int(values["maxOffset"]["offset"]) > 50
    assert values["lockBatchMQ"] == (QUEUE,)


def test_without_rip_32_no_one_does_any_of_them_when_the_master_is_dead():
    reported, _ = answers("classic", after_death=True)

    assert reported == {operation: row[1] for operation, row in TABLE.items()}


def test_an_acting_slave_does_them_but_for_the_end_of_a_transaction():
    reported, values = answers("rip32", after_death=True)

    assert reported == {operation: row[2] for operation, row in TABLE.items()}
    assert int(values["maxOffset"]["offset"]) > 50
    assert values["lockBatchMQ"] == (QUEUE,)
