"""Seeded random traces about views and owners: all that decides whether a queue has, or is owed, an owner."""

import random

from analysis.random_traces import ENDS
from analysis.trace_rows import HandMadeTrace

END_S = 40
NANOSECOND = 1e-9
CONSUMERS, BROKERS, NAMESERVERS = ("a", "b", "c"), ("broker-a", "broker-a-s1", "broker-b"), ("n1", "n2")
BROKER_NAMES = ("broker-a", "broker-b")
SCENARIO = {
    "scenario": {"name": "owners", "run_for_ms": END_S * 1_000},
    "nameserver": [{"name": name} for name in NAMESERVERS],
    "broker": [{"name": "broker-a", "replicas": 2}, {"name": "broker-b"}],
    "topic": [{"name": "t", "queues": 2}],
    "consumer": [{"group": "g", "names": list(CONSUMERS), "topics": ["t"]}],
}
GROUPS = ("g", "g", "g", "h", "all", "by-proxies")
"""Members of `all` may broadcast, and those of `by-proxies` may get their messages from proxies."""
TOPICS = ("t", "t", "u")


def owner_trace(seed, steps=160):
    """A run in which anything may happen in any order, several things at one instant included."""
    chance = random.Random(f"owners {seed}")
    trace = HandMadeTrace(f"owners-{seed}")
    for role, nodes in (("consumer", CONSUMERS), ("broker", BROKERS), ("nameserver", NAMESERVERS)):
        trace.roles |= dict.fromkeys(nodes, role)
    kinds = [_own] * 6 + [_view] * 4 + [_subscribe] * 2 + [_life] * 4 + [_route, _pop, _round, _belief]
    if chance.random() < 0.5:  # else no one has begun, or subscribed: what was there before the first row counts, too
        for node in (*BROKERS, *CONSUMERS):
            trace.life(node, "started", "g, h" if node in CONSUMERS else "")
    now = 0.0
    for _ in range(steps):
        now += chance.choice((0, 0, 0, NANOSECOND, 1, 1, 2))
        if now >= END_S:
            break
        chance.choice(kinds)(trace.at(now), chance)
    return _at_the_end(trace, chance)


def _at_the_end(trace, chance):
    """Now and then rows have the instant at which the run ends."""
    if chance.random() < 0.4:
        for _ in range(4):
            chance.choice((_own, _view, _life))(trace.at(END_S), chance)
    return trace


def _of(chance):
    return {"group": chance.choice(GROUPS), "topic": chance.choice(TOPICS), "broker_name": chance.choice(BROKER_NAMES)}


def _own(trace, chance):
    event = chance.choice(("acquired", "acquired", "acquired", "dropped", "locked"))
    trace.own(chance.choice(CONSUMERS), event, queue_id=chance.choice((0, 0, 1)), **_of(chance))


def _pop(trace, chance):
    event = chance.choice(("pop_acquired", "pop_dropped"))
    trace.own(chance.choice(CONSUMERS), event, queue_id=chance.choice((-1, 0)), **_of(chance))


def _view(trace, chance):
    queues = chance.choice(({"broker-a": 1}, {"broker-a": 2, "broker-b": 1}, {"broker-b": 1, "broker-a": 2}, {}, None))
    view = chance.choice(({"cids": chance.choice((["a"], ["a", "b"])), "queues": queues}, {"cids": ["a"]}, None, 1))
    view = view if chance.random() < 0.4 else {"cids": ["a", "b"], "queues": {"broker-a": 2}}
    trace.believe(chance.choice(CONSUMERS), view, f"{chance.choice(GROUPS)}/{chance.choice(TOPICS)}")


def _subscribe(trace, chance):
    group, topic, node = chance.choice(GROUPS), chance.choice(TOPICS), chance.choice(CONSUMERS)
    value = {"expression": "*", "type": "TAG", "model": "CLUSTERING"}
    if group == "all" and chance.random() < 0.4:
        value["model"] = "BROADCASTING"
    if group == "by-proxies" and chance.random() < 0.4:
        value["delivery"] = "proxy"
    trace.believe(node, value if chance.random() < 0.8 else None, f"{group}/{topic}", "subscription")


def _life(trace, chance):
    node = chance.choice((*CONSUMERS, *BROKERS, *NAMESERVERS))
    events = ("started", "started", "ready", "suspended", "suspended", "resumed", "resumed", "stopping")
    event = chance.choice(ENDS) if chance.random() < 0.2 else chance.choice(events)
    trace.life(node, event, chance.choice(("g", "g, h", "all", "by-proxies,,g", "")))


def _route(trace, chance):
    def entry():
        return {"addrs": {}, "queues": [chance.choice((0, 1, 2)), 2, chance.choice((2, 4, 6, 6))]}

    route = chance.choice((None, {}, {"broker-a": entry()}, {"broker-a": entry(), "broker-b": entry()}))
    trace.believe(chance.choice((*NAMESERVERS, *NAMESERVERS, "a")), route, chance.choice(TOPICS), "route")


def _round(trace, chance):
    mode = chance.choice(("client", "client", "broker", "assigner", "broadcasting"))
    trace.passed(chance.choice(CONSUMERS), group=chance.choice(GROUPS), mode=mode)


_VALUES = {
    "rebalance_mode": ("client", "broker"),
    "epoch": ({"assigner": "127.1.2.1:1", "epoch": 1}, {"assigner": "127.1.2.1:1", "epoch": 2}),
    "assigner": ("broker-a", "broker-b"),
    "consumer_ids": (["a"], ["a", "b"]),
    "live_brokers": ({"0": "127.1.2.1:1"}, {}),
    "proxy_members": ({"a": "n1"}, {}),
    "assignment": ([["broker-a", 0]], []),
}


def _belief(trace, chance):
    """Values of other kinds, some of which may differ."""
    kind = chance.choice(tuple(_VALUES))
    trace.believe(
        chance.choice((*CONSUMERS, *BROKERS)), chance.choice((None, *_VALUES[kind])), chance.choice("gh"), kind
    )
