"""Why a server lists a member, or does not, and why a consumer still works from what was true before.

A broker lists a member as long as it hears heartbeats of it, and until its connection is closed; a consumer learns of a
change when it is notified, else with its next round. What kept any of these from arriving is on the chain.
"""

from collections import Counter

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, both, by, ruled
from emulator.analysis.attribution.reach import Reach, at, longest_ns, needed
from emulator.analysis.inputs.bounds import BROKER_SCAN_MS, Bounds
from emulator.history.group_views import GroupViews
from emulator.history.origins import Hindrance, LifeStage, Origins
from nodes.beliefs import PROCESS_ENDS, LifecycleEvent
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS, NS_PER_S

_CLOSED_S = 10
"""A connection whose calls fail is closed within this time, and its member removed with it."""
_NOTICE_NS = NS_PER_S // 2
"""A notification that has not come after this time will not come."""
_BACK_S = 35
"""A heartbeat, and what it takes to open a connection, after which a member that reaches a server is listed."""


class Members:
    """Answers why servers list members.

    Args:
        origins, views: have read all rows.
        reach: of the run.
        bounds: of the run.
    """

    def __init__(self, origins: Origins, views: GroupViews, reach: Reach, bounds: Bounds) -> None:
        self._origins = origins
        self._views = views
        self._reach = reach
        self._silent_ns = (bounds.channel_expired_ms + BROKER_SCAN_MS) * NS_PER_MS
        self._gap_ns = max(1, bounds.channel_expired_ms - bounds.heartbeat_ms) * NS_PER_MS
        self._known: dict[tuple[str, str, str, int], CauseChain] = {}
        self._doubled: dict[tuple[str, str], dict[str, list[tuple[int, int]]]] = {}
        self._why_doubled: dict[tuple[str, str, int], CauseChain] = {}
        self._ends: dict[str, LifeStage | None] = {}
        self._stale: dict[tuple[str, str, str, int, int], CauseChain] = {}
        self._lost_notices: dict[tuple[str, str, int], list[Hindrance]] = {}

    # --- clients ----------------------------------------------------------------------

    def end_of(self, client_id: str, t_ns: int) -> LifeStage | None:
        """The end of the process of a client, if it had ended at an instant."""
        if client_id not in self._ends:
            seen = self._views.first_seen(client_id)
            stages = (stage for stage in self._origins.stages.get(seen.node, ()) if stage.event in PROCESS_ENDS)
            self._ends[client_id] = next((stage for stage in stages if stage.t_ns >= seen.t_ns), None)
        end = self._ends[client_id]
        return end if end is not None and end.t_ns <= t_ns else None

    def node_of(self, client_id: str) -> str:
        """The node of a client."""
        return self._views.first_seen(client_id).node

    def listed(self, server: str, group: str, t_ns: int) -> tuple[str, ...]:
        """What a server lists at an instant; a process that has just started lists nothing."""
        changes = [instant for instant in self._views.list_changes(server, group) if instant <= t_ns]
        ended = self._origins.ended(server, t_ns)
        if not changes or (ended is not None and ended.t_ns >= changes[-1]):
            return ()
        return self._views.listed(server, group, t_ns)

    def changed(self, server: str, group: str, t_ns: int) -> CauseChain:
        """Why the list of a server changed at an instant."""
        before, after = (Counter(self.listed(server, group, instant)) for instant in (t_ns - 1, t_ns))
        found = CauseChain()
        for client_id in before:
            if client_id not in after:
                end = self.end_of(client_id, t_ns)
                found = found.also(by(end.origin) if end is not None else self.lacking(server, group, client_id, t_ns))
        for client_id in after:
            if client_id not in before:
                found = found.also(self.lacking(server, group, client_id, t_ns - 1))
        for client_id in dict.fromkeys((*before, *after)):
            instant = t_ns if after[client_id] > 1 else t_ns - 1
            found = found.also(self.doubled(server, group, client_id, instant))
        return found

    # --- lists ------------------------------------------------------------------------

    def lacking(self, server: str, group: str, client_id: str, t_ns: int) -> CauseChain:
        """Why a server does not list a client whose process lives, at an instant."""
        key = server, group, client_id, t_ns
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._lacking(server, group, client_id, t_ns)
        return found

    def unknown(self, server: str, group: str, node: str, t_ns: int) -> CauseChain:
        """Why a server that lists members of a group does not list a consumer; nothing: it does."""
        ids = self._views.ids_of(node, t_ns)
        if not ids or server not in self._views.servers(group) or ids[-1] in self.listed(server, group, t_ns):
            return CauseChain()
        return self.lacking(server, group, ids[-1], t_ns)

    def _lacking(self, server: str, group: str, client_id: str, t_ns: int) -> CauseChain:
        node = self.node_of(client_id)
        server_began = self._origins.began(server, t_ns)
        server_ns = 0 if server_began is None else server_began.t_ns
        removed_ns = self._removed_ns(server, group, client_id, t_ns)
        if removed_ns >= server_ns and removed_ns >= 0:
            away = self._why_removed(node, server, removed_ns)
            not_back = needed(at(self._reach.hindrances(node, server, removed_ns, t_ns + 1), t_ns))
            return away.also(not_back) if away else not_back
        began = self._origins.began(node, t_ns)
        since_ns = max(server_ns, 0 if began is None else began.t_ns)
        still = self._reach.hindrances(node, server, since_ns, t_ns + 1)
        hindered = needed([item for item in still if item.end_ns > t_ns - _BACK_S * NS_PER_S])
        ended = self._origins.ended(server, t_ns)
        if ended is not None and server_ns == since_ns:  # it has forgotten all members with its memory
            return by(ended.origin).also(hindered)
        started = by(began.origin) if began is not None else CauseChain()
        return started.also(hindered) or ruled(RuleOfRocketMQ.START)

    def _removed_ns(self, server: str, group: str, client_id: str, t_ns: int) -> int:
        """When a server removed a client last; -1: it never listed it."""
        before, removed_ns = False, -1
        for instant in self._views.list_changes(server, group):
            if instant > t_ns:
                break
            now = client_id in self._views.listed(server, group, instant)
            if before and not now:
                removed_ns = instant
            before = now
        return removed_ns

    def _why_removed(self, node: str, server: str, removed_ns: int) -> CauseChain:
        silent = self._reach.hindrances(node, server, removed_ns - self._silent_ns, removed_ns)
        gap = needed(silent, self._gap_ns)
        recent = [item for item in silent if item.end_ns > removed_ns - _CLOSED_S * NS_PER_S]
        if longest_ns(silent) >= self._gap_ns:
            return gap
        return needed(recent) if recent else gap

    def retaining(self, server: str, client_id: str, t_ns: int) -> CauseChain:
        """Why a server still lists a client whose process has ended, at an instant."""
        end = self.end_of(client_id, t_ns)
        if end is None:
            return CauseChain()
        node = self.node_of(client_id)
        lost = self._reach.on_link(node, server, end.t_ns - NS_PER_S, end.t_ns + NS_PER_S)
        asleep = at(self._origins.absences(server, end.t_ns, t_ns + 1), t_ns)
        is_silent = end.event is LifecycleEvent.POWERED_OFF
        return by(end.origin).also(needed(asleep or (lost if not is_silent else [])))

    def doubled(self, server: str, group: str, client_id: str, t_ns: int) -> CauseChain:
        """Why a server lists a client more often than once: under connections, too, whose closes it has not handled."""
        if (server, group) not in self._doubled:
            self._doubled[server, group] = self._doubled_in(server, group)
        steps = self._doubled[server, group].get(client_id, ())
        rose_ns = next((rose_ns for instant, rose_ns in reversed(steps) if instant <= t_ns), -1)
        if rose_ns < 0:
            return CauseChain()
        key = server, client_id, rose_ns
        if key not in self._why_doubled:
            since_ns = rose_ns - _BACK_S * NS_PER_S
            hindrances = self._reach.hindrances(self.node_of(client_id), server, since_ns, rose_ns)
            self._why_doubled[key] = needed(hindrances)
        return self._why_doubled[key]

    def _doubled_in(self, server: str, group: str) -> dict[str, list[tuple[int, int]]]:
        """Mapping client id -> (from when on, when it was listed once more last; -1: it is listed once), in order."""
        found: dict[str, list[tuple[int, int]]] = {}
        before: Counter[str] = Counter()
        for instant in self._views.list_changes(server, group):
            now = Counter(self._views.listed(server, group, instant))
            for client_id in dict.fromkeys((*before, *now)):
                if now[client_id] > max(1, before[client_id]):
                    found.setdefault(client_id, []).append((instant, instant))
                elif now[client_id] <= 1 < before[client_id]:
                    found.setdefault(client_id, []).append((instant, -1))
            before = now
        return found

    # --- consumers --------------------------------------------------------------------

    def stale(self, node: str, group: str, topic: str, since_ns: int, t_ns: int) -> CauseChain:
        """Why a consumer has not allocated again since something changed.

        Args:
            node: the consumer.
            group: its group.
            topic: which is allocated.
            since_ns: when brokers had changed their lists, or routes theirs.
            t_ns: the instant at which it works from what was before.
        """
        key = node, group, topic, since_ns, t_ns  # the same for all members that it lacks
        if key not in self._stale:
            self._stale[key] = self._why_stale(node, group, topic, since_ns, t_ns)
        return self._stale[key]

    def _why_stale(self, node: str, group: str, topic: str, since_ns: int, t_ns: int) -> CauseChain:
        away = at(self._origins.absences(node, since_ns, t_ns + 1), t_ns)
        if away:
            return needed(away)
        rounds = [item for item in self._views.rounds(node, group, topic) if item.t_ns > since_ns]
        if any(item.allocated and item.began_ns >= since_ns and item.t_ns <= t_ns for item in rounds):
            return CauseChain()
        servers = tuple(self._views.servers(group))
        failed = [item for item in rounds if not item.allocated and item.t_ns <= t_ns]
        under_way = [item for item in rounds if item.began_ns <= t_ns < item.t_ns]
        if failed or (under_way and t_ns - under_way[0].began_ns > _NOTICE_NS):
            since = (failed or under_way)[0].began_ns
            tried = [item for server in servers for item in self._reach.hindrances(node, server, since, t_ns + 1)]
            if tried:
                return needed(tried)
        if t_ns - since_ns < _NOTICE_NS:
            return ruled(RuleOfRocketMQ.ROUND)
        notices = [self._lost_notice(server, node, since_ns) for server in servers]
        slept = self._origins.absences(node, since_ns - NS_PER_S, since_ns + _NOTICE_NS)
        return both(needed(found) for found in (*notices, list(slept)) if found) or ruled(RuleOfRocketMQ.ROUND)

    def _lost_notice(self, server: str, node: str, changed_ns: int) -> list[Hindrance]:
        key = server, node, changed_ns
        if key not in self._lost_notices:
            code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            self._lost_notices[key] = self._reach.on_link(server, node, changed_ns, changed_ns + _NOTICE_NS, code)
        return self._lost_notices[key]
