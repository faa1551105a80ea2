"""Families alloc and ring: the allocation strategies, and the ring behind one of them."""

from functools import reduce
from operator import xor

from conformance.java_errors import throwing
from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.by_config import AllocateByConfig
from nodes.allocation.by_machine_room import AllocateByMachineRoom, RoomsNotSetError
from nodes.allocation.consistent_hash import AllocateConsistentHash, ConsistentHashRouter, md5_hash
from nodes.allocation.machine_room_nearby import AllocateMachineRoomNearby
from nodes.allocation.strategies import strategy_name
from nodes.allocation.strategy import AllocationError
from nodes.config import AllocateStrategy, ConsumerConfig
from nodes.protocol.model import MessageQueue

JAVA_KINDS = {
    RoomsNotSetError: "NullPointerException",
    AllocationError: "IllegalArgumentException",
    ValueError: "IllegalArgumentException",
}


class RoomsBeforeHyphen:
    """The resolver that the cases were run with."""

    def broker_deploy_in(self, message_queue):
        return self.consumer_deploy_in(message_queue.broker_name)

    def consumer_deploy_in(self, client_id):
        room, hyphen, _ = client_id.partition("-")
        return room if hyphen else ""


def allocate(requested):
    name, params = requested["strategy"], requested["params"]
    if "callers" not in requested:
        return made(name, params)
    strategy = strategy_made_of(name, params)
    assert requested["getName"] == named(name, params)
    queues = [MessageQueue(*queue) for queue in requested["mqAll"] or ()]
    listed = params.get("messageQueueList") if name == "CONFIG" else requested["mqAll"]
    # Ours knows no null: unset and empty are both an allocation of nothing.
    none = None if name == "CONFIG" and listed is None else []
    places = {}
    for place, queue in enumerate(listed or ()):
        places.setdefault(MessageQueue(*queue), []).append(place)

    def share(cid):
        mine = strategy(requested["group"], cid, queues, requested["cidAll"] or ())
        return {"mqs": places_of(mine, places) if mine else none}

    return {
        "results": [
            {"cid": cid} | throwing(JAVA_KINDS, share, cid, quoting=AllocationError) for cid in requested["callers"]
        ]
    }


def places_of(mine, places):
    """Where each queue stands; one that is there twice stands at its places in turn."""
    left = {queue: list(found) for queue, found in places.items()}
    return [left[queue].pop(0) for queue in mine]


def made(name, params):
    """What came of the construction alone."""
    if params.get("resolver", "") is None or params.get("inner", "") is None:
        # Ours cannot be made without one: its type says so.
        return {"error": "NullPointerException"}
    return throwing(JAVA_KINDS, lambda: strategy_made_of(name, params) and {})


def named(name, params):
    inner = params.get("inner", AllocateStrategy.AVG)
    return strategy_name(ConsumerConfig(allocate_message_queue_strategy=name, inner_allocate_strategy=inner))


def strategy_made_of(name, params):
    match AllocateStrategy(name):
        case AllocateStrategy.AVG:
            return allocate_averagely
        case AllocateStrategy.AVG_BY_CIRCLE:
            return allocate_by_circle
        case AllocateStrategy.CONFIG:
            listed = params["messageQueueList"]
            return AllocateByConfig(None if listed is None else tuple(MessageQueue(*queue) for queue in listed))
        case AllocateStrategy.MACHINE_ROOM:
            rooms = params["consumeridcs"]
            return AllocateByMachineRoom(None if rooms is None else tuple(rooms))
        case AllocateStrategy.CONSISTENT_HASH:
            return AllocateConsistentHash(params.get("virtualNodeCnt", 10))
        case AllocateStrategy.MACHINE_ROOM_NEARBY:
            return AllocateMachineRoomNearby(strategy_made_of(params["inner"], {}), RoomsBeforeHyphen())


def ring(requested):
    if requested["op"] == "hash":
        return {"hash": [md5_hash(key) for key in requested["keys"]]}
    return throwing(JAVA_KINDS, routes, requested)


def routes(requested):
    router = ConsistentHashRouter(requested["nodes"], requested["vnodes"])
    states = [state(router, requested["keys"])]
    for verb, *arguments in requested["steps"]:
        assert verb == "add"
        router.add_node(*arguments)
        states.append(state(router, requested["keys"]))
    return {"states": states}


def state(router, keys):
    places = router.ring_keys
    return {
        "ringSize": len(places),
        "ringKeyXor": reduce(xor, places, 0),
        "firstKey": places[0] if places else None,
        "route": [router.route_node(key) for key in keys],
    }
