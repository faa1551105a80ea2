"""Seeded random traces with rows for every sweep: few keys, many coincidences, several things at one instant."""

import random

from analysis.random_traces import END_S, ENDS
from analysis.trace_rows import HandMadeTrace

CONSUMERS, BROKERS = ("a", "b", "c"), ("broker-a", "broker-a-s1")
NAMESERVERS = ("n1", "n2")
GROUPS, TOPICS = ("g", "h", "all"), ("t", "u")
"""The members of the last group broadcast."""
BROKER_NAMES = {"broker-a": "broker-a", "broker-a-s1": "broker-a"}
MS_PER_S = 1_000


def busy_trace(seed, steps=400, trace_class=HandMadeTrace):
    """A run in which anything may happen in any order."""
    chance = random.Random(f"busy {seed}")
    trace = trace_class(f"busy-{seed}")
    trace.roles |= dict.fromkeys(CONSUMERS, "consumer") | dict.fromkeys(NAMESERVERS, "nameserver")
    trace.roles |= dict.fromkeys(BROKERS, "broker")
    kinds = (
        _message,
        _message,
        _own,
        _member,
        _life,
        _wake,
        _route,
        _offset,
        _pop,
        _of_broker,
        _lock,
        _wait,
        _transaction,
    )
    now_ms = 0
    for _ in range(steps):
        now_ms += chance.choice((0, 0, 50, 100, 100, 200))
        if now_ms >= (END_S - 1) * MS_PER_S:
            break
        chance.choice(kinds)(trace.at(now_ms / MS_PER_S), chance)
    return trace


def _queue(chance):
    return {"queue_id": chance.choice((0, 0, 1)), "topic": chance.choice(TOPICS)}


def _message(trace, chance):
    """A message is stored, consumed, with success or not, or left out by a filter; its key is that of its offset."""
    event, offset = chance.choice(("stored", "stored", "consumed", "consumed", "filtered")), chance.randrange(8)
    of = {"tags": chance.choice("xy"), "key": f"order-{offset % 3}", **_queue(chance)}
    if event == "consumed":
        of["tags"] = {"x": "", "y": "later"}[of["tags"]]
    if event == "stored":
        trace.message("broker-a", event, offset, **of)
    else:
        trace.message(chance.choice(CONSUMERS), event, offset, group=chance.choice(GROUPS), **of)


def _own(trace, chance):
    event = chance.choice(("acquired", "acquired", "dropped", "locked"))
    offset = chance.choice((-1, chance.randrange(8)))
    trace.own(chance.choice(CONSUMERS), event, group=chance.choice(GROUPS), offset=offset, **_queue(chance))


def _member(trace, chance):
    """A member subscribes, sees queues, or makes a round."""
    node, group, topic = chance.choice(CONSUMERS), chance.choice(GROUPS), chance.choice(TOPICS)
    subject = chance.random()
    if subject < 0.4:
        model = "BROADCASTING" if group == "all" else "CLUSTERING"
        trace.subscribe(node, chance.choice("*xy"), model, group, topic)
    elif subject < 0.8:
        view = {"cids": chance.choice((["a"], ["a", "b"])), "queues": {"broker-a": chance.choice((1, 2))}}
        trace.believe(node, chance.choice((None, view, view)), f"{group}/{topic}")
    else:
        trace.passed(node, group=group, mode=chance.choice(("client", "assigner", "broadcasting")))


def _life(trace, chance):
    node = chance.choice((*CONSUMERS, *CONSUMERS, *BROKERS, *NAMESERVERS))
    events = ("started", "started", "ready", "suspended", "suspended", "resumed", "resumed", "stopping", *ENDS)
    trace.life(node, chance.choice(events), chance.choice(("g", "g, h", "all", "")))


def _wake(trace, chance):
    """A consumer is resumed and consumes a message at the same instant, in any order."""
    node, offset = chance.choice(CONSUMERS), chance.randrange(8)
    for step in chance.sample((0, 1), 2):
        if step:
            trace.life(node, "resumed")
        else:
            trace.message(node, "consumed", offset, key=f"order-{offset % 3}", **_queue(chance))


def _route(trace, chance):
    entry = {"addrs": {"0": "127.1.2.1:1"}, "queues": [chance.choice((0, 1, 2)), 2, chance.choice((2, 4, 6))]}
    route = chance.choice((None, {}, {"broker-a": entry}, {"broker-a": entry}))
    trace.believe(chance.choice(NAMESERVERS), route, chance.choice(TOPICS), "route")


def _offset(trace, chance):
    event, node = chance.choice(("committed", "committed", "committed", "loaded", "copied", "reset")), BROKERS[0]
    node = chance.choice(BROKERS) if event != "committed" else node
    of = {"group": chance.choice(GROUPS), "client_id": chance.choice(CONSUMERS), **_queue(chance)}
    trace.message(node, event, chance.randrange(8), **of)


def _pop(trace, chance):
    """A member pops a queue, or something happens to a popped message, with rests of invisible times."""
    queue, group = _queue(chance), chance.choice("gh")
    if chance.random() < 0.2:
        queue["queue_id"] = chance.choice((-1, 0))
        trace.own(chance.choice(CONSUMERS), chance.choice(("pop_acquired", "pop_dropped")), group=group, **queue)
        return
    handle = f"0 {trace.t_ns // 1_000_000} {chance.choice((1, 500, 3_000))} 0 0 broker-a 0 7"
    event = chance.choice(("popped", "popped", "acked", "invisible_changed", "revived", "re_put", "lost"))
    tags = chance.choice(("stored", "stored", "refused"))
    trace.message("broker-a", event, chance.randrange(4), group=group, tags=tags, key=handle, **queue)


def _of_broker(trace, chance):
    """A member of the broker group begins or ends special services, or records its role; a controller records one."""
    node, replica = chance.choice(tuple(zip(BROKERS, (1, 2), strict=True)))
    master, epoch = chance.choice((1, 2)), chance.randrange(1, 4)
    subject = chance.random()
    if subject < 0.4:
        trace.believe(node, chance.choice((True, False)), "broker-a", "special_service")
    elif subject < 0.8:
        serves_as = "master" if replica == master else "slave"
        role = {"replica": replica, "serves_as": serves_as, "master": master, "epoch": epoch}
        trace.believe(node, role, "broker-a", "broker_role")
    else:
        state = {"master": chance.choice((None, master)), "epoch": epoch, "in_sync": [1], "in_sync_epoch": 1}
        trace.believe("n1", state, "broker-a", "sync_state")


def _lock(trace, chance):
    locked = {f"{topic}@broker-a@{queue_id}": chance.choice(CONSUMERS) for topic in TOPICS for queue_id in (0, 1)}
    trace.believe(chance.choice(BROKERS), chance.choice((None, {}, locked, locked)), chance.choice("gh"), "queue_locks")


def _wait(trace, chance):
    event = chance.choice(("delayed", "delayed", "delivered", "delivered", "recalled", "dropped"))
    of = {"group": "", "client_id": "timer", "key": f"wait-{chance.randrange(5)}"}
    trace.message("broker-a", event, chance.randrange(3_000), **of)


def _transaction(trace, chance):
    event, state = chance.choice(("half", "half", "decided", "ended")), chance.choice(("commit", "rollback"))
    node = "p" if event == "decided" else chance.choice(BROKERS)
    trace.message(node, event, 0, group="", tags=state, key=f"transaction-{chance.randrange(5)}")
