"""A random scenario from one seed: topology, options, load and faults, as the tables of a scenario file."""

import random
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from emulator.spec import Scenario, SpecError, from_dict
from faults.catalogue import CHAOS_NAMES
from faults.consume_mode import ConsumeMode
from nodes.config import (
    AllocateStrategy,
    BrokerConfig,
    Config,
    ConsumerConfig,
    Exclusivity,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    PullConsumerConfig,
    StatefulSetConfig,
)
from nodes.config import options as options_of
from nodes.fields import rule_of, unit_of
from nodes.protocol.assigning import RebalanceMode

Tables = dict[str, Any]
_BIG_ONE_IN = 40
_TRIES = 20
_SLOWEST_NETWORK_MS = 50
_PERIOD_MIN_MS = 200
"""Shorter periods and time-outs make a run long, or fail without any fault."""
_ASSIGNED = tuple(strategy.value for strategy in AllocateStrategy if strategy is not AllocateStrategy.ORDINAL)
"""Strategies of a pinned assigner."""
_POD_ALLOCATES = {"clientRebalance": True, "pinnedAssigner": False, "revokeBeforeAssign": False}
_RETAINED = (
    *("listenPort", "maxMessageSize", "totalPhysicalMemorySize", "brokerPermission", "namesrvAddr"),
    *("fetchNameSrvAddrByDnsLookup", "fetchNamesrvAddrByAddressServer"),
)
"""Options that change what the other parts of a scenario mean."""


def random_tables(seed: int) -> Tables:
    """The tables of the scenario of a seed, which `emulator.spec.from_dict` accepts."""
    for attempt in range(_TRIES):
        tables = _Drawing(random.Random(f"scenario {seed} {attempt}"), seed).tables()
        try:
            from_dict(tables, f"seed {seed}")
        except SpecError:
            continue  # some options exclude each other
        return tables
    raise AssertionError(f"seed {seed}: no valid scenario in {_TRIES} attempts")


def scenario_of(tables: Tables) -> Scenario:
    """The scenario of some tables."""
    return from_dict(tables, "tables")


