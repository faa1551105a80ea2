"""The shared inputs of one run, read once for all oracles and measures."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from emulator.analysis.inputs.administrators import Administrators
from emulator.analysis.inputs.agreement import Interval, first_agreement
from emulator.analysis.inputs.blocked import Blocked
from emulator.analysis.inputs.busy_listeners import BusyListeners
from emulator.analysis.inputs.busy_pools import BusyPools
from emulator.analysis.inputs.causes import Causes, Windows
from emulator.analysis.inputs.disturbances import Disturbances
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.holdings import Divergence, Holdings
from emulator.analysis.inputs.keys import KeyedMessages
from emulator.analysis.inputs.listener_failures import FailingListeners
from emulator.analysis.inputs.messages import TracedMessages
from emulator.analysis.inputs.offsets import Offsets
from emulator.analysis.inputs.queue_owners import Orphan, Overlap, QueueOwners
from emulator.analysis.inputs.refused_consumers import RefusedConsumers
from emulator.analysis.inputs.services import Served, ServiceSpans
from emulator.history.origins import Origins
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.proxy_routes import ProxyRoutes
from emulator.history.rows.feed import Watcher
from emulator.history.rows.shares import WHOLE, RunShare
from emulator.history.unreachable import UnreachableAddresses
from emulator.spec.model.scenario import ADMINISTRATOR
from nodes.beliefs import BeliefKind

MEMBERSHIP = (BeliefKind.LIVE_BROKERS, BeliefKind.MIN_BROKER, BeliefKind.MEMBER_GROUP, BeliefKind.MASTER_ADDR)
"""Kinds about which the members of a broker group, or the nameservers, agree."""
SHOWN = (BeliefKind.CONSUMER_IDS, BeliefKind.ROUTE, BeliefKind.SUBSCRIPTION)
"""Further kinds about which healthy nodes agree; the other kinds differ between healthy nodes."""
OF_PROXIES = (BeliefKind.PROXY_MEMBERS, BeliefKind.CLIENT_SETTINGS)
"""Kinds about which the proxies of a cluster agree; their caches of routes differ while nobody uses them."""
VIEWS = (BeliefKind.VIEW, BeliefKind.ASSIGNER, BeliefKind.EPOCH)
"""Kinds by which members of a group allocate: a member that asks an assigner has no view of its own."""


class Input(StrEnum):
    """A shared input; the name of the attribute of `SharedInputs` that has it."""

    PRESENCE = "presence"
    """Who lives and sleeps, members and subscriptions of groups, queues that can be read."""
    HOLDINGS = "holdings"
    """Which nodes held which value of a subject."""
    OWNERS = "owners"
    """Owners of queues."""
    MESSAGES = "messages"
    """What brokers stored, and what each group consumed."""
    FAILING = "failing"
    """Which messages listeners failed with, and which queues waited for these."""
    BUSY_LISTENERS = "busy_listeners"
    """When all threads of a consumer worked on messages."""
    PROGRESS = "progress"
    """How far each group has come in each queue."""
    KEYS = "keys"
    """Messages of one key: in which order they came, and at how many consumers."""
    OFFSETS = "offsets"
    """Where offsets of groups fell, and where owners started in place of the last commit."""
    SERVICES = "services"
    """Which members of broker groups ran the special services."""
    DISTURBANCES = "disturbances"
    """Faults, and what happened to processes."""
    ADMINISTRATORS = "administrators"
    """What administrators changed."""
    BUSY_POOLS = "busy_pools"
    """When thread pools of nodes were busy, and what came of it."""
    REFUSED = "refused"
    """When brokers or proxies refused consumers what they asked for, or had addresses that led nowhere."""
    BLOCKED = "blocked"
    """When no member of a group could consume a queue, since faults that last kept all of them from its broker."""


_OF_EXPLANATIONS = (
    *(Input.PRESENCE, Input.MESSAGES, Input.HOLDINGS, Input.OWNERS, Input.SERVICES),
    *(Input.DISTURBANCES, Input.ADMINISTRATORS, Input.REFUSED, Input.BLOCKED, Input.FAILING),
)
"""Inputs that explanations of findings read: for windows, the first agreement, and the chains of causes."""


class SharedInputs:
    """What oracles and measures read besides the rows of their own keys.

    Args:
        facts: of the run.
        share: the part of the run that is read.
    """

    def __init__(self, facts: RunFacts, share: RunShare = WHOLE) -> None:
        self.facts = facts
        self.presence = Presence(facts.broker_names)
        self.messages = TracedMessages(self.presence)
        self.busy_listeners = BusyListeners(facts)
        self.failing = FailingListeners(self.presence, facts)
        self.origins = Origins(lambda address: facts.node_of(address) == ADMINISTRATOR)
        self.causes = Causes(facts.bounds, self.presence, self.origins)
        self.disturbances = Disturbances()
        self.administrators = Administrators()
        self.owners = QueueOwners(self.presence, self.messages, share)
        self.proxy_routes = ProxyRoutes(facts.node_of)
        self.blocked = Blocked(
            *(facts, self.presence, self.origins, self.administrators, self.owners, self.proxy_routes),
        )
        self.unreachable = UnreachableAddresses(facts.node_of)
        self.refused = RefusedConsumers(self.presence, self.proxy_routes, self.unreachable, facts)
        self.progress = GroupProgress(self.presence, share)
        kinds = (*VIEWS, *MEMBERSHIP, *SHOWN, *OF_PROXIES)
        self.holdings = Holdings(self.presence, *kinds, parts=True, modes=True, share=share)
        self.keys = KeyedMessages(self.presence, self.messages, facts)
        self.offsets = Offsets(facts.bounds, self.presence, share)
        self.services = ServiceSpans(self.presence)
        self.busy_pools = BusyPools(self.presence)
        self._windows: dict[str, Windows] = {}
        self._agreed_ns: int | None = None

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """Those that read rows, in the order of `Feed`."""
        return (
            *(self.presence, self.messages, self.failing, self.origins, self.causes, self.disturbances),
            *(
                self.administrators,
                self.proxy_routes,
                self.unreachable,
                self.refused,
                self.owners,
                self.progress,
                self.offsets,
                self.keys,
            ),
            *(self.holdings, self.services, self.busy_pools, self.busy_listeners),
        )

    def watchers_of(self, reads: Collection[Input]) -> tuple[Watcher, ...]:
        """Those that have to read rows for some oracles, in the order of `Feed`.

        Args:
            reads: the inputs that these oracles declare.
        """
        left_out = [getattr(self, item) for item in Input if item not in _OF_EXPLANATIONS and item not in reads]
        return tuple(watcher for watcher in self.watchers if not any(watcher is item for item in left_out))

    def on_read(self) -> None:
        """All rows of the run have been read, and all watchers have finished."""
        every = (*self.divergent_views, *self.divergent_owners)
        intervals = [Interval(item.start_ns, item.end_ns, item.censored) for item in every]
        self._agreed_ns = first_agreement(self._begun_ns(), intervals)

    # --- after the run has been read ------------------------------------------------------

    @property
    def agreed_ns(self) -> int | None:
        """First instant at which all agreed; None: they never did."""
        return self._agreed_ns

    @property
    def divergent_views(self) -> Sequence[Divergence]:
        """When members of groups allocated by different views."""
        return self.holdings.found(*VIEWS)

    @property
    def divergent_owners(self) -> Sequence[Overlap | Orphan]:
        """When queues had several owners, or none."""
        return [*self.owners.overlaps, *self.owners.orphans]

    def served(self) -> Served:
        """When each member of a broker group ran the special services."""
        return Served(self.services.found)

    def windows(self, group: str) -> Windows:
        """What explains findings about a group; an empty name: about the cluster."""
        found = self._windows.get(group)
        if found is None:
            found = self._windows[group] = self.causes.windows(group, self._agreed_ns)
        return found

    def _begun_ns(self) -> int | None:
        """The first instant with a view, or the belief in an assigner, and an owner."""
        first_ns, owned_ns = self.holdings.first_ns, self.owners.first_ns
        viewed_ns = [first_ns[kind] for kind in (BeliefKind.VIEW, BeliefKind.ASSIGNER) if kind in first_ns]
        return None if not viewed_ns or owned_ns is None else max(min(viewed_ns), owned_ns)
