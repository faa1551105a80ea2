"""Family container: what a container makes of the file of a broker, the order of its tables, and its black list."""

import trio

from conformance.executing import Adapter
from conformance.pop_host import PretendedHost
from nodes.config.container import ContainerConfig
from nodes.container.container import BLACK_LIST, BrokerContainer
from nodes.container.tables.broker_file import RefusedBrokerError, read_broker_file
from nodes.container.tables.brokers import BrokerOfContainer, ContainerBrokers
from nodes.live_config import LiveConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.header_codec import encode_header
from nodes.protocol.headers_container import RemoveBrokerRequestHeader

HOST_NAME, REFUSED_NAME = "vm", "boom"


class _Memory:
    """A disk and a clock, as live options need them."""

    def __init__(self):
        self.files = {}
        self.disk = self.clock = self

    def read(self, name):
        return self.files.get(name)

    def write(self, name, content):
        self.files[name] = content

    def now_ms(self):
        return 0


class Container(Adapter):
    def __init__(self):
        self.brokers = ContainerBrokers()
        self.config = LiveConfig(_Memory(), ContainerConfig(), lambda _config: None, BLACK_LIST)

    def add_broker(self, file="", text=None, path=None):
        """What reaches the container, which answers that it has no such broker."""
        if text is None:
            remark = "addBroker config path is empty" if not path else "addBroker properties empty"
            return {"code": int(ResponseCode.SYSTEM_ERROR), "remark": remark}
        try:
            found = read_broker_file(text, HOST_NAME)
        except RefusedBrokerError as error:
            return {"code": int(ResponseCode.SYSTEM_ERROR), "remark": str(error)}
        call = {
            "addBroker": found.identity.broker_name,
            "brokerId": found.identity.broker_id,
            "role": found.role,
            "listenPort": found.config.listen_port,
            "haListenPort": found.ha_listen_port,
            "inContainer": False,
        }
        refusal = "stub refused" if found.identity.broker_name == REFUSED_NAME else "add broker return null"
        return {"code": int(ResponseCode.SYSTEM_ERROR), "remark": refusal, "calls": [call]}

    def remove_broker(self, cluster, name, id):  # noqa: A002 - as the case calls it
        answer = self._ask(RequestCode.REMOVE_BROKER, encode_header(RemoveBrokerRequestHeader(cluster, name, id)))
        return {"code": answer.code, "remark": answer.remark}

    def request(self, code):
        return {"answer": self._ask(code, {})}

    def _ask(self, code, fields):
        """What an empty container answers."""
        host = PretendedHost("10.0.0.1", lambda: self.at_ms, lambda: None, lambda: 0)
        container = BrokerContainer(host, ContainerConfig(), nameservers=(), paths=(), make=None)
        handler = container._handlers().get(code)
        return handler and trio.run(handler.handle, None, Command(int(code), ext_fields=fields))

    def put_master(self, cluster, name, id):  # noqa: A002 - as the case calls it
        self.brokers.masters.put(BrokerOfContainer(cluster, name, id), name)
        return self._reported(BrokerOfContainer(cluster, name, id))

    def put_slave(self, cluster, name, id):  # noqa: A002 - as above
        self.brokers.slaves.put(BrokerOfContainer(cluster, name, id), name)
        return self._reported(BrokerOfContainer(cluster, name, id))

    def remove_first_master(self, name):
        (identity, *_) = [master for master, known in self.brokers.masters.items() if known == name]
        self.brokers.remove(identity)
        return self._reported(identity)

    def find_by_name(self, name):
        found = self.brokers.find_by_name(name)
        return {"brokerId": None if found is None else found[0].broker_id}

    def update_config(self, body):
        try:
            self.config.update(body)
        except PermissionError as error:
            return {"code": int(ResponseCode.NO_PERMISSION), "remark": str(error)}
        return {"code": int(ResponseCode.SUCCESS), "remark": None}

    def _reported(self, identity):
        order = [name for _, name in self.brokers.masters.items()]
        return {"identityHash": identity.java_hash(), "masterOrder": order, "peekMaster": self.brokers.peek_master()}
