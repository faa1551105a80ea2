"""RocketMQ's timers, by the names that the trace has, and what each is for."""

from collections.abc import Mapping
from types import MappingProxyType

TIMERS: Mapping[str, str] = MappingProxyType(
    {
        "scanNotActiveBroker": "the nameserver's scan for brokers whose last registration or heartbeat is too old",
        "scanExceptionChannel": "the broker's scan for clients whose last heartbeat is too old",
        "registerBrokerAll": "the broker's periodic registration with all nameservers",
        "syncBrokerMemberGroup": "the broker's poll of the members of its group",
        "slaveSynchronize": "the slave's copy of its master's metadata",
        "BrokerPreOnlineService": "the broker's way online",
        "HAClient": "the slave's connecting to its master",
        "HAClient report": "the slave's report of its offset",
        "HAClient housekeeping": "the slave's look whether its master is silent",
        "HAConnection heartbeat": "the master's heartbeat to a slave",
        "HAConnection housekeeping": "the master's look whether a slave is silent",
        "RebalanceService": "the pass of every interval, for which nobody woke it",
        "sendHeartbeat": "its periodic heartbeat",
        "updateTopicRouteInfo": "the client's poll of its routes",
        "updateTopicRouteInfoFromNameServer": "the broker's poll of routes",
        "persistAllOffset": "the client's commit of its offsets",
        "lockMQPeriodically": "the renewal of order locks",
        "PullRequestHoldService": "the broker's look at pulls that wait, every 5 s",
        "notifyConsumerChange": "the broker's deferred notice of a change of members",
        "allIdle": "the closing of connections that have been silent for too long",
    }
)
"""Name -> what it is for; timers that explain themselves are not in here."""
