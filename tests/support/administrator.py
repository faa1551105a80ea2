"""An administrator on a machine of their own, who sends requests to the nodes of a cluster in virtual time.

In a script of `emulator.testing.run`:

    admin = await an_administrator(stage)
    await admin.create_topic("orders", queues=8)
    await admin.change("broker-a", RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4")
    answer = await admin.ask("ns-1", RequestCode.WIPE_WRITE_PERM_OF_BROKER, WritePermRequestHeader("broker-a"))

`ask` returns the answer whatever it is; `change`, and what is named after a command of mqadmin, expect SUCCESS. What
was carried out is in the table `admin` of the trace, and in `admin.acts()`. `run_administered` does the same in a run
with a run directory, for oracles. `support.admin_requests` has an example of every request.
"""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from emulator.console.session import Session
from emulator.run import run_scenario
from emulator.spec import Scenario
from emulator.testing import Caller, RowOfTrace, Stage, Trace
from emulator.trace.schema import TraceLevel
from nodes.protocol import headers, headers_admin
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_message import ResetOffsetRequestHeader
from nodes.protocol.model import AUTO_CREATE_TOPIC, READ_WRITE, SubscriptionGroupConfig

_NUMBER = 9
"""Of the machine; other probes of a script have lower numbers."""


class Administrator(Caller):
    """An administrator, as a test handles one."""

    @property
    def ip(self) -> str:
        """The address of their machine; the column `client` begins with it."""
        return self.host.ip

    @property
    def nameservers(self) -> list[str]:
        """All nameservers of the cluster."""
        return [spec.name for spec in self.stage.cluster.scenario.nameservers]

    @property
    def brokers(self) -> list[str]:
        """All brokers of the cluster."""
        return [spec.name for spec in self.stage.cluster.scenario.brokers]

    @property
    def masters(self) -> list[str]:
        """The brokers that the scenario begins with as masters."""
        return [spec.name for spec in self.stage.cluster.scenario.brokers if spec.broker_id == 0]

    def acts(self, **wanted: object) -> list[RowOfTrace]:
        """The rows of what they have changed so far."""
        rows = self.stage.trace.select("admin", **wanted)
        return [row for row in rows if row.client.rpartition(":")[0] == self.ip]

    async def change(
        self, node: str, code: RequestCode, header: attrs.AttrsInstance | None = None, body: Any = None
    ) -> Command:
        """Send a request that has to succeed; returns the answer."""
        answer = await self.ask(node, code, header, body)
        assert answer.code == ResponseCode.SUCCESS, f"{node} refuses {code.name}: {answer.code} {answer.remark}"
        return answer

    async def create_topic(
        self, topic: str, *, queues: int = 4, perm: int = READ_WRITE, on: Iterable[str] | None = None
    ) -> None:
        """`mqadmin updateTopic`: create a topic at the masters, or change it."""
        header = headers_admin.CreateTopicRequestHeader(topic, AUTO_CREATE_TOPIC, queues, queues, perm, "SINGLE_TAG")
        for node in self.masters if on is None else on:
            await self.change(node, RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def delete_topic(self, topic: str) -> None:
        """`mqadmin deleteTopic`: delete a topic at the masters, then at the nameservers."""
        for node in self.masters:
            await self.change(node, RequestCode.DELETE_TOPIC_IN_BROKER, headers_admin.TopicHeader(topic))
        for node in self.nameservers:
            header = headers.DeleteTopicFromNamesrvRequestHeader(topic)
            await self.change(node, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    async def update_group(self, group: str, **options: Any) -> None:
        """`mqadmin updateSubGroup`: create a consumer group at the masters, or change it."""
        for node in self.masters:
            config = SubscriptionGroupConfig(group, **options)
            await self.change(node, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config)

    async def reset_offsets(self, group: str, topic: str, *, timestamp: int = -1) -> None:
        """`mqadmin resetOffsetByTime`: set the offsets of a group at the masters, by default to the end."""
        header = ResetOffsetRequestHeader(group, topic, timestamp=timestamp, is_force=True)
        for node in self.masters:
            await self.change(node, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


async def an_administrator(stage: Stage) -> Administrator:
    """An administrator; they change nothing until asked to."""
    probe = await stage.probe(_NUMBER)
    return Administrator(stage, probe.host, probe.node)


def run_administered(
    scenario: Scenario,
    runs: Path,
    script: Callable[[Stage], Awaitable[object]],
    *,
    level: TraceLevel = TraceLevel.FULL,
) -> tuple[Path, Trace]:
    """Run a whole scenario into a run directory, which can be judged, with a script with it.

    Args:
        scenario: runs to its own end; names of guests are left out, since its time is virtual.
        runs: directory in which the run directory is created.
        script: awaited with a stage from before the first node starts, so it waits for an instant first.
        level: which rows the run directory has.

    Returns:
        The run directory, and its trace without frames and causes, which are in the directory only.
    """
    trace = Trace()

    async def session_task(session: Session) -> None:
        cluster = session.cluster
        await script(Stage(cluster.world, cluster, session.operator, trace))

    result = run_scenario(
        attrs.evolve(scenario, guests=()),
        runs=runs,
        level=level,
        listeners=(trace.note,),
        session_tasks=(session_task,),
    )
    return result.path, trace
