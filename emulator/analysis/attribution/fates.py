"""Why a message came to a bad end: lost, given up, delivered late, revived although it was consumed, refused.

Each is asked with what the finding knows, which is a time and a place: a broker lost its disk, a group its offset, a
producer its broker, a consumer its acknowledgement. Most of what brokers give up they give up by a rule.
"""

from collections.abc import Iterable, Iterator, Sequence

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, by, ruled
from emulator.analysis.attribution.masters import Masters
from emulator.analysis.attribution.reach import Reach, needed
from emulator.analysis.attribution.routes import Routes
from emulator.analysis.inputs.administrators import changes_group
from emulator.history.lost_frames import DROPPED, LostFrames
from emulator.history.origins import NEVER_NS, Hindrance, Origins, TracedDisturbance, may_refuse
from emulator.history.rows.row_classes import LostFrame, Span
from emulator.spec.model.scenario import CONSUMER, PRODUCER, PROXY
from faults.machine import ClockDrift, ClockJump, ClockSkew, LostWrites, SlowDisk
from nodes.beliefs import PROCESS_ENDS, LifecycleEvent
from nodes.protocol.admin_request import Changed
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_S

_ACKNOWLEDGE = (
    *(RequestCode.ACK_MESSAGE, RequestCode.BATCH_ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME),
    RequestCode.V2_ACK_MESSAGE,
)
_LONG_NS = 10 * NS_PER_S
"""A consumer that is away for less may acknowledge before the invisible time is over."""
_CLOCKS = (ClockDrift, ClockJump, ClockSkew)
_CREDENTIALS = ("USER", "ACL")
"""Parts of the names of requests that change users and permissions."""
_DECIDED_NS = 70 * NS_PER_S
"""A producer decides within this time before the last check, which comes once a minute."""


