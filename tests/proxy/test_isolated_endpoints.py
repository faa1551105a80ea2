"""Producers isolate endpoints whose sends have failed until a heartbeat succeeds; brokers may have different ones.

What is sent decides where attempts go.
"""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.machine.host import EmulatedHost
from emulator.machine.world import World
from emulator.testing.worlds import add_host, execute_world, process_of, until_ms
from nodes.client.producer.keys import MessageKeys
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.client5.producer import Producer5, Producer5Setup
from nodes.client5.tables.endpoints import endpoints_of, endpoints_to_query_assignments
from nodes.client5.tables.publishing import (
    sip_hash24,
    take_message_queue_by_message_group,
    take_message_queues,
    writeable,
)
from nodes.config.client5 import Producer5Config
from nodes.host import Channel
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import decode_body, encode_body
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Broker, Endpoints, MessageQueue, Resource, Status
from nodes.protocol.v2.enums import Code, MessageType, Permission, TransactionResolution
from nodes.rpc.server import RpcServer
from support.every_case import each_case

PORT, TOPIC = 8_081, "orders"
OK, REFUSED = Status(Code.OK, "OK"), Status(Code.INTERNAL_SERVER_ERROR, "no")
FAILS_FROM_MS, FAILS_UNTIL_MS = 5_500, 25_500


def queue(
    broker: str, endpoints: Endpoints, number: int = 0, permission: Permission = Permission.READ_WRITE, id_: int = 0
) -> MessageQueue:
    """A queue of a route."""
    return MessageQueue(Resource(TOPIC), number, permission, Broker(broker, id_, endpoints), (MessageType.NORMAL,))


class LocalProxy:
    """A proxy in one process with its broker, so routes have other endpoints for each broker; one may fail for a time.

    Args:
        fails: which calls it refuses while it fails.
    """

    def __init__(self, world: World, number: int, fails: tuple[RequestCode, ...]) -> None:
        host = add_host(world, number, f"local-{number}")
        self._fails = fails
        self._clock = process_of(host).clock
        self.sends_ms: list[float] = []
        self.accepted = 0
        self.ends: list[TransactionResolution] = []
        server = RpcServer(process_of(host))
        server.register(RequestCode.V2_QUERY_ROUTE, self._route)
        server.register(RequestCode.V2_TELEMETRY, lambda _, request: request.answer(body=request.body))
        server.register(RequestCode.V2_HEARTBEAT, self._heartbeat)
        server.register(RequestCode.V2_SEND_MESSAGE, self._send)
        server.register(RequestCode.V2_END_TRANSACTION, self._end)
        process_of(host).listen(PORT, server)

    def _status(self, code: RequestCode) -> Status:
        return REFUSED if code in self._fails and FAILS_FROM_MS <= self._now_ms < FAILS_UNTIL_MS else OK

    @property
    def _now_ms(self) -> float:
        return self._clock.monotonic_ns() / 1_000_000

    def _route(self, _channel: Channel, request: Command) -> Command:
        queues = tuple(queue(f"broker-{number}", endpoints_of((f"127.1.1.{number}:{PORT}",))) for number in (1, 2))
        return request.answer(body=encode_body(service.QueryRouteResponse(OK, queues)))

    def _heartbeat(self, _channel: Channel, request: Command) -> Command:
        return request.answer(body=encode_body(service.HeartbeatResponse(self._status(RequestCode.V2_HEARTBEAT))))

    def _send(self, _channel: Channel, request: Command) -> Command:
        self.sends_ms.append(self._now_ms)
        status = self._status(RequestCode.V2_SEND_MESSAGE)
        self.accepted += status is OK
        message = decode_body(service.SendMessageRequest, request.body).messages[0]
        entries = (service.SendResultEntry(status, message.system_properties.message_id),)
        return request.answer(body=encode_body(service.SendMessageResponse(status, entries)))

    def _end(self, _channel: Channel, request: Command) -> Command:
        self.ends.append(decode_body(service.EndTransactionRequest, request.body).resolution)
        return request.answer(body=encode_body(service.EndTransactionResponse(OK)))


@pytest.mark.parametrize(
    ("fails", "tried"),
    [
        ((RequestCode.V2_SEND_MESSAGE,), 3),
        ((RequestCode.V2_SEND_MESSAGE, RequestCode.V2_HEARTBEAT), 1),
    ],
)
def test_endpoints_that_have_failed_get_no_send_until_their_next_heartbeat_succeeds(
    fails: tuple[RequestCode, ...], tried: int
) -> None:
    """Heartbeats come at 1 s, 11 s, 21 s and 31 s."""

    async def main(world: World) -> None:
        well, ill = LocalProxy(world, 1, ()), LocalProxy(world, 2, fails)
        setup = Producer5Setup((f"127.1.1.1:{PORT}",), Producer5Config(), (TOPIC,), rate_per_s=2)
        EmulatedHost(world, 3, "p", "producer", "127.1.1.3", "", lambda host: Producer5(host, setup)).start()
        await until_ms(world, 40_000)
        while_it_fails = [at_ms for at_ms in ill.sends_ms if FAILS_FROM_MS <= at_ms < FAILS_UNTIL_MS]
        assert len(while_it_fails) == tried
        assert not [at_ms for at_ms in ill.sends_ms if FAILS_UNTIL_MS <= at_ms < 31_000]
        assert len([at_ms for at_ms in ill.sends_ms if at_ms > 31_000]) == 8
        assert well.accepted + ill.accepted == 80

    execute_world(main)


