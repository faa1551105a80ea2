"""Single passes of a rebalance, with a consumer that only writes down what it is reported."""

import pytest
import trio

from conformance.rebalance_answers import Consumer

GROUP, TOPIC, RETRY = "G", "T", "%RETRY%G"
QUEUES = [[TOPIC, "b", queue_id] for queue_id in range(4)]
NOTHING = {"releaseRefused": (), "lockRefused": (), "offsetFails": (), "pullExpired": ()}


def passes(*reported, **requested):
    """(balanced, names of events, queues in the table) after each pass."""
    consumer = Consumer(
        {"op": "doRebalance_client", "clientId": "c1", "group": GROUP, "isOrder": False, "passes": (), **requested}
    )

    async def all_passes():
        results = []
        for item in reported:
            topics = [*item["routes"]]
            result = await consumer.make_pass({**NOTHING, "subscribed": topics, **item})
            events = [event[0] for event in result["events"]]
            results.append((result["balanced"], events, len(consumer.rebalance.process_queues)))
        return results

    return trio.run(all_passes)


FULL = {"routes": {TOPIC: QUEUES}, "cids": {TOPIC: ["c1"]}}


@pytest.mark.trap("X4")
def test_an_empty_list_of_members_is_an_error_of_the_strategy_and_no_list_at_all_is_none():
    _, empty, none = passes(
        FULL, {"routes": {TOPIC: QUEUES}, "cids": {TOPIC: []}}, {"routes": {TOPIC: QUEUES}, "cids": {TOPIC: None}}
    )

    assert empty == (False, [], 4)
    assert none == (True, [], 4)


@pytest.mark.trap("X3")
def test_a_strategy_that_fails_for_a_retry_topic_counts_as_for_any_other():
    retry = {"routes": {RETRY: [[RETRY, "b", 0]]}, "cids": {RETRY: ["c1"]}}
    without_queues = {"routes": {RETRY: []}, "cids": {RETRY: ["c1"]}}

    _, failed = passes(retry, without_queues)

    assert failed == (False, [], 1)


def test_a_queue_that_cannot_be_let_go_of_stays_in_the_table_and_is_not_taken_up_again():
    refused = {**FULL, "cids": {TOPIC: ["c1", "c2"]}, "releaseRefused": [QUEUES[3], QUEUES[2]]}

    _, marked, again = passes(FULL, refused, FULL)

    # The pass that could not let go of it is balanced: what is dropped does not count.
    assert marked == (True, ["removeUnnecessary", "removeUnnecessary", "dispatchPullRequest"], 4)
    assert again == (False, ["dispatchPullRequest"], 4)
