"""A live cluster with its dashboard, in a process of its own, and requests to it."""

import json
import os
import socket
import subprocess
import sys

import attrs

from emulator.console.control_socket import newest_socket

SCENARIO = """
[scenario]
name = "shown"
seed = 1
run_for_s = 3600

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 2

[[consumer]]
group = "buyers"
count = 2
topics = ["orders"]
"""


@attrs.frozen
class Shown:
    """What the terminal reported about a dashboard, and how to ask it."""

    process: subprocess.Popen
    port: int
    token: str
    runs: object

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=15)

    def send(self, method, path, *, body=b"", **headers):
        """An open connection on which a request was sent; a header that is None is left out."""
        text = {"host": f"127.0.0.1:{self.port}", "authorization": f"Bearer {self.token}", **headers}
        if body:
            text = {"content-length": str(len(body)), **text}
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in text.items() if value is not None),
        ]
        connection = self.connect()
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return connection

    def ask(self, method, path, *, body=b"", **headers):
        """(status, headers, content) of one answer."""
        with self.send(method, path, body=body, **headers) as connection:
            return answer(connection)

    def say(self, line):
        status, _, content = self.ask("POST", "/verb", body=json.dumps({"line": line}).encode())
        assert status == 200
        reported = json.loads(content)
        return reported["ok"], reported["lines"]

    def state(self):
        return json.loads(self.ask("GET", "/state")[2])

    @property
    def control(self):
        return newest_socket(self.runs)


def answer(connection):
    """Read one answer that has a length, and let the connection be."""
    stream = connection.makefile("rb")
    status = int(stream.readline().split()[1])
    headers = {}
    while (line := stream.readline().strip()) != b"":
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers, stream.read(int(headers["content-length"]))


def up(cwd, *options, first=""):
    """Start it; `first` is done in its Python before anything else."""
    (cwd / "shown.toml").write_text(SCENARIO)
    return subprocess.Popen(
        [sys.executable, "-c", f"{first}\nfrom emulator.cli.main import app\napp()", "up", "shown.toml", *options],
        cwd=cwd,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
