"""Calls between two tiny nodes: answers, errors, time-outs at their exact instants, and causes."""

import pytest
import trio

from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT, VIRTUAL, add_host, execute_world, process_of, until_ms
from nodes.config import RemotingClientConfig
from nodes.protocol.command import Command
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingConnectError, RemotingError, RemotingSendRequestError, RemotingTimeoutError
from nodes.rpc.server import HandlerExistsError, InTask, RpcServer

modes = pytest.mark.parametrize("mode", VIRTUAL)
ECHO, HOLD, RAISE, NOTE, LATER, ASK_BACK, PERHAPS_LATER = 1, 2, 3, 4, 5, 6, 7
SERVER = f"127.1.1.1:{PORT}"


class ServerAndClient:
    """A serving node, and one that calls it."""

    def __init__(self, world, **client_options):
        self.world = world
        self.server_host = add_host(world, 1, "server")
        process = process_of(self.server_host)
        self.held, self.noted, self.closed_channels = [], [], []
        self.server = RpcServer(process, on_channel_closed=self.closed_channels.append)
        self.server.register(ECHO, lambda _c, r: r.answer(0, None, r.ext_fields, r.body))
        self.server.register(HOLD, lambda channel, r: self.held.append((channel, r)))
        self.server.register(RAISE, lambda _c, r: {}[r.remark])
        self.server.register(NOTE, lambda _c, r: self.noted.append(r.code) or r.answer())
        self.server.register(LATER, InTask(self._later))
        self.server.register(PERHAPS_LATER, lambda _c, r: InTask(self._later) if r.body else r.answer())
        process.listen(PORT, self.server)
        self.client_host = add_host(world, 2, "client")
        self.reported = []
        self.client = RpcClient(
            process_of(self.client_host),
            on_channel_active=lambda address: self.reported.append(("active", address)),
            on_channel_closed=lambda address: self.reported.append(("closed", address)),
            **client_options,
        )

    async def _later(self, _channel, request):
        if request.body == b"raise":
            raise ValueError("no")
        await process_of(self.server_host).sleep_ms(int(request.body))
        return request.answer(0, None, {}, request.body)

    async def outcome(self, code, *, timeout_ms=3_000, **request):
        """How a call ended, and when in ms."""
        try:
            answer = await self.client.call(SERVER, code, **request, timeout_ms=timeout_ms)
        except RemotingError as error:
            return self.world.timeline.now_ns / MS, type(error)
        return self.world.timeline.now_ns / MS, answer

    async def calls(self, *requests):
        """Several calls at once; how each ended."""
        ends = [None] * len(requests)

        async def item(index, request):
            ends[index] = await self.outcome(**request)

        async with trio.open_nursery() as nursery:
            for index, request in enumerate(requests):
                nursery.start_soon(item, index, request)
        return ends


def staged(scene, *, mode, client_options=None, **options):
    async def main(world):
        stage = ServerAndClient(world, **(client_options or {}))
        await world.clock.idle()
        return await scene(stage)

    return execute_world(main, mode=mode, **options)


@modes
def test_an_answer_comes_with_what_was_asked(mode):
    async def scene(stage):
        return await stage.outcome(ECHO, ext_fields={"topic": "orders"}, body=b"abc")

    at_ms, answer = staged(scene, mode=mode, delay_ms=10).result

    assert at_ms == 40
    assert (answer.code, answer.ext_fields, answer.body, answer.request_code) == (0, {"topic": "orders"}, b"abc", ECHO)


@modes
def test_an_unknown_request_is_answered_with_code_3(mode):
    async def scene(stage):
        return await stage.outcome(999)

    _, answer = staged(scene, mode=mode).result

    assert (answer.code, answer.remark) == (3, "request type 999 not supported")


@modes
@pytest.mark.parametrize(
    ("code", "body", "text"),
    [(RAISE, None, "KeyError: None"), (LATER, b"raise", "ValueError: no"), (PERHAPS_LATER, b"raise", "ValueError: no")],
)
def test_a_handler_that_raises_answers_system_error_with_the_text(mode, code, body, text):
    async def scene(stage):
        failed = (await stage.outcome(code, body=body))[1]
        return failed, (await stage.outcome(ECHO))[1].code, stage.server_host.power_state

    failed, then, state = staged(scene, mode=mode).result

    assert (failed.code, failed.remark) == (1, text)
    assert (then, state) == (0, "running")


@modes
def test_a_held_request_blocks_no_one_and_answers_go_out_in_any_order(mode):
    async def scene(stage):
        return [
            (at_ms, answer.body)
            for at_ms, answer in await stage.calls(
                {"code": LATER, "body": b"50"}, {"code": LATER, "body": b"20"}, {"code": ECHO, "body": b"now"}
            )
        ]

    assert staged(scene, mode=mode).result == [(50, b"50"), (20, b"20"), (0, b"now")]