class Fates:
    """Finds what led to the bad end of messages, once all rows of a run have been read.

    Args:
        origins, reach, lost, routes, masters: have read the same rows.
        broker_names: of the cluster.
        end_ns: of the run.
    """

    def __init__(
        self,
        origins: Origins,
        reach: Reach,
        lost: LostFrames,
        routes: Routes,
        masters: Masters,
        broker_names: Iterable[str],
        end_ns: int,
    ) -> None:
        self._origins = origins
        self._reach = reach
        self._lost = lost
        self._routes = routes
        self._masters = masters
        self._broker_names = tuple(dict.fromkeys(broker_names))
        self._end_ns = end_ns
        self._unacknowledged: dict[str, CauseChain] = {}

    # --- lost -------------------------------------------------------------------------

    def lost_with_disk(self, broker_name: str) -> CauseChain:
        """Why a broker lost messages that it had stored: its disk lost writes, and it had to read its disk."""
        nodes = self._routes.nodes_of(broker_name)
        writes = [
            life.origin for life in self._origins.faults.values() if life.fault is LostWrites and life.hits_any(nodes)
        ]
        found = by(*writes).also(by(*self._ended(nodes, (LifecycleEvent.POWERED_OFF,))))
        return found or self.cut_off(broker_name)  # a new master writes other messages where the old one had these

    def cut_off(self, broker_name: str) -> CauseChain:
        """Why a new master had not copied messages: what ended the old one, and what kept it from being copied."""
        nodes = self._routes.nodes_of(broker_name)
        links = [
            item
            for node in nodes
            for other in nodes
            if other != node
            for item in self._reach.on_link(node, other, 0, self._end_ns)
        ]
        return self._masters.ever_replaced(broker_name).also(by(*self._ended(nodes))).also(needed(links))

    def _ended(
        self, nodes: Iterable[str], events: Sequence[LifecycleEvent] = PROCESS_ENDS
    ) -> Iterator[TracedDisturbance | None]:
        for node in nodes:
            for stage in self._origins.stages.get(node, ()):
                if stage.event in events:
                    yield stage.origin

    # --- given up ---------------------------------------------------------------------

    def skipped(self, group: str, t_ns: int = NEVER_NS) -> CauseChain:
        """Why a group went on above messages, up to an instant: the acts that set its offset; else it began there."""
        acts = self._origins.acts_until(t_ns, lambda row: changes_group(row, group, Changed.OFFSETS))
        return by(*acts) or ruled(RuleOfRocketMQ.FIRST_OFFSET)

    def missed(self, node: str, t_ns: int) -> CauseChain:
        """Why a broadcasting consumer was not there when messages came."""
        began = self._origins.began(node, t_ns)
        return by(began.origin if began is not None else None) or ruled(RuleOfRocketMQ.FIRST_OFFSET)

    def undecided(self, span: Span) -> CauseChain:
        """Why a broker did not hear what the producers of transactions decided."""
        brokers = [node for name in self._broker_names for node in self._routes.nodes_of(name)]
        return self._not_heard(brokers, span)

    def ended_twice(self, broker_name: str, span: Span) -> CauseChain:
        """Why a transaction was rolled back and committed: a clock made a check too early, or its end came late."""
        nodes = self._routes.nodes_of(broker_name)
        # Brokers compare their clock with the time at which the producer says that the message was born.
        compared = (*nodes, *self._origins.of_role(PRODUCER))
        clocks = [
            life.origin
            for life in self._origins.overlapping(0, span[1])
            if life.fault in _CLOCKS and life.hits_any(compared)
        ]
        return by(*clocks) or self._not_heard(nodes, span)

    def _not_heard(self, brokers: Sequence[str], span: Span) -> CauseChain:
        """What kept decisions of producers from brokers; else the rule by which these ask, and then give up."""
        start_ns, end_ns = max(0, span[0] - _DECIDED_NS), span[1] + 1
        kept = [
            item
            for producer in self._origins.of_role(PRODUCER)
            for broker in brokers
            for item in self._reach.hindrances(producer, broker, start_ns, end_ns)
        ]
        return needed(kept) or ruled(RuleOfRocketMQ.CHECKS)

    # --- late, again, refused ---------------------------------------------------------

    def delivered_late(self, broker_name: str, span: Span) -> CauseChain:
        """Why no broker of a group delivered what was due: its nodes were away, slow, or had another time."""
        nodes = self._routes.nodes_of(broker_name)
        away = [item for node in nodes for item in self._origins.absences(node, *span)]
        slow = [
            Hindrance(life.origin, max(span[0], life.row.t_ns), min(span[1], life.end_ns))
            for life in self._origins.overlapping(*span)
            if life.fault in (SlowDisk, *_CLOCKS) and life.hits_any(nodes)
        ]
        return needed([*away, *slow])

    def unacknowledged(self, broker_name: str) -> CauseChain:
        """Why a broker did not get acknowledgements of popped messages in time."""
        if broker_name not in self._unacknowledged:
            self._unacknowledged[broker_name] = self._why_unacknowledged(broker_name)
        return self._unacknowledged[broker_name]

    def _why_unacknowledged(self, broker_name: str) -> CauseChain:
        faults = self._origins.faults
        takers = [
            faults[row.detail].origin
            for row in self._acknowledgements(broker_name)
            if row.event == DROPPED and row.detail in faults
        ]
        # A broker keeps acknowledgements in memory for a while; a consumer that is away sends none.
        ended = self._ended(self._routes.nodes_of(broker_name))
        return by(*takers, *ended, *self._long_away()) or ruled(RuleOfRocketMQ.INVISIBLE)

    def _long_away(self) -> Iterator[TracedDisturbance]:
        """What kept consumers away for long."""
        for node in self._origins.of_role(CONSUMER):
            for item in self._origins.absences(node, 0, self._end_ns):
                if item.end_ns - item.start_ns >= _LONG_NS:
                    yield item.origin

    def _acknowledgements(self, broker_name: str) -> Iterator[LostFrame]:
        for client in self._origins.of_role(CONSUMER, PROXY):
            for broker in self._routes.nodes_of(broker_name):
                for row in self._lost.between(client, broker, 0, self._end_ns):
                    if row.code in _ACKNOWLEDGE:
                        yield row

    def denied(self, t_ns: int) -> CauseChain:
        """Why a request was denied: the last act that changed users or permissions, or those that there are."""
        acts = self._origins.acts_until(
            t_ns, lambda row: any(part in row.request for part in _CREDENTIALS) and may_refuse(row)
        )
        return by(*acts[-1:]) or ruled(RuleOfRocketMQ.PERMISSIONS)

    def without_topic(self, broker_name: str, old_master: str, t_ns: int) -> CauseChain:
        """Why the topics of an old master are not those of the new one."""
        return self._masters.replaced(broker_name, t_ns) or by(*self._ended((old_master,)))
