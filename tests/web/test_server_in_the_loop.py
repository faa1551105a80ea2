"""The server in the trio loop of a live cluster, from within the process."""

from functools import partial

import attrs
import pytest
import trio

from emulator.run import run_scenario
from emulator.testing import a_scenario
from emulator.time.mode import TimeMode
from emulator.web.gate import listen
from emulator.web.server import serve_web


def served(tmp_path, client):
    """Run a live cluster whose dashboard the client asks; it leaves when the client is done."""
    reported, done = [], []

    async def attend(session):
        while not reported:
            await trio.lowlevel.checkpoint()
        port, token = reported[0].removeprefix("dashboard: http://127.0.0.1:").split("/#")
        await client(int(port), f"Host: localhost:{port}\r\nAuthorization: Bearer {token}\r\n")
        done.append(True)
        session.leaving.set()

    dashboard = partial(serve_web, listening=listen(), report_line=reported.append)
    scenario = attrs.evolve(a_scenario(consumers=1, nameservers=1), run_for_ms=600_000)
    run_scenario(scenario, mode=TimeMode.LIVE, runs=tmp_path, endless=True, session_tasks=(dashboard, attend))
    assert done


async def requested(port, request):
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(request.encode())
    return stream


def test_one_connection_answers_one_request_after_the_other(tmp_path):
    async def client(port, own):
        stream = await requested(port, f"GET / HTTP/1.1\r\n{own}\r\nGET /state HTTP/1.1\r\n{own}\r\n")
        content = b""
        while b'"now_ms"' not in content:
            content += await stream.receive_some()
        assert content.count(b"HTTP/1.1 200") == 2

    served(tmp_path, client)


def test_a_stream_that_no_one_reads_is_closed_while_another_goes_on(tmp_path):
    async def client(port, own):
        reading = await requested(port, f"GET /events HTTP/1.1\r\n{own}\r\n")
        with trio.fail_after(12), pytest.raises(trio.BrokenResourceError):
            await requested(port, f"GET /state HTTP/1.1\r\n{own}\r\n" * 20_000)
        while b'"now_ms"' not in await reading.receive_some():
            pass

    served(tmp_path, client)


def test_a_connection_that_asks_for_nothing_is_closed(tmp_path):
    async def client(port, own):
        stream = await requested(port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        with trio.fail_after(12):
            try:
                while await stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                pass

    served(tmp_path, client)
