"""Random scenarios in which two to five disturbances overlap in time: what they are is drawn from a seed.

A scenario has a group of one kind of client, a producer, two broker groups, and disturbances of all kinds, many of
them innocent: which of them do harm is not known, and is found by leaving each out (`studies.causes.truth`).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.spec import SpecError, from_dict

Tables = dict[str, Any]
RUN_FOR_S = 300
FIRST_S, LAST_S = 60, 110
"""Disturbances begin within this time, so that nearly all of them overlap."""
_TRIES = 30
_LONG_S = (20, 40, 60, 90, 130, 170)
_GROUP, _TOPIC, _CONSUMERS = "order-processors", "orders", ("consumer-1", "consumer-2", "consumer-3")
_PRODUCER = "producer-1"
_BROKERS = ("broker-a", "broker-b")
_MODES = (
    *("push",) * 14,
    *("ordered",) * 5,
    *("pop",) * 3,
    *("broadcasting",) * 3,
    *("lite",) * 3,
    *("classic",) * 2,
    *("push5", "simple"),
)
"""Kinds of clients, as often as they are drawn."""
_KINDS_OF_FAULTS = (
    *("cut",) * 6,
    *("loss",) * 3,
    *("tcp_loss",) * 1,
    *("delay",) * 4,
    *("drop",) * 2,
    *("refuse",) * 2,
    *("kill",) * 4,
    *("restart",) * 2,
    *("power_off",) * 2,
    *("suspend",) * 5,
    *("slow_cpu",) * 3,
    *("slow_disk",) * 2,
    *("clock_skew", "clock_jump", "lost_writes", "permission", "scale", "rebalance", "reconfigure", "partition"),
    *("act",) * 4,
)


def random_scenario(seed: int) -> Tables:
    """The tables of the scenario of a seed, as `emulator.spec.from_dict` reads them."""
    for attempt in range(_TRIES):
        tables = _Drawing(random.Random(f"causes {seed} {attempt}"), seed).tables()
        try:
            from_dict(tables, f"causes-{seed}")
        except SpecError:
            continue  # a fault of a node that the scenario does not have
        return tables
    raise AssertionError(f"seed {seed}: no valid scenario in {_TRIES} attempts")


def disturbances(tables: Tables) -> tuple[str, ...]:
    """The ids of all faults and acts of a scenario, in order of their begin."""
    timed = [(table["at_s"], table["id"]) for section in ("fault", "admin") for table in tables.get(section, ())]
    return tuple(name for _, name in sorted(timed))


def with_only(tables: Tables, retained: Sequence[str], seed: int) -> Tables:
    """The same scenario with some of its disturbances, and another seed."""
    changed = {**tables, "scenario": {**tables["scenario"], "seed": seed}}
    for section in ("fault", "admin"):
        changed[section] = [table for table in tables.get(section, ()) if table["id"] in retained]
    return changed


class _Drawing:
    """Draws one scenario."""

    def __init__(self, chance: random.Random, seed: int) -> None:
        self._chance = chance
        self._seed = seed
        self._mode = chance.choice(_MODES)
        self._replicas = chance.choice((1, 1, 1, 1, 2, 2))
        self._slaves = [f"{name}-s1" for name in _BROKERS] if self._replicas > 1 else []
        self._proxies = ["proxy-1", "proxy-2"] if self._mode in ("push5", "simple") else []

    def tables(self) -> Tables:
        chance = self._chance
        is_busy = chance.randrange(10) == 0
        options = {"processingTimes": "sendMessage 1ms..3ms, others 500us"} if is_busy else {}
        broker: Tables = {"replicas": self._replicas} if self._replicas > 1 else {}
        topics: list[Tables] = [{"name": _TOPIC, "queues": 4}]
        if self._mode in ("push", "ordered"):
            topics.append({"name": f"%RETRY%{_GROUP}", "queues": 1})
        tables: Tables = {
            "scenario": {
                "name": f"causes-{self._seed}",
                "run_for_s": RUN_FOR_S,
                "preset": chance.choice(("classic", "classic", "classic", "rip32"))
                if self._replicas > 1
                else "classic",
            },
            "nameserver": {"count": 2},
            "broker": [{"name": name, **broker, **({"options": options} if options else {})} for name in _BROKERS],
            "topic": topics,
            "consumer": [self._consumer()],
            "producer": [self._producer()],
        }
        if self._proxies:
            tables["proxy"] = [{"name": name} for name in self._proxies]
        drawn = [self._disturbance(number) for number in range(1, chance.choice((2, 2, 3, 3, 4, 5)) + 1)]
        for section in ("fault", "admin"):
            found = [table for of, table in drawn if of == section]
            if found:
                tables[section] = found
        return tables

    def _consumer(self) -> Tables:
        table: Tables = {"group": _GROUP, "names": list(_CONSUMERS), "topics": [_TOPIC]}
        table["consume_ms"] = self._chance.choice((0, 0, 5, 20))
        modes: Mapping[str, Tables] = {
            "ordered": {"options": {"consumeOrderly": True}},
            "pop": {"mode": "pop"},
            "broadcasting": {"options": {"messageModel": "BROADCASTING"}},
            "lite": {"lite_pull": True},
            "classic": {"classic_pull": True},
            "push5": {"mode": "push5"},
            "simple": {"mode": "simple"},
        }
        return table | modes.get(self._mode, {})

    def _producer(self) -> Tables:
        chance = self._chance
        table: Tables = {
            "name": _PRODUCER,
            "group": "order-takers",
            "topic": _TOPIC,
            "rate_per_s": chance.choice((5, 8)),
        }
        if self._proxies:
            table["endpoints"] = list(self._proxies)
        return table

    # --- disturbances -------------------------------------------------------------

    def _disturbance(self, number: int) -> tuple[str, Tables]:
        kind = self._chance.choice(_KINDS_OF_FAULTS)
        at_s = self._chance.randint(FIRST_S, LAST_S)
        if kind == "act":
            return "admin", {"id": f"act-{number}", "at_s": at_s, "do": self._act()}
        table = {"id": f"{kind.replace('_', '-')}-{number}", "kind": kind, "at_s": at_s}
        table["for_s"] = self._chance.choice(_LONG_S)
        return "fault", table | _FAULTS[kind](self)

    def _act(self) -> str:
        broker = self._chance.choice(_BROKERS)
        return self._chance.choice(
            (
                f"update-sub-group {_GROUP} consumeEnable=false on {broker}",
                f"reset-offset-by-time {_GROUP} {_TOPIC} 50s",
                f"skip-accumulated-message {_GROUP} {_TOPIC}",
                f"update-topic {_TOPIC} queues 6",
                f"wipe-write-perm {broker}",
                f"update-topic-perm {_TOPIC} perm 4 on {broker}",
            )
        )

    def server(self) -> str:
        """A broker or a nameserver, most often a master."""
        return str(self._chance.choice((*_BROKERS * 3, "ns-1", *self._slaves, *self._proxies)))

    def client(self) -> str:
        """A consumer, or the producer."""
        return str(self._chance.choice((*_CONSUMERS, _PRODUCER)))

    def node(self) -> str:
        """Any node, most often a consumer or a broker."""
        return str(
            self._chance.choice((*_CONSUMERS, *_CONSUMERS, *_BROKERS, *_BROKERS, "ns-1", _PRODUCER, *self._proxies))
        )

    def broker(self) -> str:
        """A broker."""
        return str(self._chance.choice((*_BROKERS, *_BROKERS, *self._slaves)))

    def link(self) -> Tables:
        """The ends of a fault of links, and whether it hits one direction only."""
        chance = self._chance
        ends = chance.choice(
            (
                *((self.client(), self.server()),) * 6,
                *((self.server(), "ns-1"), (self.broker(), "nameservers"), (self.client(), "nameservers")),
                *((self.client(), "brokers"), (chance.choice(_BROKERS), "*")),
            )
        )
        src, dst = ends if ends[0] != ends[1] else (ends[0], _BROKERS[1] if ends[0] == _BROKERS[0] else _BROKERS[0])
        table: Tables = {"from": src, "to": dst}
        one_way = chance.randrange(4)
        if one_way == 0:
            table = {"from": dst, "to": src}
        return table | ({"one_way": True} if one_way < 2 else {})

    def number(self, *numbers: int) -> int:
        """One of some numbers."""
        return self._chance.choice(numbers)


_FAULTS: Mapping[str, Callable[[_Drawing], Tables]] = {
    "cut": lambda item: item.link(),
    "partition": lambda item: {"shape": "isolate", "among": "nodes", "node": item.node()},
    "loss": lambda item: {"percent": item.number(2, 20, 50, 100), **item.link()},
    "tcp_loss": lambda item: {"percent": item.number(5, 50), **item.link()},
    "delay": lambda item: {"delay_ms": item.number(20, 100, 1_500, 5_000), **item.link()},
    "drop": lambda item: {"code": item.number(11, 34, 38, 10), "next": item.number(1, 3), **item.link()},
    "refuse": lambda item: {
        "code": item.number(310, 11, 34, 38), "response": item.number(1, 2, 14), **item.link(),
        "next": item.number(5, 200),
    },
    "kill": lambda item: {"node": item.node()},
    "restart": lambda item: {"node": item.node()},
    "power_off": lambda item: {"node": item.node()},
    "suspend": lambda item: {"node": item.node()},
    "slow_cpu": lambda item: {"node": item.node(), "turn_ms": item.number(50, 300, 2_000, 5_000)},
    "slow_disk": lambda item: {"node": item.broker(), "flush_ms": item.number(5, 400, 6_000)},
    "clock_skew": lambda item: {"node": item.node(), "offset_ms": item.number(-30_000, 40_000)},
    "clock_jump": lambda item: {"node": item.node(), "by_ms": item.number(-30_000, 130_000)},
    "lost_writes": lambda item: {"node": item.broker()},
    "permission": lambda item: {"node": item.broker(), "perm": item.number(2, 4)},
    "scale": lambda item: {"group": _GROUP, "members": item.number(1, 2, 5)},
    "rebalance": lambda item: {"group": _GROUP, "by": "broker"},
    "reconfigure": lambda item: {"node": item.broker()},
}  # fmt: skip
"""Every kind of fault that is drawn, with random ends and parameters."""
