"""A client of one connection in memory: says bytes, hears answers."""

import h11
import trio
from trio.testing import memory_stream_pair

from emulator.web.http import Gone, HttpConnection


class Client:
    """The other end of a `HttpConnection`."""

    def __init__(self, stream):
        self.stream = stream
        self.ended_at_s = None
        self._heard = b""

    async def send(self, content):
        await self.stream.send_all(content)

    async def send_slowly(self, content):
        """One byte at a time, each after the one before has been looked at."""
        for byte in content:
            await self.send(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()

    async def hear(self):
        """Everything until the server ends the connection."""
        while received := await self.stream.receive_some():
            self._heard += received
        self.ended_at_s = trio.current_time()
        return self._heard


async def connect(nursery, answer, pair=memory_stream_pair):
    """A client whose connection is served, and closed at its end as by a listener."""
    ours, theirs = pair()

    async def serve():
        async with theirs:
            try:
                await HttpConnection(theirs).serve(answer)
            except Gone:
                gone.append(True)

    client = Client(ours)
    client.gone = gone = []
    nursery.start_soon(serve)
    return client


def answers(heard, methods=("GET",)):
    """(status, headers, content) of every answer in what was heard."""
    lines = []
    reader = h11.Connection(h11.CLIENT)
    reader.receive_data(heard)
    reader.receive_data(b"")
    for method in methods:
        if not reader.trailing_data[0]:
            break
        reader.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        reader.send(h11.EndOfMessage())
        content = b""
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status, headers = event.status_code, dict(event.headers)
            elif isinstance(event, h11.Data):
                content += event.data
        lines.append((status, headers, content))
        if reader.our_state is not h11.DONE or reader.their_state is not h11.DONE:
            break
        reader.start_next_cycle()
    return lines
