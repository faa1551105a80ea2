"""Families ordering and properties: queues and texts in Java's order, and properties as one text."""

from nodes.protocol.java import as_int, java_hash, java_sorted
from nodes.protocol.model import MessageQueue
from nodes.protocol.properties import properties_to_text, text_to_properties
from nodes.routes import compare_queues, queue_hash, sort_queues


def ordering(requested):
    match requested["op"]:
        case "text":
            # Ours never lacks a name; null is written as `null`, and hashes like the empty text.
            shown = [queue_of(queue, instead="null") for queue in requested["mqs"]]
            return {
                "toString": [str(queue) for queue in shown],
                "hashCode": [queue_hash(queue_of(queue, instead="")) for queue in requested["mqs"]],
            }
        case "compare":
            x, ys = MessageQueue(*requested["x"]), [MessageQueue(*y) for y in requested["ys"]]
            return {"compareTo": [compare_queues(x, y) for y in ys], "equals": [x == y for y in ys]}
        case "sort_mq":
            found = sort_queues(MessageQueue(*queue) for queue in requested["mqs"])
            return {"sorted": [[queue.topic, queue.broker_name, queue.queue_id] for queue in found]}
        case "sort_str":
            texts = requested["strs"]
            return {"sorted": java_sorted(texts), "hashCode": [as_int(java_hash(text)) for text in texts]}
    raise AssertionError(f"no operation is called {requested['op']}")


def queue_of(queue, *, instead):
    topic, broker_name, queue_id = queue
    return MessageQueue(instead if topic is None else topic, instead if broker_name is None else broker_name, queue_id)


def properties(requested):
    if requested["op"] == "messageProperties2String":
        pairs = requested["pairs_in_iteration_order"] or ()
        return {"string": properties_to_text({name: value for name, value in pairs if value is not None})}
    assert requested["op"] == "string2messageProperties"
    return {"map": text_to_properties(requested["string"])}
