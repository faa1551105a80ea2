"""The dashboard over HTTP: its answers, and those who mean it no good."""

import json
import os
import select
import signal
import time
from contextlib import suppress

import pytest

from emulator.console.control_socket import ask
from emulator.web.feed import WATCHERS_MAX
from emulator.web.http import BODY_BYTES_MAX
from emulator.web.server import CONNECTIONS_MAX
from support.waiting import PATIENCE_S, until
from web.shown_cluster import answer, up

PROMPTLY_S = 3.5
"""Less than the dashboard's patience with any client: who waits for another one waits longer."""
WEBSOCKET = b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


def problem(answered):
    """(status, problem): every refusal is one line of JSON."""
    status, headers, content = answered
    assert headers["content-type"] == "application/json"
    assert content.count(b"\n") == 1
    reported = json.loads(content)
    assert list(reported) == ["error"]
    return status, reported["error"]


def require_unhurt(shown):
    """Others are answered promptly, and emulated time goes on."""
    begin_s = time.monotonic()
    begin_ms = shown.state()["now_ms"]
    assert ask(shown.control, "status")[0]
    assert time.monotonic() - begin_s < PROMPTLY_S
    until(lambda: shown.state()["now_ms"] >= begin_ms + 300)
    assert shown.process.poll() is None


def one_who_never_reads(shown):
    """A client that asks for more than fits on its way, and does not take it."""
    connection = shown.connect()
    request = f"GET /state HTTP/1.1\r\nhost: 127.0.0.1:{shown.port}\r\nauthorization: Bearer {shown.token}\r\n\r\n"
    connection.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            connection.send(request.encode() * 100)
    return connection


def messages(connection):
    """The messages of a stream, as they come."""
    stream = connection.makefile("rb")
    while stream.readline().strip():
        pass
    while size := int(stream.readline(), 16):
        yield json.loads(stream.read(size))
        stream.readline()


def first(stream, condition):
    return next(message for message in stream if condition(message))


def test_the_page_and_its_parts_need_no_token_and_hold_nothing_of_the_run(shown):
    status, headers, page = shown.ask("GET", "/", authorization=None)
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b"shown" not in page
    assert b"broker-a" not in page
    assert shown.ask("GET", "/page/main.js", authorization=None)[0] == 200


def test_every_answer_forbids_what_the_page_does_not_need(shown):
    for path in ("/", "/page/main.js", "/state", "/nothing"):
        _, headers, _ = shown.ask("GET", path)
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


def test_the_state_reports_nodes_views_owners_and_verbs(shown):
    state = shown.state()
    assert list(state["nodes"]) == ["ns-1", "broker-a", "broker-b", "consumer-1", "consumer-2"]
    assert state["nodes"]["broker-a"]["state"] == "running"
    assert state["groups"] == {"buyers": ["consumer-1", "consumer-2"]}
    assert state["queues"]["buyers/orders/broker-a/0"]["owners"] == ["consumer-1"]
    assert "heal" in [verb["name"] for verb in state["verbs"]]
    members = state["views"]["consumer_ids buyers"]
    assert [holders["nodes"] for holders in members["roles"]["broker"]] == [["broker-a", "broker-b"]]
    assert members["differs"] is False
    assert any("acquired" in line for line in state["lines"])


def test_verbs_are_done_and_refusals_are_reported_as_in_the_terminal(shown):
    assert shown.say("cut ns-1 broker-a one-way") == (True, ["cut-1: cut ns-1 -> broker-a"])
    state = shown.state()
    assert state["faults"]["cut-1"]["what"] == "cut ns-1 -> broker-a"
    assert state["links"]["cut-1"]["pairs"] == [["ns-1", "broker-a"]]
    assert shown.say("heal cut-1")[0]
    assert shown.state()["faults"] == shown.state()["links"] == {}
    assert shown.say("kill brokr-a") == (False, ["there is no node brokr-a; did you mean broker-a or broker-b?"])


