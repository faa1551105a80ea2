"""An example of each request in `nodes.protocol.administration.ADMIN_REQUESTS`, and the clusters that carry them out.

For grids of tests: `for example in EXAMPLES`, `await example.run(admin)` in a script with `example.scenario()`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from emulator.spec import Scenario, loads
from nodes.protocol import headers, headers_admin, headers_controller
from nodes.protocol.assigning import RebalanceMode, RebalanceSetting
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.bodies_admin import CreateTopicListRequestBody, SubscriptionGroupList
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.command import Command
from nodes.protocol.headers_auth import DeleteAclRequestHeader, SubjectHeader, UserHeader
from nodes.protocol.headers_container import AddBrokerRequestHeader, RemoveBrokerRequestHeader
from nodes.protocol.headers_message import ResetOffsetRequestHeader, ResumeCheckHalfMessageRequestHeader
from nodes.protocol.model import MessageRequestMode, QueueData, SubscriptionGroupConfig, TopicConfig, TopicRouteData
from nodes.protocol.registry import decode_header
from nodes.protocol.static_topics import LogicQueueMappingItem, TopicQueueMappingDetail
from support.administrator import Administrator

CLUSTER, BROKER, NS, CONTAINER, CONTROLLER = "DefaultCluster", "broker-a", "ns-1", "box", "controller-1"
GROUP, TOPIC = "g", "orders"
READY_MS = 40_000
"""By then groups have members, topics routes, and broker groups masters."""

_BROKERS = """
[scenario]
name = "administered"
seed = 1
run_for_s = 120
[nameserver]
count = 1
[[account]]
access_key = "rocketmq-root"
secret_key = "secret-of-root"
[[broker]]
name = "broker-a"
[broker.options]
authenticationMetadataProvider = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
authorizationMetadataProvider = "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
initAuthenticationUser = "rocketmq-root"
[[broker]]
name = "inner"
container = "box"
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "g"
topics = ["orders"]
count = 2
[[producer]]
name = "p1"
group = "pg"
topic = "orders"
rate_per_s = 5
"""
_CONTROLLERS = """
[scenario]
name = "administered-controllers"
seed = 1
run_for_s = 120
preset = "controller"
[nameserver]
count = 1
[controller]
count = 1
[[broker]]
name = "broker-a"
replicas = 2
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "g"
topics = ["orders"]
count = 2
[[producer]]
name = "p1"
group = "pg"
topic = "orders"
rate_per_s = 5
"""
Named = tuple[str, str, str]
"""Topic, group and brokerName of a row."""
Prepare = Callable[[Administrator], Awaitable[attrs.AttrsInstance]]
"""Does what has to be done before, and makes the header."""


@attrs.frozen
class AdminExample:
    """One request, which succeeds at `READY_MS`."""

    node: str
    code: Code
    header: attrs.AttrsInstance | None = None
    body: Any = None
    named: tuple[Named, ...] = (("", "", ""),)
    """What its rows name, in their order."""
    prepare: Prepare | None = None
    """Makes the header in place of `header`."""

    def scenario(self) -> Scenario:
        """A cluster that carries it out."""
        text = _CONTROLLERS if self.node == CONTROLLER else _BROKERS
        return loads(text, "administered.toml")

    async def execute(self, admin: Administrator) -> Command:
        """Send it; returns the answer, which is SUCCESS."""
        header = self.header if self.prepare is None else await self.prepare(admin)
        return await admin.change(self.node, self.code, header, self.body)


async def _half_message(admin: Administrator) -> ResumeCheckHalfMessageRequestHeader:
    """Of a message, whose id names it as well as that of a half message."""
    now_ms = admin.host.clock.now_ms()
    header = headers.SendMessageRequestHeaderV2("pg", TOPIC, "TBW102", 4, 0, 0, now_ms, 0, "")
    answer = await admin.change(BROKER, Code.SEND_MESSAGE_V2, header, b"x")
    stored = decode_header(headers.SendMessageResponseHeader, answer.ext_fields)
    return ResumeCheckHalfMessageRequestHeader(stored.msg_id, TOPIC)


_ROOT, _OF_ROOT = UserHeader("rocketmq-root"), SubjectHeader("User:rocketmq-root")
_ACL = AclInfo("User:rocketmq-root", (PolicyInfo(None, (PolicyEntryInfo("Topic:orders", ("Pub",), None, "Allow"),)),))


async def _after_policies(admin: Administrator) -> DeleteAclRequestHeader:
    await admin.change(BROKER, Code.AUTH_CREATE_ACL, _OF_ROOT, _ACL)
    return DeleteAclRequestHeader("User:rocketmq-root")


_REMOVE = RemoveBrokerRequestHeader(CLUSTER, "inner", 0)


async def _after_removal(admin: Administrator) -> AddBrokerRequestHeader:
    await admin.change(CONTAINER, Code.REMOVE_BROKER, _REMOVE)
    return AddBrokerRequestHeader("conf/inner.conf")


def _topic(topic: str, queues: int) -> headers_admin.CreateTopicRequestHeader:
    return headers_admin.CreateTopicRequestHeader(topic, "TBW102", queues, queues, 6, "SINGLE_TAG")


_AT_BROKER = ("", "", BROKER)
_OF_TOPIC = (TOPIC, "", BROKER)
_OF_GROUP = ("", GROUP, BROKER)
_OF_BOTH = (TOPIC, GROUP, BROKER)

EXAMPLES: tuple[AdminExample, ...] = (
    AdminExample(BROKER, Code.UPDATE_AND_CREATE_TOPIC, _topic(TOPIC, 8), named=(_OF_TOPIC,)),
    AdminExample(
        BROKER,
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        body=CreateTopicListRequestBody((TopicConfig("one", 2, 2), TopicConfig("two", 2, 2))),
        named=(("one", "", BROKER), ("two", "", BROKER)),
    ),
    AdminExample(
        BROKER,
        Code.UPDATE_AND_CREATE_STATIC_TOPIC,
        _topic("static", 1),
        TopicQueueMappingDetail("static", 1, BROKER, 1, hosted_queues={0: (LogicQueueMappingItem(0, 0, BROKER, 0),)}),
        named=(("static", "", BROKER),),
    ),
    AdminExample(BROKER, Code.DELETE_TOPIC_IN_BROKER, headers_admin.TopicHeader(TOPIC), named=(_OF_TOPIC,)),
    AdminExample(
        BROKER,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        body=SubscriptionGroupConfig(GROUP, consume_enable=False),
        named=(_OF_GROUP,),
    ),
    AdminExample(
        BROKER,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        body=SubscriptionGroupList((SubscriptionGroupConfig("one"), SubscriptionGroupConfig("two"))),
        named=(("", "one", BROKER), ("", "two", BROKER)),
    ),
    AdminExample(
        BROKER,
        Code.DELETE_SUBSCRIPTIONGROUP,
        headers_admin.DeleteSubscriptionGroupRequestHeader(GROUP, clean_offset=True),
        named=(_OF_GROUP,),
    ),
    AdminExample(
        BROKER,
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
        headers_admin.UpdateGroupForbiddenRequestHeader(GROUP, TOPIC, readable=False),
        named=(_OF_BOTH,),
    ),
    AdminExample(
        BROKER,
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        ResetOffsetRequestHeader(GROUP, TOPIC, timestamp=0, is_force=True),
        named=(_OF_BOTH,),
    ),
    AdminExample(
        BROKER,
        Code.CLONE_GROUP_OFFSET,
        headers_admin.CloneGroupOffsetRequestHeader(GROUP, "other", TOPIC, offline=True),
        named=((TOPIC, "other", BROKER),),
    ),
    AdminExample(
        BROKER,
        Code.UPDATE_CONSUMER_OFFSET,
        headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, 1),
        named=(_OF_BOTH,),
    ),
    AdminExample(
        BROKER,
        Code.SET_MESSAGE_REQUEST_MODE,
        body=SetMessageRequestModeRequestBody(TOPIC, GROUP, MessageRequestMode.POP, 0),
        named=(_OF_BOTH,),
    ),
    AdminExample(
        BROKER,
        Code.SET_REBALANCE_MODE,
        body=RebalanceSetting(GROUP, RebalanceMode.BROKER, version_ms=1),
        named=(_OF_GROUP,),
    ),
    AdminExample(BROKER, Code.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4\n", named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, body=b"g=1024\n", named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, body=b"g", named=(_AT_BROKER,)),
    AdminExample(
        BROKER,
        Code.SET_COMMITLOG_READ_MODE,
        headers_admin.SetCommitLogReadModeRequestHeader("1"),
        named=(_AT_BROKER,),
    ),
    AdminExample(BROKER, Code.POP_ROLLBACK, named=(_AT_BROKER,)),
    AdminExample(
        BROKER,
        Code.RESET_MASTER_FLUSH_OFFSET,
        headers_admin.ResetMasterFlushOffsetHeader(7),
        named=(_AT_BROKER,),
    ),
    AdminExample(BROKER, Code.CLEAN_EXPIRED_CONSUMEQUEUE, named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.CLEAN_UNUSED_TOPIC, named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.DELETE_EXPIRED_COMMITLOG, named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.RESUME_CHECK_HALF_MESSAGE, named=(_OF_TOPIC,), prepare=_half_message),
    AdminExample(BROKER, Code.AUTH_CREATE_USER, UserHeader("shop"), UserInfo("shop", "secret"), named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.AUTH_UPDATE_USER, _ROOT, UserInfo("rocketmq-root", "secret"), named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.AUTH_DELETE_USER, _ROOT, named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.AUTH_CREATE_ACL, _OF_ROOT, _ACL, named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.AUTH_UPDATE_ACL, _OF_ROOT, _ACL, named=(_AT_BROKER,)),
    AdminExample(BROKER, Code.AUTH_DELETE_ACL, named=(_AT_BROKER,), prepare=_after_policies),
    AdminExample(NS, Code.PUT_KV_CONFIG, headers.PutKvConfigRequestHeader("ORDER_TOPIC_CONFIG", TOPIC, "broker-a:4")),
    AdminExample(NS, Code.DELETE_KV_CONFIG, headers.KvConfigRequestHeader("ORDER_TOPIC_CONFIG", TOPIC)),
    AdminExample(NS, Code.WIPE_WRITE_PERM_OF_BROKER, headers.WritePermRequestHeader(BROKER), named=(_AT_BROKER,)),
    AdminExample(NS, Code.ADD_WRITE_PERM_OF_BROKER, headers.WritePermRequestHeader(BROKER), named=(_AT_BROKER,)),
    AdminExample(
        NS, Code.DELETE_TOPIC_IN_NAMESRV, headers.DeleteTopicFromNamesrvRequestHeader(TOPIC), named=((TOPIC, "", ""),)
    ),
    AdminExample(
        NS,
        Code.REGISTER_TOPIC_IN_NAMESRV,
        headers.RegisterTopicRequestHeader("news"),
        TopicRouteData((QueueData(BROKER, 4, 4, 6),), ()),
        named=(("news", "", ""),),
    ),
    AdminExample(NS, Code.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=false\n"),
    AdminExample(
        CONTROLLER,
        Code.CONTROLLER_ELECT_MASTER,
        headers_controller.ElectMasterRequestHeader(CLUSTER, BROKER, 2, designate_elect=True),
        named=(_AT_BROKER,),
    ),
    AdminExample(
        CONTROLLER,
        Code.CLEAN_BROKER_DATA,
        headers_controller.CleanControllerBrokerDataRequestHeader(BROKER, CLUSTER, "2", is_clean_living_broker=True),
        named=(_AT_BROKER,),
    ),
    AdminExample(CONTROLLER, Code.UPDATE_CONTROLLER_CONFIG, body=b"enableElectUncleanMaster=true\n"),
    AdminExample(CONTAINER, Code.ADD_BROKER, prepare=_after_removal),
    AdminExample(CONTAINER, Code.REMOVE_BROKER, _REMOVE, named=(("", "", "inner"),)),
)
"""One example of each request, in the order of the table."""
