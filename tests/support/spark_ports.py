"""The ports on which a process of Spark listens, and what they ask a stranger for.

A stranger is another user of the machine where the tests are run by root, who may become one; else this user, without
the secrets.
"""

import json
import os
import socket
import struct
from pathlib import Path

_LISTENS = "0A"
_RPC_REQUEST = 3
_PATIENCE_S = 5
_NOBODY = 65534
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
_OBJECT_OF_JAVA = b"\xac\xed\x00\x05sr\x00\x01x"
REQUEST = struct.pack(">QBqI", 21 + len(_OBJECT_OF_JAVA), _RPC_REQUEST, 7, len(_OBJECT_OF_JAVA)) + _OBJECT_OF_JAVA
"""Of Spark's own protocol."""
_QUESTIONS = {
    "token of py4j": (b"c\nt\ngetClass\ne\n", b"Authentication error"),
    "signature": (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"403 Forbidden"),
    "secret": (REQUEST, b"Expected SaslMessage"),
}
"""Mapping what a port asks for -> (what a stranger says to find that out, what the answer has). Order matters: py4j
would wait for the end of a line."""


def listening_ports(pid):
    """The TCP ports on which a process and its children listen, sorted; all of them on loopback."""
    sockets = {link for process in (pid, *descendants(pid)) for link in _links(process)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and f"socket:[{words[9]}]" in sockets:
                address, _, port = words[1].rpartition(":")
                assert address in _LOOPBACK, line
                found.add(int(port, 16))
    return sorted(found)


def guards(ports):
    """Mapping port -> what it asks a stranger for, one of `_QUESTIONS`; empty: nothing that is known."""
    return as_a_stranger(lambda: {port: _guard(port) for port in ports}, int)


def as_a_stranger(ask, key=str):
    """What a function returns that is called in a process of another user, or of this one where that is not allowed.

    Args:
        ask: returns a mapping for JSON.
        key: what its keys are.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups(())
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
            os.write(writing, json.dumps(ask()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = json.load(answer)
    os.waitpid(child, 0)
    return {key(name): value for name, value in found.items()}


def _guard(port):
    for name, (question, refusal) in _QUESTIONS.items():
        if refusal in answer_to_a_stranger(port, question):
            return name
    return ""


def answer_to_a_stranger(port, question):
    """What a port answers to a question without a secret; empty: nothing, or it is closed."""
    # A stranger may not be able to read the modules that `create_connection` imports.
    with socket.socket() as wire:
        wire.settimeout(_PATIENCE_S)
        try:
            wire.connect(("127.0.0.1", port))
            wire.sendall(question)
            return wire.recv(1 << 16)
        except OSError:
            return b""


def descendants(pid):
    """The children of a process, and theirs."""
    try:
        texts = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # it ended meanwhile, or a thread of it
        return
    for child in " ".join(texts).split():
        yield int(child)
        yield from descendants(int(child))


def _links(pid):
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(descriptor.readlink())
        except OSError:  # closed meanwhile
            continue