@modes
def test_a_handler_that_has_to_wait_answers_from_a_task_and_one_that_has_not_at_once(mode):
    async def scene(stage):
        ends = await stage.calls({"code": PERHAPS_LATER, "body": b"50"}, {"code": PERHAPS_LATER})
        return [(at_ms, answer.body) for at_ms, answer in ends]

    assert staged(scene, mode=mode).result == [(50, b"50"), (0, None)]


@modes
def test_calls_time_out_at_their_exact_instants(mode):
    async def scene(stage):
        await stage.outcome(ECHO)
        ends = await stage.calls(*({"code": HOLD, "timeout_ms": ms} for ms in (30, 10, 10, 25)))
        await until_ms(stage.world, 107.000003)
        return ends, await stage.outcome(HOLD, timeout_ms=3_333)

    options = {"config": RemotingClientConfig(client_close_socket_if_timeout=False)}
    executed = staged(scene, mode=mode, client_options=options)

    ends, last = executed.result
    assert ends == [(ms, RemotingTimeoutError) for ms in (30, 10, 10, 25)]
    assert last == (3_440.000003, RemotingTimeoutError)
    assert [r["t_ns"] / MS for r in executed.trace.select("rpc", event="timed_out")] == [10, 10, 25, 30, 3_440.000003]


@modes
def test_a_late_answer_is_dropped(mode):
    async def scene(stage):
        late = await stage.outcome(LATER, body=b"50", timeout_ms=20)
        await until_ms(stage.world, 60)
        return late, (await stage.outcome(ECHO, body=b"fresh"))[1].body

    options = {"config": RemotingClientConfig(client_close_socket_if_timeout=False)}
    executed = staged(scene, mode=mode, client_options=options)

    assert executed.result == ((20, RemotingTimeoutError), b"fresh")
    assert len(executed.trace.select("rpc", event="delivered", kind="response")) == 2


@modes
def test_a_synchronous_call_that_times_out_closes_its_channel_and_fails_its_neighbours(mode):
    async def scene(stage):
        await stage.outcome(ECHO)
        ends = await stage.calls({"code": HOLD, "timeout_ms": 20}, {"code": HOLD, "timeout_ms": 500})
        await stage.world.clock.idle()
        return ends, stage.client.channel(SERVER), len(stage.closed_channels)

    assert staged(scene, mode=mode).result == ([(20, RemotingTimeoutError), (20, RemotingSendRequestError)], None, 1)


@modes
def test_an_asynchronous_call_that_times_out_leaves_its_channel_open(mode):
    async def scene(stage):
        replies = []
        await stage.outcome(ECHO)
        stage.client.call_async(SERVER, HOLD, {}, None, timeout_ms=20, callback=replies.append)
        await until_ms(stage.world, 50)
        return [type(r) for r in replies], stage.client.channel(SERVER) is not None

    assert staged(scene, mode=mode).result == ([RemotingTimeoutError], True)


@modes
def test_open_calls_fail_when_the_server_is_killed(mode):
    async def scene(stage):
        await stage.outcome(ECHO)
        stage.world.timeline.call_at(15 * MS, lambda: process_of(stage.server_host).die(silent=False))
        ends = await stage.calls({"code": HOLD}, {"code": HOLD})
        return ends, stage.reported

    ends, reported = staged(scene, mode=mode).result

    assert ends == [(15, RemotingSendRequestError)] * 2
    assert reported == [("active", SERVER), ("closed", SERVER)]


@modes
def test_calls_share_one_connection_and_go_out_in_their_order(mode):
    async def scene(stage):
        await stage.calls(*({"code": ECHO, "body": bytes([n])} for n in range(5)))
        return stage.reported

    executed = staged(scene, mode=mode, delay_ms=10)

    assert executed.result == [("active", SERVER)]
    assert len(executed.trace.select("rpc", event="connected")) == 1
    opaques = [r["opaque"] for r in executed.trace.select("rpc", event="delivered", kind="request")]
    assert opaques == sorted(opaques)
    assert len(opaques) == 5


@modes
def test_who_cannot_connect_fails_when_the_connect_does(mode):
    async def scene(stage):
        process_of(stage.server_host).close_listener(PORT)
        refused = await stage.calls({"code": ECHO}, {"code": ECHO})
        stage.world.fabric.add_rule(LinkRule("f", LinkEffect.CUT, lambda _s, _d: True))
        return refused, await stage.outcome(ECHO, timeout_ms=9_000), await stage.outcome(ECHO, timeout_ms=100)

    executed = staged(scene, mode=mode, delay_ms=10)
    refused, cut, impatient = executed.result

    assert refused == [(20, RemotingConnectError)] * 2
    assert cut == (3_020, RemotingConnectError)
    assert impatient == (6_020, RemotingConnectError)  # its time-out of 100 ms is not that of connecting
    assert [row.at_ms for row in executed.trace.select("rpc", event="timed_out")] == [6_020]  # and it was over


