"""Family producer_select: whose turn it is among the queues, and which brokers are avoided."""

from conformance.java_errors import throwing
from nodes.client.tables.latency_fault import (
    LATENCY_MAX_MS,
    NOT_AVAILABLE_DURATION_MS,
    LatencyFaultTolerance,
    MQFaultStrategy,
    compute_not_available_duration_ms,
)
from nodes.client.tables.queue_selectors import select_by_hash
from nodes.config import ProducerConfig
from nodes.protocol.java import as_int, java_hash
from nodes.protocol.model import MessageQueue
from nodes.routes import SendWhichQueue


class NoObjectError(Exception):
    """The hash of null is asked for."""


JAVA_KINDS = {ZeroDivisionError: "ArithmeticException", NoObjectError: "NullPointerException"}
NOW_MS = 1_000_000_000
JAVA_TRUE_HASH, JAVA_FALSE_HASH = 1231, 1237


def producer_select(requested):
    return throwing(JAVA_KINDS, OPERATIONS[requested["op"]], requested)


def queues_of(requested):
    return tuple(MessageQueue("T", *queue) for queue in requested["mqs"])


def in_turn(requested):
    queues, which = queues_of(requested), SendWhichQueue(requested["startIndex"])
    strategy = MQFaultStrategy(send_latency_enable=False)

    def item(last):
        return chosen(strategy.select_one_message_queue(queues, which, last, NOW_MS), which)

    return {"results": [throwing(JAVA_KINDS, item, last) for last in requested["lastBrokerNames"]]}


def chosen(queue, which):
    return [[queue.broker_name, queue.queue_id], which.index]


def avoiding(requested):
    queues, which = queues_of(requested), SendWhichQueue(requested["startIndex"])
    strategy = MQFaultStrategy(send_latency_enable=requested["sendLatencyFaultEnable"])
    results = []
    for verb, *reported in requested["steps"]:
        if verb == "fault":
            broker, duration_ms, reachable = reported
            strategy.tolerance.update_fault_item(broker, 100, duration_ms, reachable=reachable, now_ms=NOW_MS)
            results.append(None)
        else:
            assert verb == "select"
            results.append(chosen(strategy.select_one_message_queue(queues, which, *reported, NOW_MS), which))
    return {"results": results}


def of_no_queues(_requested):
    return chosen(
        MQFaultStrategy(send_latency_enable=False).select_one_message_queue((), SendWhichQueue(0), None, NOW_MS),
        SendWhichQueue(0),
    )


def faults_reported(requested):
    strategy = MQFaultStrategy(send_latency_enable=requested["sendLatencyFaultEnable"])
    results = []
    for broker, latency_ms, isolation, reachable in requested["steps"]:
        strategy.update_fault_item(broker, latency_ms, isolation=isolation, reachable=reachable, now_ms=NOW_MS)
        results.append(held_against(strategy.tolerance, broker))
    return {"results_after_step": results}


def held_against(tolerance, broker):
    item = tolerance.item(broker)
    shown = {
        "broker": broker,
        "known": item is not None,
        "isAvailable": tolerance.is_available(broker, NOW_MS),
        "isReachable": tolerance.is_reachable(broker),
    }
    if item is None:
        return shown
    remaining_ms = max(0, item.start_timestamp - NOW_MS)
    return shown | {"currentLatency": item.current_latency_ms, "remaining_ms_rounded_to_s": remaining_ms}


def tables(_requested):
    return {
        "latencyMax": list(LATENCY_MAX_MS),
        "notAvailableDuration": list(NOT_AVAILABLE_DURATION_MS),
        "sendLatencyFaultEnable_default": ProducerConfig().send_latency_enable,
    }


def of_an_unknown_broker(_requested):
    tolerance = LatencyFaultTolerance()
    return {"isAvailable": tolerance.is_available("x", NOW_MS), "isReachable": tolerance.is_reachable("x")}


def isolated_then_removed(_requested):
    tolerance = LatencyFaultTolerance()
    tolerance.update_fault_item("b", 100, 30_000, reachable=True, now_ms=NOW_MS)
    before = tolerance.is_available("b", NOW_MS)
    tolerance.remove("b")
    return {"before": before, "after": tolerance.is_available("b", NOW_MS)}


def by_hash(requested):
    hashed = java_object_hash(requested["argType"], requested["arg"])
    sizes = [tuple(MessageQueue("T", "b", number) for number in range(size)) for size in requested["sizes"]]
    return {"hashCode": hashed, "index": [select_by_hash(queues, hashed).queue_id for queues in sizes]}


def java_object_hash(kind, argument):
    if kind == "null":
        raise NoObjectError
    if kind == "String":
        return as_int(java_hash(argument))
    if kind == "Boolean":
        return JAVA_TRUE_HASH if argument else JAVA_FALSE_HASH
    if kind == "Long":
        return as_int(argument ^ argument >> 32)
    assert kind == "Integer"
    return argument


OPERATIONS = {
    "TopicPublishInfo.selectOneMessageQueue": in_turn,
    "MQFaultStrategy.selectOneMessageQueue": avoiding,
    "MQFaultStrategy.selectOneMessageQueue_empty": of_no_queues,
    "MQFaultStrategy.updateFaultItem": faults_reported,
    "computeNotAvailableDuration": lambda requested: {
        "duration_ms": [compute_not_available_duration_ms(latency_ms) for latency_ms in requested["latency_ms"]]
    },
    "isolate_then_remove": isolated_then_removed,
    "tables": tables,
    "unknown_broker": of_an_unknown_broker,
    "SelectMessageQueueByHash": by_hash,
}
