"""A session: executes verbs on a running cluster."""

from collections.abc import Callable, Mapping
from copy import copy
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import trio

from emulator.acts.act import Act, TimedAct
from emulator.base.text import nearest
from emulator.cluster.administrator import ActResult
from emulator.cluster.cluster import Cluster
from emulator.cluster.effects import ImpossibleError
from emulator.cluster.operator import Operator
from emulator.console.by_hand import ByHand
from emulator.console.guest_acts import GuestActs
from emulator.console.verb import Lines, Verb, VerbError, execute, split
from emulator.machine.host import EmulatedHost
from emulator.spec.model.scenario import ADMINISTRATOR
from emulator.spec.refusals.act_checks import check_act, known_groups, known_topics
from emulator.spec.refusals.targets import check_fault, guest_names
from emulator.spec.tables.bounds import ACTS_MAX, FAULTS_MAX
from emulator.spec.tables.mistakes import SpecError
from emulator.state.event_lines import EventLines
from emulator.state.live import LiveState
from faults.fault import Fault
from faults.plan import Phase, Plan, Step, TimedFault
from faults.target import ANY, Names
from nodes.fields import FieldError, quoted, shown
from nodes.units import NS_PER_MS

SCENARIO_SUFFIX = ".toml"


@attrs.define
class _Interactive:
    """What was done interactively, by all who share a session."""

    done: list[TimedFault] = attrs.Factory(list)
    acts: list[TimedAct] = attrs.Factory(list)
    next_ms: int = 0
    """First whole millisecond that no verb has used."""

    def change(self, fault_id: str, **changes: Any) -> None:
        """Change fields of a fault; does nothing if it is one of the scenario."""
        self.done[:] = [attrs.evolve(item, **changes) if item.id == fault_id else item for item in self.done]


