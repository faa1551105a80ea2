"""The exchange of a request names the kinds of nodes that answer it: exactly those that have a handler for it."""

from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import structlog

from emulator.spec import Scenario, loads
from emulator.testing import Stage, execute
from nodes.address_server.address_server import AddressServer
from nodes.broker.broker import Broker
from nodes.client.consumer.pod import ConsumerPod
from nodes.client.instance.client_requests import ClientRequests
from nodes.config import Exclusivity, LockServiceKind
from nodes.container.container import BrokerContainer
from nodes.controller.controller import Controller
from nodes.lease_service.advisory_locks import AdvisoryLocks
from nodes.lease_service.item_store import ItemStore
from nodes.lease_service.lease_service import LeaseService
from nodes.lease_service.session_service import SessionService
from nodes.nameserver.nameserver import Nameserver
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError
from nodes.protocol.exchange import NodeRole
from nodes.protocol.registry import EXCHANGES, codes_where
from nodes.proxy.proxy import Proxy
from nodes.rpc.server import RpcServer
from nodes.statefulset.kubernetes import Kubernetes
from nodes.statefulset.scaler import Scaler
from support.every_case import each_case
from support.statefulsets import ORDINAL, a_statefulset

ROLES = {
    Nameserver: NodeRole.NAMESERVER,
    Broker: NodeRole.BROKER,
    BrokerContainer: NodeRole.CONTAINER,
    Controller: NodeRole.CONTROLLER,
    Kubernetes: NodeRole.KUBERNETES,
    Scaler: NodeRole.SCALER,
    ConsumerPod: NodeRole.POD,
    **dict.fromkeys((LeaseService, ItemStore, SessionService, AdvisoryLocks), NodeRole.LEASE_SERVICE),
    AddressServer: NodeRole.ADDRESS_SERVER,
    Proxy: NodeRole.PROXY,
}
SERVERS = """
[scenario]
name = "servers"
seed = 1
run_for_s = 5
preset = "{preset}"
[nameserver]
count = 1
{more}
[[broker]]
name = "broker-a"
{keys}
"""


def servers(preset: str, more: str, keys: str) -> Scenario:
    return loads(SERVERS.format(preset=preset, more=more, keys=keys), "servers.toml")


def servers_of(node: Any) -> tuple[RpcServer, ...]:
    """The servers of a node: a proxy has two."""
    match node:
        case ConsumerPod():
            return (node._health,)
        case Proxy():
            return node._server, node._remoting
        case _:
            return (node._server,)


def handled_in(scenario: Scenario) -> dict[NodeRole, dict[int, None]]:
    """Role -> the codes for which its nodes have handlers."""
    found: dict[NodeRole, dict[int, None]] = {}

    async def script(stage: Stage) -> None:
        await stage.at_ms(2_000)
        for name in stage.cluster.hosts:
            node: Any = stage.node(name)
            role = ROLES.get(type(node))
            if role is not None:
                for server in servers_of(node):
                    codes = (*server._handlers, *server._handlers_in_tasks)
                    found.setdefault(role, {}).update(dict.fromkeys(map(int, codes)))

    execute(scenario, script, for_ms=5_000)
    return found


@pytest.fixture(scope="module")
def handled() -> dict[NodeRole, dict[int, None]]:
    found: dict[NodeRole, dict[int, None]] = {}
    lent = attrs.evolve(ORDINAL, exclusivity=Exclusivity.LEASE)
    services = [
        a_statefulset(1, consumer=attrs.evolve(lent, lock_service=service), scaler="scaler")
        for service in LockServiceKind
    ]
    for scenario in (
        servers("rip32", "", "replicas = 2"),
        servers("controller", "[controller]\ncount = 1", "replicas = 2"),
        servers("classic", "[address_server]", 'container = "box"'),
        servers("classic", '[[proxy]]\nname = "proxy-1"', ""),
        *services,
    ):
        for role, codes in handled_in(scenario).items():
            found.setdefault(role, {}).update(codes)
    return found


@each_case("role", dict.fromkeys(ROLES.values()), ids=lambda role: role.name.lower())
def test_a_node_has_handlers_for_the_requests_that_name_its_kind_and_for_no_others(
    role: NodeRole, handled: dict[NodeRole, dict[int, None]]
) -> None:
    named = codes_where(lambda exchange: role in exchange.answered_by)
    missing = [RequestCode(code).name for code in sorted(named) if code not in handled[role]]
    unnamed = [RequestCode(code).name for code in sorted(handled[role]) if code not in named]
    assert (missing, unnamed) == ([], [])


def is_answered(code: RequestCode) -> bool:
    """Whether a client handles a request: it lacks the fields of most, and refuses only unknown ones for their code."""
    sent: list[Command] = []
    channel = SimpleNamespace(send=sent.append)
    host = SimpleNamespace(log=structlog.get_logger("discarded"), start_soon=lambda *_, name: None)
    try:
        ClientRequests(host).handle(channel, Command(int(code)))
    except ProtocolError:
        return True
    return not sent or sent[0].code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_the_requests_that_emulated_clients_answer_name_clients() -> None:
    answered = [code for code in EXCHANGES if is_answered(code)]
    assert len(answered) >= 5
    assert [code.name for code in answered if NodeRole.CLIENT not in EXCHANGES[code].answered_by] == []


def test_only_clients_and_the_nodes_above_answer_requests() -> None:
    assert [role for role in NodeRole if role not in (*ROLES.values(), NodeRole.CLIENT)] == []
    assert [code.name for code, exchange in EXCHANGES.items() if not exchange.answered_by] == []
