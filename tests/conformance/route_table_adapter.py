"""Family route_table: the nameserver's tables and the requests that read and change them."""

import json

from conformance.client_channels import ClientChannels
from conformance.nameserver_requests import NameserverRequests, registration
from nodes.nameserver.unregistration import UnregistrationQueue
from nodes.protocol.bodies import KvTable
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers import UnregisterBrokerRequestHeader
from nodes.protocol.model import DataVersion, QueueData, TopicRouteData
from nodes.protocol.registry import decode_body

NOTIFY_TIMEOUT_MS = 300


class NameserverTables(ClientChannels):
    def __init__(self, **options):
        super().__init__()
        self.nameserver = NameserverRequests(**options)
        self.routes = self.nameserver.routes
        self.queue = UnregistrationQueue(self.nameserver.config.un_register_broker_queue_capacity)

    def ordered(self, op, out):
        return super().ordered(op, out) | {"notify": sorted(out.get("notify") or [], key=json.dumps)}

    def ask(self, code, body=None, **fields):
        self.nameserver.now_ms = self.at_ms
        return self.nameserver.ask(code, fields, body)

    def tables(self):
        routes, info = self.routes, self.routes.cluster_info()
        pending = sorted(
            [item.cluster_name, item.broker_addr, item.broker_name, item.broker_id] for item in self.queue.waiting
        )
        reported = {topic: self._route_of(topic) for topic in routes.topics}
        return {
            "topics": {
                topic: {name: numbers(data)[1:] for name, data in queues.items()}
                for topic, queues in routes.topics.items()
            },
            "brokers": {name: broker_row(data)[1:] for name, data in info.broker_addr_table.items()},
            "clusters": {cluster: list(names) for cluster, names in info.cluster_addr_table.items()},
            "live": {at(broker): live_row(live) for broker, live in routes.live_brokers.items()},
            "filters": {at(broker): list(servers) for broker, servers in routes.filter_servers.items()},
            "mappings": {topic: mapping_rows(table) for topic, table in routes.topic_queue_mappings.items()},
            "pendingUnregister": {"list": pending} if pending else {},
            "routes": {topic: route for topic, route in reported.items() if route is not None},
        }

    def _route_of(self, topic):
        answer, route = self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)
        if route is None:
            return no_route(answer)
        brokers = {data.broker_name: addresses(data) for data in route.broker_datas}
        return route_row(route, brokers)

    # Brokers come and go

    def register(self, **answer):
        self.nameserver.now_ms = self.at_ms
        outcome, response = self.nameserver.register(registration(**answer))
        out = {"code": outcome.answer.code, "remark": outcome.answer.remark, "notify": notices(outcome.notifications)}
        out |= {"masterAddr": response.master_addr, "haServerAddr": response.ha_server_addr}
        return out | (
            {"orderKv": dict(decode_body(KvTable, outcome.answer.body).table)}
            if outcome.answer.body is not None
            else {}
        )

    def register_direct(self, **answer):
        made = registration(**answer)
        result = self.routes.register_broker(made.header, made.value, channel=made.channel, now_ms=self.at_ms)
        if result is None:
            return {"result": None}
        return {
            "result": {"master": result.response.master_addr, "ha": result.response.ha_server_addr},
            "notify": notices(result.notifications),
        }

    def unregister(self, cluster, addr, name, id):  # noqa: A002
        queued = self.queue.submit(UnregisterBrokerRequestHeader(name, addr, cluster, id))
        return {"code": int(ResponseCode.SUCCESS if queued else ResponseCode.SYSTEM_ERROR)}

    def run_unregister(self, batch):
        if self.queue.waiting:
            self.queue.drain()
        requests = [UnregisterBrokerRequestHeader(name, addr, cluster, id_) for cluster, addr, name, id_ in batch]
        return {"notify": notices(self.routes.unregister_brokers(requests))}

    def heartbeat(self, cluster, addr, name):
        del name  # reported, and looked at by no one
        self.routes.heartbeat(cluster, addr, self.at_ms)
        return {"code": int(ResponseCode.SUCCESS)}

    def query_data_version(self, cluster, addr, name, id, dv):  # noqa: A002
        del name, id
        changed, stored = self.routes.query_data_version(cluster, addr, DataVersion(*dv), self.at_ms)
        return {"code": int(ResponseCode.SUCCESS), "changed": changed, "stored": stored and version(stored)}

    def scan(self):
        expired = self.routes.scan_not_active_brokers(self.at_ms)
        for item in expired:
            if item.unregister is not None:
                self.queue.submit(item.unregister)
        return {"closedChannels": self.first_closed(element.channel for element in expired)}

    def channel_close(self, channel):
        self.first_closed([channel])
        request = self.routes.on_channel_destroy(channel)
        if request is not None:
            self.queue.submit(request)

    # Questions and orders

    def get_route(self, topic, zone_mode, zone_name):
        fields = {"__ZONE_MODE": zone_mode, "__ZONE_NAME": zone_name}
        answer, route = self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic, **fields)
        if route is None:
            return {"route": no_route(answer)}
        return {"route": route_row(route, sorted(broker_row(data) for data in route.broker_datas))}

    def get_member_group(self, cluster, name):
        answer, body = self.ask(RequestCode.GET_BROKER_MEMBER_GROUP, clusterName=cluster, brokerName=name)
        group = body.broker_member_group
        shown = {"cluster": group.cluster, "brokerName": group.broker_name, "brokerAddrs": addresses(group)}
        return {"code": answer.code, "remark": answer.remark, "group": shown}

    def get_cluster_info(self):
        answer, info = self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        return {
            "code": answer.code,
            "brokerAddrTable": {name: named(data) for name, data in info.broker_addr_table.items()},
            "clusterAddrTable": {cluster: list(names) for cluster, names in info.cluster_addr_table.items()},
        }

    def topic_list(self, which, code, cluster):
        answer, listed = self.ask(code, cluster=cluster)
        if listed is None:
            return {"code": answer.code, "remark": answer.remark}
        out = {"code": answer.code, "topics": list(listed.topic_list)}
        return out | ({"brokerAddr": listed.broker_addr} if which == "system" else {})

    def wipe_write_perm(self, name):
        answer, _ = self.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, brokerName=name)
        return {"code": answer.code, "count": int(answer.ext_fields["wipeTopicCount"])}

    def add_write_perm(self, name):
        answer, _ = self.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, brokerName=name)
        return {"code": answer.code, "count": int(answer.ext_fields["addTopicCount"])}

    def delete_topic(self, topic, cluster):
        answer, _ = self.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic=topic, clusterName=cluster)
        return {"code": answer.code}

    def register_topic(self, topic, queues):
        body = TopicRouteData(tuple(QueueData(*queue) for queue in queues), ())
        answer, _ = self.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, body, topic=topic)
        return {"code": answer.code}

    def kv_put(self, namespace, key, value):
        answer, _ = self.ask(RequestCode.PUT_KV_CONFIG, namespace=namespace, key=key, value=value)
        return {"code": answer.code, "remark": answer.remark}

    def kv_get(self, namespace, key, value):
        del value
        answer, _ = self.ask(RequestCode.GET_KV_CONFIG, namespace=namespace, key=key)
        return {"code": answer.code, "remark": answer.remark, "value": answer.ext_fields.get("value")}

    def kv_delete(self, namespace, key, value):
        del value
        answer, _ = self.ask(RequestCode.DELETE_KV_CONFIG, namespace=namespace, key=key)
        return {"code": answer.code, "remark": answer.remark}

    def kv_list(self, namespace, key, value):
        del key, value
        answer, body = self.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace=namespace)
        return {"code": answer.code, "remark": answer.remark, "table": body and dict(body.table)}

    def request(self, code):
        answer, _ = self.ask(code)
        return {"code": answer.code, "remark": answer.remark}


