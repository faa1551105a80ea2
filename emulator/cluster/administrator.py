"""The administrator: a machine of its own, on which each act is a process, as each command of mqadmin is."""

import attrs
import trio

from emulator.acts.act import Machines, Places, TimedAct
from emulator.base.errors import one_line
from emulator.machine.host import EmulatedHost
from emulator.machine.process import HostProcess
from emulator.machine.world import World
from emulator.spec import Scenario
from emulator.spec.model.addresses import ADMINISTRATOR_ADDRESS, places
from emulator.spec.model.scenario import ADMINISTRATOR
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.cause import cause
from nodes.client.producer.default_producer import ClientError
from nodes.host import Host
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.tools.errors import AdminToolError
from nodes.tools.mq_admin_ext import MQAdminExt

_NUMBER = 80
"""Of the machine: decides the ids of its processes."""


@attrs.frozen
class ActResult:
    """What became of an act."""

    done: tuple[str, ...]
    """Addresses of the nodes that carried out a change, in order; of a message its queue."""
    failure: str = ""
    """Why it ended before all was done; empty: it did not."""

    def words(self) -> str:
        """For people: `done at 127.1.2.1:10911`."""
        done = ", ".join(self.done) or "no node"
        return f"failed: {self.failure}; done at {done}" if self.failure else f"done at {done}"


class AdminCommand:
    """One process of mqadmin, which carries out one act; implements `nodes.host.Node`."""

    def __init__(self, host: Host, timed: TimedAct, nameservers: tuple[str, ...], known: Places) -> None:
        self._host = host
        self._timed = timed
        self._known = known
        self._admin = MQAdminExt(host, nameservers, known.credentials)
        self.result = ActResult((), "the process has ended")

    async def main(self) -> None:
        """Carry the act out; what was done before a failure stays."""
        failure = ""
        try:
            await self._timed.act.carry_out(self._admin, self._known)
        except (RemotingError, BrokerError, ClientError, AdminToolError) as error:
            failure = one_line(str(error))
        self.result = ActResult(tuple(self._admin.done), failure)
        if failure:
            self._host.record(Lifecycle(LifecycleEvent.COMMAND_FAILED, f"{self._timed.id}: {self.result.words()}"))
        self._admin.close()

    def request_shutdown(self) -> None:
        """Do nothing: a command ends by itself."""


class _AdministratorMachine(EmulatedHost):
    """The machine; the row with which a process starts has the act."""

    detail = ""

    def _record_start(self, process: HostProcess) -> None:
        process.record(Lifecycle(LifecycleEvent.STARTED, self.detail))


class Administrator:
    """Carries out acts, one after the other: an act that waits for a node delays the next one.

    The machine has an address, so links of it may have faults; no fault of processes hits it.

    Args:
        machines: of the cluster.
        names: mapping IP address -> node, to which the machine is added with the first act.
    """

    def __init__(self, world: World, scenario: Scenario, machines: Machines, names: dict[str, str]) -> None:
        self._world = world
        self._machines = machines
        self._names = names
        self._scenario = scenario
        self._turn = trio.Lock()
        self._commands: list[TimedAct] = []
        self.host = _AdministratorMachine(
            world, _NUMBER, ADMINISTRATOR, ADMINISTRATOR, ADMINISTRATOR_ADDRESS, "", self._command
        )

    async def carry_out(self, timed: TimedAct) -> ActResult:
        """Carry an act out when those before it have ended; returns what became of it."""
        async with self._turn:
            cause.set(self._world.recorder.begin_cause("", timed.id))
            self._names.setdefault(ADMINISTRATOR_ADDRESS, ADMINISTRATOR)
            self._commands = [timed]
            self.host.detail = f"{timed.id}: {timed.act.line()}"
            self.host.start()
            process, command = self.host.process, self.host.node
            assert process is not None
            assert isinstance(command, AdminCommand)
            await process.ended.wait()
            return command.result

    def _command(self, host: Host) -> AdminCommand:
        (timed,) = self._commands
        known = attrs.evolve(places(self._scenario), domains=self._world.domains.ips, machines=self._machines)
        return AdminCommand(host, timed, known.nameservers_of(None), known)
