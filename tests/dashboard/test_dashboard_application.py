"""The application alone, without a network: what it answers, and when it gives up."""

import json

import attrs
import trio
from at_a_desk import Somebody, sit
from played import a_scenario

from emulator.web.app import BODY_BYTES_MAX, Dashboard
from emulator.web.feed import Feed
from emulator.web.gate import Gate

OWN = [(b"host", b"localhost:8080"), (b"authorization", b"Bearer secret")]


class Client:
    """One request: sends its parts, hears the answer."""

    def __init__(self, dashboard, method, path, *parts, headers=OWN, then=None):
        self.scope = {"type": "http", "method": method, "path": path, "headers": headers}
        self._parts = list(parts) or [b""]
        self._ends = then is None
        self.status, self.content, self.at_ms = None, b"", 0
        self._dashboard = dashboard

    async def receive(self):
        if not self._parts:
            await trio.sleep_forever()
        part = self._parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self._parts) or not self._ends}

    async def send(self, message):
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.content += message["body"]

    async def ask(self):
        await self._dashboard(self.scope, self.receive, self.send)
        return self.status, json.loads(self.content)


def asked(tmp_path, sitting):
    """Run a small cluster with a dashboard that the sitting asks."""

    async def with_a_dashboard(me: Somebody) -> None:
        feed = Feed(me.desk)
        me.desk.cluster.world.recorder.listeners.append(feed.note)
        await me.at_s(10)
        await sitting(me, Dashboard(me.desk, feed, Gate(8080, "secret")))
        done.append(True)

    done = []
    sit(attrs.evolve(a_scenario(consumers=1, nameservers=1), run_for_ms=60_000), tmp_path, with_a_dashboard)
    assert done


def test_a_verb_may_come_in_parts_and_is_answered(tmp_path):
    async def sitting(me, dashboard):
        client = Client(dashboard, "POST", "/verb", b'{"line": "susp', b'end c1"}', b"")
        assert await client.ask() == (200, {"ok": True, "lines": ["suspend-1: suspend c1"]})
        client = Client(dashboard, "POST", "/verb", b'{"line": "suspend c1"}')
        assert (await client.ask())[1]["ok"] is False
        assert (await Client(dashboard, "GET", "/state").ask())[1]["nodes"]["c1"]["state"] == "suspended"

    asked(tmp_path, sitting)


def test_a_request_that_never_ends_is_given_up_and_one_that_is_too_long_is_refused(tmp_path):
    async def sitting(me, dashboard):
        client = Client(dashboard, "POST", "/verb", b'{"line', then="nothing")
        assert (await client.ask())[0] == 408
        assert me.desk.now_ms == 15_000
        client = Client(dashboard, "POST", "/verb", b" " * BODY_BYTES_MAX, b" ", b"")
        assert (await client.ask())[0] == 413

    asked(tmp_path, sitting)


def test_refusals_are_one_line_each(tmp_path):
    async def sitting(me, dashboard):
        for method, path, headers, status in (
            ("GET", "/state", OWN[:1], 401),
            ("GET", "/state", OWN[1:], 403),
            ("GET", "/nothing", OWN, 404),
            ("POST", "/", OWN, 405),
            ("POST", "/verb", OWN, 400),
        ):
            client = Client(dashboard, method, path, headers=headers)
            assert (await client.ask())[0] == status
            assert client.content.count(b"\n") == 1

    asked(tmp_path, sitting)


def test_a_bug_of_a_verb_is_an_answer_and_no_end_of_the_cluster(tmp_path, monkeypatch):
    async def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("emulator.web.app.say", fail)

    async def sitting(me, dashboard):
        status, told = await Client(dashboard, "POST", "/verb", b'{"line": "status"}').ask()
        assert (status, told) == (500, {"error": "the dashboard failed; log.jsonl of the run says how"})

    asked(tmp_path, sitting)


def test_a_stream_ends_when_its_client_has_gone(tmp_path):
    async def sitting(me, dashboard):
        client = Client(dashboard, "GET", "/events")

        async def go():
            if me.desk.now_ms < 12_000:
                await me.at_s(12)
            return {"type": "http.disconnect"}

        client.receive = go
        await client.ask()
        assert me.desk.now_ms == 12_000
        assert client.status == 200

    asked(tmp_path, sitting)


def test_a_websocket_is_refused(tmp_path):
    async def sitting(me, dashboard):
        said = []

        async def send(message):
            said.append(message["type"])

        await dashboard({"type": "websocket"}, None, send)
        assert said == ["websocket.close"]

    asked(tmp_path, sitting)
