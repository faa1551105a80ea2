"""When the events of a fail-over happened, taken from the rows of a trace.

Seconds count from the begin of the fault; for what follows the return of the
master, from the moment at which its new process is ready, or at which it runs
on. In a scenario without fault they count from the start of its first broker.
"""

from collections.abc import Callable, Mapping

import attrs

from nodes.beliefs import BeliefKind, Json, LifecycleEvent

_NS = 1_000_000_000
_READABLE_ONLY = 4
"""The permission of a queue that can be read and not be written."""


@attrs.frozen
class BeliefRow:
    """What a node came to believe."""

    t_ns: int
    node: str
    kind: str
    subject: str
    value: Json


@attrs.frozen
class LifeRow:
    """A stage in the life of a process."""

    t_ns: int
    node: str
    event: str


@attrs.frozen
class CallRow:
    """A request that arrived."""

    sent_ns: int
    src: str
    dst: str


@attrs.frozen(kw_only=True)
class Story:
    """The rows of one run that matter here, each kind in order of time."""

    beliefs: tuple[BeliefRow, ...]
    lives: tuple[LifeRow, ...]
    offset_requests: tuple[CallRow, ...]
    """Requests for all consumer offsets (43): a full sync, where a slave asks its master."""
    fault_ns: int | None
    """When the first fault began."""


@attrs.frozen(kw_only=True)
class Cast:
    """Who runs which part."""

    nameservers: tuple[str, ...]
    group: str
    """The brokerName."""
    members: Mapping[int, str]
    """Broker id -> node; 0 is the master, 1 and 2 are its slaves."""
    addresses: Mapping[int, str]
    """Broker id -> ip:port."""
    consumer: str
    topic: str


Instants = dict[str, tuple[float, ...]]
"""Event -> seconds: one value, or one for each nameserver; events that did not happen are missing."""


def instants(story: Story, cast: Cast) -> Instants:
    """All events of a run."""
    if story.fault_ns is None:
        first_ns = min(row.t_ns for row in story.lives if row.node in cast.members.values())
        return _cold_start(_Scene(story, cast, first_ns))
    found = _take_over(_Scene(story, cast, story.fault_ns))
    for row in story.lives:
        if row.t_ns >= story.fault_ns and row.node == cast.members[0]:
            if row.event == LifecycleEvent.READY:
                return found | _restart(_Scene(story, cast, row.t_ns))
            if row.event == LifecycleEvent.RESUMED:
                return found | _resume(_Scene(story, cast, row.t_ns))
    return found


class _Scene:
    """The rows from one instant on."""

    def __init__(self, story: Story, cast: Cast, begin_ns: int) -> None:
        self.cast = cast
        self.story = story
        self.begin_ns = begin_ns
        self._beliefs = [row for row in story.beliefs if row.t_ns >= begin_ns]

    def first(self, node: str, kind: BeliefKind, subject: str, holds: Callable[[Json], bool]) -> tuple[float, ...]:
        """When a node first came to believe something; empty: never."""
        for row in self._beliefs:
            if (row.node, row.kind, row.subject) == (node, kind, subject) and holds(row.value):
                return (self.seconds(row.t_ns),)
        return ()

    def at_nameservers(self, kind: BeliefKind, subject: str, holds: Callable[[Json], bool]) -> tuple[float, ...]:
        return tuple(s for node in self.cast.nameservers for s in self.first(node, kind, subject, holds))

    def of_group(self, broker_id: int, kind: BeliefKind, holds: Callable[[Json], bool]) -> tuple[float, ...]:
        return self.first(self.cast.members[broker_id], kind, self.cast.group, holds)

    def special(self, broker_id: int, *, runs: bool) -> tuple[float, ...]:
        return self.of_group(broker_id, BeliefKind.SPECIAL_SERVICE, lambda value: value is runs)

    def min_broker(self, broker_id: int, minimum: int) -> tuple[float, ...]:
        return self.of_group(
            broker_id, BeliefKind.MIN_BROKER, lambda value: value is not None and value["id"] == minimum
        )

    def client_route(self, holds: Callable[[Mapping[str, str]], bool]) -> tuple[float, ...]:
        return self.first(
            self.cast.consumer, BeliefKind.ROUTE, self.cast.topic, lambda value: holds(self.addresses_in(value))
        )

    def addresses_in(self, route: Json) -> Mapping[str, str]:
        """Broker id -> address of the group in a route; empty where there is none."""
        addrs: Mapping[str, str] = ((route or {}).get(self.cast.group) or {}).get("addrs", {})
        return addrs

    def full_sync(self, broker_id: int) -> tuple[float, ...]:
        pair = (self.cast.members[broker_id], self.cast.members[0])
        for call in self.story.offset_requests:
            if call.sent_ns >= self.begin_ns and (call.src, call.dst) == pair:
                return (self.seconds(call.sent_ns),)
        return ()

    def seconds(self, t_ns: int) -> float:
        return round((t_ns - self.begin_ns) / _NS, 3)


