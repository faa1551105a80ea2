"""A line for each act of administrators.

The cluster has ns-1, broker-a, broker-b, group g, topic orders and the account rocketmq-shop.
"""

from collections.abc import Mapping

ACT_LINES: Mapping[str, str] = {
    "update_topic": "update-topic orders read 8 write 4 perm 4 order true attributes +message.type=FIFO on broker-a",
    "update_topic_perm": "update-topic-perm orders 4 on DefaultCluster",
    "delete_topic": "delete-topic orders on ns-1",
    "update_sub_group": "update-sub-group g consumeEnable=false retryMaxTimes=3 attributes +k=v on broker-a",
    "delete_sub_group": "delete-sub-group g removeOffset true",
    "set_consume_mode": "set-consume-mode g orders POP share 2 on broker-a",
    "reset_offset_by_time": "reset-offset-by-time g orders 30s force false",
    "skip_accumulated_message": "skip-accumulated-message g orders on broker-a",
    "reset_offset": "reset-offset g orders 0 7 on broker-a",
    "update_consume_offset": "update-consume-offset g orders 1 5 on broker-a",
    "clone_group_offset": "clone-group-offset g h orders",
    "update_broker_config": "update-broker-config brokerPermission=4 slaves",
    "update_namesrv_config": "update-namesrv-config orderMessageEnable=true on ns-1",
    "update_controller_config": "update-controller-config enableElectUncleanMaster=true",
    "wipe_write_perm": "wipe-write-perm broker-a on ns-1",
    "add_write_perm": "add-write-perm broker-a",
    "update_kv_config": "update-kv-config ORDER_TOPIC_CONFIG orders broker-a:4 on ns-2",
    "delete_kv_config": "delete-kv-config ORDER_TOPIC_CONFIG orders",
    "update_address_server": "update-address-server ns-1 10.0.0.1:9876",
    "update_domain": "update-domain nameservers.example ns-1",
    "update_static_topic": "update-static-topic orders queues 8 brokers broker-a,broker-b on DefaultCluster",
    "remapping_static_topic": "remapping-static-topic orders brokers broker-b",
    "rollout_restart": "rollout-restart consumer",
    "rollout_undo": "rollout-undo consumer",
    "start_node": "start-node ns-1",
    "shutdown_node": "shutdown-node broker-b",
    "add_broker": "add-broker inner",
    "remove_broker": "remove-broker inner",
    "send_message": "send-message orders 'hello you' tags red keys k1 queue 0 on broker-a",
    "create_user": "create-user shop account rocketmq-shop type Super on broker-a",
    "update_user": "update-user shop status disable",
    "delete_user": "delete-user shop on DefaultCluster",
    "create_acl": "create-acl shop 'Topic:orders,Group:bill*' Pub,Sub Allow from 10.0.0.0/8 on broker-a",
    "update_acl": "update-acl shop '*' All Deny",
    "delete_acl": "delete-acl shop resource Topic:orders on broker-a",
    "copy_user": "copy-user from broker-a users shop,billing on broker-b",
    "copy_acl": "copy-acl from broker-a on broker-b",
}
