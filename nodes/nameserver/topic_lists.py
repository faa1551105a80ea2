"""Which topics a nameserver knows: all, those of a cluster, of the system, of units.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager#getTopicsByCluster`, `#getSystemTopicList`,
    `#getUnitTopics`, `#getHasUnitSubTopicList`, `#getHasUnitSubUnUnitTopicList`.
"""

from nodes.nameserver.route_table import RouteTable
from nodes.protocol.bodies import TopicList
from nodes.protocol.java_order import hash_ordered
from nodes.protocol.model import TopicSysFlag

_GROUP_TABLE_BUCKETS = 256
"""RocketMQ makes its table of broker names for 128 entries."""


def all_topics(routes: RouteTable) -> TopicList:
    """Answer 206."""
    return TopicList(tuple(sorted(routes.topics)))


def topics_by_cluster(routes: RouteTable, cluster: str) -> TopicList:
    """Answer 224: what the broker names of a cluster serve; nothing for an unknown one."""
    names = routes.cluster_info().cluster_addr_table.get(cluster, ())
    topics = (topic for topic, queues in routes.topics.items() if any(name in queues for name in names))
    return TopicList(tuple(sorted(topics)))


def system_topics(routes: RouteTable) -> TopicList:
    """Answer 304: the names of clusters and brokers, which are topics, and the address of some broker."""
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
    """Answers 312 and 313: topics to which somebody of a unit subscribes, there also those of a unit themselves."""
    flags = {topic: _flag(routes, topic) for topic in sorted(routes.topics)}
    return TopicList(
        tuple(
            topic
            for topic, flag in flags.items()
            if flag & TopicSysFlag.UNIT_SUB and not (of_no_unit and flag & TopicSysFlag.UNIT)
        )
    )


def _flag(routes: RouteTable, topic: str) -> int:
    """The system flag that one broker name gives a topic: the one that RocketMQ finds first in its hash table."""
    queues = routes.topics[topic]
    return queues[hash_ordered(queues)[0]].topic_sys_flag