def _take_over(scene: _Scene) -> Instants:
    cast = scene.cast

    def acts(route: Json) -> bool:
        shown = scene.addresses_in(route).get("0") == cast.addresses[1]
        return shown and route[cast.group]["queues"][2] == _READABLE_ONLY

    found = {
        "ns_removed": scene.at_nameservers(BeliefKind.LIVE_BROKERS, cast.group, lambda live: "0" not in (live or {})),
        "route_acting": scene.at_nameservers(BeliefKind.ROUTE, cast.topic, acts),
        "s1_min": scene.min_broker(1, 1),
        "s2_min": scene.min_broker(2, 1),
        "s1_special_on": scene.special(1, runs=True),
        "client_route_acting": scene.client_route(lambda addrs: addrs.get("0") != cast.addresses[0]),
    }
    return _happened(found)


def _return(scene: _Scene) -> Instants:
    cast = scene.cast
    master = cast.addresses[0]
    found = {
        "ns_master_back": scene.at_nameservers(BeliefKind.LIVE_BROKERS, cast.group, lambda live: "0" in (live or {})),
        "s1_special_off": scene.special(1, runs=False),
        "client_route_master": scene.client_route(lambda addrs: addrs.get("0") == master),
    }
    for broker_id in (1, 2):
        found[f"master_addr_s{broker_id}"] = scene.of_group(
            broker_id, BeliefKind.MASTER_ADDR, lambda value: value == master
        )
        found[f"full_sync_s{broker_id}"] = scene.full_sync(broker_id)
    return _happened(found)


def _resume(scene: _Scene) -> Instants:
    """It has never stopped to run the special services, so the overlap begins with the return."""
    found = _return(scene)
    return found | _happened({"overlap": found.get("s1_special_off", ())})


def _restart(scene: _Scene) -> Instants:
    found = _happened({"master_special_on": scene.special(0, runs=True)}) | _return(scene)
    return found | _happened({"overlap": _overlap(found)})


def _cold_start(scene: _Scene) -> Instants:
    group = scene.cast.group

    def lives(broker_id: int) -> tuple[float, ...]:
        return scene.at_nameservers(BeliefKind.LIVE_BROKERS, group, lambda live: str(broker_id) in (live or {}))

    second_ns = scene.begin_ns + round(lives(1)[0] * _NS)
    master_ns = scene.begin_ns + round(lives(0)[0] * _NS)

    def off_after(broker_id: int, t_ns: int) -> tuple[float, ...]:
        later = _Scene(scene.story, scene.cast, t_ns).special(broker_id, runs=False)
        return tuple(round(seconds + scene.seconds(t_ns), 3) for seconds in later)

    found = {
        "s2_special_on": scene.special(2, runs=True),
        "ns_s1": lives(1),
        "s2_special_off": off_after(2, second_ns),
        "s1_special_on": scene.special(1, runs=True),
        "master_special_on": scene.special(0, runs=True),
        "ns_master": lives(0),
        "s1_special_off": off_after(1, master_ns),
    }
    return _happened(found | {"overlap": _overlap(found)})


def _overlap(found: Mapping[str, tuple[float, ...]]) -> tuple[float, ...]:
    """How long both ran the special services."""
    pairs = zip(found.get("master_special_on", ()), found.get("s1_special_off", ()), strict=False)
    return tuple(round(off - on, 3) for on, off in pairs)


def _happened(found: Mapping[str, tuple[float, ...]]) -> Instants:
    return {event: values for event, values in found.items() if values}
