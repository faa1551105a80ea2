"""The dashboard without a network: what it answers, and when it gives up."""

import json

import attrs
import pytest
import trio

from emulator.console.session import Session
from emulator.testing import ConsoleUser, a_scenario, run_at_console
from emulator.web.dashboard import Dashboard
from emulator.web.feed import PageFeed
from emulator.web.gate import Gate
from web.http_client import answers, connect

OWN = b"host: localhost:8080\r\nauthorization: Bearer secret\r\n"


class Asker:
    """Asks a dashboard, over a connection of its own for each request."""

    def __init__(self, me, nursery):
        self.feed = PageFeed(me.session)
        me.session.cluster.world.recorder.listeners.append(self.feed.note)
        self._dashboard = Dashboard(me.session, self.feed, Gate(8080, "secret"))
        self._nursery = nursery

    async def send(self, method, path, body=b"", *, headers=OWN):
        client = await connect(self._nursery, self._dashboard.answer)
        length = b"content-length: %d\r\n" % len(body) if body else b""
        await client.send(f"{method} {path} HTTP/1.1\r\n".encode() + headers + length + b"\r\n" + body)
        return client

    async def ask(self, method, path, body=b"", *, headers=OWN):
        client = await self.send(method, path, body, headers=headers)
        await client.stream.send_eof()
        ((status, _, content),) = answers(await client.hear())
        assert content.count(b"\n") == 1
        return status, json.loads(content)


def requested(tmp_path, sitting):
    """Run a small cluster with a dashboard that the sitting asks."""

    async def with_a_dashboard(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        async with trio.open_nursery() as nursery:
            await sitting(me, Asker(me, nursery))
            nursery.cancel_scope.cancel()
        done.append(True)

    done = []
    run_at_console(attrs.evolve(a_scenario(consumers=1, nameservers=1), run_for_ms=60_000), tmp_path, with_a_dashboard)
    assert done


def test_a_verb_is_done_and_answered(tmp_path):
    async def sitting(_me, asker):
        reported = await asker.ask("POST", "/verb", b'{"line": "suspend c1"}')
        undo = {"fault": "suspend-1", "kind": "suspend", "line": "resume c1", "text": "Resume c1"}
        assert reported == (200, {"ok": True, "lines": ["suspend-1: suspend c1"], "offers": [undo]})
        _, again = await asker.ask("POST", "/verb", b'{"line": "suspend c1"}')
        assert (again["ok"], again["offers"]) == (False, [])
        assert (await asker.ask("GET", "/state"))[1]["nodes"]["c1"]["state"] == "suspended"

    requested(tmp_path, sitting)


def test_the_page_reads_and_writes_files_of_the_run_only(tmp_path):
    (tmp_path / "secret").write_text("a secret")

    async def sitting(_me, asker):
        for line in (f"script {tmp_path / 'secret'}", f"save {tmp_path / 'x.toml'}", "script /etc/passwd"):
            status, reported = await asker.ask("POST", "/verb", json.dumps({"line": line}).encode())
            assert (status, reported["ok"]) == (200, False)
            assert "expected a file below the run directory" in reported["lines"][0]
        assert (await asker.ask("POST", "/verb", b'{"line": "save mine.toml"}'))[1]["ok"] is True

    requested(tmp_path, sitting)
    assert not (tmp_path / "x.toml").exists()


def test_the_past_is_answered_for_an_instant_that_is_named_in_ms(tmp_path):
    async def sitting(me, asker):
        assert (await asker.ask("GET", "/past?at_ms=10000"))[1]["nodes"]["c1"]["state"] == "running"
        await asker.ask("POST", "/verb", b'{"line": "suspend c1"}')
        await me.at_ms(12_000)
        status, now = await asker.ask("GET", "/past?at_ms=12000")
        assert (status, now["at_ms"], now["nodes"]["c1"]["state"]) == (200, 12_000, "suspended")
        _, before = await asker.ask("GET", "/past?at_ms=10000")
        assert (before["at_ms"], before["nodes"]["c1"]["state"]) == (10_000, "running")
        assert (await asker.ask("GET", "/past?at_ms=99999999"))[1]["at_ms"] == 12_000
        for path in ("/past", "/past?at_ms=", "/past?at_ms=-1", "/past?at_ms=1e3", "/past?at_ms=" + 99 * "9"):
            status, reported = await asker.ask("GET", path)
            assert (status, reported["error"].partition(",")[0]) == (400, "expected /past?at_ms=N")

    requested(tmp_path, sitting)


def test_refusals_are_one_line_each(tmp_path):
    host, token, _ = OWN.split(b"\r\n")

    async def sitting(_me, asker):
        for method, path, headers, status in (
            ("GET", "/state", host + b"\r\n", 401),
            ("GET", "/state", token + b"\r\nhost: evil.example\r\n", 403),
            ("GET", "/nothing", OWN, 404),
            ("POST", "/", OWN, 405),
            ("POST", "/verb", OWN, 400),
            ("GET", "/events", OWN + b"connection: upgrade\r\nupgrade: WebSocket\r\n", 400),
        ):
            got, reported = await asker.ask(method, path, headers=headers)
            assert (got, list(reported)) == (status, ["error"])

    requested(tmp_path, sitting)


def test_a_bug_of_a_verb_is_an_answer_and_no_end_of_the_cluster(tmp_path, monkeypatch):
    async def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(Session, "say", fail)

    async def sitting(_me, asker):
        reported = await asker.ask("POST", "/verb", b'{"line": "status"}')
        assert reported == (500, {"error": "the dashboard failed; log.jsonl of the run says how"})

    requested(tmp_path, sitting)


def test_a_stream_ends_with_the_next_message_after_its_client_has_gone(tmp_path):
    async def sitting(me, asker):
        client = await asker.send("GET", "/events")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asker.feed.push)
            await me.at_ms(12_000)
            assert client.gone == []
            await client.stream.aclose()
            await me.at_ms(12_300)
            assert client.gone == [True]
            nursery.cancel_scope.cancel()

    requested(tmp_path, sitting)


@pytest.mark.parametrize("half_closed", [False, True])
def test_a_stream_says_when_the_run_is_over(tmp_path, half_closed):
    async def sitting(me, asker):
        async with trio.open_nursery() as nursery:
            asker._nursery = nursery
            client = await asker.send("GET", "/events")
            if half_closed:
                await client.stream.send_eof()
            nursery.start_soon(asker.feed.push)
            await me.at_ms(11_000)
            nursery.cancel_scope.cancel()
        ((status, _, content),) = answers(await client.hear())
        first, *changes, last = (json.loads(line) for line in content.splitlines())
        assert status == 200
        assert list(first["nodes"]) == ["ns-1", "broker-a", "c1"]
        assert [change["now_ms"] for change in changes][-4:] == [10_200, 10_400, 10_600, 10_800]
        assert last == {"leaving": True}

    requested(tmp_path, sitting)
