"""Requests that make a node work on all members of a group, or on a whole table."""

from nodes.protocol.codes import RequestCode

WIDE_REQUESTS = frozenset(
    (
        # Brokers notify all members of the groups.
        *(RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT, RequestCode.DELETE_SUBSCRIPTIONGROUP),
        *(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS),
        # The answer has an entry for each member of a group, or the queues are divided among them.
        *(RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.QUERY_ASSIGNMENT),
        *(RequestCode.GET_CONSUMER_CONNECTION_LIST, RequestCode.GET_PRODUCER_CONNECTION_LIST),
        *(RequestCode.GET_ALL_PRODUCER_INFO, RequestCode.GET_CONSUME_STATS, RequestCode.GET_BROKER_CONSUME_STATS),
        # The answer is a whole table, or needs one.
        *(RequestCode.GET_ALL_TOPIC_CONFIG, RequestCode.GET_TOPIC_CONFIG_LIST, RequestCode.GET_TOPIC_NAME_LIST),
        *(RequestCode.GET_ALL_CONSUMER_OFFSET, RequestCode.GET_ALL_DELAY_OFFSET, RequestCode.CLONE_GROUP_OFFSET),
        *(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE),
        *(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
        *(RequestCode.GET_TOPICS_BY_CLUSTER, RequestCode.GET_KVLIST_BY_NAMESPACE, RequestCode.GET_UNIT_TOPIC_LIST),
        *(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST),
        *(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST),
        *(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, RequestCode.QUERY_TOPICS_BY_CONSUMER, RequestCode.REGISTER_BROKER),
    )
)