class _Drawing:
    """Draws one scenario."""

    def __init__(self, chance: random.Random, seed: int) -> None:
        self._chance = chance
        self._seed = seed
        self._big = chance.randrange(_BIG_ONE_IN) == 0
        self._run_for_ms = chance.choice((10_000, 20_000, 30_000, 45_000, 60_000, 90_000))
        self._one_address = False

    def tables(self) -> Tables:
        chance = self._chance
        self._preset = chance.choice(("classic", "classic", "classic", "rip32", "rip32", "assigner"))
        self._statefulsets: list[Tables] = []
        self._nameservers = [f"ns-{number}" for number in range(1, chance.choice((1, 1, 2, 2, 3)) + 1)]
        self._brokers = [self._broker(name) for name in ("ba", "bb", "bc", "bd")[: self._size(2, 4)]]
        self._topics = [self._topic(name) for name in ("orders", "bills", "mails")[: self._size(2, 3)]]
        self._consumers = [self._consumer(f"g{number}") for number in range(1, self._size(2, 4) + 1)]
        self._share_a_process()
        self._producers = [self._producer(number) for number in range(1, chance.randrange(3) + 1)]
        head: Tables = {
            "name": f"fuzz-{self._seed}",
            "seed": self._seed,
            "run_for_ms": self._run_for_ms,
            "preset": self._preset,
            "start_spread_ms": chance.choice((0, 1_000, 3_000)),
            "nameserver_start_spread_ms": chance.choice((0, 0, 800)),
            "even_starts": chance.choice((False, False, True)),
            "broker_start_spread_ms": chance.choice((0, 0, 500)),
            "broker_boot_spread_ms": chance.choice((0, 0, 700)),
        }
        delay_ms = chance.choice((0, 1, 1, 5, 20))
        tables: Tables = {
            "scenario": head,
            "network": {"delay_ms": delay_ms, "jitter_ms": chance.choice((0, 0, 1, _SLOWEST_NETWORK_MS - 20))},
            "nameserver": [{"name": name, "options": self._options(NameserverConfig, 4)} for name in self._nameservers],
            "broker": self._brokers,
            "topic": self._topics,
            "consumer": self._consumers,
            "statefulset": self._statefulsets,
            "producer": self._producers,
            "fault": [self._timed() for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 6)))],
        }
        if chance.randrange(6) == 0:
            tables["nemesis"] = [self._nemesis()]
        if chance.randrange(4) == 0:
            self._learn_of_nameservers(tables)
        return tables

    def _learn_of_nameservers(self, tables: Tables) -> None:
        """An address server and a domain name, nodes that use them, and acts that change both or restart a broker."""
        chance = self._chance
        tables["address_server"] = {"nameservers": self._some_nameservers()}
        tables["domain"] = [{"name": "names", "nodes": self._some_nameservers()}]
        fetches = {"fetchNamesrvAddrByAddressServer": True}
        looks_up = {
            "namesrvAddr": "names:9876",
            "fetchNameSrvAddrByDnsLookup": True,
            "updateNameServerAddrPeriod": 3_000,
        }
        connects = {"namesrvAddr": "names:9876"}
        for table in self._brokers:
            table["options"] |= chance.choice(({}, fetches, looks_up, connects))
        for table in (*self._consumers, *self._producers):
            table.setdefault("options", {}).update(chance.choice(({}, fetches, connects)))
        broker = self._brokers[-1]["name"]
        lines = [
            *(f"update-address-server {' '.join(self._some_nameservers())}" for _ in range(2)),
            *(f"update-domain names {' '.join(self._some_nameservers())}" for _ in range(2)),
            *(f"shutdown-node {broker}", f"start-node {broker}", f"wipe-write-perm {broker}"),
        ]
        chosen = chance.sample(lines, chance.randint(0, len(lines)))
        tables["admin"] = [{"do": line, "at_ms": chance.randrange(self._run_for_ms - 1)} for line in chosen]

    def _some_nameservers(self) -> list[str]:
        return self._chance.sample(self._nameservers, self._chance.randint(0, len(self._nameservers)))

    def _size(self, small: int, big: int) -> int:
        return self._chance.randint(1, big if self._big else small)

    def _broker(self, name: str) -> Tables:
        table: Tables = {"name": name, "options": self._options(BrokerConfig, 3)}
        replicas = self._chance.choice((1, 1, 1, 2, 2, 3))
        if replicas > 1:
            table["replicas"] = replicas
            if self._chance.randrange(8) == 0:
                table["one_address"] = self._one_address = True
        return table

    def _topic(self, name: str) -> Tables:
        brokers = [broker["name"] for broker in self._brokers]
        chosen = self._chance.sample(brokers, self._chance.randint(1, len(brokers)))
        return {"name": name, "brokers": sorted(chosen), "queues": self._chance.choice((1, 2, 4, 8))}

    def _consumer(self, group: str) -> Tables:
        chance = self._chance
        topics = [topic["name"] for topic in self._topics]
        kind = {0: LitePullConsumerConfig, 1: PullConsumerConfig}.get(chance.randrange(10), ConsumerConfig)
        table: Tables = {
            "group": group,
            "names": [f"{group}-c{number}" for number in range(1, self._size(3, 12) + 1)],
            "topics": sorted(chance.sample(topics, chance.randint(1, len(topics)))),
            "options": self._options(kind, 3),
            "consume_ms": chance.choice((0, 0, 5, 50)),
        }
        if kind is not ConsumerConfig:
            table["lite_pull" if kind is LitePullConsumerConfig else "classic_pull"] = True
        else:
            table["fail_times"] = chance.choice((0, 0, 0, 1))
            table["options"] |= {"consumeOrderly": True} if chance.randrange(4) == 0 else {}
            self._report_assigner(table)
        if chance.randrange(4) == 0:
            table["expressions"] = {table["topics"][0]: chance.choice(("a", "a || b", "*"))}
        if chance.randrange(4) == 0 and kind is not PullConsumerConfig:
            table["options"]["consumeFromWhere"] = "CONSUME_FROM_FIRST_OFFSET"
        return table

    def _report_assigner(self, table: Tables) -> None:
        """Now and then an assigner, ordinals of pods, or a single owner of each queue."""
        chance, options = self._chance, table["options"]
        kind = chance.choice(("members", "members", "members", "assigner", "pods", "exclusive"))
        if kind == "assigner":
            options |= {"clientRebalance": False, "pinnedAssigner": True}
            options["allocateMessageQueueStrategy"] = chance.choice(_ASSIGNED)
            options["revokeBeforeAssign"] = chance.choice((True, False))
            options["heartbeatToAssigner"] = chance.randrange(6) == 0
        elif kind == "pods":
            self._run_as_pods(table)
        if kind == "exclusive" or (kind == "pods" and chance.randrange(2)):
            options["consumeOrderly"] = False
            options["exclusivity"] = chance.choice([Exclusivity.SINGLE_ACTIVE.value, Exclusivity.LEASE.value])

    def _run_as_pods(self, table: Tables) -> None:
        chance, names = self._chance, table.pop("names")
        spec: Tables = {
            "group": table["group"],
            "name": f"{table['group']}-pod",
            "replicas": chance.choice((0, *range(1, len(names) + 1))),
            "options": self._options(StatefulSetConfig, 2),
        }
        if chance.randrange(3) == 0:
            spec["scaler"] = "scaler"
        self._statefulsets.append(spec)
        if chance.randrange(3):
            table["options"] |= {**_POD_ALLOCATES, "allocateMessageQueueStrategy": AllocateStrategy.ORDINAL.value}

    def _members(self, table: Tables) -> list[str]:
        """The consumers of a group, as far as they are there from the beginning."""
        pods = [(spec["name"], spec["replicas"]) for spec in self._statefulsets if spec["group"] == table["group"]]
        return [*table.get("names", ()), *(f"{name}-{ordinal}" for name, count in pods for ordinal in range(count))]

    def _share_a_process(self) -> None:
        """Now and then one more group in the processes of the first."""
        first = self._consumers[0]
        if self._chance.randrange(6) == 0 and not first.keys() & {"lite_pull", "classic_pull"} and "names" in first:
            self._consumers.append({"group": "gx", "topics": first["topics"][:1], "share_process_with": first["group"]})

    def _producer(self, number: int) -> Tables:
        chance = self._chance
        table: Tables = {
            "name": f"p{number}",
            "group": f"pg{number}",
            "topic": chance.choice(self._topics)["name"],
            "rate_per_s": chance.choice((1, 3, 10)),
            "options": self._options(ProducerConfig, 2),
            "tags": chance.choice(([], [], ["a"], ["a", "b", "c"])),
        }
        if chance.randrange(5) == 0:
            table["local_transaction"] = chance.choice(("commit", "rollback", "unknown"))
        return table

    # --- options ------------------------------------------------------------------

    def _options(self, kind: type[Config], maximum: int) -> Tables:
        """A few options with other values than the defaults."""
        chance = self._chance
        known = [name for name, field in options_of(kind).items() if name not in _RETAINED and self._values(field)]
        chosen = chance.sample(known, chance.choice((0, 0, *range(1, maximum + 1))))
        return {name: chance.choice(self._values(options_of(kind)[name])) for name in sorted(chosen)}

    def _values(self, field: Any) -> list[Any]:
        default = field.default
        if isinstance(default, bool):
            return [not default]
        if isinstance(default, Enum):
            return [item.value for item in type(default) if item is not default]
        if not isinstance(default, int):
            return []
        drawn = [default // 4, default // 2, default * 2, default * 3]
        if unit_of(field) == "milliseconds":
            drawn = [value for value in drawn if value >= _PERIOD_MIN_MS]
        return [value for value in drawn if value != default and rule_of(field).holds(value)]

    # --- faults -------------------------------------------------------------------

    def _timed(self) -> Tables:
        at_ms = self._chance.randrange(self._run_for_ms - 1)
        table = {**self._fault(), "at_ms": at_ms}
        if self._chance.randrange(5):
            table["for_ms"] = self._chance.choice((1, 50, 1_000, 4_000, 10_000, 30_000))
        return table

    def _nemesis(self) -> Tables:
        min_ms = self._chance.choice((1, 500, 3_000))
        every_ms = self._chance.choice((2_000, 5_000, 15_000))
        return {**self._fault(), "every_ms": every_ms, "min_ms": min_ms, "max_ms": min_ms * 3, "id": "nemesis"}

    def _fault(self) -> Tables:
        kinds = list(_KINDS) if not self._one_address else [kind for kind in _KINDS if kind != "power_off"]
        kind = self._chance.choice([*kinds, "chaos"])
        if kind == "chaos":
            return self._chaos()
        return {"kind": kind, **_KINDS[kind](self)}

    def _chaos(self) -> Tables:
        name = self._chance.choice([name for name in CHAOS_NAMES if not name.startswith("fixed-")])
        return {"kind": name}

    def _names(self, *roles: str) -> list[str]:
        brokers = [
            table["name"] + (f"-s{number}" if number else "")
            for table in self._brokers
            for number in range(table.get("replicas", 1))
        ]
        consumers = [name for table in self._consumers for name in self._members(table)]
        producers = [table["name"] for table in self._producers]
        of = {"nameservers": self._nameservers, "brokers": brokers, "consumers": consumers, "producers": producers}
        of |= {"apiservers": ["kubernetes"] if self._statefulsets else []}
        of |= {"scalers": ["scaler"] if any("scaler" in spec for spec in self._statefulsets) else []}
        takes_leases = any(table.get("options", {}).get("exclusivity") == "lease" for table in self._consumers)
        of |= {"lease-services": ["leases"] if takes_leases else []}
        return [name for role in roles or tuple(of) for name in of[role]]

    def node(self, *roles: str) -> str:
        """A target: a node, some nodes, or nodes by meaning."""
        chance = self._chance
        names = self._names(*roles)
        drawn = [chance.choice(names), chance.choice(names), ", ".join(chance.sample(names, min(2, len(names))))]
        drawn += [f"random {role}" for role in roles] or ["random nodes", "minor brokers", "servers"]
        if not roles or "brokers" in roles:
            broker = chance.choice(self._brokers)["name"]
            drawn += [f"master of {broker}", f"slaves of {broker}", f"acting master of {broker}"]
        if not roles:
            group, topic = chance.choice(self._consumers)["group"], chance.choice(self._topics)
            queue = f"{topic['name']}/{topic['brokers'][0]}/{chance.randrange(topic['queues'])}"
            drawn += [f"members of {group}", f"random members of {group}", f"owner of {queue}"]
        return chance.choice(drawn)

    def links(self) -> Tables:
        """The ends of a fault of links."""
        src, dst = self.node(), self.node()
        ends = {"from": src, "to": dst} if src != dst else {"from": src}
        return self._chance.choice((ends, ends, {"from": src}, {})) | self._chance.choice(({}, {"one_way": True}))

    def frames(self) -> Tables:
        """The selection of a fault of frames."""
        chance = self._chance
        code = chance.choice((10, 11, 34, 38, 41, 103, 105, 310, 14, 15))
        group = chance.choice(self._consumers)["group"]
        return chance.choice(({}, {}, {"code": code}, {"group": group}, {"during": "starting"}))

    def number(self, *numbers: int) -> int:
        """One of some numbers."""
        return self._chance.choice(numbers)

    def permission(self) -> Tables:
        """A permission of brokers, or of a topic of masters."""
        broker = self._chance.choice(self._brokers)["name"]
        topic = self._chance.choice(self._topics)["name"]
        perm = {"perm": self.number(2, 4)}
        return self._chance.choice(({"node": self.node("brokers"), **perm}, {"node": broker, "topic": topic, **perm}))

    def group(self) -> str:
        """A consumer group with processes of its own."""
        own = [table for table in self._consumers if "share_process_with" not in table]
        return str(self._chance.choice(own)["group"])

    def mode(self) -> str:
        """How a group gets its messages."""
        return self._chance.choice(tuple(ConsumeMode)).value

    def options(self) -> Tables:
        """Options that any broker may have from a restart on."""
        some = {"slaveReadEnable": True, "consumerOffsetUpdateVersionStep": 1, "registerNameServerPeriod": 10_000}
        return {name: value for name, value in some.items() if self._chance.randrange(2)}

    def rebalance(self) -> Tables:
        """Who allocates the queues of a group from now on."""
        by = self._chance.choice(tuple(RebalanceMode)).value
        strategy = self._chance.choice(_ASSIGNED)
        named = {"strategy": strategy} if by == RebalanceMode.ASSIGNER and self._chance.randrange(2) else {}
        return {"group": self.group(), "by": by, **named}


_KINDS: Mapping[str, Callable[[_Drawing], Tables]] = {
    "cut": lambda item: item.links() | {"from": item.node()},
    "partition": lambda item: {"shape": "isolate", "among": "nodes", "node": item.node()},
    "loss": lambda item: {"percent": item.number(1, 10, 50, 100), **item.links(), **item.frames()},
    "tcp_loss": lambda item: {"percent": item.number(1, 10, 50, 100), **item.links()},
    "delay": lambda item: {
        "delay_ms": item.number(0, 10, 500, 5_000), "jitter_ms": item.number(0, 10, 900),
        **item.links(), **item.frames(),
    },
    "drop": lambda item: {"next": item.number(1, 3), "skip": item.number(0, 2), **item.links(), **item.frames()},
    "refuse": lambda item: {
        "code": item.number(10, 11, 34, 38, 41, 103, 105, 310), "response": item.number(1, 2, 14), **item.links(),
        "next": item.number(1, 5),
    },
    "kill": lambda item: {"node": item.node()},
    "restart": lambda item: {"node": item.node()},
    "power_off": lambda item: {"node": item.node()},
    "suspend": lambda item: {"node": item.node()},
    "slow_cpu": lambda item: {"node": item.node(), "turn_ms": item.number(5, 20, 300, 2_000)},
    "clock_skew": lambda item: {"node": item.node(), "offset_ms": item.number(-60_000, -1, 5, 100_000)},
    "clock_drift": lambda item: {"node": item.node(), "ppm": item.number(-500_000, -10, 10, 500_000)},
    "clock_jump": lambda item: {"node": item.node(), "by_ms": item.number(-60_000, -1, 5, 100_000)},
    "slow_disk": lambda item: {"node": item.node("brokers"), "flush_ms": item.number(1, 50, 4_000)},
    "lost_writes": lambda item: {"node": item.node("brokers", "consumers")},
    "permission": lambda item: item.permission(),
    "scale": lambda item: {"group": item.group(), "members": item.number(0, 1, 3, 6)},
    "rebalance": lambda item: item.rebalance(),
    "consume_mode": lambda item: {"group": item.group(), "mode": item.mode(), "share": item.number(-1, 0, 1, 2)},
    "reconfigure": lambda item: {"node": item.node()},
    "upgrade": lambda item: {
        "node": item.node("brokers"), "apart_ms": item.number(1_000, 20_000), "options": item.options(),
    },
}  # fmt: skip
"""Every kind of the catalogue, with random targets and parameters."""
KINDS = tuple(_KINDS)