def test_a_stream_has_everything_first_and_then_what_changes(shown):
    with shown.send("GET", "/events") as connection:
        stream = messages(connection)
        assert list(next(stream)["nodes"]) == list(shown.state()["nodes"])
        shown.say("suspend consumer-2")
        change = first(stream, lambda message: "faults" in message)
        assert change["nodes"]["consumer-2"]["state"] == "suspended"
        assert any("suspended" in line for line in change["lines"])
        assert "views" not in change
        shown.say("kill broker-a")
        shown.say("heal suspend-1")
        change = first(stream, lambda message: "suspend-1" in message.get("faults", {}))
        assert change["faults"]["suspend-1"] is None


def test_what_a_killed_process_believed_and_owned_is_gone(fresh):
    fresh.say("kill consumer-2")
    until(lambda: not any("consumer-2" in queue["owners"] for queue in fresh.state()["queues"].values()))
    assert "consumer-2" not in json.dumps(fresh.state()["views"])


def test_a_stream_brings_a_few_messages_a_second_however_much_happens(shown):
    with shown.send("GET", "/events") as connection:
        stream = messages(connection)
        begin_ms = next(stream)["now_ms"]
        for _ in range(10):
            shown.say("suspend consumer-1")
            shown.say("resume consumer-1")
        ticks = [next(stream)["now_ms"] for _ in range(10)]
    # `/state` and a new stream may bring the others up to date in between; nothing else does.
    assert ticks[-1] - begin_ms > 1_700


@pytest.mark.parametrize("token", [None, "Bearer ", "Bearer wrong", "Basic Og==", "Bearer \xe9"])
def test_without_the_token_there_is_nothing_but_the_page(shown, token):
    for method, path in (("GET", "/state"), ("GET", "/events"), ("POST", "/verb"), ("GET", "/nothing")):
        status, why = problem(shown.ask(method, path, authorization=token))
        assert (status, why) == (401, "the token is missing or wrong; the terminal of `rmqemu up` shows it")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "[::1]:{port}"])
def test_a_foreign_host_is_refused_even_with_the_token(shown, host):
    for path in ("/", "/state"):
        assert problem(shown.ask("GET", path, host=host.format(port=shown.port)))[0] == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://localhost:{port}"]
)
def test_a_foreign_origin_is_refused_even_with_the_token(shown, origin):
    body = b'{"line": "kill broker-a"}'
    status, _ = problem(shown.ask("POST", "/verb", body=body, origin=origin.format(port=shown.port)))
    assert status == 403
    assert shown.state()["faults"] == {}


def test_the_page_itself_may_ask_by_either_name_of_this_machine(shown):
    for name in ("127.0.0.1", "localhost"):
        own = f"{name}:{shown.port}"
        assert shown.ask("GET", "/state", host=own, origin=f"http://{own}")[0] == 200


@pytest.mark.parametrize("body", [b"x", b"[]", b'{"line": 7}', b"{}", b"\xff", b"[" * 50_000])
def test_what_is_no_verb_gets_one_line_and_changes_nothing(shown, body):
    assert problem(shown.ask("POST", "/verb", body=body)) == (400, 'expected JSON, {"line": "VERB ..."}')
    assert shown.state()["faults"] == {}


def test_an_unknown_path_and_a_wrong_method_are_reported(shown):
    assert problem(shown.ask("GET", "/nothing"))[0] == 404
    assert problem(shown.ask("GET", "/verb")) == (405, "/verb takes POST, not GET")
    assert problem(shown.ask("POST", "/")) == (405, "/ takes GET, not POST")
    assert problem(shown.ask("GET", "/page/../feed.py"))[0] == 404


