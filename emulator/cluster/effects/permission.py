"""The effect of `permission`: restricts brokers and topics, and restores them."""

import attrs

from emulator.cluster.effects.effect import HostEffect, ImpossibleError, Scene
from emulator.cluster.local_session import send, session_with
from emulator.machine.host import EmulatedHost
from emulator.spec.model.scenario import BrokerSpec
from faults.permission import PermissionFault
from nodes.broker.files import TOPIC_FILE
from nodes.live_config import store_changes, with_stored_changes
from nodes.protocol.bodies import TopicConfigSerializeWrapper
from nodes.protocol.body_codec import decode_body, encode_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_admin import CreateTopicRequestHeader
from nodes.protocol.model import AUTO_CREATE_TOPIC, MASTER_ID, TopicConfig
from nodes.protocol.registry import encode_header

_OPTION = "brokerPermission"


@attrs.frozen
class _Permitted:
    """What has a permission: a broker, or one topic of a broker."""

    node: str
    topic: str | None


@attrs.define
class _Restriction:
    """The permission before any fault, and the permissions of the active faults."""

    before: int
    perms: dict[str, int] = attrs.Factory(dict)
    """Mapping fault id -> permission, the newest last."""


class PermissionEffect(HostEffect[PermissionFault]):
    """Changes permissions as an operator on each broker's machine does.

    A running broker gets a request as from mqadmin: it saves the change and registers with the nameservers at once. For
    a broker that is down the change is written to its files, for the next process. For a suspended broker both
    happen, since it may be resumed or killed. Of several faults the newest applies.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._world = scene.world
        self._brokers = {spec.name: spec for spec in scene.cluster.scenario.brokers}
        self._restrictions: dict[_Permitted, _Restriction] = {}

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: PermissionFault) -> None:
        """Restrict one node; does nothing if it has no such permission."""
        await self._world.clock.idle()
        spec = self._brokers.get(host.name)
        before = None if spec is None else perm_of(host, spec, fault.topic)
        if before is None:
            return
        restriction = self._restrictions.setdefault(_Permitted(host.name, fault.topic), _Restriction(before))
        restriction.perms[fault_id] = fault.perm
        if before != fault.perm:
            self.scene.count(fault_id)
            self._change(host, fault.topic, fault.perm)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: PermissionFault) -> None:
        """End the restriction of one node."""
        await self._world.clock.idle()
        permitted = _Permitted(host.name, fault.topic)
        restriction = self._restrictions.get(permitted)
        if restriction is None or restriction.perms.pop(fault_id, None) is None:
            return
        if not restriction.perms:
            del self._restrictions[permitted]
        self._change(host, fault.topic, next(reversed(restriction.perms.values()), restriction.before))

    def require_possible(self, fault: PermissionFault) -> None:
        """Refuse to restrict a topic that does not exist, or that has this permission already."""
        hit = [spec for spec in self._brokers.values() if fault.scope.matches(spec.name)]
        perms = [perm_of(self.scene.cluster.hosts[spec.name], spec, fault.topic) for spec in hit]
        if all(perm is None for perm in perms):
            raise ImpossibleError(
                f"no master among {fault.scope.describe()} has a topic {fault.topic}: nothing to restrict"
            )
        if all(perm in (None, fault.perm) for perm in perms):
            raise ImpossibleError(f"{fault.describe()} already: there is nothing to restrict")

    def _change(self, host: EmulatedHost, topic: str | None, perm: int) -> None:
        config = None if topic is None else _topic_config(host, topic)
        if topic is not None and config is None:
            return  # deleted meanwhile
        request = _change_broker(perm) if config is None else _change_topic(attrs.evolve(config, perm=perm))
        process, port = host.process, self._brokers[host.name].config.listen_port
        is_requested = process is not None and session_with(self._world, process, port) is not None
        if process is None or not is_requested or process.suspended:
            _change_files(host, topic, perm)
        if process is not None and is_requested:
            send(self._world, process, port, request)


def perm_of(host: EmulatedHost, spec: BrokerSpec, topic: str | None) -> int | None:
    """A permission as it is on a broker's disk, where each change is written at once.

    Args:
        host: of the broker.
        spec: of the broker.
        topic: name of a topic; None: the permission of the broker itself.

    Returns:
        The permission bits; None if the topic does not exist, or if the broker is a slave, which copies its topics.
    """
    if topic is None:
        return with_stored_changes(host.disk, spec.config).broker_permission
    config = _topic_config(host, topic) if spec.broker_id == MASTER_ID else None
    return None if config is None else config.perm


def _topic_config(host: EmulatedHost, topic: str) -> TopicConfig | None:
    content = host.disk.read(TOPIC_FILE)
    return None if content is None else decode_body(TopicConfigSerializeWrapper, content).topic_config_table.get(topic)


def _change_broker(perm: int) -> Command:
    return Command(int(RequestCode.UPDATE_BROKER_CONFIG), body=f"{_OPTION}={perm}\n".encode())


def _change_topic(config: TopicConfig) -> Command:
    header = CreateTopicRequestHeader(
        config.topic_name,
        AUTO_CREATE_TOPIC,
        config.read_queue_nums,
        config.write_queue_nums,
        config.perm,
        config.topic_filter_type,
        config.topic_sys_flag,
        config.order,
    )
    return Command(int(RequestCode.UPDATE_AND_CREATE_TOPIC), ext_fields=encode_header(header))


def _change_files(host: EmulatedHost, topic: str | None, perm: int) -> None:
    if topic is None:
        store_changes(host.disk, {_OPTION: str(perm)})
        return
    topics = decode_body(TopicConfigSerializeWrapper, host.disk.read(TOPIC_FILE) or b"")
    config = attrs.evolve(topics.topic_config_table[topic], perm=perm)
    table = {**topics.topic_config_table, topic: config}
    changed = TopicConfigSerializeWrapper(table, topics.data_version.next_version(host.clock.now_ms()))
    host.disk.write(TOPIC_FILE, encode_body(changed))
