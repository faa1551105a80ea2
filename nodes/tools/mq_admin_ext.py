"""The requests of mqadmin: each method is one request, or the same one to several nodes, one after the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.host import Host
from nodes.protocol import headers, headers_admin, headers_container, headers_message
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.attribute_parser import parse_to_string
from nodes.protocol.bodies import ClusterInfo, SetMessageRequestModeRequestBody
from nodes.protocol.bodies_admin import ConsumeStats, TopicStatsTable
from nodes.protocol.bodies_auth import AclInfo, UserInfo, acls_of, users_of
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_address_server import NameserverListHeader
from nodes.protocol.headers_auth import (
    DeleteAclRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    SubjectHeader,
    UserHeader,
)
from nodes.protocol.headers_statefulset import RolloutRequestHeader
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import (
    AUTO_CREATE_TOPIC,
    MASTER_ID,
    BrokerData,
    MessageQueue,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRouteData,
)
from nodes.protocol.names import ORDER_TOPIC_CONFIG, retry_topic
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.static_topics import TopicConfigAndQueueMapping
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import invoke, succeeded
from nodes.tools.errors import AdminToolError
from nodes.tools.one_message import OneMessage

TIMEOUT_MS = 5_000
"""Mirrors the time-out of `DefaultMQAdminExt`."""
_CONSUME_STATS_TIMEOUT_MS = 3 * TIMEOUT_MS
_CONTAINER_TIMEOUT_MS = 20_000


class MQAdminExt:
    """One process of mqadmin: its connections, and the requests that it can send.

    What a request has changed stays when a later one fails: no command takes anything back.

    Args:
        host: of the process.
        nameservers: addresses, as in the option `-n`.
        credentials: with which all requests are signed, as in `tools.yml`; None: they are not.

    Mirrors:
        `org.apache.rocketmq.tools.admin.DefaultMQAdminExtImpl`, `org.apache.rocketmq.tools.command.CommandUtil`.
    """

    def __init__(self, host: Host, nameservers: tuple[str, ...], credentials: SessionCredentials | None = None) -> None:
        self.host = host
        self._credentials = credentials
        self.nameservers = nameservers
        self.done: list[str] = []
        """Addresses of the nodes that have carried out a change, in order; the same one for each change."""
        self._rpc = RpcClient(host, sign=None if credentials is None else credentials.sign)
        self._asked = Nameservers(host, self._rpc, nameservers)
        self._draw = host.rng("selectBrokerAddr").randrange

    @property
    def nameserver_set(self) -> tuple[str, ...]:
        """All nameservers, in the order of RocketMQ's hash set."""
        return tuple(hash_ordered(self.nameservers))

    def close(self) -> None:
        """Close all connections."""
        self._rpc.close_all()

    # --- questions to one nameserver --------------------------------------------------

    async def cluster_info(self) -> ClusterInfo:
        """All brokers (`examineBrokerClusterInfo`).

        Raises:
            RemotingError: the nameserver in use does not answer.
            BrokerError: it refuses.
        """
        answer = succeeded(await self._asked.call(RequestCode.GET_BROKER_CLUSTER_INFO, timeout_ms=TIMEOUT_MS))
        return decode_body(ClusterInfo, answer.body)

    async def broker_addresses(self, cluster: str, *, slaves: bool = False) -> tuple[str, ...]:
        """The addresses of the brokers of a cluster, in the order of RocketMQ's hash set: by address, not by name.

        Args:
            cluster: its name.
            slaves: whether slaves are included.

        Raises:
            AdminToolError: the nameserver knows no such cluster; mqadmin says so, and does nothing.
            RemotingError: the nameserver in use does not answer.
        """
        info = await self.cluster_info()
        names = info.cluster_addr_table.get(cluster)
        if names is None:
            raise AdminToolError(f"the nameserver knows no cluster {cluster}")
        groups = (info.broker_addr_table[name] for name in names if name in info.broker_addr_table)
        found = [
            address
            for group in groups
            for broker_id, address in group.broker_addrs.items()
            if slaves or broker_id == MASTER_ID
        ]
        return tuple(hash_ordered(found))

    async def broker_names(self, cluster: str) -> tuple[str, ...]:
        """The names of the broker groups of a cluster, in the order of RocketMQ's hash set.

        Raises:
            AdminToolError: the nameserver knows no such cluster.
            RemotingError: the nameserver in use does not answer.
        """
        names = (await self.cluster_info()).cluster_addr_table.get(cluster)
        if names is None:
            raise AdminToolError(f"the nameserver knows no cluster {cluster}")
        return tuple(hash_ordered(names))

    async def broker_name_of(self, address: str) -> str:
        """The name of the group of a broker (`fetchBrokerNameByAddr`).

        Raises:
            AdminToolError: the nameserver knows no broker with this address.
            RemotingError: the nameserver in use does not answer.
        """
        for name, group in (await self.cluster_info()).broker_addr_table.items():
            if address in group.broker_addrs.values():
                return name
        raise AdminToolError(f"the nameserver knows no broker at {address}")

    async def topic_route(self, topic: str) -> TopicRouteData:
        """The route of a topic (`examineTopicRouteInfo`).

        Raises:
            BrokerError: the nameserver in use does not know the topic.
            RemotingError: it does not answer.
        """
        header = headers.GetRouteInfoRequestHeader(topic)
        answer = await self._asked.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=TIMEOUT_MS)
        return decode_body(TopicRouteData, succeeded(answer).body)

    def broker_address(self, group: BrokerData) -> str | None:
        """The master of a broker group, else one of its slaves at random, else None (`selectBrokerAddr`)."""
        addresses = group.broker_addrs
        if MASTER_ID in addresses or not addresses:
            return addresses.get(MASTER_ID)
        return list(addresses.values())[self._draw(len(addresses))]

    # --- topics -----------------------------------------------------------------------

    async def create_and_update_topic_config(self, address: str, config: TopicConfig) -> None:
        """Create a topic at a broker, or replace all of its configuration."""
        header = headers_admin.CreateTopicRequestHeader(
            config.topic_name,
            AUTO_CREATE_TOPIC,
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            config.topic_filter_type,
            config.topic_sys_flag,
            config.order,
            parse_to_string(config.attributes) or None,
        )
        await self._change(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def create_static_topic(self, address: str, config: TopicConfigAndQueueMapping) -> None:
        """Create or change a topic and its mapping at a broker (`createStaticTopic`)."""
        header = headers_admin.CreateTopicRequestHeader(
            config.topic_name,
            AUTO_CREATE_TOPIC,
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            config.topic_filter_type,
            config.topic_sys_flag,
            config.order,
            force=False,
        )
        code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
        await self._change(address, code, header, config.mapping_detail)

    async def topic_config(self, address: str, topic: str) -> TopicConfigAndQueueMapping | None:
        """A topic at a broker, with its mapping; None: the broker does not have it (`examineTopicConfig`).

        Raises:
            BrokerError: the broker refuses.
            RemotingError: it does not answer.
        """
        header = headers_admin.TopicHeader(topic, lo=True)
        answer = await invoke(self._rpc, address, RequestCode.GET_TOPIC_CONFIG, header, timeout_ms=TIMEOUT_MS)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        return decode_body(TopicConfigAndQueueMapping, succeeded(answer).body)

    async def max_offsets(self, address: str, topic: str) -> Mapping[int, int]:
        """Queue -> its end, at one broker (`examineTopicStats`).

        Raises:
            BrokerError, RemotingError: as above.
        """
        header = headers_admin.TopicHeader(topic)
        answer = await invoke(self._rpc, address, RequestCode.GET_TOPIC_STATS_INFO, header, timeout_ms=TIMEOUT_MS)
        table = decode_body(TopicStatsTable, succeeded(answer).body).offset_table
        return {queue.queue_id: offsets.max_offset for queue, offsets in table.items()}

    async def delete_topic_in_brokers(self, addresses: Sequence[str], topic: str) -> None:
        """Delete a topic at brokers, one after the other."""
        for address in addresses:
            await self._change(address, RequestCode.DELETE_TOPIC_IN_BROKER, headers_admin.TopicHeader(topic))

    async def delete_topic_in_nameservers(self, addresses: Sequence[str], topic: str, cluster: str | None) -> None:
        """Delete a topic of a cluster, or of all, at nameservers, one after the other."""
        for address in addresses:
            header = headers.DeleteTopicFromNamesrvRequestHeader(topic, cluster)
            await self._change(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    # --- groups -----------------------------------------------------------------------

    async def create_and_update_group_config(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Create a consumer group at a broker, or replace all of its configuration."""
        await self._change(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config)

    async def delete_group(self, address: str, group: str, *, clean_offset: bool) -> None:
        """Delete a consumer group at a broker, with its offsets or without."""
        header = headers_admin.DeleteSubscriptionGroupRequestHeader(group, clean_offset)
        await self._change(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    async def set_message_request_mode(self, address: str, mode: SetMessageRequestModeRequestBody) -> None:
        """Set at a broker whether a group pulls or pops a topic."""
        await self._change(address, RequestCode.SET_MESSAGE_REQUEST_MODE, None, mode)

    # --- offsets ----------------------------------------------------------------------

    async def invoke_broker_to_reset_offset(
        self, address: str, header: headers_message.ResetOffsetRequestHeader
    ) -> None:
        """Have a broker reset the offsets of a group."""
        await self._change(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    async def update_consume_offset(self, address: str, group: str, queue: MessageQueue, offset: int) -> None:
        """Set the offset of a group in a queue."""
        header = headers.UpdateConsumerOffsetRequestHeader(
            group, queue.topic, queue.queue_id, offset, queue.broker_name
        )
        await self._change(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def consume_stats(self, group: str) -> ConsumeStats:
        """The offsets of a group in all queues, from the brokers that have its retry topic (`examineConsumeStats`).

        Raises:
            BrokerError: the nameserver in use does not know the retry topic, or a broker refuses.
            RemotingError: one of them does not answer.
        """
        table: dict[MessageQueue, Any] = {}
        for data in (await self.topic_route(retry_topic(group))).broker_datas:
            address = self.broker_address(data)
            if address is not None:
                header = headers_admin.GetConsumeStatsRequestHeader(group)
                code, timeout_ms = RequestCode.GET_CONSUME_STATS, _CONSUME_STATS_TIMEOUT_MS
                answer = succeeded(await invoke(self._rpc, address, code, header, timeout_ms=timeout_ms))
                table |= decode_body(ConsumeStats, answer.body).offset_table
        return ConsumeStats(table, 0.0)

    # --- options and permissions ------------------------------------------------------

    async def update_broker_config(self, address: str, options: Mapping[str, str]) -> None:
        """Change options of a broker."""
        await self._change(address, RequestCode.UPDATE_BROKER_CONFIG, None, _properties(options))

    async def update_config(self, code: RequestCode, addresses: Sequence[str], options: Mapping[str, str]) -> None:
        """Change options of nameservers or controllers, one after the other; a refusal is reported at the end.

        Mirrors:
            `org.apache.rocketmq.client.impl.MQClientAPIImpl#updateNameServerConfig`, `#updateControllerConfig`.

        Raises:
            BrokerError: one of them refused; all have been asked.
            RemotingError: one of them does not answer; those after it have not been asked.
        """
        await self._change_each(addresses, code, None, _properties(options))

    async def put_kv_config(self, addresses: Sequence[str], namespace: str, key: str, value: str) -> None:
        """Set an entry of the configuration of nameservers, as `update_config` does with options."""
        header = headers.PutKvConfigRequestHeader(namespace, key, value)
        await self._change_each(addresses, RequestCode.PUT_KV_CONFIG, header)

    async def add_order_conf(self, addresses: Sequence[str], topic: str, entry: str) -> None:
        """Set `BROKER:QUEUES` in the order configuration of a topic, and leave what it has of other brokers.

        Mirrors:
            `org.apache.rocketmq.tools.admin.DefaultMQAdminExtImpl#createOrUpdateOrderConf`, not of a whole cluster.

        Raises:
            RemotingError: a nameserver does not answer; those after it have not been asked.
        """
        header = headers.KvConfigRequestHeader(ORDER_TOPIC_CONFIG, topic)
        answer = await self._asked.call(RequestCode.GET_KV_CONFIG, header, timeout_ms=TIMEOUT_MS)
        known = ""
        if answer.code == ResponseCode.SUCCESS:
            known = decode_header(headers.GetKvConfigResponseHeader, answer.ext_fields).value or ""
        entries = {item.partition(":")[0]: item for item in (*filter(None, known.split(";")), entry)}
        value = ";".join(entries[name] for name in hash_ordered(entries))
        await self.put_kv_config(addresses, ORDER_TOPIC_CONFIG, topic, value)

    async def delete_kv_config(self, addresses: Sequence[str], namespace: str, key: str) -> None:
        """Delete an entry of the configuration of nameservers, as `update_config` does with options."""
        header = headers.KvConfigRequestHeader(namespace, key)
        await self._change_each(addresses, RequestCode.DELETE_KV_CONFIG, header)

    # --- users and policies ---------------------------------------------------------

    async def create_user(self, address: str, user: UserInfo) -> None:
        """Create a user at a broker."""
        await self._change(address, RequestCode.AUTH_CREATE_USER, UserHeader(user.username), user)

    async def update_user(self, address: str, user: UserInfo) -> None:
        """Change a user at a broker."""
        await self._change(address, RequestCode.AUTH_UPDATE_USER, UserHeader(user.username), user)

    async def delete_user(self, address: str, username: str) -> None:
        """Delete a user and its policies at a broker."""
        await self._change(address, RequestCode.AUTH_DELETE_USER, UserHeader(username))

    async def delete_acl(self, address: str, header: DeleteAclRequestHeader) -> None:
        """Delete policies of a user at a broker."""
        await self._change(address, RequestCode.AUTH_DELETE_ACL, header)

    async def user(self, address: str, username: str) -> UserInfo | None:
        """A user of a broker, with its password; None: there is none (`getUser`)."""
        body = await self._shown(address, RequestCode.AUTH_GET_USER, UserHeader(username))
        return decode_body(UserInfo, body) if body else None

    async def users(self, address: str) -> tuple[UserInfo, ...]:
        """All users of a broker (`listUser`)."""
        return users_of(await self._shown(address, RequestCode.AUTH_LIST_USER, ListUsersRequestHeader()))

    async def acl(self, address: str, subject: str) -> AclInfo | None:
        """The policies of a subject at a broker; None: there are none (`getAcl`)."""
        body = await self._shown(address, RequestCode.AUTH_GET_ACL, SubjectHeader(subject))
        return decode_body(AclInfo, body) if body else None

    async def acls(self, address: str) -> tuple[AclInfo, ...]:
        """The policies of all subjects at a broker (`listAcl`)."""
        return acls_of(await self._shown(address, RequestCode.AUTH_LIST_ACL, ListAclsRequestHeader()))

    async def _shown(self, address: str, code: RequestCode, header: Any) -> bytes | None:
        return succeeded(await invoke(self._rpc, address, code, header, timeout_ms=TIMEOUT_MS)).body

    async def change_acl(self, address: str, code: RequestCode, acl: AclInfo) -> None:
        """Create or update policies of a user at a broker."""
        await self._change(address, code, SubjectHeader(acl.subject), acl)

    async def write_perm(self, address: str, code: RequestCode, broker_name: str) -> None:
        """Wipe or add the write permission of a broker at one nameserver."""
        await self._change(address, code, headers.WritePermRequestHeader(broker_name))

    # --- brokers of containers --------------------------------------------------------

    async def add_broker_to_container(self, address: str, path: str) -> None:
        """Have a container start the broker of a file."""
        header = headers_container.AddBrokerRequestHeader(path)
        await self._change(address, RequestCode.ADD_BROKER, header, timeout_ms=_CONTAINER_TIMEOUT_MS)

    async def remove_broker_from_container(
        self, address: str, header: headers_container.RemoveBrokerRequestHeader
    ) -> None:
        """Have a container shut a broker down."""
        await self._change(address, RequestCode.REMOVE_BROKER, header, timeout_ms=_CONTAINER_TIMEOUT_MS)

    # --- not of mqadmin -----------------------------------------------------------------

    async def put_nameserver_list(self, address: str, listed: str) -> None:
        """Replace the list of the address server, as somebody does who edits a page of a web server."""
        await self._change(address, RequestCode.PUT_NAMESERVER_LIST, NameserverListHeader(listed))

    async def roll_out(self, address: str, statefulset: str, *, undo: bool) -> None:
        """Give the pods of a StatefulSet another template, as kubectl does."""
        await self._change(address, RequestCode.ROLLOUT, RolloutRequestHeader(statefulset, undo))

    # --- messages ---------------------------------------------------------------------

    async def send_message(
        self, topic: str, body: bytes, properties: Mapping[str, str], queue: MessageQueue | None
    ) -> None:
        """Send one message, to a queue or to the one whose turn it is.

        Raises:
            RemotingError: no attempt was answered.
            BrokerError: the broker refused.
            ClientError: there is no queue to send to.
        """
        result = await OneMessage(self.host, self.nameservers, self._credentials).send(topic, body, properties, queue)
        self.done.append(f"{result.queue.broker_name} q{result.queue.queue_id}")

    async def _change_each(self, addresses: Sequence[str], code: RequestCode, header: Any, body: Any = None) -> None:
        """The same change at nodes, one after the other; the last refusal is raised at the end."""
        refusal: BrokerError | None = None
        for address in addresses:
            try:
                await self._change(address, code, header, body)
            except BrokerError as error:
                refusal = error
        if refusal is not None:
            raise refusal

    async def _change(
        self, address: str, code: RequestCode, header: Any = None, body: Any = None, *, timeout_ms: int = TIMEOUT_MS
    ) -> Command:
        answer = succeeded(await invoke(self._rpc, address, code, header, body, timeout_ms=timeout_ms))
        self.done.append(address)
        return answer


def _properties(options: Mapping[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in options.items()).encode()