@pytest.mark.parametrize("size", [BODY_BYTES_MAX + 1, 16 * 1024 * 1024])
def test_too_long_a_request_is_refused_when_it_has_been_sent(shown, size):
    status, why = problem(shown.ask("POST", "/verb", body=b" " * size))
    assert (status, why) == (413, f"a request has at most {BODY_BYTES_MAX} bytes")
    require_unhurt(shown)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET /state HT", marks=pytest.mark.slow),  # it is waited for
        b"POST /verb HTTP/1.1\r\n{own}content-length: 30\r\n\r\n{",
        b"\x16\x03\x01\x02\x00" + os.urandom(300),
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(100),
        pytest.param(
            b"GET /events HTTP/1.1\r\n{own}upgrade: websocket\r\nconnection: upgrade\r\n%b\r\n" % WEBSOCKET,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["half a line", "half a body", "no HTTP", "endless headers", "HTTP/2", "a WebSocket"],
)
def test_what_is_no_whole_request_is_dropped_and_harms_no_one(shown, sent):
    with shown.connect() as connection:
        own = f"host: 127.0.0.1:{shown.port}\r\nauthorization: Bearer {shown.token}\r\n"
        with suppress(ConnectionError):  # it may be refused before all of it was sent
            connection.sendall(sent.replace(b"{own}", own.encode()))
        require_unhurt(shown)
        with suppress(ConnectionError):
            while connection.recv(65_536):
                pass


def test_one_page_too_many_is_reported_so_and_room_comes_back(shown):
    crowd = [shown.send("GET", "/events") for _ in range(100)]
    lines = [connection.recv(12) for connection in crowd]
    assert lines == [b"HTTP/1.1 200"] * WATCHERS_MAX + [b"HTTP/1.1 503"] * (100 - WATCHERS_MAX)
    require_unhurt(shown)
    for connection in crowd:
        connection.close()
    until(lambda: shown.send("GET", "/events").recv(12) == b"HTTP/1.1 200")


def test_one_connection_too_many_is_reported_so(shown):
    crowd = [shown.connect() for _ in range(CONNECTIONS_MAX)]
    with shown.connect() as one_more:
        assert problem(answer(one_more)) == (503, f"{CONNECTIONS_MAX} connections are open already")
    for connection in crowd:
        connection.close()
    until(lambda: shown.ask("GET", "/state")[0] == 200)
    require_unhurt(shown)


def test_a_client_that_never_reads_is_dropped_and_no_one_else_notices(shown):
    deaf = [one_who_never_reads(shown) for _ in range(WATCHERS_MAX)]
    require_unhurt(shown)
    for connection in deaf:
        require_closed(connection)
    require_unhurt(shown)


def require_closed(connection):
    """The other side gives up; nothing of what it has said is read."""
    give_up_s = time.monotonic() + PATIENCE_S
    with suppress(ConnectionError):
        while True:
            _, sendable, _ = select.select([], [connection], [], max(0.0, give_up_s - time.monotonic()))
            assert sendable, f"still open after {PATIENCE_S} s"
            with suppress(BlockingIOError):
                connection.send(b"x" * 65_536)


@pytest.mark.parametrize(
    "ending",
    [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM, pytest.param("quit", marks=pytest.mark.slow)],
)
def test_the_end_of_a_run_waits_for_no_page(patient, ending):
    watching = patient.send("GET", "/events")
    deaf = one_who_never_reads(patient)
    if ending == "quit":
        assert patient.say("quit") == (True, ["leaving: every fault heals"])
    else:
        patient.process.send_signal(ending)
    patient.process.wait(timeout=PATIENCE_S)
    watching.close()
    deaf.close()


def test_a_taken_port_ends_in_one_line_before_there_is_a_run(shown, tmp_path_factory):
    folder = tmp_path_factory.mktemp("second")
    second = up(folder, "--web-port", str(shown.port))
    _, why = second.communicate(timeout=30)
    assert second.returncode == 2
    assert why == f"rmqemu: --web-port {shown.port}: no dashboard can listen there: Address already in use\n"
    assert not (folder / "runs").exists()


def test_without_the_option_nothing_is_served(tmp_path):
    process = up(tmp_path)
    try:
        assert not process.stdout.readline().startswith("dashboard: ")
    finally:
        process.kill()
        process.communicate()
