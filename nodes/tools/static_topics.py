"""The commands of mqadmin on static topics: which brokers they ask, one after the other.

Mirrors:
    `org.apache.rocketmq.tools.command.topic.UpdateStaticTopicSubCommand`, `RemappingStaticTopicSubCommand`;
    `org.apache.rocketmq.tools.admin.MQAdminUtils`.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nodes.protocol.java import hash_ordered
from nodes.protocol.model import MASTER_ID
from nodes.protocol.static_topics import MappingRefusedError
from nodes.tools.errors import AdminToolError
from nodes.tools.static_topic_plans import Configs, completed, created, decided, remapped

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt


class StaticTopicCommands:
    """The two commands; what was written before one fails stays, and the mapping is inconsistent until it is mended."""

    def __init__(self, admin: "MQAdminExt") -> None:
        self._admin = admin

    async def update(self, topic: str, queues: int, brokers: Sequence[str], *, cluster: str) -> None:
        """Create a static topic, or give it more queues.

        Args:
            brokers: broker names; empty: those of the cluster.

        Raises:
            AdminToolError: mqadmin gives up by itself.
            RemotingError: a node does not answer.
            BrokerError: a node refuses.
        """
        masters = await self._masters()
        wanted = brokers or await self._brokers_of(cluster)
        configs = await self._configs(topic, masters)
        try:
            plan = created(
                topic,
                queues,
                (*wanted, *(name for name in configs if name not in wanted)),
                configs,
                now_ms=self._admin.host.clock.now_ms(),
                shuffle=self._admin.host.rng("shuffleLeastBrokers").shuffle,
            )
        except MappingRefusedError as error:
            raise AdminToolError(str(error)) from None
        plan = completed(plan, topic, await self._brokers_of(cluster))
        await self._write(plan, hash_ordered(plan), masters)

    async def remap(self, topic: str, brokers: Sequence[str], *, cluster: str) -> None:
        """Have other brokers lead the queues of a static topic, in the five steps of mqadmin.

        Between the second and the fourth step a new leader takes messages whose logical offset is -1.

        Args:
            brokers: broker names; empty: those of the cluster.

        Raises:
            AdminToolError, RemotingError, BrokerError: as above.
        """
        masters = await self._masters()
        wanted = brokers or await self._brokers_of(cluster)
        configs = await self._configs(topic, masters)
        if not configs:
            raise AdminToolError("No topic route to do the remapping")
        try:
            moved = remapped(topic, wanted, configs, now_ms=self._admin.host.clock.now_ms())
        except MappingRefusedError as error:
            raise AdminToolError(str(error)) from None
        plan = completed(moved.configs, topic, await self._brokers_of(cluster))
        await self._write(plan, moved.map_in, masters)
        await self._write(plan, moved.map_out, masters)
        for broker in moved.map_out:
            plan = decided(plan, broker, await self._admin.max_offsets(masters[broker], topic))
        await self._write(plan, moved.map_in, masters)
        await self._write(
            plan, [name for name in hash_ordered(plan) if name not in moved.map_in + moved.map_out], masters
        )

    async def _write(self, plan: Configs, brokers: Iterable[str], masters: dict[str, str]) -> None:
        for broker in brokers:
            if broker not in masters:
                raise AdminToolError(f"Can't find addr for broker {broker}")
            await self._admin.create_static_topic(masters[broker], plan[broker])

    async def _configs(self, topic: str, masters: dict[str, str]) -> Configs:
        found = {broker: await self._admin.topic_config(address, topic) for broker, address in masters.items()}
        return {broker: config for broker, config in found.items() if config is not None}

    async def _masters(self) -> dict[str, str]:
        info = await self._admin.cluster_info()
        return {
            name: info.broker_addr_table[name].broker_addrs[MASTER_ID]
            for name in hash_ordered(info.broker_addr_table)
            if MASTER_ID in info.broker_addr_table[name].broker_addrs
        }

    async def _brokers_of(self, cluster: str) -> tuple[str, ...]:
        names = (await self._admin.cluster_info()).cluster_addr_table.get(cluster)
        if not names:
            raise AdminToolError("Find none brokers, do nothing")
        return tuple(names)
