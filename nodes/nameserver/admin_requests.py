"""Requests of operators and their tools, among them the lists of topics.

Mirrors:
    `org.apache.rocketmq.namesrv.processor.DefaultRequestProcessor`;
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager#getTopicsByCluster`, `#getSystemTopicList`,
    `#getUnitTopics`, `#getHasUnitSubTopicList`, `#getHasUnitSubUnUnitTopicList`.
"""

from collections.abc import Callable, Mapping

from nodes.config import NameserverConfig
from nodes.nameserver.register_request import max_queues
from nodes.nameserver.tables.kv_config import KvConfigManager
from nodes.nameserver.tables.route_table import RouteTable
from nodes.protocol import headers
from nodes.protocol.bodies import GetBrokerMemberGroupResponseBody, KvTable, TopicList
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.errors import require_few_queues
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import TopicRouteData, TopicSysFlag
from nodes.protocol.registry import decode_body_cached, decode_header, encode_body, encode_header

_GROUP_TABLE_BUCKETS = 256
"""RocketMQ creates its table of broker names for 128 entries."""


def all_topics(routes: RouteTable) -> TopicList:
    """Answer 206."""
    return TopicList(tuple(sorted(routes.topics)))


def topics_by_cluster(routes: RouteTable, cluster: str) -> TopicList:
    """Answer 224: the topics of the broker names of a cluster; none for an unknown cluster."""
    names = routes.cluster_info().cluster_addr_table.get(cluster, ())
    topics = (topic for topic, queues in routes.topics.items() if any(name in queues for name in names))
    return TopicList(tuple(sorted(topics)))


def system_topics(routes: RouteTable) -> TopicList:
    """Answer 304: the names of clusters and brokers, which are system topics, and the address of one broker."""
    info = routes.cluster_info()
    names = [*info.cluster_addr_table, *(name for names in info.cluster_addr_table.values() for name in names)]
    groups = (
        info.broker_addr_table[name] for name in hash_ordered(info.broker_addr_table, buckets=_GROUP_TABLE_BUCKETS)
    )
    some = next((data.broker_addrs[min(data.broker_addrs)] for data in groups if data.broker_addrs), None)
    return TopicList(tuple(sorted(dict.fromkeys(names))), some)


def unit_topics(routes: RouteTable) -> TopicList:
    """Answer 311: topics of a unit."""
    return TopicList(tuple(topic for topic in sorted(routes.topics) if _flag(routes, topic) & TopicSysFlag.UNIT))


def unit_sub_topics(routes: RouteTable, *, of_no_unit: bool = False) -> TopicList:
    """Answer 312: topics with subscribers in a unit; and 313: those of them that do not belong to a unit."""
    flags = {topic: _flag(routes, topic) for topic in sorted(routes.topics)}
    return TopicList(
        tuple(
            topic
            for topic, flag in flags.items()
            if flag & TopicSysFlag.UNIT_SUB and not (of_no_unit and flag & TopicSysFlag.UNIT)
        )
    )


def _flag(routes: RouteTable, topic: str) -> int:
    """The system flag of a topic at one broker name: the first in RocketMQ's hash table."""
    queues = routes.topics[topic]
    return queues[hash_ordered(queues)[0]].topic_sys_flag


Handler = Callable[[Command], Command]


