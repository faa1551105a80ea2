"""A nameserver without a network: its tables behind its own dispatch of requests, frame in, frame out."""

import attrs

from nodes.config import NameserverConfig
from nodes.host import NO_CONNECTION
from nodes.nameserver.admin_requests import AdminRequests
from nodes.nameserver.register_request import body_crc32, register_broker
from nodes.nameserver.route_request import RouteRequests
from nodes.nameserver.tables.kv_config import KvConfigManager
from nodes.nameserver.tables.route_table import RouteTable
from nodes.protocol.bodies import RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.headers import RegisterBrokerRequestHeader, RegisterBrokerResponseHeader
from nodes.protocol.model import DataVersion, TopicConfig, TopicQueueMappingInfo
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_body, encode_header
from nodes.rpc.server import RpcServer

VERSIONS = {"V3_0_10": 35, "V3_0_11": 37, "V4_9_3": 399, "V4_9_4": 401, "version>=V4_9_4": 401}


class NameserverRequests:
    def __init__(self, **options):
        self.config = NameserverConfig(**options)
        self.routes = RouteTable(
            support_acting_master=self.config.support_acting_master,
            notify_min_broker_id_changed=self.config.notify_min_broker_id_changed,
            delete_topic_with_broker_registration=self.config.delete_topic_with_broker_registration,
        )
        self.kv_config = KvConfigManager()
        self.route_requests = RouteRequests(self.routes, self.kv_config, self.config, started_ms=0)
        self.server = RpcServer(host=None)
        for code, handler in AdminRequests(self.routes, self.kv_config, self.config).handlers().items():
            self.server.register(code, lambda _channel, request, handler=handler: handler(request))
        self.server.register(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, lambda _, request: self.route_requests.answer(request, self.now_ms)
        )
        self.now_ms = 0

    def ask(self, code, fields=NO_FIELDS, body=None):
        """The answer, and its body as a value."""
        answers = _Answers()
        encoded = None if body is None else encode_body(body)
        self.server.on_command(answers, Command(code, ext_fields=known(fields), body=encoded))
        [answer] = answers.sent
        exchange = EXCHANGES.get(code)
        has_body = answer.body is not None and exchange is not None
        return answer, decode_body(exchange.response_body, answer.body) if has_body else None

    def register(self, registration):
        """The outcome of a registration, and what its answer says of the master."""
        header, body = registration.header, registration.body
        version = VERSIONS[registration.version] if registration.version else Command(0).version
        request = Command(RequestCode.REGISTER_BROKER, version=version, ext_fields=encode_header(header), body=body)
        outcome = register_broker(
            self.routes,
            self.kv_config,
            self.config,
            request,
            channel=registration.channel,
            now_ms=self.now_ms,
        )
        return outcome, decode_header(RegisterBrokerResponseHeader, outcome.answer.ext_fields)


@attrs.frozen
class Registration:
    """What the sequences say of one REGISTER_BROKER."""

    header: RegisterBrokerRequestHeader
    value: RegisterBrokerBody
    body: bytes | None
    channel: str
    version: str | None


def registration(
    *, cluster, addr, name, id, ha, zone, timeout, acting, dv, topics, filters, channel,  # noqa: A002
    mapping=None, bad_crc=False, version=None, no_body=False,
):  # fmt: skip
    configs = {topic: TopicConfig(topic, *counts_and_perm) for topic, counts_and_perm in topics.items()}
    mappings = {
        topic: TopicQueueMappingInfo(topic, answer["totalQueues"], answer["bname"], answer["epoch"])
        for topic, answer in (mapping or {}).items()
    }
    wrapper = TopicConfigSerializeWrapper(configs, DataVersion(*dv), mappings)
    value = RegisterBrokerBody(wrapper, None if filters is None else tuple(filters))
    is_old = version is not None and VERSIONS[version] < VERSIONS["V3_0_11"]
    body = None if no_body else encode_body(wrapper if is_old else value)
    crc32 = 0 if no_body else body_crc32(body) ^ bool(bad_crc)
    header = RegisterBrokerRequestHeader(name, addr, cluster, ha, id, timeout, acting, body_crc32=crc32, zone_name=zone)
    return Registration(header, value, body, channel, version)


def known(fields):
    """Header fields without those that are null."""
    return {name: value for name, value in fields.items() if value is not None}


class _Answers:
    """A channel that is no connection: what it asks is not an act of an administrator."""

    id = NO_CONNECTION

    def __init__(self):
        self.sent = []

    def send(self, command):
        self.sent.append(command)