class Session:
    """Executes verbs on a cluster, and remembers what was done interactively.

    Args:
        cluster: that runs.
        operator: begins and ends faults; it also follows the scenario's plan.
        state: live state of the run; must be notified of every row.
        run_directory: of this run.
        verbs: mapping name -> verb.
        guest_acts: what guests changed; must be notified of every row.
    """

    def __init__(
        self,
        cluster: Cluster,
        operator: Operator,
        state: LiveState,
        run_directory: Path,
        verbs: Mapping[str, "Verb[Session]"],
        guest_acts: GuestActs | None = None,
    ) -> None:
        self.verbs = verbs
        self.cluster = cluster
        self.operator = operator
        self.run_directory = run_directory
        self.state = state
        self.lines = EventLines(cluster.scenario, cluster.names)
        """Formats events as lines."""
        self.leaving = trio.Event()
        """Set to end the run."""
        self.printers: list[Callable[[str], None]] = []
        """Called with the output of verbs that were scheduled by `at`."""
        self._by_hand = _Interactive()
        self._guest_acts = GuestActs(cluster.names) if guest_acts is None else guest_acts
        self._files_below: Path | None = None

    def confined(self) -> "Session":
        """The session for people who are not at this terminal: the page, and the control socket.

        It is the same session, but its verbs read and write files below the run directory only.
        """
        session = copy(self)
        session._files_below = self.run_directory.resolve()  # noqa: SLF001 - of the same class
        return session

    def file(self, word: str, *, to_write: bool = False) -> Path:
        """The path of a file that a verb reads or writes.

        Args:
            word: as it was said; in a confined session it is relative to the run directory.
            to_write: whether the verb writes it; a confined session writes scenario files only, never the trace.

        Raises:
            VerbError: the session is confined, and the file is not below the run directory.
        """
        if not word or not word.isprintable():
            raise VerbError(f"expected the path of a file, not {quoted(word)}")
        below = self._files_below
        if below is None:
            return Path(word)
        try:
            path = (below / word).resolve()
        except (OSError, RuntimeError) as error:  # a loop of links
            raise VerbError(f"{shown(word)}: {error}") from None
        if not path.is_relative_to(below):
            raise VerbError(f"{shown(word)}: expected a file below the run directory; other files need the terminal")
        if to_write and path.suffix != SCENARIO_SUFFIX:
            raise VerbError(f"{shown(word)}: expected the name of a scenario, such as mine{SCENARIO_SUFFIX}")
        return path

    @property
    def now_ms(self) -> int:
        """Whole milliseconds since the run began."""
        return self.cluster.world.timeline.now_ns // NS_PER_MS

    async def pass_ms(self, duration_ms: int) -> None:
        """Let emulated time pass."""
        await self.cluster.world.sleep_until_ns(self.cluster.world.timeline.now_ns + duration_ms * NS_PER_MS)

    async def say(self, line: str) -> Lines:
        """Execute a line: a verb and its words.

        Returns:
            The lines of its output.

        Raises:
            VerbError: the verb failed.
        """
        return await execute(split(line), self, self.verbs)

    def flush_trace(self) -> None:
        """Write all rows so far, for verbs that read the trace.

        Raises:
            VerbError: they cannot be written.
        """
        try:
            self.cluster.world.recorder.flush()
        except OSError as error:
            raise VerbError(f"the trace cannot be written: {error.strerror or error}") from None

    def print_line(self, line: str) -> None:
        """Print a line to all printers."""
        for printer in self.printers:
            printer(line)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes in the order of the cluster, then of the clients of guests as they appeared."""
        return tuple(dict.fromkeys([*self.cluster.hosts, *self.state.beliefs.nodes()]))

    def guest_clients(self) -> dict[str, str]:
        """Mapping node -> client id, of all live clients of guests."""
        found = {node: client_id for client_id, node in self.cluster.names.items() if node not in self.cluster.hosts}
        return {node: client_id for node, client_id in found.items() if self.state.beliefs.is_alive(node)}

    def node(self, name: str) -> str:
        """The name of a node or of a guest's client, checked.

        Raises:
            VerbError: the name is unknown.
        """
        if name not in self.nodes:
            raise VerbError(nearest("node", name, self.nodes))
        return name

    def host(self, name: str) -> EmulatedHost:
        """The host of a node.

        Raises:
            VerbError: the name is unknown.
        """
        if name not in self.cluster.hosts:
            raise VerbError(nearest("node", name, tuple(self.cluster.hosts)))
        return self.cluster.hosts[name]

    def require_known(self, name: str) -> None:
        """Refuse a name that is neither a node nor a guest.

        Raises:
            VerbError: the name is unknown.
        """
        if name not in (*guest_names(self.cluster.scenario), ADMINISTRATOR):
            self.host(name)

    async def begin(self, fault: Fault, *, ends_at_once: bool = False) -> TimedFault:
        """Begin a fault, which lasts until it is healed.

        Args:
            fault: to begin.
            ends_at_once: whether it will be healed at once, so that it can hit only what has started.

        Returns:
            The fault with resolved targets.

        Raises:
            VerbError: a target does not exist, or the fault would have no effect now.
        """
        self._require_known(fault)
        if len(self._by_hand.done) + len(self.cluster.scenario.faults.faults) >= FAULTS_MAX:
            raise VerbError(
                f"expected {FAULTS_MAX} faults at most in one run: what is done interactively is a scenario, too"
            )
        await self._wait_for_an_instant_of_its_own()
        requested = TimedFault(self._free_id(fault.kind), fault, self.now_ms)
        resolved = self._resolved(requested)
        if ends_at_once:
            self._require_started(resolved.fault)
        self._require_possible(resolved.fault)
        # It may be healed before it has begun in full, as a shutdown that takes long, so its place is taken now.
        self._by_hand.done.append(resolved)
        timed = await self.operator.do(Step(self.now_ms, Phase.BEGIN, requested))
        self._by_hand.change(timed.id, fault=timed.fault)
        return timed

    async def act(self, act: Act) -> tuple[TimedAct, ActResult]:
        """Have the administrator carry out an act, and wait until it has ended.

        Returns:
            The act with its instant, and what became of it.

        Raises:
            VerbError: the act names what does not exist; nothing has been done.
        """
        self._require_possible_act(act)
        if len(self._by_hand.acts) + len(self.cluster.scenario.acts) >= ACTS_MAX:
            raise VerbError(f"expected {ACTS_MAX} acts at most in one run")
        await self._wait_for_an_instant_of_its_own()
        timed = TimedAct(self._free_act_id(act.wording.verb), act, self.now_ms)
        self._by_hand.acts.append(timed)
        return timed, await self.cluster.administrator.carry_out(timed)

    def _require_possible_act(self, act: Act) -> None:
        """Refuse an act that names what neither the scenario nor a broker knows."""
        scenario = self.cluster.scenario
        made = attrs.evolve(scenario, acts=(*scenario.acts, *self._by_hand.acts))
        topics = [*known_topics(made), *self.cluster.topics_of_brokers()]
        groups = [*known_groups(made), *self.cluster.groups_of_brokers()]
        try:
            check_act(scenario, "", act, topics, groups)
        except SpecError as error:
            raise VerbError(error.problem) from None

    def _require_known(self, fault: Fault) -> None:
        for _, target in fault.scope.targets():
            for name in target.names if isinstance(target, Names) else ():
                if name != ANY:
                    self.require_known(name)
        try:
            check_fault(self.cluster.scenario, "", fault)
        except SpecError as error:
            option = error.key.removeprefix(".").removeprefix("options")
            raise VerbError(f"{option[1:]}: {error.problem}" if option.startswith(".") else error.problem) from None

    def _require_started(self, fault: Fault) -> None:
        names = [name for name in self.cluster.hosts if fault.scope.matches(name)]
        if all(map(self.cluster.is_start_to_come, names)):
            have = "has" if len(names) == 1 else "have"
            raise VerbError(f"{', '.join(names)} {have} not started yet: there is nothing to {fault.kind}")

    def _require_possible(self, fault: Fault) -> None:
        try:
            self.operator.require_possible(fault)
        except ImpossibleError as error:
            raise VerbError(str(error)) from None

    def _resolved(self, requested: TimedFault) -> TimedFault:
        try:
            return self.operator.resolve(requested)
        except FieldError as error:
            raise VerbError(error.problem) from None

    async def heal(self, fault_id: str) -> TimedFault:
        """End an active fault, of the scenario or begun interactively.

        Raises:
            VerbError: no fault of that id is active.
        """
        self.require_active(fault_id)
        await self._wait_for_an_instant_of_its_own()
        self.require_active(fault_id)  # it may have ended meanwhile
        timed = self.operator.active[fault_id]
        await self.operator.do(Step(self.now_ms, Phase.END, timed))
        self._by_hand.change(timed.id, for_ms=self.now_ms - timed.at_ms)
        return timed

    def require_active(self, fault_id: str) -> None:
        """Refuse the id of a fault that is not active.

        Raises:
            VerbError: no fault of that id is active.
        """
        if fault_id not in self.operator.active:
            raise VerbError(nearest("active fault", fault_id, tuple(self.operator.active)))

    def active_on(self, node: str, kinds: tuple[type[Fault], ...]) -> tuple[TimedFault, ...]:
        """The active faults of these kinds that hit a node."""
        faults = self.operator.active.values()
        return tuple(timed for timed in faults if isinstance(timed.fault, kinds) and timed.fault.scope.matches(node))

    def by_hand(self) -> ByHand:
        """What was done interactively so far, by guests, too; an active fault has no end."""
        used = (timed.id for timed in (*self.cluster.scenario.acts, *self._by_hand.acts))
        of_guests, unrepeated = self._guest_acts.translated(self.cluster.world.timeline.epoch_ms, used)
        return ByHand(Plan(tuple(self._by_hand.done)), (*self._by_hand.acts, *of_guests), unrepeated)

    def _free_act_id(self, verb: str) -> str:
        used = dict.fromkeys(timed.id for timed in (*self.cluster.scenario.acts, *self._by_hand.acts))
        return next(f"{verb}-{number}" for number in count(1) if f"{verb}-{number}" not in used)

    async def _wait_for_an_instant_of_its_own(self) -> None:
        """Wait for a whole millisecond that no other verb uses, since scenario files have whole milliseconds."""
        instant_ms = max(self._by_hand.next_ms, -(-self.cluster.world.timeline.now_ns // NS_PER_MS))
        self._by_hand.next_ms = instant_ms + 1
        await self.cluster.world.sleep_until_ns(instant_ms * NS_PER_MS)

    def _free_id(self, kind: str) -> str:
        # Also what has ended or is to come: interactive faults are saved with the faults of the scenario.
        planned = (timed.id for timed in (*self.cluster.scenario.faults.faults, *self._by_hand.done))
        used = dict.fromkeys([*self.operator.active, *planned])
        number = 1
        while f"{kind}-{number}" in used:
            number += 1
        return f"{kind}-{number}"
