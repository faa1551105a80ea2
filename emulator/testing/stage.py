"""Running a whole cluster with a script, in virtual time by default."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from emulator.cluster.cluster import Cluster
from emulator.cluster.operator import Operator
from emulator.cluster.schedule import Schedule
from emulator.machine.host import EmulatedHost
from emulator.machine.world import World
from emulator.network.link import LinkEffect, LinkRule
from emulator.spec.model.addresses import node_ports
from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.violations import fitting
from emulator.state.present_owners import PresentOwners
from emulator.testing.trace import Trace
from emulator.testing.worlds import run_traced
from emulator.time.mode import TimeMode
from emulator.trace.schema import TraceTable
from faults.catalogue import fault_of
from faults.plan import Phase, Step, TimedFault
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import encode_body, encode_header
from nodes.rpc.client import RpcClient
from nodes.units import NS_PER_MS


class Stage:
    """The running cluster, for a script; it begins when all nodes are ready that no fault keeps down."""

    def __init__(self, world: World, cluster: Cluster, operator: Operator, trace: Trace) -> None:
        self.world = world
        self.cluster = cluster
        self.operator = operator
        self.trace = trace
        """The rows so far; see `Trace` for tables whose rows are delayed."""

    def host(self, name: str) -> EmulatedHost:
        """The machine of a node: its clock, disk, CPU and power."""
        return self.cluster.host(name)

    def node(self, name: str) -> Any:
        """The node object itself: a `Broker`, `Consumer`, `Producer` or `Nameserver` of `nodes`."""
        return self.cluster.host(name).node

    @property
    def now_ms(self) -> float:
        """Emulated time in ms since the run began."""
        return self.world.timeline.now_ns / NS_PER_MS

    async def at_ms(self, instant_ms: float) -> None:
        """Wait for an instant since the run began."""
        await self.world.sleep_until_ns(round(instant_ms * NS_PER_MS))

    async def for_ms(self, duration_ms: float) -> None:
        """Wait for a duration."""
        await self.at_ms(self.now_ms + duration_ms)

    async def until(self, happened: Callable[[], bool], within_ms: float, *, step_ms: float = 1) -> None:
        """Wait until a condition holds, at most `within_ms`; it is checked every `step_ms`."""
        end_ms = self.now_ms + within_ms
        while not happened() and self.now_ms < end_ms:
            await self.for_ms(step_ms)

    async def kill(self, name: str) -> None:
        """End a process as SIGKILL does: its connections close, its disk stays."""
        await self.host(name).kill()

    async def stop(self, name: str) -> None:
        """Shut a process down as SIGTERM does; returns when it has ended."""
        await self.host(name).shutdown()

    async def power_off(self, name: str) -> None:
        """Switch a machine off; its peers are not notified."""
        await self.host(name).power_off()

    async def suspend(self, name: str, duration_ms: float) -> None:
        """Suspend a process for a duration, as between SIGSTOP and SIGCONT."""
        await self.host(name).suspend()
        await self.for_ms(duration_ms)
        await self.host(name).resume()

    def start(self, name: str) -> None:
        """Start a process that has ended, or a machine that is off."""
        self.host(name).start()

    def cut(self, src: str, dst: str, *, one_way: bool = False) -> None:
        """Cut the links between two nodes until `heal`."""

        def covers(sender: str, receiver: str) -> bool:
            return (sender, receiver) == (src, dst) or (not one_way and (sender, receiver) == (dst, src))

        self.world.fabric.add_rule(LinkRule(f"{src}-{dst}", LinkEffect.CUT, covers))

    def heal(self, src: str, dst: str) -> None:
        """End a cut."""
        self.world.fabric.remove_rule(f"{src}-{dst}")

    async def begin(self, line: str) -> str:
        """Begin a fault, in the words of scenario files and of the console: `delay 200 c1 broker-a`.

        Returns:
            The id of the fault, for `end`.

        Raises:
            WordsError: the line is not a fault.
        """
        fault_id = f"script-{len(self.trace.rows['faults']) + 1}"
        timed = TimedFault(fault_id, fault_of(line), round(self.now_ms))
        await self.operator.do(Step(timed.at_ms, Phase.BEGIN, timed))
        return fault_id

    async def end(self, fault_id: str) -> None:
        """End a fault."""
        timed = self.operator.active[fault_id]
        await self.operator.do(Step(round(self.now_ms), Phase.END, timed))

    def at_first(self, table: str, action: Callable[[], None], **wanted: object) -> None:
        """Call `action` when the first matching row is recorded, before its node does anything else."""
        done: list[bool] = []

        def listen(of: TraceTable, _row: tuple[int | str, ...]) -> None:
            # The trace was appended first, so it has the row already.
            if not done and of.name == table:
                newest = self.trace.rows[table][-1]
                if all(newest[column] == value for column, value in wanted.items()):
                    done.append(True)
                    action()

        self.world.recorder.listeners.append(listen)

    async def probe(self, number: int = 0) -> "Caller":
        """Start a probe: a client on its own machine that sends requests for the script."""
        name = f"probe-{number}" if number else "probe"
        host = EmulatedHost(self.world, 90 + number, name, "probe", f"127.1.200.{1 + number}", "", Probe)
        host.start()
        node, process = host.node, host.process
        assert isinstance(node, Probe)
        assert process is not None
        await process.ready.wait()
        return Caller(self, host, node)


class Probe:
    """A node that does nothing by itself."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.requested: list[Command] = []
        """Requests that it has received, in order."""
        self.answer_with: Callable[[Command], Command] | None = None
        """Makes its answers; None: it never answers."""
        self.rpc = RpcClient(host, on_request=self._on_request)

    def now_ms(self) -> int:
        """The wall clock of its machine."""
        return self._host.clock.now_ms()

    async def main(self) -> None:
        """Run until the process is ended."""
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._host.sleep_ms(1e12)

    def request_shutdown(self) -> None:
        """Nothing to shut down."""

    def _on_request(self, channel: Channel, request: Command) -> None:
        self.requested.append(request)
        if self.answer_with is not None and not request.is_oneway:
            channel.send(self.answer_with(request))


