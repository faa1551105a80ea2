"""Types of topics, configurations of groups, users and their policies, in caches.

Mirrors:
    `org.apache.rocketmq.proxy.service.metadata.ClusterMetadataService`.
"""

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.tables.auth.acls import policies_of
from nodes.broker.tables.auth.policies import Acl
from nodes.broker.tables.auth.users import User, subject_key, user_of
from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol.bodies_auth import AclInfo, UserInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_admin import GroupHeader, TopicHeader
from nodes.protocol.headers_auth import SubjectHeader, UserHeader
from nodes.protocol.model import MASTER_ID, BrokerData, SubscriptionGroupConfig
from nodes.protocol.registry import decode_body
from nodes.protocol.static_topics import TopicConfigAndQueueMapping
from nodes.proxy.broker_calls import METADATA_TIMEOUT_MS, MQClientAPIFactory, broker_error
from nodes.proxy.loading_cache import LoadingCache
from nodes.proxy.tables.errors import CallError, TopicNotExistError
from nodes.proxy.tables.topic_types import TopicMessageType, type_of_topic
from nodes.proxy.topic_route_service import TopicRouteService


class MetadataService:
    """What a proxy believes about topics and groups; each is loaded from one broker, chosen at random.

    Emits:
        TOPIC_TYPE and GROUP_CONFIG whenever a value was loaded and is another one.
    """

    def __init__(
        self, host: Host, config: ProxyConfig, routes: TopicRouteService, operations: MQClientAPIFactory
    ) -> None:
        self._host = host
        self._config = config
        self._routes = routes
        self._operations = operations
        self._draw = host.rng("metadata").randrange
        self._believed: dict[tuple[BeliefKind, str], object] = {}
        self._topic_types: LoadingCache[TopicMessageType] = LoadingCache(
            host,
            "MetadataCacheRefresh",
            config.topic_config_cache_refresh_seconds,
            config.topic_config_cache_expired_seconds,
            self._load_type,
            lambda topic, loaded: self._believe(BeliefKind.TOPIC_TYPE, topic, loaded.value),
        )
        self._groups: LoadingCache[SubscriptionGroupConfig | None] = LoadingCache(
            host,
            "MetadataCacheRefresh",
            config.subscription_group_config_cache_refresh_seconds,
            config.subscription_group_config_cache_expired_seconds,
            self._load_group,
            lambda group, loaded: self._believe(BeliefKind.GROUP_CONFIG, group, _in_brief(loaded)),
        )
        self._users: LoadingCache[User | None] = LoadingCache(
            host,
            "MetadataCacheRefresh",
            config.user_cache_refresh_seconds,
            config.user_cache_expired_seconds,
            self._load_user,
            _nothing,
        )
        self._acls: LoadingCache[Acl | None] = LoadingCache(
            host,
            "MetadataCacheRefresh",
            config.acl_cache_refresh_seconds,
            config.acl_cache_expired_seconds,
            self._load_acl,
            _nothing,
        )

    async def topic_message_type(self, topic: str) -> TopicMessageType:
        """The type of a topic; UNSPECIFIED: there is none, or it could not be loaded."""
        try:
            return await self._topic_types.get(topic)
        except CallError:
            return TopicMessageType.UNSPECIFIED

    async def subscription_group_config(self, group: str) -> SubscriptionGroupConfig | None:
        """The configuration of a group; None: it could not be loaded."""
        try:
            return await self._groups.get(group)
        except CallError:
            return None

    async def user(self, username: str) -> User | None:
        """The user of a name; None: there is none, as far as this proxy knows.

        Raises:
            CallError: it could not be loaded.
        """
        return await self._users.get(username)

    async def acl(self, username: str) -> Acl | None:
        """The policies of a user; None: it has none, as far as this proxy knows.

        Raises:
            CallError: they could not be loaded.
        """
        return await self._acls.get(subject_key(username))

    async def _load_type(self, topic: str) -> TopicMessageType:
        broker = await self._find_one_broker(topic)
        if broker is None:
            return TopicMessageType.UNSPECIFIED
        answer = await self._ask(broker, RequestCode.GET_TOPIC_CONFIG, TopicHeader(topic))
        return type_of_topic(decode_body(TopicConfigAndQueueMapping, answer.body).attributes)

    async def _load_group(self, group: str) -> SubscriptionGroupConfig | None:
        broker = await self._find_one_broker(self._config.rocket_m_q_cluster_name)
        if broker is None:
            return None
        answer = await self._ask(broker, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupHeader(group))
        return decode_body(SubscriptionGroupConfig, answer.body)

    async def _load_user(self, username: str) -> User | None:
        broker = await self._find_one_broker(self._config.rocket_m_q_cluster_name)
        if broker is None:
            return None
        answer = await self._ask(broker, RequestCode.AUTH_GET_USER, UserHeader(username))
        return user_of(decode_body(UserInfo, answer.body)) if answer.body else None

    async def _load_acl(self, subject: str) -> Acl | None:
        broker = await self._find_one_broker(self._config.rocket_m_q_cluster_name)
        if broker is None:
            return None
        answer = await self._ask(broker, RequestCode.AUTH_GET_ACL, SubjectHeader(subject))
        return Acl(subject, policies_of(decode_body(AclInfo, answer.body))) if answer.body else None

    async def _ask(self, broker: BrokerData, code: RequestCode, header: attrs.AttrsInstance) -> Command:
        address = self._select_address(broker)
        answer = await self._operations.invoke(address, code, header, timeout_ms=METADATA_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise broker_error(answer)
        return answer

    async def _find_one_broker(self, topic: str) -> BrokerData | None:
        """One broker of a route at random; None: no nameserver knows the topic.

        Raises:
            CallError: the route could not be loaded.
        """
        try:
            route = await self._routes.route(topic)
        except TopicNotExistError:
            return None
        return route.broker_datas[self._draw(len(route.broker_datas))]

    def _select_address(self, broker: BrokerData) -> str:
        """The address of the master, else of any member."""
        address = broker.broker_addrs.get(MASTER_ID)
        if address is not None:
            return address
        members = sorted(broker.broker_addrs)
        return broker.broker_addrs[members[self._draw(len(members))]]

    def _believe(self, kind: BeliefKind, subject: str, value: object) -> None:
        if self._believed.get((kind, subject)) != value:
            self._believed[kind, subject] = value
            self._host.record(Belief(kind, subject, value))


def _nothing(_key: str, _loaded: object) -> None:
    """What a proxy knows of users shows in what it denies."""


def _in_brief(group: SubscriptionGroupConfig | None) -> object:
    if group is None:
        return None
    return {"orderly": group.consume_message_orderly, "retry_max_times": group.retry_max_times}
