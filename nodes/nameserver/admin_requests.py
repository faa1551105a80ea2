"""What operators, their tools and brokers ask a nameserver besides registering and routes.

Mirrors:
    `org.apache.rocketmq.namesrv.processor.DefaultRequestProcessor`.
"""

from collections.abc import Callable, Mapping

from nodes.config import NameserverConfig
from nodes.nameserver import topic_lists
from nodes.nameserver.kv_config import KvConfigManager
from nodes.nameserver.route_table import RouteTable
from nodes.protocol import headers
from nodes.protocol.bodies import GetBrokerMemberGroupResponseBody, KvTable, TopicList
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.model import TopicRouteData
from nodes.protocol.registry import decode_body_cached, decode_header, encode_body, encode_header

Handler = Callable[[Command], Command]


class AdminRequests:
    """One handler per request code; each answers at once, and changes nothing but the two tables."""

    def __init__(self, routes: RouteTable, kv_config: KvConfigManager, config: NameserverConfig) -> None:
        self._routes = routes
        self._kv_config = kv_config
        self.config = config

    def handlers(self) -> Mapping[RequestCode, Handler]:
        """Request code -> who answers it."""
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
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._lister(topic_lists.system_topics),
            RequestCode.GET_UNIT_TOPIC_LIST: self._lister(topic_lists.unit_topics),
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self._lister(topic_lists.unit_sub_topics),
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._lister(
                lambda routes: topic_lists.unit_sub_topics(routes, of_no_unit=True)
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
        # RocketMQ forgets to clear what it writes into an answer before it knows how the request ends.
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
            self._routes.register_topic(header.topic, route.queue_datas)
        return request.answer()

    def _get_all_topics(self, request: Command) -> Command:
        if not self.config.enable_all_topic_list:
            return request.answer(ResponseCode.SYSTEM_ERROR, "disable")
        return _with_body(request, topic_lists.all_topics(self._routes))

    def _get_topics_by_cluster(self, request: Command) -> Command:
        header = decode_header(headers.GetTopicsByClusterRequestHeader, request.ext_fields)
        return self._lister(lambda routes: topic_lists.topics_by_cluster(routes, header.cluster))(request)

    def _lister(self, listed: Callable[[RouteTable], TopicList]) -> Handler:
        def answer(request: Command) -> Command:
            if not self.config.enable_topic_list:
                return request.answer(ResponseCode.SYSTEM_ERROR, "disable")
            return _with_body(request, listed(self._routes))

        return answer


def _with_body(request: Command, body: object, remark: str | None = None) -> Command:
    return request.answer(ResponseCode.SUCCESS, remark, NO_FIELDS, encode_body(body))