class AdminRequests:
    """One handler per request code; a handler changes only the two tables."""

    def __init__(self, routes: RouteTable, kv_config: KvConfigManager, config: NameserverConfig) -> None:
        self._routes = routes
        self._kv_config = kv_config
        self.config = config

    def handlers(self) -> Mapping[RequestCode, Handler]:
        """Request code -> handler."""
        return {
            RequestCode.PUT_KV_CONFIG: self._put_kv_config,
            RequestCode.GET_KV_CONFIG: self._get_kv_config,
            RequestCode.DELETE_KV_CONFIG: self._delete_kv_config,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self._get_kv_list,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._get_cluster_info,
            RequestCode.GET_BROKER_MEMBER_GROUP: self._get_member_group,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self._wipe_write_perm,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self._add_write_perm,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV: self._register_topic,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._get_all_topics,
            RequestCode.GET_TOPICS_BY_CLUSTER: self._get_topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._get_system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self._lister(unit_topics),
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self._lister(unit_sub_topics),
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._lister(
                lambda routes: unit_sub_topics(routes, of_no_unit=True)
            ),
        }

    # Configuration

    def _put_kv_config(self, request: Command) -> Command:
        header = decode_header(headers.PutKvConfigRequestHeader, request.ext_fields)
        if header.namespace is None or header.key is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "namespace or key is null")
        self._kv_config.put(header.namespace, header.key, header.value)
        self._routes.revision += 1
        return request.answer()

    def _get_kv_config(self, request: Command) -> Command:
        header = decode_header(headers.KvConfigRequestHeader, request.ext_fields)
        value = self._kv_config.get(header.namespace, header.key)
        if value is None:
            remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
            return request.answer(ResponseCode.QUERY_NOT_FOUND, remark)
        fields = encode_header(headers.GetKvConfigResponseHeader(value))
        return request.answer(ResponseCode.SUCCESS, None, fields)

    def _delete_kv_config(self, request: Command) -> Command:
        header = decode_header(headers.KvConfigRequestHeader, request.ext_fields)
        self._kv_config.delete(header.namespace, header.key)
        self._routes.revision += 1
        return request.answer()

    def _get_kv_list(self, request: Command) -> Command:
        header = decode_header(headers.GetKvListByNamespaceRequestHeader, request.ext_fields)
        entries = self._kv_config.list_by_namespace(header.namespace)
        if entries is None:
            return request.answer(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {header.namespace}")
        return _with_body(request, KvTable(entries))

    # Brokers

    def _get_cluster_info(self, request: Command) -> Command:
        return _with_body(request, self._routes.cluster_info())

    def _get_member_group(self, request: Command) -> Command:
        header = decode_header(headers.GetBrokerMemberGroupRequestHeader, request.ext_fields)
        group = self._routes.member_group(header.cluster_name, header.broker_name)
        # RocketMQ does not clear the remark that it sets before it knows the result.
        return _with_body(request, GetBrokerMemberGroupResponseBody(group), "not set any response code")

    def _wipe_write_perm(self, request: Command) -> Command:
        header = decode_header(headers.WritePermRequestHeader, request.ext_fields)
        count = self._routes.wipe_write_perm(header.broker_name)
        return request.answer(ResponseCode.SUCCESS, None, encode_header(headers.WipeWritePermResponseHeader(count)))

    def _add_write_perm(self, request: Command) -> Command:
        header = decode_header(headers.WritePermRequestHeader, request.ext_fields)
        count = self._routes.add_write_perm(header.broker_name)
        return request.answer(ResponseCode.SUCCESS, None, encode_header(headers.AddWritePermResponseHeader(count)))

    # Topics

    def _delete_topic(self, request: Command) -> Command:
        header = decode_header(headers.DeleteTopicFromNamesrvRequestHeader, request.ext_fields)
        self._routes.delete_topic(header.topic, header.cluster_name)
        return request.answer()

    def _register_topic(self, request: Command) -> Command:
        header = decode_header(headers.RegisterTopicRequestHeader, request.ext_fields)
        route = decode_body_cached(TopicRouteData, request.body)
        if route.queue_datas:
            require_few_queues(max_queues(route.queue_datas), self.config.max_queues_per_topic)
            self._routes.register_topic(header.topic, route.queue_datas)
        return request.answer()

    def _get_all_topics(self, request: Command) -> Command:
        if not self.config.enable_all_topic_list:
            return request.answer(ResponseCode.SYSTEM_ERROR, "disable")
        return _with_body(request, all_topics(self._routes))

    def _get_system_topics(self, request: Command) -> Command:
        """Never refused: RocketMQ asks neither of the two options that disable the other lists."""
        return _with_body(request, system_topics(self._routes))

    def _get_topics_by_cluster(self, request: Command) -> Command:
        header = decode_header(headers.GetTopicsByClusterRequestHeader, request.ext_fields)
        return self._lister(lambda routes: topics_by_cluster(routes, header.cluster))(request)

    def _lister(self, listed: Callable[[RouteTable], TopicList]) -> Handler:
        def answer(request: Command) -> Command:
            if not self.config.enable_topic_list:
                return request.answer(ResponseCode.SYSTEM_ERROR, "disable")
            return _with_body(request, listed(self._routes))

        return answer


def _with_body(request: Command, body: object, remark: str | None = None) -> Command:
    return request.answer(ResponseCode.SUCCESS, remark, NO_FIELDS, encode_body(body))
