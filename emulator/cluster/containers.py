"""The brokers of containers on their machines: their files, and how an operator adds and removes them."""

from emulator.cluster.local_session import send
from emulator.machine.host import EmulatedHost, InnerMachine
from emulator.spec.model.scenario import BROKER, BrokerSpec
from nodes.config.container import CONTAINER_PORT
from nodes.container.tables.brokers import BrokerOfContainer
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_container import AddBrokerRequestHeader, RemoveBrokerRequestHeader
from nodes.protocol.registry import encode_header


def identity_of(spec: BrokerSpec) -> BrokerOfContainer:
    """Who a broker is."""
    return BrokerOfContainer(spec.cluster, spec.broker_name, spec.broker_id)


def inner_machine(number: int, spec: BrokerSpec, container: EmulatedHost) -> InnerMachine:
    """The place of a broker in its container, which an operator on the machine can ask to add and to remove it."""

    def ask(code: RequestCode, header: AddBrokerRequestHeader | RemoveBrokerRequestHeader) -> None:
        process, request = container.process, Command(int(code), ext_fields=encode_header(header))
        if process is not None and process.alive:
            send(container.world, process, CONTAINER_PORT, request)

    identity = identity_of(spec)
    added = AddBrokerRequestHeader(spec.path)
    removed = RemoveBrokerRequestHeader(identity.cluster_name, identity.broker_name, identity.broker_id)
    inner = InnerMachine(
        number,
        spec.name,
        BROKER,
        container,
        lambda: ask(RequestCode.ADD_BROKER, added),
        lambda: ask(RequestCode.REMOVE_BROKER, removed),
    )
    container.inner_machines[spec.path] = inner
    return inner