@given(st.integers(1, 30), st.text(min_size=1))
def test_the_message_group_alone_decides_the_queue_of_a_fifo_message(number: int, group: str) -> None:
    queues = tuple(queue("b", place_of(1), place) for place in range(number))
    taken = take_message_queue_by_message_group(queues, group)
    hashed = sip_hash24(group.encode())
    assert taken.id == (hashed if hashed < 2**63 else hashed - 2**64) % number  # a signed long in Java


@each_case(
    ("data", "expected"),
    [
        (b"", 0x726FDB47DD0E0E31),
        (bytes(range(8)), 0x93F5F5799A932462),
        (bytes(range(15)), 0xA129CA6149BE45E5),
        (bytes(range(63)), 0x958A324CEB064572),
    ],
)
def test_sip_hashes_are_those_of_its_authors(data: bytes, expected: int) -> None:
    assert sip_hash24(data) == expected


def test_all_attempts_of_a_fifo_message_go_to_one_broker() -> None:
    async def main(world: World) -> None:
        proxies = [LocalProxy(world, number, (RequestCode.V2_SEND_MESSAGE,)) for number in (1, 2)]
        keys = MessageKeys(count=1)
        config, topics = Producer5Config(), (TOPIC,)
        setup = Producer5Setup((f"127.1.1.1:{PORT}",), config, topics, rate_per_s=2, keys=keys, is_fifo=True)
        EmulatedHost(world, 3, "p", "producer", "127.1.1.3", "", lambda host: Producer5(host, setup)).start()
        await until_ms(world, 20_000)
        sends = sorted(len(proxy.sends_ms) for proxy in proxies)
        assert sends == [0, 11 + 3 * 29]

    execute_world(main)


@pytest.mark.parametrize(
    ("state", "ends"),
    [
        (LocalTransactionState.COMMIT, [TransactionResolution.COMMIT]),
        (LocalTransactionState.ROLLBACK, [TransactionResolution.ROLLBACK]),
        (LocalTransactionState.UNKNOWN, []),
    ],
)
def test_a_half_message_has_three_attempts_and_a_transaction_that_is_unknown_is_not_ended(
    state: LocalTransactionState, ends: list[TransactionResolution]
) -> None:
    async def main(world: World) -> None:
        well, ill = LocalProxy(world, 1, ()), LocalProxy(world, 2, (RequestCode.V2_SEND_MESSAGE,))
        does = LocalTransactions(state)
        setup = Producer5Setup((f"127.1.1.1:{PORT}",), Producer5Config(), (TOPIC,), rate_per_s=2, transactions=does)
        EmulatedHost(world, 3, "p", "producer", "127.1.1.3", "", lambda host: Producer5(host, setup)).start()
        await until_ms(world, 20_000)
        assert [at_ms for at_ms in ill.sends_ms if at_ms > FAILS_FROM_MS]
        assert well.accepted + ill.accepted == 40
        assert well.ends + ill.ends == ends * 40

    execute_world(main)


NUMBERS = st.integers(1, 4)
ROUTES = st.lists(
    st.builds(lambda broker, place, n: queue(f"b{broker}", place_of(place), n), NUMBERS, NUMBERS, NUMBERS), min_size=1
)


def place_of(number: int) -> Endpoints:
    """The endpoints with a number."""
    return endpoints_of((f"10.0.0.{number}:{PORT}",))


@given(ROUTES, st.integers(0, 99), st.lists(NUMBERS), st.integers(1, 4))
def test_attempts_go_to_brokers_with_different_names_and_to_isolated_endpoints_only_if_all_are(
    queues: list[MessageQueue], first: int, isolated: list[int], attempts: int
) -> None:
    excluded = [place_of(number) for number in isolated]
    taken = take_message_queues(tuple(queues), first, excluded, attempts)
    free = [item for item in queues if item.broker.endpoints not in excluded]
    names = [item.broker.name for item in taken]
    possible = {item.broker.name for item in free or queues}
    assert len(names) == len(set(names)) == min(attempts, len(possible))
    assert all(item in (free or queues) for item in taken)


def test_assignments_are_asked_at_the_access_point_if_the_route_names_it() -> None:
    here, there = place_of(1), place_of(2)
    assert endpoints_to_query_assignments((queue("a", there), queue("b", here)), here) == here
    assert endpoints_to_query_assignments((queue("a", there), queue("b", there)), here) == there


def test_assignments_are_asked_at_a_master_with_a_queue_that_can_be_used() -> None:
    slave, closed = queue("a", place_of(1), id_=1), queue("b", place_of(2), permission=Permission.NONE)
    elsewhere = place_of(9)
    assert endpoints_to_query_assignments((slave, closed, queue("c", place_of(3))), elsewhere) == place_of(3)
    assert endpoints_to_query_assignments((slave, closed), elsewhere) is None
    assert writeable((slave, closed, attrs.evolve(slave, permission=Permission.READ))) == ()
