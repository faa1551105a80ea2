"""One connection, in memory and under virtual time: what clients get wrong, and how long they may take."""

import json

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import lockstep_stream_pair

from emulator.web.http import Refusal
from web.http_client import answers, connect

HOST = b"host: localhost\r\n"


async def echo(request, to):
    """Reports what was asked; refuses what no one may ask."""
    if request.path == "/forbidden":
        raise Refusal(403, "no")
    await to.reply(200, "text/plain", b"%s %s %d" % (request.method.encode(), request.path.encode(), len(request.body)))


async def heard(sent, *, slowly=False, answer=echo):
    """What a client hears that sends all of this and then no more."""
    async with trio.open_nursery() as nursery:
        client = await connect(nursery, answer)
        await (client.send_slowly if slowly else client.send)(sent)
        await client.stream.send_eof()
        with trio.fail_after(60):
            return await client.hear()


GET = b"GET /a HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /a HTTP/1.1\r\nhost: localhost\r\n"
IN_CHUNKS = POST + b"transfer-encoding: chunked\r\n\r\n"
REQUEST = GET + b"\r\n"
CASES = {
    "plain": (REQUEST, 200),
    "a query": (b"GET /a?b=1 HTTP/1.1\r\n" + HOST + b"\r\n", 200),
    "a body": (POST + b"content-length: 3\r\n\r\nxyz", 200),
    "chunks": (IN_CHUNKS + b"1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n", 200),
    "HTTP/1.0": (b"GET /a HTTP/1.0\r\n\r\n", 200),
    "an upgrade that is not taken": (GET + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n", 200),
    "a tunnel": (b"CONNECT /forbidden HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    "a refusal": (b"GET /forbidden HTTP/1.1\r\n" + HOST + b"\r\n", 403),
    "half a line": (b"GET /a HT", 400),
    "half a head": (GET, 400),
    "half a body": (POST + b"content-length: 3\r\n\r\nx", 400),
    "no method": (b"/a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a path with a space": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no host": (b"GET /a HTTP/1.1\r\n\r\n", 400),
    "two hosts": (GET + HOST + b"\r\n", 400),
    "no colon": (GET + b"host\r\n\r\n", 400),
    "a space before the colon": (GET + b"a : b\r\n\r\n", 400),
    "a null byte": (GET + b"a: \0\r\n\r\n", 400),
    "a TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), 400),
    "two lengths": (POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx", 400),
    "a negative length": (POST + b"content-length: -1\r\n\r\n", 400),
    "no number as length": (POST + b"content-length: x\r\n\r\n", 400),
    "a length of 99 digits": (POST + b"content-length: %b\r\n\r\n" % (b"9" * 99), 400),
    "a broken chunk": (IN_CHUNKS + b"zz\r\n", 400),
    "a chunk longer than said": (IN_CHUNKS + b"1\r\nxyz\r\n0\r\n\r\n", 400),
    "an unknown encoding": (POST + b"transfer-encoding: gzip\r\n\r\nx", 501),
    "a long line": (b"GET /" + b"a" * 20_000, 431),
    "endless headers": (b"GET /a HTTP/1.1\r\n" + b"x: y\r\n" * 20_000, 431),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/9.9": (b"GET /a HTTP/9.9\r\n\r\n", 505),
    "too long a body": (POST + b"content-length: 70000\r\n\r\n" + bytes(70_000), 413),
    "too many chunks": (IN_CHUNKS + b"1\r\nx\r\n" * 70_000, 413),
}
"""What is sent before the client closes its direction, and the status of the answer."""


@pytest.mark.parametrize("name", CASES)
async def test_whatever_is_sent_is_answered_once_and_the_connection_ends(name, autojump_clock):
    sent, status = CASES[name]
    ((got, headers, reported),) = answers(await heard(sent))
    assert got == status
    assert headers[b"x-content-type-options"] == b"nosniff"
    if status != 200:
        assert reported.count(b"\n") == 1
        assert list(json.loads(reported)) == ["error"]
    assert autojump_clock.current_time() == 0


@pytest.mark.parametrize("name", ["a body", "chunks", "a query"])
async def test_a_request_is_reported_whole(name):
    ((_, _, reported),) = answers(await heard(CASES[name][0]))
    assert reported == (b"GET /a 0" if name == "a query" else b"POST /a 3")


@pytest.mark.parametrize("name", [name for name, (sent, _) in CASES.items() if len(sent) < 1_000])
async def test_bytes_that_come_one_by_one_make_no_difference(name):
    sent, status = CASES[name]
    assert answers(await heard(sent, slowly=True))[0][0] == status


async def test_requests_that_come_together_are_answered_in_their_order():
    requested = b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(100))
    reported = answers(await heard(requested), ["GET"] * 100)
    assert [content for _, _, content in reported] == [b"GET /%d 0" % number for number in range(100)]


async def test_a_refusal_does_not_end_a_connection_and_a_broken_request_does():
    requested = b"GET /forbidden HTTP/1.1\r\n" + HOST + b"\r\n" + REQUEST + b"GET \0 HTTP/1.1\r\n" + REQUEST
    reported = answers(await heard(requested), ["GET"] * 4)
    assert [status for status, _, _ in reported] == [403, 200, 400]
    assert reported[-1][1][b"connection"] == b"close"


async def test_the_answer_to_head_has_no_content():
    content = await heard(b"HEAD /a HTTP/1.1\r\n" + HOST + b"\r\n" + REQUEST)
    (_, headers, nothing), (_, _, reported) = answers(content, ["HEAD", "GET"])
    assert (headers[b"content-length"], nothing, reported) == (b"9", b"", b"GET /a 0")


async def test_whoever_waits_to_be_reported_to_go_on_is_reported():
    head = b"POST /a HTTP/1.1\r\n" + HOST + b"content-length: 1\r\nexpect: 100-continue\r\n\r\n"
    async with trio.open_nursery() as nursery:
        client = await connect(nursery, echo)
        await client.send(head)
        assert (await client.stream.receive_some()).startswith(b"HTTP/1.1 100 ")
        await client.send(b"x")
        assert b"POST /a 1" in await client.stream.receive_some()
        await client.stream.aclose()


async def test_whoever_asks_to_close_is_let_go_at_once(autojump_clock):
    async with trio.open_nursery() as nursery:
        client = await connect(nursery, echo)
        await client.send(b"GET /a HTTP/1.1\r\n" + HOST + b"connection: close\r\n\r\n")
        assert len(answers(await client.hear())) == 1
        assert autojump_clock.current_time() == 0
        await client.stream.aclose()


@pytest.mark.parametrize(
    ("sent", "every_s", "ends_at_s", "statuses"),
    [
        (b"", 1, 8, []),
        (REQUEST, 0, 8, [200]),
        (b"GET /a HTTP/1.1\r\n" + b"x: y\r\n" * 100, 1, 8, []),
        (b"POST /a HTTP/1.1\r\n" + HOST + b"content-length: 900\r\n\r\n" + b"x" * 900, 0.01, 5.5, [408]),
    ],
    ids=["silent", "silent after an answer", "a slow head", "a slow body"],
)
async def test_a_client_that_takes_too_long_is_closed(autojump_clock, sent, every_s, ends_at_s, statuses):
    async def dawdle(client):
        try:
            for byte in sent:
                await client.send(bytes([byte]))
                await trio.sleep(every_s)
        except trio.BrokenResourceError:
            pass

    async with trio.open_nursery() as nursery:
        client = await connect(nursery, echo)
        nursery.start_soon(dawdle, client)
        reported = await client.hear()
        assert [status for status, _, _ in answers(reported)] == statuses
        assert client.ended_at_s == pytest.approx(ends_at_s, abs=0.6)
        nursery.cancel_scope.cancel()


async def test_a_client_that_does_not_read_is_given_up(autojump_clock):
    async with trio.open_nursery() as nursery:
        client = await connect(nursery, echo, lockstep_stream_pair)
        await client.send(REQUEST)
        await trio.sleep(3.9)
        assert client.gone == []
        await trio.sleep(0.2)
        assert client.gone == [True]


async def test_an_answer_under_way_is_not_stopped_by_a_client_that_goes():
    done = []

    async def work(_request, to):
        await trio.sleep(0.5)
        done.append(True)
        await to.reply(200, "text/plain", b"done")

    async with trio.open_nursery() as nursery:
        client = await connect(nursery, work)
        await client.send(REQUEST * 3)
        await trio.testing.wait_all_tasks_blocked()
        await client.stream.aclose()
    assert (done, client.gone) == ([True], [True])


async def test_an_answer_that_was_begun_cannot_become_a_refusal():
    async def change_of_mind(_request, to):
        await to.begin(200, "text/plain")
        await to.part(b"x")
        raise Refusal(500, "no")

    reported = await heard(REQUEST, answer=change_of_mind)
    assert reported.startswith(b"HTTP/1.1 200 ")
    assert reported.endswith(b"\r\n1\r\nx\r\n")
    assert reported.count(b"HTTP/1.1") == 1


async def test_the_end_of_the_run_cuts_no_part_of_an_answer(autojump_clock):
    async with trio.open_nursery() as nursery:
        client = await connect(nursery, echo, lockstep_stream_pair)
        await client.send(REQUEST)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            ((_, _, content),) = answers(await client.hear())
    assert content == b"GET /a 0"


@given(noise=st.binary(max_size=400), place=st.integers(0, 60), cut=st.integers(0, 60))
def test_noise_anywhere_in_a_request_ends_in_answers_and_an_end(noise, place, cut):
    whole = b"POST /a HTTP/1.1\r\n" + HOST + b"content-length: 3\r\n\r\nxyz"
    sent = whole[:place] + noise + whole[place + cut :]
    reported = trio.run(heard, sent, clock=trio.testing.MockClock(autojump_threshold=0))
    assert reported == b"" or reported.startswith(b"HTTP/1.1 ")