def at(broker):
    return f"{broker.cluster}|{broker.address}"


def version(data_version):
    return [data_version.state_version, data_version.timestamp, data_version.counter]


def live_row(live):
    return [
        live.last_update_ms,
        live.heartbeat_timeout_ms,
        version(live.data_version),
        live.channel,
        live.ha_server_addr,
    ]


def addresses(data):
    return {str(broker_id): address for broker_id, address in data.broker_addrs.items()}


def broker_row(data):
    return [data.broker_name, data.cluster, data.zone_name, data.enable_acting_master, addresses(data)]


def named(data):
    return {
        "cluster": data.cluster,
        "brokerName": data.broker_name,
        "brokerAddrs": addresses(data),
        "zoneName": data.zone_name,
        "enableActingMaster": data.enable_acting_master,
    }


def numbers(queue):
    return [queue.broker_name, queue.read_queue_nums, queue.write_queue_nums, queue.perm, queue.topic_sys_flag]


def mapping_rows(table):
    return {
        name: {
            "topic": mapping.topic,
            "totalQueues": mapping.total_queues,
            "bname": mapping.bname,
            "epoch": mapping.epoch,
            "currIdMap": dict(mapping.curr_id_map),
        }
        for name, mapping in table.items()
    }


def no_route(answer):
    """Null stands for code 17."""
    return None if answer.code == ResponseCode.TOPIC_NOT_EXIST else {"code": answer.code, "remark": answer.remark}


def route_row(route, brokers):
    row = {"q": sorted(numbers(queue) for queue in route.queue_datas), "b": brokers}
    if route.filter_server_table:
        row["f"] = {address: list(servers) for address, servers in route.filter_server_table.items()}
    if route.topic_queue_mapping_by_broker:
        row["m"] = mapping_rows(route.topic_queue_mapping_by_broker)
    if route.order_topic_conf is not None:
        row["o"] = route.order_topic_conf
    return row


def notices(notifications):
    return [
        {
            "to": address,
            "code": int(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE),
            "timeoutMs": NOTIFY_TIMEOUT_MS,
            "minBrokerId": change.header.min_broker_id,
            "brokerName": change.header.broker_name,
            "minBrokerAddr": change.header.min_broker_addr,
            "offlineBrokerAddr": change.header.offline_broker_addr,
            "haBrokerAddr": change.header.ha_broker_addr,
        }
        for change in notifications
        for address in change.recipients
    ]
