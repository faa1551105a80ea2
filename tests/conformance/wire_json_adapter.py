"""Family wire_json: the texts of answers for peers that speak RocketMQ's own JSON."""

import re

from conformance.executing import Adapter
from conformance.nameserver_requests import NameserverRequests, registration
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.json_text import data_version_of, from_json, to_json


class WireJson(Adapter):
    def __init__(self, **options):
        self.nameserver = NameserverRequests(**options)

    def ordered(self, op, out):
        """Sets and maps are written in the order of a hash; their entries are sorted here, all else stays as it is."""
        return out | {"body": out.get("body") and _sorted_entries(out["body"])}

    def register(self, **answer):
        outcome, response = self.nameserver.register(registration(**answer))
        return {
            "code": outcome.answer.code,
            "remark": outcome.answer.remark,
            "masterAddr": response.master_addr,
            "haServerAddr": response.ha_server_addr,
        }

    def kv_put(self, namespace, key, value):
        answer, _ = self.nameserver.ask(RequestCode.PUT_KV_CONFIG, {"namespace": namespace, "key": key, "value": value})
        return {"code": answer.code, "remark": answer.remark}

    def raw_105(self, topic, client, accept_standard_json_only):
        """The client is new enough for standard JSON, or accepts it."""
        return self._raw(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, standard=True)

    def raw_106(self):
        return self._raw(RequestCode.GET_BROKER_CLUSTER_INFO, {})

    def raw_901(self, name, cluster):
        return self._raw(RequestCode.GET_BROKER_MEMBER_GROUP, {"brokerName": name, "clusterName": cluster})

    def raw_206(self):
        return self._raw(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {})

    def raw_322(self, addr, request_body, cluster="c1"):
        version = data_version_of(from_json(request_body), now_ms=self.at_ms)
        _, stored = self.nameserver.routes.query_data_version(cluster, addr, version, self.at_ms)
        return {"code": int(ResponseCode.SUCCESS), "body": stored and to_json(stored)}

    def _raw(self, code, fields, *, standard=False):
        answer, value = self.nameserver.ask(code, fields)
        body = None if value is None else to_json(value, standard=standard)
        return {"code": answer.code, "remark": answer.remark, "body": body}


_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+')
"""A string with its quotes, a bracket, a comma, a colon, or what stands bare between them."""
_MAPS = (
    '"brokerAddrTable"',
    '"brokerAddrs"',
    '"clusterAddrTable"',
    '"filterServerTable"',
    '"topicQueueMappingByBroker"',
)
"""Fields that hold maps; other objects have fields, whose order counts."""


def _sorted_entries(text):
    """The same JSON text with the entries of every map and array in the order of their texts."""
    pieces = _PIECE.findall(text)
    sorted_text, rest = _value(pieces, 0, in_order=True)
    assert rest == len(pieces)
    return sorted_text


def _value(pieces, place, *, in_order):
    opening = pieces[place]
    if opening not in ("{", "["):
        return opening, place + 1
    closing = {"{": "}", "[": "]"}[opening]
    entries, place = [], place + 1
    while pieces[place] != closing:
        if pieces[place] == ",":
            place += 1
            continue
        entry, place = _value(pieces, place, in_order=True)
        if opening == "{":
            value, place = _value(pieces, place + 1, in_order=entry not in _MAPS)
            entry = f"{entry}:{value}"
        entries.append(entry)
    is_object = opening == "{" and in_order
    return opening + ",".join(entries if is_object else sorted(entries)) + closing, place + 1