@attrs.define
class Caller:
    """Sends requests to nodes by name, through a probe."""

    stage: Stage
    host: EmulatedHost
    node: Probe

    def address(self, node: str) -> str:
        """The address of a nameserver, a controller, a broker or a container, `ip:port`."""
        return next(
            node_port.address for node_port in node_ports(self.stage.cluster.scenario) if node_port.node == node
        )

    async def ask(
        self,
        node: str,
        code: RequestCode,
        header: attrs.AttrsInstance | None = None,
        body: Any = None,
        *,
        timeout_ms: int = 15_000,
    ) -> Command:
        """Send a request to a node and wait for the answer.

        Args:
            node: name of a nameserver, a controller, a broker or a container.
            code: request code.
            header: a value of `nodes.protocol.headers`.
            body: bytes, or a value of `nodes.protocol.bodies`.
            timeout_ms: emulated ms to wait for the answer.

        Raises:
            RemotingError: there is no connection, or no answer in time.
        """
        fields = {} if header is None else encode_header(header)
        content = None if body is None else encode_body(body)
        return await self.node.rpc.call(self.address(node), int(code), fields, content, timeout_ms=timeout_ms)

    def send(self, node: str, code: RequestCode, header: attrs.AttrsInstance | None = None, body: Any = None) -> None:
        """Send a oneway request to a node, as clients commit offsets.

        Args:
            node: name of a nameserver, a controller, a broker or a container.
            code: request code.
            header: a value of `nodes.protocol.headers`.
            body: bytes, or a value of `nodes.protocol.bodies`.
        """
        fields = {} if header is None else encode_header(header)
        content = None if body is None else encode_body(body)
        self.node.rpc.oneway(self.address(node), int(code), fields, content)


Script = Callable[[Stage], Awaitable[object]]
"""A script; the run ends with it."""


def execute(
    scenario: Scenario, script: Script | None = None, *, for_ms: float = 0, mode: TimeMode = TimeMode.SIM
) -> Trace:
    """Run a cluster until its script has ended and `for_ms` have passed.

    Args:
        scenario: its faults happen at their times; its length is ignored.
        script: awaited with a stage when the cluster has started; None: only the scenario's faults happen.
        for_ms: earliest end of the run, in ms since it began.
        mode: `sim`; `fast` has the same trace over real sockets; `live` runs in real time.

    Returns:
        The trace.

    Raises:
        SpecError: the parts of the scenario do not fit together.
        NodeCrashedError: a node's own code raised.
        AssertionError: a node answered a request with the text of a Python error.
    """
    fitting(scenario)
    trace = Trace()

    async def main(world: World) -> None:
        owners = PresentOwners(scenario)
        world.recorder.listeners.append(owners.note)
        async with Cluster(world, scenario) as cluster:
            operator = Operator(cluster, owners)
            schedule = Schedule(world, operator, scenario.plan(), scenario.run_for_ms, None, scenario.acts)
            schedule.begin()
            await cluster.start()
            schedule.on_started()
            stage = Stage(world, cluster, operator, trace)
            if script is not None:
                await script(stage)
            await stage.at_ms(max(for_ms, stage.now_ms))

    network = scenario.network
    run_traced(main, trace, mode=mode, seed=scenario.seed, delay_ms=network.delay_ms, jitter_ms=network.jitter_ms)
    mistakes = [f"{row.src}: {row.detail}" for row in trace.select("rpc", status=1) if "Error:" in row.detail]
    assert not mistakes, "a node answered with an error of its code: " + "; ".join(mistakes)
    return trace