@modes
def test_a_call_that_gets_its_connection_too_late_is_not_sent_and_leaves_the_connection_open(mode):
    async def scene(stage):
        stage.world.fabric.add_rule(LinkRule("f", LinkEffect.DELAY, lambda _s, _d: True, delay_ms=300))
        late = await stage.outcome(ECHO, timeout_ms=500)
        first = stage.client.channel(SERVER)
        return late, await stage.outcome(ECHO, timeout_ms=5_000), first is stage.client.channel(SERVER)

    executed = staged(scene, mode=mode)

    late, (after_ms, answer), is_same = executed.result
    assert late == (600, RemotingTimeoutError)
    assert (after_ms, answer.code) == (1_200, 0)
    assert is_same
    assert len(executed.trace.select("rpc", event="delivered", kind="request")) == 1


@modes
@pytest.mark.parametrize(("timeout_ms", "stays"), [(700, True), (701, False)])
def test_a_connection_that_took_nearly_all_the_time_of_a_call_survives_its_time_out(mode, timeout_ms, stays):
    """100 ms are left, or one more, and both are less than a quarter."""

    async def scene(stage):
        stage.world.fabric.add_rule(LinkRule("f", LinkEffect.DELAY, lambda _s, _d: True, delay_ms=300))
        outcome = await stage.outcome(ECHO, timeout_ms=timeout_ms)
        return outcome, stage.client.channel(SERVER) is not None

    assert staged(scene, mode=mode).result == ((timeout_ms, RemotingTimeoutError), stays)


@modes
def test_a_oneway_request_is_handled_and_never_answered(mode):
    async def scene(stage):
        for code in (NOTE, RAISE, 999):
            stage.client.oneway(SERVER, code)
        await until_ms(stage.world, 10)
        return stage.noted

    executed = staged(scene, mode=mode)

    assert executed.result == [NOTE]
    assert len(executed.trace.select("rpc", event="delivered", kind="oneway")) == 3
    assert executed.trace.select("rpc", kind="response") == []


@modes
def test_the_server_asks_back_over_the_channel_of_its_client(mode):
    async def scene(stage):
        replies = []
        stage.server.register(ASK_BACK, lambda channel, r: channel.send(Command(77, 2)) or r.answer())
        stage.client._handler._on_request = lambda _channel, command: replies.append(command.code)
        await stage.outcome(ASK_BACK)
        return replies

    assert staged(scene, mode=mode).result == [77]


@modes
def test_an_answer_is_caused_by_the_delivery_of_its_request_and_what_follows_by_the_answer(mode):
    async def scene(stage):
        process = process_of(stage.client_host)

        async def flow():
            process.begin_cause("pull")
            await stage.client.call(SERVER, LATER, body=b"5", timeout_ms=3_000)
            await stage.client.call(SERVER, ECHO, timeout_ms=3_000)

        process.start_soon(flow, name="flow")
        await until_ms(stage.world, 100)

    executed = staged(scene, mode=mode, delay_ms=1)

    rows = executed.trace.select("rpc", event="delivered")
    causes = [r["cause"] for r in rows]
    assert causes == [executed.trace.select("causes")[0]["seq"], *(r["seq"] for r in rows[:-1])]
    assert [r["kind"] for r in rows] == ["request", "response"] * 2


@modes
def test_a_time_out_is_caused_by_what_led_to_the_call(mode):
    async def scene(stage):
        process = process_of(stage.client_host)

        async def flow(name):
            process.begin_cause(name)
            with pytest.raises(RemotingTimeoutError):
                await stage.client.call(SERVER, HOLD, timeout_ms=20)

        for name in ("probe", "ping"):
            process.start_soon(flow, name, name=name)
        await until_ms(stage.world, 100)

    options = {"config": RemotingClientConfig(client_close_socket_if_timeout=False)}
    executed = staged(scene, mode=mode, client_options=options)

    begun = {r["seq"]: r["name"] for r in executed.trace.select("causes")}
    timed_out = executed.trace.select("rpc", event="timed_out")
    assert [begun[r["cause"]] for r in timed_out] == ["probe", "ping"]


@modes
def test_a_caller_that_is_cancelled_is_forgotten(mode):
    async def scene(stage):
        with trio.CancelScope() as scope:
            stage.world.timeline.call_at(10 * MS, scope.cancel)
            await stage.client.call(SERVER, HOLD, timeout_ms=100)
        await until_ms(stage.world, 200)
        return len(stage.held), (await stage.outcome(ECHO))[1].code

    executed = staged(scene, mode=mode)

    assert executed.result == (1, 0)
    assert executed.trace.select("rpc", event="timed_out") == []


@pytest.mark.parametrize("second", [print, InTask(print)])
@pytest.mark.parametrize("first", [print, InTask(print)])
def test_two_handlers_for_one_request_code_are_refused(first, second):
    server = RpcServer(host=None)

    with pytest.raises(HandlerExistsError, match="request code 1 has a handler already; remove one of the two"):
        server.serve({ECHO: first, HOLD: print}, {NOTE: print, ECHO: second})
